/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_REPLY_H
#define ES_MODULE_REPLY_H

#include <linux/netfilter.h>

/*
 * The hook at NF_INET_POST_ROUTING: reads where our servers' responses end, and keeps back what a silent node
 * must not say. Changes no packet. @priv is the node.
 */
unsigned int es_reply_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state);

#endif
