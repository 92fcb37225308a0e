/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_ANSWER_H
#define ES_NETFILTER_NODE_ANSWER_H

/*
 * Sends the segments that no socket sends (kmod/core/answer.h).
 */
#include "netfilter/node/node.h"

/**
 * es_nf_answer_send() - send @a to where @frame came from
 * As a frame of the public interface, or by the stack, if it is not known what MAC @frame came from: no rule, and no connection
 * tracking, changes it. Returns 0 or -errno.
 */
int es_nf_answer_send(const struct es_nf_node *node, const struct es_nf_frame *frame,
		      const struct es_answer *a);

#endif
