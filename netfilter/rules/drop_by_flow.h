/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_RULES_DROP_BY_FLOW_H
#define ES_NETFILTER_RULES_DROP_BY_FLOW_H

/*
 * Remembers flows of other nodes: for a quarter of a second, the kernel drops packets of a flow after the
 * daemon has said that it is another node's. The daemon needs this where nf_tables cannot compute the ring's
 * hash (drop_by_ring.h). It then hears most of these clients' SYNs, and little else. To have a flow
 * remembered, the daemon lets its packet pass with a mark. The next chain (ES_NF_PRIORITY_DROP_BY_FLOW) notes
 * the flow and drops the packet. A SYN is never dropped unheard, nor is a packet that earlier rules have
 * accepted, of a connection that is here or is just being made. The cost: if a flow becomes this node's
 * otherwise than by its ring, or its RST is lost, the client is heard one repetition later.
 */
#include "netfilter/kernel/nft.h"

/*
 * Priorities of our chains in PREROUTING: one after the other, where by convention nobody else has any (ufw,
 * Docker, libvirt and iptables use mangle, -150; firewalld 10 more). Chains of equal priority run in the
 * order in which they were added, and a foreign rule that changes marks between the last two would break
 * them.
 */
#define ES_NF_PRIORITY_DROP_BY_RING (-154) /* drop_by_ring.h */
#define ES_NF_PRIORITY_CAPTURE	    (-153) /* rules.h */
#define ES_NF_PRIORITY_DROP_BY_FLOW (-152)

/*
 * Marks of packets whose flows are to be remembered:
 * - OTHERS: another node's flow.
 * - GIVEN: this node inspects it, but needs no bare acknowledgements: its SYN was just answered, or the
 *   connection was given away.
 * - GONE: likewise, and its client has heard from the node that has it now. So all its packets are dropped,
 *   until a new SYN makes it GIVEN.
 */
#define ES_NF_OTHERS_MARK 0x45534f54U
#define ES_NF_GIVEN_MARK  0x45534f47U
#define ES_NF_GONE_MARK	  0x45534f4eU

/*
 * es_nf_drop_by_flow_put() - add to the table: sets, rules at the end of @chain that drop by them, and rules
 * that fill them
 */
void es_nf_drop_by_flow_put(struct es_nf_nft *nft, const char *chain);

/*
 * es_nf_drop_by_flow_forget() - empty the sets of both families' tables, since flows may have become this
 * node's. Returns 0 or -errno.
 */
int es_nf_drop_by_flow_forget(struct es_nf_netlink *nl, const char *table);

/*
 * es_nf_drop_by_flow_count() - add to @sum the packets dropped since the last call, or since the tables were
 * set
 */
struct es_nf_dropped_by_flow {
	unsigned long long others;
	unsigned long long given;
	unsigned long long gone;
};
void es_nf_drop_by_flow_count(struct es_nf_netlink *nl, const char *table, struct es_nf_dropped_by_flow *sum);

#endif
