/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_TARGET_H
#define ES_NETFILTER_NODE_TARGET_H

#include "netfilter/node/node.h"

/**
 * es_nf_cluster() - a datagram for this node that has arrived on the cluster's interface or on lo
 * The counterpart of es_cluster in kmod/bpf/earshot.bpf.c. Counts. Returns what is to become of the datagram
 * itself: one for a socket of the daemon goes on.
 */
enum es_nf_fate es_nf_cluster(struct es_nf_node *node, const struct es_nf_frame *frame);

#endif
