// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Raw sockets to clients. IPPROTO_RAW takes packets with their header, in both families (raw(7);
 * net/ipv6/raw.c).
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/handover/raw.h"

static int es_raw_socket(int family)
{
	int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_RAW);

	return fd < 0 ? -errno : fd;
}

int es_raw_open(struct es_raw *raw)
{
	int v4_fd = es_raw_socket(AF_INET), v6_fd;

	*raw = ES_RAW_CLOSED;
	if (v4_fd < 0)
		return v4_fd;
	v6_fd = es_raw_socket(AF_INET6);
	if (v6_fd < 0 && v6_fd != -EAFNOSUPPORT) {
		close(v4_fd);
		return v6_fd;
	}
	raw->v4_fd = v4_fd;
	raw->v6_fd = v6_fd < 0 ? -1 : v6_fd;
	return 0;
}

void es_raw_close(struct es_raw *raw)
{
	if (raw->v4_fd >= 0)
		close(raw->v4_fd);
	if (raw->v6_fd >= 0)
		close(raw->v6_fd);
	*raw = ES_RAW_CLOSED;
}

int es_raw_mark(const struct es_raw *raw, unsigned int mark)
{
	if (setsockopt(raw->v4_fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) ||
	    (raw->v6_fd >= 0 && setsockopt(raw->v6_fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark))))
		return -errno;
	return 0;
}

int es_raw_send(const struct es_raw *raw, const struct es_flow *flow, const uint8_t *bytes, size_t len)
{
	/* A port would be taken for a protocol. */
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = flow->client.w[3]};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
	ssize_t sent;

	if (es_addr_is_v4(&flow->client)) {
		sent = sendto(raw->v4_fd, bytes, len, 0, (const struct sockaddr *)&v4, sizeof(v4));
	} else {
		memcpy(&v6.sin6_addr, &flow->client, sizeof(v6.sin6_addr));
		sent = sendto(raw->v6_fd, bytes, len, 0, (const struct sockaddr *)&v6, sizeof(v6));
	}
	return sent < 0 ? -errno : 0;
}
