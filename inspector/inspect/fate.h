/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECT_FATE_H
#define ES_INSPECT_FATE_H

/* Questions to nodes about what became of first requests that they were given (fate.c). */
#include "inspector/inspect/decision_table.h"
#include "inspector/packet/packet.h"
#include "inspector/policy/policy.h"

struct es_inspector;

/* es_inspect_fate_given() - a first request, which begins with @packet, was given to @node */
void es_inspect_fate_given(struct es_inspector *in, unsigned int service, const struct es_ip_packet *packet,
			   unsigned int node);

/* es_inspect_fate_again() - its client has repeated it, and it goes to the same node once more */
void es_inspect_fate_again(struct es_inspector *in, unsigned int service, const struct es_ip_packet *packet,
			   const struct es_decided *decided);

/**
 * es_inspect_fate_vanished() - @node gives a request back: nothing was heard of the socket that it made
 * @ret_nodes: all nodes on which nothing was heard of this client
 * Returns whether the client itself is why (es_unheard_is_own()).
 */
int es_inspect_fate_vanished(struct es_inspector *in, unsigned int service, const struct es_ip_packet *packet,
			     __u64 flow_hash, unsigned int node, struct es_node_set *ret_nodes);

/**
 * es_inspect_fate_target() - the node for a first request that is to go to @target
 * The requests of a client that no node hears stay here, as a handover would be wasted on them. A client that
 * was not heard twice on one node gets another one.
 */
int es_inspect_fate_target(struct es_inspector *in, unsigned int service,
			   const struct es_request_view *request, int target);

/* es_inspect_fate_answer() - a node's answer about a request, whose first segment it sends back */
void es_inspect_fate_answer(struct es_inspector *in, const struct es_handover *nack,
			    const struct es_ip_packet *packet);

/* es_inspect_fates_due() - ask the questions that are due, and give up late answers */
void es_inspect_fates_due(struct es_inspector *in);
void es_inspect_fates_forget(struct es_inspector *in);

#endif
