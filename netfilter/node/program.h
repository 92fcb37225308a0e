/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_PROGRAM_H
#define ES_NETFILTER_NODE_PROGRAM_H

/*
 * Connections that programs hand over (docs/programs.md), at the target. The counterpart of kmod/bpf/program.h.
 *
 * The kernel looks for a listening socket by the address that a SYN is for, and there the program itself listens. So what
 * clients send on these connections is translated to where the server listens (translation.h), and by that its socket has
 * them: it is not found by the flow.
 */
#include "netfilter/node/node.h"

/**
 * es_nf_program_socket() - what a server's socket has for a flow of that service that a program has handed over
 * Returns 1; 0 if none of the service's connections of that family are handed over to servers.
 */
int es_nf_program_socket(const struct es_config *config, unsigned int service, const struct es_flow *flow,
			 struct es_flow *ret_socket);

/**
 * es_nf_program_flow() - the other way: what the client of such a server's socket has
 * Returns the service's index; or -1: it is no such socket's.
 */
int es_nf_program_flow(const struct es_config *config, const struct es_flow *socket,
		       struct es_flow *ret_flow);

/* es_nf_program_message() - do what a message of kind PROGRAM, ASK or CANCEL says, which is authentic and fresh. Counts. */
void es_nf_program_message(struct es_nf_node *node, const struct es_nf_frame *frame,
			   const struct es_handover *h);

#endif
