/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_ENDED_H
#define ES_NETFILTER_NODE_ENDED_H

/*
 * The connection tracking knows a connection for two minutes after its end, and lets packets of its flow pass to the stack. The SYN by which
 * a client begins the next one with the same ports ends that (rules.h). A node that has not heard that SYN, as one that was not
 * there, would give what belongs to the next connection to the socket of the one before, which is in TIME_WAIT, or to none. Or a daemon
 * died when the connection's socket was gone and its entry was not: its client goes on by another node, or by nobody.
 *
 * So what says something on a connection that is over, or half so, comes here; mostly, nothing does.
 */
#include "netfilter/node/node.h"

/**
 * es_nf_ended_is_gone() - is it of no connection that is here any more?
 * It is, if there is no socket. One in TIME_WAIT has got all that its client has said: that comes again at most with the FIN, if the
 * answer to that was lost; then, too, it is, if its cookie says that it is the first of what the client says on the next connection.
 * It is not, if it says again what the connection here was made of.
 */
int es_nf_ended_is_gone(const struct es_nf_node *node, const struct es_nf_frame *frame);

#endif
