/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_WITHDRAW_H
#define ES_NETFILTER_REBUILD_WITHDRAW_H

/*
 * An attempt to make a connection (rebuild.h) of which nothing is seen: a rule may have dropped its SYN, or the listening socket has no
 * way back to the client. Or the SYN waits for a busy CPU, and makes the socket later. Who gives the request to another node must know
 * that it does not.
 *
 * So the attempt is withdrawn: its entry has ES_NF_LABEL_MAKING still, and gets ES_NF_LABEL_HELD. With both, a rule beside the hook's
 * (hook.c) drops what the listening socket answers before the hook has it, and only the hook finishes a handshake. An answer that has
 * passed that rule before has changed the entry's state before: the kernel changes it, and tells it, under the entry's lock. If it is
 * that of an entry by which no answer has come, then none has come by the rule, and none will.
 *
 * What comes from the wire meanwhile goes to who reads the queue (rules.c), as that of any flow which is not here.
 */
#include "netfilter/kernel/conntrack.h"

/**
 * es_nf_withdraw() - withdraw the attempt for the request that begins with @seq; its entry stays, until it times out or another
 * attempt has its own
 * Returns es_nf_is_withdrawn(): where it is not certain, as somebody has answered, nothing more comes of it all the same. Or -errno:
 * nothing has changed.
 */
int es_nf_withdraw(struct es_nf_conntrack *ct, const struct es_flow *flow, __u32 seq);

/* es_nf_is_withdrawn() - is it certain that no connection was made by it, and none will be? 1 or 0 */
int es_nf_is_withdrawn(struct es_nf_conntrack *ct, const struct es_flow *flow, __u32 seq);

#endif
