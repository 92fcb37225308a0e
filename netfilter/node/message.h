/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_MESSAGE_H
#define ES_NETFILTER_NODE_MESSAGE_H

/*
 * Handover messages at the target: is it one, is it authentic, is it fresh, and how it goes back as a NACK or
 * an answer.
 */
#include "kmod/core/message.h"
#include "netfilter/node/node.h"

/*
 * Offsets from a message's outer IP header, which no extension header follows: of its UDP header, of its own
 * header, and of the packet.
 */
static inline size_t es_nf_message_udp_off(const struct es_nf_frame *frame)
{
	return frame->bytes[0] >> 4 == 6 ? ES_NF_IP6_LEN : ES_NF_IP_LEN;
}

static inline size_t es_nf_message_header_off(const struct es_nf_frame *frame)
{
	return es_nf_message_udp_off(frame) + ES_NF_UDP_LEN;
}

static inline size_t es_nf_message_packet_off(const struct es_nf_frame *frame)
{
	return es_nf_message_header_off(frame) + sizeof(struct es_handover);
}

/**
 * es_nf_message_check() - is the message authentic and fresh?
 * @h: a copy of its header, which es_decide_envelope() has let pass
 * Returns a counter to count and drop by, or ES_COUNT_handover_received.
 */
__u32 es_nf_message_check(struct es_nf_node *node, const struct es_nf_frame *frame,
			  const struct es_handover *h);

/**
 * es_nf_message_packet() - read the client's packet in the message
 * Returns 0; -EBADMSG: it is no TCP segment, or its lengths contradict each other.
 */
int es_nf_message_packet(const struct es_nf_frame *frame, const struct es_handover *h,
			 struct es_packet *ret_pkt, struct es_segment *ret_seg);

static inline const uint8_t *es_nf_message_bytes(const struct es_nf_frame *frame)
{
	return frame->bytes + es_nf_message_packet_off(frame);
}

/**
 * es_nf_message_answer() - send the message back to its source, which may be this node
 * @h: the message's header, with the fields set that only this answer has; with a smaller packet_len, so much
 * of the packet goes along; @kind: ES_HANDOVER_NACK or _ANSWER; @reason: its field nack. Counts
 * answer_failed.
 */
void es_nf_message_answer(struct es_nf_node *node, const struct es_nf_frame *frame,
			  const struct es_handover *h, __u8 kind, __u8 reason);

#endif
