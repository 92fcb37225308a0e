// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sends whole packets.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "netfilter/kernel/raw.h"

void es_nf_raw_close(struct es_nf_raw *raw)
{
	if (raw->v4 >= 0)
		close(raw->v4);
	if (raw->v6 >= 0)
		close(raw->v6);
	*raw = (struct es_nf_raw){-1, -1};
}

int es_nf_raw_open(struct es_nf_raw *raw, __u32 mark)
{
	/* IPPROTO_RAW: the IP header is part of what we send, in both families. */
	raw->v6 = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
	raw->v4 = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
	if (raw->v4 < 0 || (mark && setsockopt(raw->v4, SOL_SOCKET, SO_MARK, &mark, sizeof(mark))) ||
	    (mark && raw->v6 >= 0 && setsockopt(raw->v6, SOL_SOCKET, SO_MARK, &mark, sizeof(mark))))
		return -errno;
	return 0;
}

int es_nf_raw_distrust_errors(const struct es_nf_raw *raw)
{
	const int v4 = IP_PMTUDISC_INTERFACE, v6 = IPV6_PMTUDISC_INTERFACE;

	if (setsockopt(raw->v4, IPPROTO_IP, IP_MTU_DISCOVER, &v4, sizeof(v4)) ||
	    (raw->v6 >= 0 && setsockopt(raw->v6, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &v6, sizeof(v6))))
		return -errno;
	return 0;
}

int es_nf_raw_send(const struct es_nf_raw *raw, const void *packet, size_t len)
{
	const uint8_t *bytes = packet;
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	ssize_t sent;

	if (bytes[0] >> 4 == 6) {
		memcpy(&v6.sin6_addr, bytes + 24, sizeof(v6.sin6_addr));
		sent = sendto(raw->v6, packet, len, MSG_DONTWAIT, (struct sockaddr *)&v6, sizeof(v6));
	} else {
		memcpy(&v4.sin_addr, bytes + 16, sizeof(v4.sin_addr));
		sent = sendto(raw->v4, packet, len, MSG_DONTWAIT, (struct sockaddr *)&v4, sizeof(v4));
	}
	return sent < 0 ? -errno : 0;
}
