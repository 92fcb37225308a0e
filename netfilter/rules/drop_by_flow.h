/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_RULES_DROP_BY_FLOW_H
#define ES_NETFILTER_RULES_DROP_BY_FLOW_H

/*
 * Flows of which the daemon has just said that they are other nodes': for a quarter of a second, the kernel drops what follows of them and does
 * not ask again. Where the ring's hash is one that nf_tables do not know (drop_by_ring.h), the daemon has to hear each packet of each
 * client's once; with this, it is mostly the SYN.
 *
 * A packet whose flow is to be remembered goes on with a mark, and the chain right behind (ES_NF_PRIORITY_DROP_BY_FLOW) notes the flow and drops the packet. A SYN is
 * never dropped unheard, nor is a packet that the rules before have taken: of a connection that is here, or is just being made. What
 * that may cost is that a client is heard one repetition later: of a flow that has become this node's otherwise than by its ring, or
 * whose RST was lost.
 */
#include "netfilter/kernel/nft.h"

/*
 * Where in PREROUTING our chains stand: behind each other, and where nobody else has anything by convention (ufw, Docker, libvirt and
 * iptables use mangle, which is -150; firewalld 10 more). The kernel runs the chains of one priority in an order that depends on who came last,
 * and a rule that changes marks between the last two would have ours mean nothing.
 */
#define ES_NF_PRIORITY_DROP_BY_RING (-154) /* drop_by_ring.h */
#define ES_NF_PRIORITY_CAPTURE	    (-153) /* rules.h */
#define ES_NF_PRIORITY_DROP_BY_FLOW (-152)

/*
 * The marks of packets whose flows are to be remembered: as others'; or as this node's to inspect. Of these, bare acknowledgements are
 * dropped, which say nothing to it: of one whose SYN was just answered, and of a connection that it has given away. Of one whose client
 * has heard of the node that has it now (_GONE_), everything is; but not behind a new SYN, which makes it one of the former.
 */
#define ES_NF_OTHERS_MARK 0x45534f54U
#define ES_NF_GIVEN_MARK  0x45534f47U
#define ES_NF_GONE_MARK	  0x45534f4eU

/* es_nf_drop_by_flow_put() - into the table of the transaction: the sets, what drops by them at the end of @chain, and what fills them */
void es_nf_drop_by_flow_put(struct es_nf_nft *nft, const char *chain);

/* es_nf_drop_by_flow_forget() - all flows of both families' tables @table, as some may have become this node's. Returns 0 or -errno. */
int es_nf_drop_by_flow_forget(struct es_nf_netlink *nl, const char *table);

/* es_nf_drop_by_flow_count() - how many packets were dropped since this was asked, or since the tables were set: are added */
struct es_nf_dropped_by_flow {
	unsigned long long others;
	unsigned long long given;
	unsigned long long gone;
};
void es_nf_drop_by_flow_count(struct es_nf_netlink *nl, const char *table, struct es_nf_dropped_by_flow *sum);

#endif
