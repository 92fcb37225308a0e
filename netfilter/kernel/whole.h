/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_WHOLE_H
#define ES_NETFILTER_KERNEL_WHOLE_H

/*
 * Is a table of nf_tables still as it was set? Operators share the kernel with us: after `nft flush table`,
 * `nft delete rule`, `nft add element` or the flag dormant, the table itself is still there.
 */
#include "kmod/core/types.h"
#include "netfilter/kernel/netlink.h"

/**
 * struct es_nf_whole - what a table looked like
 * @rules: how many were set
 * @digest: hash of the rules in their order, of the elements of the sets in any order, and of the table's
 * flags and use. Rules must contain nothing that changes by itself, such as anonymous counters.
 */
struct es_nf_whole {
	__u64 digest;
	size_t rules;
};

/**
 * es_nf_whole_note() - remember the table that was just set
 * @family: NFPROTO_IPV4, NFPROTO_IPV6 or NFPROTO_NETDEV; @rules: how many the transaction put into it. If
 * somebody has already removed some, es_nf_whole_is() will say so. Returns 0 or -errno.
 */
int es_nf_whole_note(struct es_nf_netlink *nl, unsigned char family, const char *table, size_t rules,
		     struct es_nf_whole *ret_whole);

/**
 * es_nf_whole_is() - is the table still as it was?
 * Returns 1; 0; or -errno. While somebody keeps changing rules, it returns 1: ask again after that.
 */
int es_nf_whole_is(struct es_nf_netlink *nl, unsigned char family, const char *table,
		   const struct es_nf_whole *whole);

#endif
