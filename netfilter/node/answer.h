/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_ANSWER_H
#define ES_NETFILTER_NODE_ANSWER_H

/* Sends segments without a socket (kmod/core/answer.h). */
#include "netfilter/node/node.h"

/**
 * es_nf_answer_send() - send @a to the sender of @frame
 * As a frame by the public interface; or through the stack, if the sender's MAC is unknown. Neither rules nor
 * conntrack change it. Returns 0 or -errno.
 */
int es_nf_answer_send(const struct es_nf_node *node, const struct es_nf_frame *frame,
		      const struct es_answer *a);

#endif
