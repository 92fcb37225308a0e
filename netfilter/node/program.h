/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_PROGRAM_H
#define ES_NETFILTER_NODE_PROGRAM_H

/*
 * The target's side of connections that programs hand over (docs/programs.md). The counterpart of
 * kmod/bpf/program.h.
 */
#include "netfilter/node/node.h"

/*
 * es_nf_program_message() - carry out an authentic and fresh message of kind PROGRAM, ASK or CANCEL. Counts.
 */
void es_nf_program_message(struct es_nf_node *node, const struct es_nf_frame *frame,
			   const struct es_handover *h);

#endif
