/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_PACKET_H
#define ES_NETFILTER_KERNEL_PACKET_H

/*
 * From the bytes of a packet to a segment and a flow.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "kmod/core/packet.h"
#include "kmod/core/tcp.h"

#define ES_NF_IP_LEN  20 /* of IPv4, without options */
#define ES_NF_IP6_LEN 40
#define ES_NF_TCP_LEN 20
#define ES_NF_UDP_LEN 8

/**
 * struct es_nf_frame - a packet that the kernel has given to this datapath
 * @bytes: from its IP header on, @len of them; @full_len: how long it is, if these are not all, else 0
 * @ifindex: where it came in; @mark: the operator's (marks.h); @source: the MAC that it came from, all zero where there is none
 * @is_known: the connection tracking knows its flow, and it is a SYN, or is of no connection that is here (ended.h); @is_here: a later
 * segment of such a flow, which the stack gets unless it is dropped
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
 * struct es_nf_ip - what is before the header of TCP, UDP, …
 * @len: bytes of the packet, as it says itself: behind them, there may be padding
 * @at: where the walk over the IP headers is over (kmod/core/headers.h), and @next: at what, an IP protocol number
 * @first: what is right behind the IPv6 header; of IPv4 it is @next; @hops: how many more it may pass
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

/* es_nf_ip_read() - of @len bytes. Returns 0, or -EBADMSG if a header is none of IP, or is cut off. */
int es_nf_ip_read(const uint8_t *bytes, size_t len, struct es_nf_ip *ret_ip);

/**
 * es_nf_ip_counter() - what a packet with these headers is for a service
 * Returns the counter to drop it by, ES_COUNTER_COUNT if it is TCP, and -1 if it is something else.
 */
int es_nf_ip_counter(const struct es_nf_ip *ip);

/* es_nf_packet_tcp() - read a packet of TCP, at most @len bytes that are at @bytes
 * Behind the bytes that its header says, there may be others: padding. TCP's options are not read.
 * Returns 0, or -EBADMSG if its lengths contradict each other, or es_nf_ip_counter() has nothing good to say.
 */
int es_nf_packet_tcp(const uint8_t *bytes, size_t len, struct es_packet *ret_pkt, struct es_segment *ret_seg);

/**
 * es_nf_packet_headers() - the same, of one of which the first @len bytes are at @bytes; @full_len: how long it is, 0: as long as that
 * What the kernel has merged to more than 64 KB says that it has no length.
 */
int es_nf_packet_headers(const uint8_t *bytes, size_t len, size_t full_len, struct es_packet *ret_pkt,
			 struct es_segment *ret_seg);

/* es_nf_packet_is_whole() - is the checksum right? Of a packet that es_nf_packet_tcp() has read, aligned or not. */
int es_nf_packet_is_whole(const uint8_t *bytes, const struct es_packet *pkt, const struct es_segment *seg);

/*
 * es_nf_packet_options() - read the options of TCP into @seg; of a packet that es_nf_packet_tcp() has read
 * Returns 0, or -EBADMSG if es_tcp_options_are_taken() denies it.
 */
int es_nf_packet_options(const uint8_t *bytes, const struct es_packet *pkt, struct es_segment *seg);

#endif
