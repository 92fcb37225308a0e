/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_RULES_RULES_H
#define ES_NETFILTER_RULES_RULES_H

/*
 * The rules by which the kernel gives packets to this datapath, in a table of its own for each family in use;
 * operators' tables stay untouched. Packets for a service address that belong to no connection here go to
 * user space, and so do handover messages and errors about them. While nobody reads that queue, the kernel
 * drops its packets: a node without its daemon answers nothing. If a service inspects every request, packets
 * of its clients on connections here go to a queue of their own; while nobody reads that, they pass. The
 * rules come after conntrack, which knows the connections here, and before address translation. A last rule
 * drops packets for a service from the public interface that belong to no connection here, whatever other
 * tables have made of them.
 */
#include "kmod/core/abi.h"
#include "netfilter/kernel/marks.h"
#include "netfilter/kernel/whole.h"
#include "netfilter/kernel/why.h"

#define ES_NF_RULES_TABLE "earshot-capture"
#define ES_NF_RULES_QUEUE 17747 /* "ES"; each network namespace has its own queues */

/* The queue for packets of unproven connections (unproven.h); headers suffice. */
#define ES_NF_RULES_UNPROVEN (ES_NF_RULES_QUEUE + 1)

/* The queue for clients' packets on connections here, of services that inspect every request. */
#define ES_NF_RULES_HERE (ES_NF_RULES_QUEUE + 2)

/*
 * The queue for packets of connections that are unproven and of such services: whole, and dropped while
 * nobody reads them.
 */
#define ES_NF_RULES_UNPROVEN_HERE (ES_NF_RULES_QUEUE + 4)

/*
 * The queue for SYNs of flows that conntrack knows. Either the flow has a socket here, or a client that is
 * gone has left an entry, by which a new connection of the same ports would be taken for one that is here.
 */
#define ES_NF_RULES_KNOWN (ES_NF_RULES_QUEUE + 3)

/* The queue for clients' packets on connections that conntrack considers over, or half so (ended.h). */
#define ES_NF_RULES_ENDED (ES_NF_RULES_QUEUE + 5)

/*
 * The mark (marks.h) of packets that the daemon makes and sends to clients through the stack. Conntrack
 * ignores them: otherwise they would make an entry for a connection that has none, and the client's next
 * packets would be taken for those of a connection here.
 */
#define ES_NF_RULES_MARK ES_NF_MARK_ANSWER

#define ES_NF_ADDRESSES_MAX (2 * ES_SERVICES_MAX)

/* How the rules treat packets of connections here. */
enum es_nf_gate {
	ES_NF_GATE_NONE, /* they pass */
	/*
	 * unproven ones go to ES_NF_RULES_UNPROVEN, and those of other entries than ours to ES_NF_RULES_QUEUE
	 */
	ES_NF_GATE_CLOSED,
	/* likewise with leases, but unproven ones pass: no other node can have their connections */
	ES_NF_GATE_OPEN,
};

/**
 * struct es_nf_rules - what the rules depend on
 * @cluster_mac: the MAC of the service addresses; @is_unicast: it is a station's (ingress.h)
 * @gate: an enum es_nf_gate
 * @address: the services' addresses, of both families, each once, @count of them
 * @every: endpoints of services that inspect every request, @every_count of them; @endpoint: of all services,
 * @endpoint_count of them
 * @server: addresses where servers listen for connections from programs (program_name.h), each once,
 * @server_count of them
 * @holds: the kernel has labels (struct es_nf_hook), so nothing of connections with ES_NF_LABEL_HELD is sent,
 * and nothing from the wire reaches those with ES_NF_LABEL_MAKING
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
 * struct es_nf_rules_whole - the tables when they were set, by family
 * @remembers: the kernel can remember flows (drop_by_flow.h)
 */
#define ES_NF_RULES_TABLES 2
struct es_nf_rules_whole {
	struct es_nf_whole table[ES_NF_RULES_TABLES];
	int remembers;
};

/* es_nf_rules_serve() - is there a service of that family? */
static inline int es_nf_rules_serve(const struct es_nf_rules *rules, int is_v6)
{
	for (unsigned int i = 0; i < rules->count; i++)
		if (es_addr_is_v4(&rules->address[i]) == !is_v6)
			return 1;
	return 0;
}

/**
 * es_nf_rules_set() - set the tables in one transaction: no packet sees half of them
 * @anew: as for es_nf_nft_begin_table(); a table that cannot be changed is made anew in any case
 * @ret_whole: for es_nf_rules_are_whole()
 * Returns 0; or with @why: -EOPNOTSUPP if the kernel has no queue for nf_tables; or -errno.
 */
int es_nf_rules_set(struct es_nf_netlink *nl, const struct es_nf_rules *rules, int anew,
		    struct es_nf_rules_whole *ret_whole, struct es_nf_why *why);

/* es_nf_rules_are_set() - does any of our tables exist? Returns 1, 0 or -errno. */
int es_nf_rules_are_set(struct es_nf_netlink *nl);

/*
 * es_nf_rules_are_whole() - are the tables of @rules as they were set, with each rule? Returns 1, 0 or
 * -errno.
 */
int es_nf_rules_are_whole(struct es_nf_netlink *nl, const struct es_nf_rules *rules,
			  const struct es_nf_rules_whole *whole);

/* es_nf_rules_remove() - Returns 0, also if there is none, or -errno. */
int es_nf_rules_remove(struct es_nf_netlink *nl);

#endif
