/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_WITHDRAW_H
#define ES_NETFILTER_REBUILD_WITHDRAW_H

/*
 * An attempt to make a connection (rebuild.h) that seems to come to nothing. Perhaps a rule has dropped its
 * SYN, or the listening socket has no route to the client. Or the SYN waits for a busy CPU and still makes
 * the socket later. Before the request goes to another node, it must be certain that it does not. So the
 * attempt is withdrawn: its entry already has ES_NF_LABEL_MAKING, and gets ES_NF_LABEL_HELD as well. If an
 * entry has both, a rule (hook.c) drops the listening socket's SYN-ACK before the hook sees it, and only the
 * hook could finish the handshake. A SYN-ACK that passed that rule earlier had changed the entry's state
 * before: the kernel changes and reports the state under the entry's lock. So if the state still says that
 * there was no answer, then none has passed the rule, and none will. Packets from the wire go to the queue
 * meanwhile (rules.c), and are treated as of a flow that is not here.
 */
#include "netfilter/kernel/conntrack.h"

/**
 * es_nf_withdraw() - withdraw the attempt for the request that begins at @seq
 * The entry stays until it expires, or another attempt replaces it. Returns es_nf_is_withdrawn(): if that is
 * not certain, since there was a SYN-ACK, the attempt is over all the same. Or -errno: nothing has changed.
 */
int es_nf_withdraw(struct es_nf_conntrack *ct, const struct es_flow *flow, __u32 seq);

/*
 * es_nf_is_withdrawn() - is it certain that the attempt has made no connection, and will make none? Returns 1
 * or 0.
 */
int es_nf_is_withdrawn(struct es_nf_conntrack *ct, const struct es_flow *flow, __u32 seq);

#endif
