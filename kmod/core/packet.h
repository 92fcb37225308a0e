/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_PACKET_H
#define ES_CORE_PACKET_H

#include "flow.h"

/**
 * struct es_packet - a TCP/IPv4 packet
 * @off: offset of the IP header in the datapath's buffer; @options_len: bytes of TCP options
 */
struct es_packet {
	__u32 off;
	__u32 options_len;
	__be32 saddr;
	__be32 daddr;
	__be16 sport;
	__be16 dport;
};

/* The flow of a client's packet. */
static __always_inline void es_packet_flow(const struct es_packet *pkt, struct es_flow *ret)
{
	ret->client = es_addr_from_v4(pkt->saddr);
	ret->service = es_addr_from_v4(pkt->daddr);
	ret->client_port = pkt->sport;
	ret->service_port = pkt->dport;
}

/* es_packet_turn() - the way back: the answer to @pkt goes there, what it answers came that way */
static __always_inline void es_packet_turn(const struct es_packet *pkt, struct es_packet *ret)
{
	ret->off = 0;
	ret->options_len = 0;
	ret->saddr = pkt->daddr;
	ret->daddr = pkt->saddr;
	ret->sport = pkt->dport;
	ret->dport = pkt->sport;
}

#endif
