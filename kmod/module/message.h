/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_MESSAGE_H
#define ES_MODULE_MESSAGE_H

/*
 * Handover messages at the target: is it one, is it authentic, is it fresh, and how it goes back as a NACK.
 */
#include <linux/ip.h>
#include <linux/udp.h>

#include "node.h"

/* From skb->data, which is the outer IP header. */
#define ES_MESSAGE_HEADER_OFF (sizeof(struct iphdr) + sizeof(struct udphdr))
#define ES_MESSAGE_PACKET_OFF (ES_MESSAGE_HEADER_OFF + sizeof(struct es_handover))
#define ES_MESSAGE_PACKET_MAX 9216 /* jumbo frames */

/**
 * es_message_check() - is the message at @skb authentic and fresh?
 * @h: a copy of its header, whose lengths agree with the packet's; all of the message becomes linear.
 * Returns a counter to count and drop by, or ES_COUNT_handover_received.
 */
u32 es_message_check(struct es_node *node, const struct es_config *cfg, struct sk_buff *skb,
		     const struct es_handover *h);

/**
 * es_message_nack() - send the message back to its source, with @reason; @skb stays as it is
 * Returns 0 or -errno.
 */
int es_message_nack(struct es_node *node, const struct es_config *cfg, const struct sk_buff *skb,
		    const struct es_handover *h, u8 reason);

/**
 * es_message_nack_here() - the same where the source is this node: @skb becomes the NACK, to be delivered
 * Returns 0 or -errno.
 */
int es_message_nack_here(struct es_node *node, const struct es_config *cfg, struct sk_buff *skb,
			 const struct es_handover *h, u8 reason);

/* es_message_open() - take the envelope off: @skb is the client's packet then. Returns 0 or -errno. */
int es_message_open(struct sk_buff *skb);

#endif
