/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_PACKET_H
#define ES_NETFILTER_PACKET_H

/*
 * From the bytes of a packet to a segment and a flow. IPv4.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "kmod/core/packet.h"
#include "kmod/core/tcp.h"

#define ES_NF_IP_LEN  20 /* without options */
#define ES_NF_TCP_LEN 20
#define ES_NF_UDP_LEN 8

/**
 * struct es_nf_frame - a packet that the kernel has given to this datapath
 * @bytes: from its IP header on, @len of them
 * @ifindex: where it came in; @source: the MAC that it came from, all zero where there is none
 * @is_known: a SYN of a flow that the connection tracking knows
 */
struct es_nf_frame {
	const uint8_t *bytes;
	size_t len;
	unsigned int ifindex;
	uint8_t source[6];
	uint8_t is_known;
};

static inline __be32 es_nf_be32(const uint8_t *at)
{
	__be32 word;

	memcpy(&word, at, sizeof(word));
	return word;
}

static inline __be16 es_nf_be16(const uint8_t *at)
{
	__be16 word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/* es_nf_packet_tcp() - read a packet of TCP over IPv4 without options, at most @len bytes that are at @ip
 * Behind the bytes that its header says, there may be others: padding. TCP's options are not read.
 * Returns 0, or -EBADMSG if its lengths contradict each other.
 */
int es_nf_packet_tcp(const uint8_t *ip, size_t len, struct es_packet *ret_pkt, struct es_segment *ret_seg);

/*
 * es_nf_packet_options() - read the options of TCP into @seg; of a packet that es_nf_packet_tcp() has read
 * Returns 0, or -EBADMSG if es_tcp_options_are_taken() denies it.
 */
int es_nf_packet_options(const uint8_t *ip, const struct es_packet *pkt, struct es_segment *seg);

#endif
