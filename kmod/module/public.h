/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_PUBLIC_H
#define ES_MODULE_PUBLIC_H

#include <linux/netfilter.h>

/* The hook at the public interface's ingress: what the switch broadcasts. @priv is the node. */
unsigned int es_public_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state);

#endif
