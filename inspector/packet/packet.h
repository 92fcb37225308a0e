/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_PACKET_H
#define ES_PACKET_H

/*
 * Client packets as the inspector gets them: parsing, checksums, cutting merged packets into segments again,
 * and the one packet that the inspector makes itself (a RST for a request that no node can serve). IPv4 and
 * IPv6.
 */
#include <stddef.h>
#include <stdint.h>
#include "kmod/core/flow.h"
#include "kmod/core/tcp.h"

/**
 * struct es_ip_packet - a parsed TCP packet; points into the buffer it was parsed from
 * @bytes: IP header to last payload byte, @len of them
 * @ip_len: the IP header and, of IPv6, options behind it; @header_len: that and the TCP header
 */
struct es_ip_packet {
	const uint8_t *bytes;
	size_t len;
	size_t ip_len;
	size_t header_len;
	struct es_flow flow;
	struct es_segment seg;
};

/* es_ip_header_len() - bytes before the TCP header, or 0 if the bytes do not begin a TCP packet */
size_t es_ip_header_len(const uint8_t *bytes, size_t len);

/* es_ip_addresses() - of a packet whose es_ip_header_len() is not 0 */
void es_ip_addresses(const uint8_t *bytes, struct es_addr *ret_source, struct es_addr *ret_target);

/* es_ip_packet_parse() - returns 0, or -EBADMSG if the bytes are no consistent TCP packet */
int es_ip_packet_parse(const uint8_t *bytes, size_t len, struct es_ip_packet *ret_packet);

static inline const uint8_t *es_ip_packet_payload(const struct es_ip_packet *packet)
{
	return packet->bytes + packet->header_len;
}

/* es_ip_packet_truncate() - let a packet's IP header say that it has @len bytes, which is less than it had */
void es_ip_packet_truncate(uint8_t *bytes, size_t len);

/* Does the TCP checksum hold? A damaged request must not be routed by what it says. */
int es_ip_packet_checksum_ok(const struct es_ip_packet *packet);

/**
 * es_ip_packet_cut() - one segment of a packet as its own packet, with correct lengths and checksums
 * @offset, @len: which payload bytes; FIN and PSH stay with the last one only
 * @ret_bytes: room for header_len + len bytes
 * Returns the length of the new packet.
 */
size_t es_ip_packet_cut(const struct es_ip_packet *packet, size_t offset, size_t len, uint8_t *ret_bytes);

/**
 * es_ip_packet_answer() - a segment that answers @packet, with our sequence number what it acknowledges
 * @ack: what it acknowledges; @flags: ES_TCP_*; the client's timestamps are answered with what it has seen
 * last
 * @ret_bytes: room for ES_ANSWER_HEADER_MAX + @len. Returns the packet's length.
 */
#define ES_ANSWER_HEADER_MAX 72
size_t es_ip_packet_answer(const struct es_ip_packet *packet, uint32_t ack, uint8_t flags,
			   const void *payload, size_t len, uint8_t *ret_bytes);

/**
 * es_ip_packet_sack() - an acknowledgment of @ack that tells of the bytes [@from, @to) behind a gap, too
 * RFC 2018: the client may send as much more, and keeps what it has sent until it is acknowledged in full.
 * @wscale: the scale that the SYN-ACK told: the window stays the one that it told, 64 KB at most
 * @ret_bytes: room for ES_ANSWER_HEADER_MAX + ES_SACK_SIZE. Returns the packet's length.
 */
#define ES_SACK_SIZE 12
size_t es_ip_packet_sack(const struct es_ip_packet *packet, uint32_t ack, uint32_t from, uint32_t to,
			 unsigned int wscale, uint8_t *ret_bytes);

/* es_ip_packet_ack() - likewise an acknowledgment of @ack alone */
size_t es_ip_packet_ack(const struct es_ip_packet *packet, uint32_t ack, unsigned int wscale,
			uint8_t *ret_bytes);

/**
 * es_ip_packet_make() - a segment as the client of @flow sends it
 * @seg: with has_ts it has a timestamp option; its len bytes are at @payload
 * @ret_bytes: room for ES_ANSWER_HEADER_MAX + seg->len. Returns the packet's length.
 */
size_t es_ip_packet_make(const struct es_flow *flow, const struct es_segment *seg, const uint8_t *payload,
			 uint8_t *ret_bytes);

/* es_ip_packet_make_max() - the most header bytes that es_ip_packet_make() puts before a payload of @flow */
static inline size_t es_ip_packet_make_max(const struct es_flow *flow)
{
	return es_addr_is_v4(&flow->client) ? ES_ANSWER_HEADER_MAX - 20 : ES_ANSWER_HEADER_MAX;
}

/* es_ip_packet_reset() - the RST that answers @packet; room for ES_RESET_MAX. Returns its length. */
#define ES_RESET_MAX 60
size_t es_ip_packet_reset(const struct es_ip_packet *packet, uint8_t *ret_bytes);

#endif
