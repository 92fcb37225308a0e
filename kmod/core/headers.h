/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_HEADERS_H
#define ES_CORE_HEADERS_H

/*
 * The headers that IPv6 has before that of TCP (RFC 8200, 4), and from whom a segment may come. A datapath
 * loads the bytes; what they mean is decided here. The walk ends after a few headers, as nobody who means it
 * well sends more.
 */
#include "counters.h"
#include "types.h"

enum {
	ES_HEADER_HOP_BY_HOP = 0,
	ES_HEADER_TCP = 6,
	ES_HEADER_UDP = 17,
	ES_HEADER_ROUTING = 43,
	ES_HEADER_FRAGMENT = 44,
	ES_HEADER_ICMPV6 = 58,
	ES_HEADER_OPTIONS = 60,
};

#define ES_HEADERS_MAX 4 /* before that of TCP */

/**
 * struct es_headers_walk - where a walk is
 * @next: what begins at @off, which is counted from the IPv6 header on
 */
struct es_headers_walk {
	__u32 off;
	__u32 next;
};

/* Does the walk go on behind the header that it is at? That one carries options only. */
static __always_inline int es_headers_go_on(const struct es_headers_walk *w)
{
	return w->next == ES_HEADER_HOP_BY_HOP || w->next == ES_HEADER_OPTIONS;
}

/* es_headers_step() - one header further; @head: the first two bytes of the one that the walk is at */
static __always_inline void es_headers_step(struct es_headers_walk *w, const __u8 *head)
{
	w->next = head[0];
	w->off += 8 + 8 * (__u32)head[1];
}

/* es_headers_hide() - is it unknown what is behind the header at which a walk is over? */
static __always_inline int es_headers_hide(__u32 next)
{
	return next == ES_HEADER_HOP_BY_HOP || next == ES_HEADER_OPTIONS || next == ES_HEADER_ROUTING ||
	       next == ES_HEADER_FRAGMENT;
}

/*
 * es_addr_is_client() - may a segment of IPv6 come from @a? From no group, and from nobody that only its own
 * node knows.
 */
static __always_inline int es_addr_is_client(const struct es_addr *a)
{
	int is_low = !(a->w[0] | a->w[1] | a->w[2]) && es_ntohl(a->w[3]) <= 1; /* :: and ::1 */

	return a->b[0] != 0xff && !is_low && !es_addr_is_v4(a);
}

/*
 * The same of IPv4, as the stack judges it: "this network" (0.0.0.0/8), loopback, groups and the broadcast
 * are nobody's. The stack drops what is made of a segment with one of these.
 */
static __always_inline int es_v4_is_client(__be32 address)
{
	__u32 a = es_ntohl(address);

	return a >> 24 && a >> 24 != 127 && a >> 28 != 14 && a != 0xffffffff;
}

/* Is it of IPv6's link-local addresses (fe80::/10), which mean something only together with an interface? */
static __always_inline int es_addr_is_link_local(const struct es_addr *a)
{
	return a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80;
}

/* Is it one of this machine's own, which no wire has (127.0.0.0/8, ::1)? */
static __always_inline int es_addr_is_loopback(const struct es_addr *a)
{
	if (es_addr_is_v4(a))
		return a->b[12] == 127;
	return !a->w[0] && !a->w[1] && !a->w[2] && a->w[3] == es_htonl(1);
}

/**
 * es_headers_counter() - what a packet is for a service, whose walk is over at @next
 * Returns the counter to drop it by, ES_COUNTER_COUNT if it is TCP, and -1 if it is something else.
 */
static __always_inline int es_headers_counter(__u32 next, const struct es_addr *source)
{
	switch (next) {
	case ES_HEADER_TCP:
		return es_addr_is_client(source) ? ES_COUNTER_COUNT : ES_COUNT_drop_martian;
	case ES_HEADER_FRAGMENT:
		return ES_COUNT_drop_v6_fragment;
	case ES_HEADER_ROUTING:
		return ES_COUNT_drop_v6_routing;
	case ES_HEADER_HOP_BY_HOP:
	case ES_HEADER_OPTIONS:
		return ES_COUNT_drop_v6_headers;
	default:
		return -1;
	}
}

/**
 * es_headers_packet_len() - bytes of a packet from its IPv6 header on
 * @payload_len: its field; @there: so many bytes there are. Only a merged packet may be longer than the field
 * can say, which is 0 then; a jumbogram (RFC 2675) of a client's has a wrong length.
 */
static __always_inline __u32 es_headers_packet_len(__be16 payload_len, int is_merged, __u32 there)
{
	return payload_len || !is_merged ? 40 + (__u32)es_ntohs(payload_len) : there;
}

#endif
