/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_REPLY_H
#define ES_NETFILTER_NODE_REPLY_H

/*
 * What servers here answer, read from copies of what has left (tap.h), to know where each response ends. The counterpart
 * of kmod/bpf/reply.h; but nothing can be kept back here, for it has left.
 */
#include "netfilter/node/node.h"

/* es_nf_reply() - @packet: from its IP header on, @len bytes, with the numbers that the client knows */
void es_nf_reply(struct es_nf_node *node, const uint8_t *packet, size_t len);

/*
 * es_nf_reply_is_held() - is it of a connection that is leaving, or has left, and so must not reach its client?
 * @packet: a RST on its way out.
 */
int es_nf_reply_is_held(const struct es_nf_node *node, const uint8_t *packet, size_t len);

#endif
