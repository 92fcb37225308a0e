/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_VIEW_H
#define ES_NETFILTER_NODE_VIEW_H

/*
 * Gathers the facts about a packet's flow that es_decide() needs, from the tables of this node. Decides
 * nothing.
 */
#include "kmod/core/view.h"
#include "netfilter/node/node.h"

/* es_nf_view_complete() - fill in the facts about a flow that the packet and its socket do not tell */
void es_nf_view_complete(const struct es_nf_node *node, const struct es_packet *pkt, struct es_view *v);

/*
 * es_nf_view_heard() - has this node heard the SYN that the segment may prove? Asked where
 * es_view_needs_heard().
 */
void es_nf_view_heard(const struct es_nf_node *node, struct es_view *v);

/* es_nf_flow_was_heard() - was a SYN of the flow heard, in the last ten minutes or some more? */
int es_nf_flow_was_heard(const struct es_nf_node *node, __u64 flow_hash);

/*
 * es_nf_view_doubt() - may a lost node have had the request? Asked where there are doubts, after
 * es_nf_view_heard().
 */
void es_nf_view_doubt(const struct es_nf_node *node, struct es_view *v);

/* es_nf_first_note() - this first request was heard, or is executed here */
void es_nf_first_note(const struct es_nf_node *node, __u64 flow_hash, __u32 seq);

#endif
