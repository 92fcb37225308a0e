/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_MESSAGE_H
#define ES_MODULE_MESSAGE_H

/*
 * Handover messages at the target: is it one, is it authentic, is it fresh, and how it goes back as a NACK or
 * an answer.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include "node.h"
#include "packet.h"
#include "kmod/core/message.h"

/* Is the envelope of IPv6? Valid until it is taken off. */
static inline int es_message_is_v6(const struct sk_buff *skb)
{
	return skb->protocol == htons(ETH_P_IPV6);
}

/*
 * Offsets from skb->data, which is the outer IP header: the UDP header, the message's header after it, and
 * the packet after that.
 */
static inline u32 es_message_udp_off(const struct sk_buff *skb)
{
	return es_message_is_v6(skb) ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
}

static inline u32 es_message_header_off(const struct sk_buff *skb)
{
	return es_message_udp_off(skb) + sizeof(struct udphdr);
}

static inline u32 es_message_packet_off(const struct sk_buff *skb)
{
	return es_message_header_off(skb) + sizeof(struct es_handover);
}

/**
 * es_message_check() - is the message at @skb authentic and fresh?
 * @h: a copy of its header, which es_decide_envelope() has let pass; all of the message becomes linear.
 * Returns a counter to count and drop by, or ES_COUNT_handover_received.
 */
u32 es_message_check(struct es_node *node, const struct es_config *cfg, struct sk_buff *skb,
		     const struct es_handover *h);

/**
 * es_message_packet() - read the client's packet in the message, which is linear
 * Returns 0; -EINVAL: it is no TCP segment, or its lengths contradict each other.
 */
int es_message_packet(const struct sk_buff *skb, const struct es_handover *h, struct es_packet *ret_pkt,
		      struct es_segment *ret_seg);

/**
 * es_message_answer() - send the message back to its source, which may be this node
 * @h: the message's header, with the fields set that only this answer has; with a smaller packet_len, so much
 * of the packet goes along; @kind: ES_HANDOVER_NACK or _ANSWER; @reason: its field nack. Counts
 * answer_failed. Returns the hook's verdict: to its own daemon, @skb itself becomes the answer.
 */
unsigned int es_message_answer(struct es_node *node, const struct es_config *cfg, struct sk_buff *skb,
			       const struct es_handover *h, u8 kind, u8 reason);

/*
 * es_message_send() - send the message back as a packet of its own: @skb stays as it is. Returns 0 or -errno.
 */
int es_message_send(struct es_node *node, const struct es_config *cfg, const struct sk_buff *skb,
		    const struct es_handover *h, u8 kind, u8 reason);

/*
 * es_message_open() - take the envelope off: @skb is the client's packet @pkt then, as if it had come by the
 * public interface. So packet filters, rp_filter and conntrack see it where clients' packets come from.
 * Returns 0 or -errno.
 */
int es_message_open(const struct es_node *node, struct sk_buff *skb, const struct es_packet *pkt);

#endif
