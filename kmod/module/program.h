/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_PROGRAM_H
#define ES_MODULE_PROGRAM_H

/*
 * Connections that programs hand over (docs/programs.md): at the target, the messages about them; at the
 * sender, what its daemon must know of its socket. The counterpart of kmod/bpf/program.h.
 */
#include "kmod/core/program.h"
#include "node.h"

/**
 * es_program_message() - do what a message of kind CONNECTION, ASK or CANCEL says
 * @skb: authentic, fresh and linear, from its IP header on; @h: a copy of the message's header
 * Counts. Returns the hook's verdict.
 */
unsigned int es_program_message(struct es_node *node, const struct es_version *version, struct sk_buff *skb,
				const struct es_handover *h);

/**
 * es_connection_state_read() - what the established socket of @flow knows, all at one moment
 * Under es_net.lock; may sleep. Returns 0; -ENOTCONN: there is none; -ENOENT: there is no configuration.
 */
int es_connection_state_read(struct es_node *node, const struct es_flow *flow,
			     struct es_connection_state *ret);

#endif
