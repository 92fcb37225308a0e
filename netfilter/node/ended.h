/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_ENDED_H
#define ES_NETFILTER_NODE_ENDED_H

/*
 * Packets of connections that are over. For two minutes after a connection's end, conntrack lets packets of
 * its flow pass to the stack. Normally, the SYN of the next connection with the same ports ends that
 * (rules.h). But a node that did not hear that SYN would give the next connection's packets to the former
 * socket, which is in TIME_WAIT, or to none. Or a daemon has died after a connection's socket had gone and
 * before its entry had: the client goes on with another node, or with nobody. So packets of a connection that
 * is over, or half so, come here unless they are bare acknowledgements or FINs; usually there are none.
 */
#include "netfilter/node/node.h"

/**
 * es_nf_ended_is_gone() - is the packet of no connection here any more?
 * Yes, if there is no socket. A socket in TIME_WAIT has received all that its client sent, so data is
 * repeated only together with the FIN, if the acknowledgement of that was lost. So yes as well without a FIN;
 * and with one, if the cookie shows that the packet is the first of the next connection. No, if it repeats
 * the request from which the connection here was made.
 */
int es_nf_ended_is_gone(const struct es_nf_node *node, const struct es_nf_frame *frame);

#endif
