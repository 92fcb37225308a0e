/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_RULES_RULES_H
#define ES_NETFILTER_RULES_RULES_H

/*
 * The rules by which the kernel gives packets to this datapath: a table of nf_tables of its own for each family of addresses
 * that there is, never a rule in an operator's. What is for a service address and of no connection that is here goes to user space, and what has to do
 * with handover messages. While nobody reads the queue, its packets are dropped: a node without its daemon answers nothing.
 * Where a service inspects every request, so does what its clients say on connections that are here; by a queue of its own,
 * and while nobody reads that, they go on as they are.
 *
 * They stand behind the connection tracking, which knows the connections that are here, and before address translation. What comes for a
 * service by the public interface, and is of no connection that is here, gets no further than to a last rule, whatever others have made
 * of it in between.
 */
#include "kmod/core/abi.h"
#include "netfilter/kernel/marks.h"
#include "netfilter/kernel/whole.h"
#include "netfilter/kernel/why.h"

#define ES_NF_RULES_TABLE "earshot-capture"
#define ES_NF_RULES_QUEUE 17747 /* "ES"; queues are a network namespace's */

/* The queue of packets of connections that are not proven (unproven.h): only their headers are needed. */
#define ES_NF_RULES_UNPROVEN (ES_NF_RULES_QUEUE + 1)

/* The queue of what clients say on connections that are here, of services that inspect every request. */
#define ES_NF_RULES_HERE (ES_NF_RULES_QUEUE + 2)

/* The queue of what comes for connections that are both: whole packets, which are dropped while nobody reads them. */
#define ES_NF_RULES_UNPROVEN_HERE (ES_NF_RULES_QUEUE + 4)

/*
 * The queue of SYNs of flows that the connection tracking knows. Either their socket is here, or a client that
 * is gone has left an entry: with that, a new connection of these ports would be taken for one that is here.
 */
#define ES_NF_RULES_KNOWN (ES_NF_RULES_QUEUE + 3)

/* The queue of what clients say on connections that are over, or half so, as the connection tracking has it (ended.h). */
#define ES_NF_RULES_ENDED (ES_NF_RULES_QUEUE + 5)

/*
 * The mark (marks.h) of packets that the daemon makes itself and sends to clients by way of the stack. They are exempt from
 * connection tracking: of a connection that has no entry, they would make one, and the client's next packets would be
 * taken for those of a connection that is here.
 */
#define ES_NF_RULES_MARK ES_NF_MARK_ANSWER

#define ES_NF_ADDRESSES_MAX (2 * ES_SERVICES_MAX)

/* What becomes of packets of connections that are here. */
enum es_nf_gate {
	ES_NF_GATE_NONE, /* they pass */
	ES_NF_GATE_CLOSED, /* those that are not proven go to ES_NF_RULES_UNPROVEN; other than a service's to ES_NF_RULES_QUEUE */
	ES_NF_GATE_OPEN, /* as with leases, but those that are not proven pass, too: nobody can have them as well */
};

/**
 * struct es_nf_rules - what the rules depend on
 * @cluster_mac: what the service addresses resolve to; @is_unicast: it is a station's (ingress.h)
 * @gate: an enum es_nf_gate
 * @address: of the services, of either family, each once, @count of them
 * @every: those that inspect every request, @every_count of them; @endpoint: all of them, @endpoint_count of them
 * @server: addresses where servers listen for what programs hand over (program_name.h), each once, @server_count of them
 * @holds: connections with ES_NF_LABEL_HELD say nothing, and those with ES_NF_LABEL_MAKING hear nothing: the kernel has labels (struct es_nf_hook)
 */
struct es_nf_rules {
	unsigned int public_ifindex;
	unsigned int cluster_ifindex;
	struct es_addr self;
	__be16 handover_port;
	__u16 count;
	__u8 cluster_mac[6];
	__u8 is_unicast;
	__u8 pad;
	__u32 gate;
	struct es_addr address[ES_NF_ADDRESSES_MAX];
	struct es_nf_rules_endpoint {
		struct es_addr address;
		__be16 port;
		__u16 pad;
	} every[ES_NF_ADDRESSES_MAX], endpoint[ES_NF_ADDRESSES_MAX];
	struct es_addr server[ES_NF_ADDRESSES_MAX];
	__u32 every_count;
	__u32 endpoint_count;
	__u32 server_count;
	__u32 holds;
};
_Static_assert(sizeof(struct es_nf_rules) == 56 + 72 * ES_NF_ADDRESSES_MAX,
	       "no padding: two are compared as bytes");

/**
 * struct es_nf_rules_whole - what the tables looked like when they were set, by family
 * @remembers: the kernel can remember whose flows are others' (drop_by_flow.h)
 */
#define ES_NF_RULES_TABLES 2
struct es_nf_rules_whole {
	struct es_nf_whole table[ES_NF_RULES_TABLES];
	int remembers;
};

/* es_nf_rules_of() - the rules of a configuration; what it does not say is 0 */
void es_nf_rules_of(const struct es_config *config, struct es_nf_rules *ret_rules);

/* es_nf_rules_serve() - is there a service of that family? */
static inline int es_nf_rules_serve(const struct es_nf_rules *rules, int is_v6)
{
	for (unsigned int i = 0; i < rules->count; i++)
		if (es_addr_is_v4(&rules->address[i]) == !is_v6)
			return 1;
	return 0;
}

/**
 * es_nf_rules_set() - set the tables, in one transaction: no packet sees half of them
 * @anew: as of es_nf_nft_begin_table(); otherwise they are, too, where it needs be.
 * @ret_whole: for es_nf_rules_are_whole()
 * Returns 0; -EOPNOTSUPP, with @why, if the kernel has no queue for nf_tables in any way; or -errno, with @why.
 */
int es_nf_rules_set(struct es_nf_netlink *nl, const struct es_nf_rules *rules, int anew,
		    struct es_nf_rules_whole *ret_whole, struct es_nf_why *why);

/* es_nf_rules_are_set() - is any of our tables there? 1, 0 or -errno. */
int es_nf_rules_are_set(struct es_nf_netlink *nl);

/* es_nf_rules_are_whole() - are the tables of @rules as they were set, each rule of them? 1, 0 or -errno. */
int es_nf_rules_are_whole(struct es_nf_netlink *nl, const struct es_nf_rules *rules,
			  const struct es_nf_rules_whole *whole);

/* es_nf_rules_remove() - Returns 0, also if there is none, or -errno. */
int es_nf_rules_remove(struct es_nf_netlink *nl);

#endif
