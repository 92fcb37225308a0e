/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_TARGET_H
#define ES_MODULE_TARGET_H

#include <linux/netfilter.h>

/* The hook at the ingress of the cluster's interface and of lo: handover messages. @priv is the node. */
unsigned int es_cluster_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state);

#endif
