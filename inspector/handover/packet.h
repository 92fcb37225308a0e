/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_PACKET_H
#define ES_PACKET_H

/*
 * Client packets as the inspector gets them: parsing, checksums, cutting merged packets into segments again,
 * and the one packet that the inspector makes itself (a RST for a request that no node can serve).
 */
#include <stddef.h>
#include <stdint.h>
#include "kmod/core/flow.h"
#include "kmod/core/tcp.h"

/**
 * struct es_ip_packet - a parsed TCP/IPv4 packet; points into the buffer it was parsed from
 * @bytes: IP header to last payload byte, @len of them; @header_len: IP and TCP headers
 */
struct es_ip_packet {
	const uint8_t *bytes;
	size_t len;
	size_t header_len;
	struct es_flow flow;
	struct es_segment seg;
};

/* es_ip_packet_parse() - returns 0, or -EBADMSG if the bytes are no consistent TCP/IPv4 packet */
int es_ip_packet_parse(const uint8_t *bytes, size_t len, struct es_ip_packet *ret_packet);

static inline const uint8_t *es_ip_packet_payload(const struct es_ip_packet *packet)
{
	return packet->bytes + packet->header_len;
}

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
#define ES_ANSWER_HEADER_MAX 52
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

/**
 * es_ip_packet_make() - a segment as the client of @flow sends it
 * @seg: with has_ts it has a timestamp option; its len bytes are at @payload
 * @ret_bytes: room for ES_ANSWER_HEADER_MAX + seg->len. Returns the packet's length.
 */
size_t es_ip_packet_make(const struct es_flow *flow, const struct es_segment *seg, const uint8_t *payload,
			 uint8_t *ret_bytes);

/* es_ip_packet_reset() - the RST that answers @packet; 40 bytes at @ret_bytes */
void es_ip_packet_reset(const struct es_ip_packet *packet, uint8_t *ret_bytes);

#endif
