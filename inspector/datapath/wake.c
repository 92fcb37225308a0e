// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Wake-ups: frames on lo, of which the kernel keeps one byte for the worker that they name, none for others.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/datapath/wake.h"
#include "kmod/core/abi.h"

static int es_wake_bind(int fd, unsigned int worker)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, ES_WAKE_WORKER_OFF),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, worker, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
	struct sockaddr_ll lo = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ES_WAKE_PROTOCOL),
		.sll_ifindex = ES_LOOPBACK_IFINDEX,
	};

	/* The filter first: until it is bound, the socket (protocol 0) gets nothing. */
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ||
	    bind(fd, (struct sockaddr *)&lo, sizeof(lo)))
		return -errno;
	return 0;
}

int es_wake_open(unsigned int worker)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc;

	if (fd < 0)
		return -errno;
	rc = es_wake_bind(fd, worker);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

unsigned int es_wake_drain(int fd)
{
	unsigned int count = 0;
	char word[8]; /* as an eventfd wants it */

	while (read(fd, word, sizeof(word)) > 0)
		count++;
	return count;
}
