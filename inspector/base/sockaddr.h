/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SOCKADDR_H
#define ES_SOCKADDR_H

/*
 * An address and port for the socket calls, of either family.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include "kmod/core/types.h"

union es_sockaddr {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* es_sockaddr_of() - @port: in host byte order. An IPv6 address has no scope: it is none of a link. */
static inline union es_sockaddr es_sockaddr_of(const struct es_addr *address, unsigned int port)
{
	union es_sockaddr s;

	memset(&s, 0, sizeof(s));
	if (es_addr_is_v4(address)) {
		s.v4.sin_family = AF_INET;
		s.v4.sin_port = es_htons(port);
		s.v4.sin_addr.s_addr = address->w[3];
	} else {
		s.v6.sin6_family = AF_INET6;
		s.v6.sin6_port = es_htons(port);
		memcpy(&s.v6.sin6_addr, address, sizeof(s.v6.sin6_addr));
	}
	return s;
}

/* es_sockaddr_addr() - what the socket calls gave. Returns 0, or -EAFNOSUPPORT if it is of another family. */
static inline int es_sockaddr_addr(const struct sockaddr *s, socklen_t len, struct es_addr *ret_address)
{
	union es_sockaddr copy;

	if (len > sizeof(copy))
		return -EAFNOSUPPORT;
	memcpy(&copy, s, len);
	if (len >= sizeof(copy.v4) && copy.sa.sa_family == AF_INET) {
		*ret_address = es_addr_from_v4(copy.v4.sin_addr.s_addr);
		return 0;
	}
	if (len < sizeof(copy.v6) || copy.sa.sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	memcpy(ret_address, &copy.v6.sin6_addr, sizeof(*ret_address));
	return 0;
}

static inline socklen_t es_sockaddr_len(const union es_sockaddr *s)
{
	return s->sa.sa_family == AF_INET6 ? sizeof(s->v6) : sizeof(s->v4);
}

/* es_sockaddr_port() - in host byte order */
static inline unsigned int es_sockaddr_port(const union es_sockaddr *s)
{
	return es_ntohs(s->sa.sa_family == AF_INET6 ? s->v6.sin6_port : s->v4.sin_port);
}

static inline void es_sockaddr_port_set(union es_sockaddr *s, unsigned int port)
{
	if (s->sa.sa_family == AF_INET6)
		s->v6.sin6_port = es_htons(port);
	else
		s->v4.sin_port = es_htons(port);
}

static inline int es_sockaddr_equal(const union es_sockaddr *a, const union es_sockaddr *b)
{
	if (a->sa.sa_family != b->sa.sa_family)
		return 0;
	if (a->sa.sa_family == AF_INET6)
		return a->v6.sin6_port == b->v6.sin6_port &&
		       !memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof(a->v6.sin6_addr));
	return a->v4.sin_port == b->v4.sin_port && a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
}

/*
 * es_sockaddr_distrust_errors() - what is sent by @fd, of @family, is as long as its interface allows,
 * whatever ICMP errors say: anybody could have sent one of those, and parts of a message are refused. Returns
 * 0 or -errno.
 */
static inline int es_sockaddr_distrust_errors(int fd, int family)
{
	const int v4 = IP_PMTUDISC_INTERFACE, v6 = IPV6_PMTUDISC_INTERFACE;
	int rc = family == AF_INET6 ? setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &v6, sizeof(v6))
				    : setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &v4, sizeof(v4));

	return rc ? -errno : 0;
}

#endif
