/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_PACKET_H
#define ES_CORE_PACKET_H

#include "flow.h"

/**
 * struct es_packet - a TCP packet
 * @off: offset of the IP header in the datapath's buffer; @options_len: bytes of TCP options
 * @saddr, @daddr: of IPv4, where the rest of @source and @dest says nothing; @source, @dest: of IPv6
 * @is_v6: it is one of IPv6, @headers_len: whose headers before that of TCP have so many bytes
 */
struct es_packet {
	__u32 off;
	__u32 options_len;
	union {
		struct es_addr source;
		struct {
			__be32 source_high[3];
			__be32 saddr;
		};
	};
	union {
		struct es_addr dest;
		struct {
			__be32 dest_high[3];
			__be32 daddr;
		};
	};
	__be16 sport;
	__be16 dport;
	__u16 headers_len;
	__u8 is_v6;
	__u8 pad;
};

/* Bytes before the TCP header: of IPv4, options never come so far. */
static __always_inline __u32 es_packet_ip_len(const struct es_packet *pkt)
{
	return pkt->is_v6 ? pkt->headers_len : 20;
}

/* Has it headers between those of IPv6 and TCP? */
static __always_inline int es_packet_has_extensions(const struct es_packet *pkt)
{
	return pkt->is_v6 && pkt->headers_len != 40;
}

/* The flow of a client's packet. */
static __always_inline void es_packet_flow(const struct es_packet *pkt, struct es_flow *ret)
{
	if (pkt->is_v6) {
		ret->client = pkt->source;
		ret->service = pkt->dest;
	} else {
		ret->client = es_addr_from_v4(pkt->saddr);
		ret->service = es_addr_from_v4(pkt->daddr);
	}
	ret->client_port = pkt->sport;
	ret->service_port = pkt->dport;
}

/* es_packet_of_flow() - the addresses and ports that a client's packet of @flow has; all else is 0 */
static __always_inline void es_packet_of_flow(const struct es_flow *flow, struct es_packet *ret)
{
	es_memset(ret, 0, sizeof(*ret));
	ret->source = flow->client;
	ret->dest = flow->service;
	ret->sport = flow->client_port;
	ret->dport = flow->service_port;
	ret->is_v6 = !es_addr_is_v4(&flow->service);
}

/* es_packet_turn() - the way back: the answer to @pkt goes there, what it answers came that way */
static __always_inline void es_packet_turn(const struct es_packet *pkt, struct es_packet *ret)
{
	ret->off = 0;
	ret->options_len = 0;
	ret->source = pkt->dest;
	ret->dest = pkt->source;
	ret->sport = pkt->dport;
	ret->dport = pkt->sport;
	ret->headers_len = 0;
	ret->is_v6 = pkt->is_v6;
	ret->pad = 0;
}

#endif
