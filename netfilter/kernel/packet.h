/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_PACKET_H
#define ES_NETFILTER_KERNEL_PACKET_H

/* Reads a packet's headers into a segment and a flow. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "kmod/core/packet.h"
#include "kmod/core/tcp.h"

#define ES_NF_IP_LEN  20 /* IPv4, without options */
#define ES_NF_IP6_LEN 40
#define ES_NF_TCP_LEN 20
#define ES_NF_UDP_LEN 8

/**
 * struct es_nf_frame - a packet that the kernel has given to this datapath
 * @bytes: from the IP header on, @len of them; @full_len: the packet's length if these are only its first
 * bytes, else 0
 * @ifindex: the interface that received it; @mark: the operator's (marks.h); @source: the sender's MAC, or
 * all zero
 * @is_known: conntrack knows the flow, and the packet is a SYN, or belongs to no connection here (ended.h)
 * @is_here: a later segment of a connection here, which the stack gets unless it is dropped
 */
struct es_nf_frame {
	const uint8_t *bytes;
	size_t len;
	unsigned int ifindex;
	uint32_t mark;
	uint32_t full_len;
	uint8_t source[6];
	uint8_t is_known;
	uint8_t is_here;
};

/**
 * struct es_nf_ip - the headers before that of TCP, UDP, …
 * @len: the packet's length as it says; padding may follow
 * @at: where the walk over the IP headers ended (kmod/core/headers.h); @next: the protocol there
 * @first: the protocol right after the IPv6 header; for IPv4, @next; @hops: the TTL or hop limit
 */
struct es_nf_ip {
	struct es_addr source;
	struct es_addr dest;
	size_t len;
	size_t at;
	uint8_t next;
	uint8_t first;
	uint8_t hops;
	uint8_t is_v6;
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

/* es_nf_ip_read() - from @len bytes. Returns 0, or -EBADMSG if a header is cut off, or not IP. */
int es_nf_ip_read(const uint8_t *bytes, size_t len, struct es_nf_ip *ret_ip);

/**
 * es_nf_ip_counter() - classify a packet for a service by its headers
 * Returns the counter to drop it by; ES_COUNTER_COUNT if it is TCP; -1 if it is something else.
 */
int es_nf_ip_counter(const struct es_nf_ip *ip);

/*
 * es_nf_packet_tcp() - read a TCP packet, without TCP's options; padding may follow it within the @len bytes
 * Returns 0, or -EBADMSG if its lengths contradict each other, or es_nf_ip_counter() does not return
 * ES_COUNTER_COUNT.
 */
int es_nf_packet_tcp(const uint8_t *bytes, size_t len, struct es_packet *ret_pkt, struct es_segment *ret_seg);

/**
 * es_nf_packet_headers() - likewise, if only the first @len bytes are at @bytes; @full_len: the packet's
 * length, 0: @len
 * A packet of more than 64 KB, which the kernel has merged, has the length 0 in its header.
 */
int es_nf_packet_headers(const uint8_t *bytes, size_t len, size_t full_len, struct es_packet *ret_pkt,
			 struct es_segment *ret_seg);

/*
 * es_nf_packet_is_whole() - is the checksum right? @bytes: a packet that es_nf_packet_tcp() has read, aligned
 * or not
 */
int es_nf_packet_is_whole(const uint8_t *bytes, const struct es_packet *pkt, const struct es_segment *seg);

/*
 * es_nf_packet_options() - read TCP's options into @seg, after es_nf_packet_tcp()
 * Returns 0, or -EBADMSG unless es_tcp_options_are_taken().
 */
int es_nf_packet_options(const uint8_t *bytes, const struct es_packet *pkt, struct es_segment *seg);

#endif
