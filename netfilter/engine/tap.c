// SPDX-License-Identifier: GPL-2.0-or-later
/* A packet socket with a filter in the kernel. Copies share the packet's payload until they are read. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "netfilter/engine/tap.h"

#define ES_BATCH	16
#define ES_BATCHES	256 /* in one call: a stream of copies must not keep the thread */
#define ES_PACKET_MAX	0xffff
#define ES_SOCKET_BYTES (16 << 20)
#define ES_WHOLE	0x40000 /* more than the bytes of any packet */

struct es_nf_tap {
	int fd;
	struct mmsghdr message[ES_BATCH];
	struct iovec part[ES_BATCH];
	unsigned char bytes[ES_BATCH][ES_PACKET_MAX];
};

int es_nf_tap_new(struct es_nf_tap **ret_tap, struct es_nf_why *why)
{
	struct es_nf_tap *tap = calloc(1, sizeof(*tap));
	int bytes = ES_SOCKET_BYTES, rc;

	if (!tap)
		return es_nf_why(why, -ENOMEM, "no memory for packets");
	/* It receives nothing until it is bound. */
	tap->fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (tap->fd < 0) {
		rc = es_nf_why(why, -errno, "packet socket: %s", strerror(errno));
		es_nf_tap_free(&tap);
		return rc;
	}
	/* Without room, responses are not read to their end, and their connections stay: that is no error. */
	(void)setsockopt(tap->fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	for (int i = 0; i < ES_BATCH; i++) {
		tap->part[i] = (struct iovec){tap->bytes[i], sizeof(tap->bytes[i])};
		tap->message[i].msg_hdr = (struct msghdr){.msg_iov = &tap->part[i], .msg_iovlen = 1};
	}
	*ret_tap = tap;
	return 0;
}

void es_nf_tap_free(struct es_nf_tap **tap)
{
	if (!*tap)
		return;
	if ((*tap)->fd >= 0)
		close((*tap)->fd);
	free(*tap);
	*tap = NULL;
}

int es_nf_tap_fd(const struct es_nf_tap *tap)
{
	return tap->fd;
}

/* struct program - a filter being written; @at: index of the next instruction */
struct program {
	size_t at;
	struct sock_filter code[48 + 11 * ES_NF_ADDRESSES_MAX];
};

static void put(struct program *p, unsigned int code, unsigned int value)
{
	p->code[p->at++] = (struct sock_filter)BPF_STMT((__u16)code, value);
}

static void put_jump(struct program *p, unsigned int code, unsigned int value, unsigned int if_so,
		     unsigned int else_so)
{
	p->code[p->at++] = (struct sock_filter)BPF_JUMP((__u16)code, value, (__u8)if_so, (__u8)else_so);
}

/* Go on only if the accumulator is @value. */
static void put_match(struct program *p, unsigned int value)
{
	put_jump(p, BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0);
	put(p, BPF_RET | BPF_K, 0);
}

/*
 * Go on only if there is a payload: the accumulator has the packet's length, @ip_len is the IP header's, and
 * both headers must be shorter than the packet.
 */
static void put_says(struct program *p, unsigned int ip_len)
{
	put(p, BPF_MISC | BPF_TAX, 0);
	put(p, BPF_LD | BPF_B | BPF_ABS, ip_len + 12);
	put(p, BPF_ALU | BPF_AND | BPF_K, 0xf0);
	put(p, BPF_ALU | BPF_RSH | BPF_K, 2);
	put(p, BPF_ALU | BPF_K, ip_len); /* add */
	put_jump(p, BPF_JMP | BPF_JGE | BPF_X, 0, 0, 1);
	put(p, BPF_RET | BPF_K, 0);
}

/* Accept the packet if its source is this address (@words words at offset @at) and port. */
static void put_service(struct program *p, unsigned int at, const __be32 *address, unsigned int words,
			__be16 port, unsigned int ip_len)
{
	/* On a mismatch, jump to after the last instruction below. */
	for (unsigned int i = 0; i < words; i++) {
		put(p, BPF_LD | BPF_ABS, at + 4 * i); /* a word */
		put_jump(p, BPF_JMP | BPF_JEQ | BPF_K, ntohl(address[i]), 0, 2 * (words - i) + 1);
	}
	put(p, BPF_LD | BPF_H | BPF_ABS, ip_len);
	put_jump(p, BPF_JMP | BPF_JEQ | BPF_K, ntohs(port), 0, 1);
	put(p, BPF_RET | BPF_K, ES_WHOLE);
}

static void put_v4(struct program *p, const struct es_nf_rules *rules)
{
	put_match(p, ETH_P_IP);
	put(p, BPF_LD | BPF_B | BPF_ABS, 0);
	put_match(p, 0x45);
	put(p, BPF_LD | BPF_B | BPF_ABS, 9);
	put_match(p, IPPROTO_TCP);
	put(p, BPF_LD | BPF_H | BPF_ABS, 2);
	put_says(p, 20);
	for (__u32 i = 0; i < rules->every_count; i++)
		if (es_addr_is_v4(&rules->every[i].address))
			put_service(p, 12, &rules->every[i].address.w[3], 1, rules->every[i].port, 20);
	put(p, BPF_RET | BPF_K, 0);
}

static void put_v6(struct program *p, const struct es_nf_rules *rules)
{
	put(p, BPF_LD | BPF_B | BPF_ABS, 6);
	put_match(p, IPPROTO_TCP);
	put(p, BPF_LD | BPF_H | BPF_ABS, 4);
	put(p, BPF_ALU | BPF_K, 40); /* add */
	put_says(p, 40);
	for (__u32 i = 0; i < rules->every_count; i++)
		if (!es_addr_is_v4(&rules->every[i].address))
			put_service(p, 8, rules->every[i].address.w, 4, rules->every[i].port, 40);
	put(p, BPF_RET | BPF_K, 0);
}

/* Packets with a payload that leave by TCP from one of the services. Servers send no IP options. */
static void write_program(struct program *p, const struct es_nf_rules *rules)
{
	size_t jump;

	p->at = 0;
	put(p, BPF_LD | BPF_B | BPF_ABS, (unsigned int)(SKF_AD_OFF + SKF_AD_PKTTYPE));
	put_match(p, PACKET_OUTGOING);
	put(p, BPF_LD | BPF_H | BPF_ABS, (unsigned int)(SKF_AD_OFF + SKF_AD_PROTOCOL));
	put_jump(p, BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IPV6, 0, 1);
	jump = p->at;
	put(p, BPF_JMP | BPF_JA, 0);
	put_v4(p, rules);
	p->code[jump].k = (__u32)(p->at - jump - 1);
	put_v6(p, rules);
}

int es_nf_tap_listen(struct es_nf_tap *tap, const struct es_nf_rules *rules)
{
	const struct sockaddr_ll here = {
		.sll_family = AF_PACKET,
		/* Only sockets for all protocols get outgoing packets. */
		.sll_protocol = rules->every_count ? htons(ETH_P_ALL) : 0,
		.sll_ifindex = (int)rules->public_ifindex,
	};
	struct program program;
	struct sock_fprog filter = {.filter = program.code};

	write_program(&program, rules);
	filter.len = (unsigned short)program.at;
	if (setsockopt(tap->fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ||
	    bind(tap->fd, (const struct sockaddr *)&here, sizeof(here)))
		return -errno;
	return 0;
}

void es_nf_tap_read(struct es_nf_tap *tap, es_nf_tap_fn fn, void *ctx)
{
	int count = ES_BATCH;

	for (int batch = 0; batch < ES_BATCHES && count == ES_BATCH; batch++) {
		count = recvmmsg(tap->fd, tap->message, ES_BATCH, MSG_DONTWAIT, NULL);
		for (int i = 0; i < count; i++)
			fn(ctx, tap->bytes[i], tap->message[i].msg_len);
	}
}
