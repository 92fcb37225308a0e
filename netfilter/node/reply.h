/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_REPLY_H
#define ES_NETFILTER_NODE_REPLY_H

/*
 * Reads servers' responses from copies of packets that have left (tap.h), to find where each response ends.
 * The counterpart of kmod/bpf/reply.h; but nothing can be held back here.
 */
#include "netfilter/node/node.h"

/* es_nf_reply() - @packet: from its IP header on, @len bytes, with the numbers that the client knows */
void es_nf_reply(struct es_nf_node *node, const uint8_t *packet, size_t len);

/*
 * es_nf_reply_is_held() - is a RST on its way out of a connection that is leaving, or has left, so that its
 * client must not hear it?
 * @packet: the RST
 */
int es_nf_reply_is_held(const struct es_nf_node *node, const uint8_t *packet, size_t len);

#endif
