/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_RULES_HOOK_H
#define ES_NETFILTER_RULES_HOOK_H

/*
 * The kernel's SYNPROXY hook. It exists while a rule with a SYNPROXY target does. So this keeps such a rule
 * in a chain that nothing jumps to, in a table of its own for each family; it never touches an operator's
 * table. The same tables mark packets from our tun device where the kernel checks sources strictly
 * (source.h), and contain the rules about labels of our conntrack entries. The tables outlive the daemon on
 * purpose: without the hook, the timestamps of all rebuilt connections break at once. es_nf_hook_remove() is
 * for the end of the service, not of a daemon.
 */
#include "netfilter/kernel/whole.h"
#include "netfilter/kernel/why.h"

#define ES_NF_HOOK_TABLE "earshot-rebuild"

/* How the rule is written. */
enum es_nf_hook_way {
	ES_NF_HOOK_NFT,	   /* nf_tables' expression synproxy, since Linux 5.3 */
	ES_NF_HOOK_COMPAT, /* xtables' target SYNPROXY, in our nf_tables chain */
};

/**
 * struct es_nf_hook_device - what to do with packets from our tun device
 * @is_marked: mark them with ES_NF_MARK_SOURCE while sources are checked (struct es_nf_tun)
 * @zone: track them in this zone, the one of the operator's rules for the services' packets; 0: no zone
 */
struct es_nf_hook_device {
	const char *name;
	int is_marked;
	__u16 zone;
};

/**
 * struct es_nf_hook - what the kernel accepted
 * @has_v6: IPv6, too; @has_label: entries can have labels
 * @whole: the tables of both families when they were set
 */
struct es_nf_hook {
	enum es_nf_hook_way way;
	int has_v6;
	int has_label;
	struct es_nf_whole whole[2];
};

/**
 * es_nf_hook_set() - make the tables anew, in one transaction: connections go on meanwhile
 * @nl: NETLINK_NETFILTER; @device: NULL: no rules about it
 * Returns 0; or -errno, with @why: -EOPNOTSUPP if the kernel has SYNPROXY in neither way.
 */
int es_nf_hook_set(struct es_nf_netlink *nl, const struct es_nf_hook_device *device,
		   struct es_nf_hook *ret_hook, struct es_nf_why *why);

/*
 * es_nf_hook_set_as() - likewise, in just this way; sets @hook->whole. Returns 0 or the kernel's negative
 * error.
 */
int es_nf_hook_set_as(struct es_nf_netlink *nl, const struct es_nf_hook_device *device,
		      struct es_nf_hook *hook);

/**
 * es_nf_hook_is_set() - are all tables of @hook still as they were set? An operator's `nft flush ruleset`
 * removes them. Returns 1, 0 or -errno.
 */
int es_nf_hook_is_set(struct es_nf_netlink *nl, const struct es_nf_hook *hook);

/* es_nf_hook_remove() - Returns 0, also if there is none, or -errno. */
int es_nf_hook_remove(struct es_nf_netlink *nl);

/*
 * es_nf_hook_watch() - open @nl as a socket that becomes readable when anybody changes rules
 * es_nf_hook_watched() - empty it; then ask es_nf_hook_is_set(). Both return 0 or -errno.
 */
int es_nf_hook_watch(struct es_nf_netlink *nl);
int es_nf_hook_watched(struct es_nf_netlink *nl);

#endif
