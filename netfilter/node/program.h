/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_PROGRAM_H
#define ES_NETFILTER_NODE_PROGRAM_H

/*
 * Connections that programs hand over (docs/programs.md), at the target. The counterpart of kmod/bpf/program.h.
 */
#include "netfilter/node/node.h"

/* es_nf_program_message() - do what a message of kind PROGRAM, ASK or CANCEL says, which is authentic and fresh. Counts. */
void es_nf_program_message(struct es_nf_node *node, const struct es_nf_frame *frame,
			   const struct es_handover *h);

#endif
