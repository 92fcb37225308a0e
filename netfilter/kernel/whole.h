/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_WHOLE_H
#define ES_NETFILTER_KERNEL_WHOLE_H

/*
 * Is a table of nf_tables as it was set? Operators share the kernel with us: `nft flush table`, `nft delete rule`, `nft add element`
 * and a table that is put to sleep (flags dormant) leave the table itself where it was.
 */
#include "kmod/core/types.h"
#include "netfilter/kernel/netlink.h"

/**
 * struct es_nf_whole - what a table looked like
 * @rules: how many were set
 * @digest: of its rules, in their order, of the elements of its sets, in any, and of what the kernel says of the table itself. The rules
 * must have nothing that changes by itself, as counters do, but for such as have a name, to which they refer.
 */
struct es_nf_whole {
	__u64 digest;
	size_t rules;
};

/**
 * es_nf_whole_note() - remember the table that was just set
 * @family: NFPROTO_IPV4, NFPROTO_IPV6, NFPROTO_NETDEV; @rules: how many the transaction has put into it. If somebody was so quick as to
 * take some away already, the table is not whole.
 * Returns 0 or -errno.
 */
int es_nf_whole_note(struct es_nf_netlink *nl, unsigned char family, const char *table, size_t rules,
		     struct es_nf_whole *ret_whole);

/**
 * es_nf_whole_is() - is it still so?
 * Returns 1, also while somebody is changing rules, who is to be asked about again when he has; 0; or -errno.
 */
int es_nf_whole_is(struct es_nf_netlink *nl, unsigned char family, const char *table,
		   const struct es_nf_whole *whole);

#endif
