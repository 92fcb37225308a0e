/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_RULES_HOOK_H
#define ES_NETFILTER_RULES_HOOK_H

/*
 * The kernel's SYNPROXY hook. It is there while a rule with a SYNPROXY target is, so this keeps one that no packet
 * ever reaches: in a chain that nothing jumps to, of tables of its own, one for each family. Never a rule in an
 * operator's table. The same tables mark what comes in by our tun device, where the kernel checks sources strictly (source.h),
 * and know the label by which our conntrack entries are told apart.
 *
 * They outlive the daemon on purpose: without the hook, the timestamps of all rebuilt connections break at once.
 * es_nf_hook_remove() is for the end of a service, not of a daemon.
 */
#include "netfilter/kernel/whole.h"
#include "netfilter/kernel/why.h"

#define ES_NF_HOOK_TABLE "earshot-rebuild"

/* How the rule is made. */
enum es_nf_hook_way {
	ES_NF_HOOK_NFT,	   /* nf_tables' own synproxy expression, Linux 5.3 */
	ES_NF_HOOK_COMPAT, /* xtables' SYNPROXY target, in our nf_tables chain */
};

/**
 * struct es_nf_hook_device - what becomes of what comes in by our tun device
 * @is_marked: it gets ES_NF_MARK_SOURCE while sources are checked (struct es_nf_tun's)
 * @zone: it is tracked in this zone, as the operator's rules have the services' packets tracked; 0: in none
 */
struct es_nf_hook_device {
	const char *name;
	int is_marked;
	__u16 zone;
};

/**
 * struct es_nf_hook - what es_nf_hook_set() found to work
 * @has_v6: for IPv6, too; @has_label: entries can be labelled
 * @whole: what the tables of both families looked like when they were set
 */
struct es_nf_hook {
	enum es_nf_hook_way way;
	int has_v6;
	int has_label;
	struct es_nf_whole whole[2];
};

/**
 * es_nf_hook_set() - make the tables anew, in one transaction: connections go on meanwhile
 * @nl: NETLINK_NETFILTER
 * @device: NULL: nothing becomes of what comes in there
 * Returns 0; or -errno, with @why: -EOPNOTSUPP if the kernel has SYNPROXY in neither way.
 */
int es_nf_hook_set(struct es_nf_netlink *nl, const struct es_nf_hook_device *device,
		   struct es_nf_hook *ret_hook, struct es_nf_why *why);

/* es_nf_hook_set_as() - the same in just this way; notes @hook->whole. Returns 0, or the kernel's error, negative. */
int es_nf_hook_set_as(struct es_nf_netlink *nl, const struct es_nf_hook_device *device,
		      struct es_nf_hook *hook);

/**
 * es_nf_hook_is_set() - are the tables still as they were set? An operator's `nft flush ruleset` takes them away.
 * Returns 1: those of all families of @hook; 0; or -errno.
 */
int es_nf_hook_is_set(struct es_nf_netlink *nl, const struct es_nf_hook *hook);

/* es_nf_hook_remove() - Returns 0, also if there is none, or -errno. */
int es_nf_hook_remove(struct es_nf_netlink *nl);

/*
 * es_nf_hook_watch() - open @nl as a socket that is readable whenever anybody has changed rules
 * es_nf_hook_watched() - empty it: then es_nf_hook_is_set() is to be asked. Both return 0 or -errno.
 */
int es_nf_hook_watch(struct es_nf_netlink *nl);
int es_nf_hook_watched(struct es_nf_netlink *nl);

#endif
