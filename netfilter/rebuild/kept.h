/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_KEPT_H
#define ES_NETFILTER_REBUILD_KEPT_H

/*
 * What the kernel's connection tracking knows of the connections that were made here, in case it forgets: by
 * `conntrack -F`, or as a connection was idle for longer than the operator's timeout. Without their entries they would
 * stand still; with the same offsets, the entries can be made again.
 */
#include "netfilter/kernel/conntrack.h"

struct es_nf_kept;

/* es_nf_kept_new() - for one thread; @most: connections. Returns 0 or -errno. */
int es_nf_kept_new(size_t most, struct es_nf_kept **ret_kept);
void es_nf_kept_free(struct es_nf_kept **kept);

/* es_nf_kept_count() - how many connections are kept */
size_t es_nf_kept_count(const struct es_nf_kept *kept);

/* es_nf_kept_may_have() - is the flow's connection kept, or are there more than can be? */
int es_nf_kept_may_have(const struct es_nf_kept *kept, const struct es_flow *flow);

/**
 * es_nf_kept_look() - keep what the kernel knows of a connection that was just made; what was kept of its flow is replaced
 * Returns 0; -ENOENT if it has no entry of ours; -ENOSPC if @most are kept; or -errno.
 */
int es_nf_kept_look(struct es_nf_kept *kept, struct es_nf_conntrack *ct, const struct es_flow *flow);

/**
 * es_nf_kept_keep() - the same, of what the kernel has told of it while it was made
 * Its entry will be made again with the time that established connections have. Returns 0; -ENOENT if @entry is not ours; or -ENOSPC.
 */
int es_nf_kept_keep(struct es_nf_kept *kept, const struct es_nf_conntrack *ct,
		    const struct es_nf_entry *entry);

/* es_nf_kept_look_all() - the same for all that are there when a daemon begins, @most of them. Returns 0 or -errno. */
int es_nf_kept_look_all(struct es_nf_kept *kept, struct es_nf_conntrack *ct);

/* es_nf_kept_hold() - an entry that is made again has ES_NF_LABEL_HELD from now on, or has it no more */
void es_nf_kept_hold(struct es_nf_kept *kept, const struct es_flow *flow, int is_held);

/* es_nf_kept_prove() - one that is made again has ES_NF_LABEL_PROVEN */
void es_nf_kept_prove(struct es_nf_kept *kept, const struct es_flow *flow);

/* es_nf_kept_client_ts() - struct es_nf_entry's, of a connection that this daemon has made; else 0 */
__u32 es_nf_kept_client_ts(const struct es_nf_kept *kept, const struct es_flow *flow);

/* es_nf_kept_forget() - the connection has left */
void es_nf_kept_forget(struct es_nf_kept *kept, const struct es_flow *flow);

/**
 * es_nf_kept_restore() - an entry of this flow has gone (losses.h): make it again, if its connection is still here
 * @diag: NETLINK_SOCK_DIAG. One that is over is forgotten.
 * Returns 1 if the entry is there again; 0 if there is nothing to do; or -errno.
 */
int es_nf_kept_restore(struct es_nf_kept *kept, struct es_nf_conntrack *ct, struct es_nf_netlink *diag,
		       const struct es_flow *flow);

/**
 * es_nf_kept_restore_begin() - losses were lost: all entries are to be looked at, and made again where they are missing
 * Called again meanwhile, it has all looked at once more, behind that.
 */
void es_nf_kept_restore_begin(struct es_nf_kept *kept);

/* es_nf_kept_is_restoring() - some are to be looked at still */
int es_nf_kept_is_restoring(const struct es_nf_kept *kept);

/**
 * es_nf_kept_restore_some() - look at @most of them
 * As es_nf_kept_restore() does; between two calls, all others may be called. Returns how many are there again.
 */
size_t es_nf_kept_restore_some(struct es_nf_kept *kept, struct es_nf_conntrack *ct,
			       struct es_nf_netlink *diag, size_t most);

#endif
