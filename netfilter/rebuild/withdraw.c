// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Withdraws attempts to make connections.
 */
#include <linux/netfilter/nf_conntrack_tcp.h>
#include "netfilter/rebuild/withdraw.h"

int es_nf_withdraw(struct es_nf_conntrack *ct, const struct es_flow *flow, __u32 seq)
{
	int rc = es_nf_conntrack_hold(ct, flow, 1);

	/* The label comes first, then the look. */
	return rc ? rc : es_nf_is_withdrawn(ct, flow, seq);
}

int es_nf_is_withdrawn(struct es_nf_conntrack *ct, const struct es_flow *flow, __u32 seq)
{
	struct es_nf_entry entry;

	return !es_nf_conntrack_get(ct, flow, &entry) && es_nf_conntrack_is_ours(ct, &entry) &&
	       es_nf_entry_is_withdrawn(&entry) && es_nf_entry_first(&entry) == seq &&
	       entry.state == TCP_CONNTRACK_SYN_SENT;
}
