/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_HOOK_H
#define ES_NETFILTER_HOOK_H

/*
 * The kernel's SYNPROXY hook. It is there while a rule with a SYNPROXY target is, so this keeps one that no packet
 * ever reaches: in a chain that nothing jumps to, of a table of its own. Never a rule in an operator's table.
 * The same table marks what comes in by our tun device, where the kernel checks sources strictly (source.h), and
 * knows the label by which our conntrack entries are told apart.
 *
 * The table outlives the daemon on purpose: without it, the timestamps of all rebuilt connections break at once.
 * es_nf_hook_remove() is for the end of a service, not of a daemon.
 */
#include "netfilter/netlink.h"
#include "netfilter/why.h"

#define ES_NF_HOOK_TABLE "earshot-rebuild"

/* ES_NF_LABEL - bit of the connection label that our entries carry, where the kernel has labels */
#define ES_NF_LABEL 127

/**
 * struct es_nf_hook - what es_nf_hook_set() found to work
 * @way: how the dead rule is made; @has_label: entries can be labelled
 */
enum es_nf_hook_way {
	ES_NF_HOOK_NONE,
	ES_NF_HOOK_NFT,	   /* nftables' own synproxy statement, Linux 5.3 */
	ES_NF_HOOK_COMPAT, /* xtables' SYNPROXY target in our nftables chain */
};
struct es_nf_hook {
	enum es_nf_hook_way way;
	int has_label;
};

/**
 * es_nf_hook_set() - make the table anew, in one transaction: connections go on meanwhile
 * @mark_device: what comes in there gets @mark; NULL: nothing is marked
 * Returns 0; -EOPNOTSUPP, with @why, if the kernel has SYNPROXY in neither way; or -errno.
 */
int es_nf_hook_set(struct es_nf_netlink *nl, const char *mark_device, unsigned int mark,
		   struct es_nf_hook *ret_hook, struct es_nf_why *why);

/* es_nf_hook_is_set() - is the dead rule still there? An operator's `nft flush ruleset` takes it away. 1, 0 or -errno. */
int es_nf_hook_is_set(struct es_nf_netlink *nl);

/* es_nf_hook_remove() - Returns 0, also if there is none, or -errno. */
int es_nf_hook_remove(struct es_nf_netlink *nl);

#endif
