/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_KEPT_H
#define ES_NETFILTER_REBUILD_KEPT_H

/*
 * Copies of the conntrack entries of connections made here, in case the kernel loses them: by `conntrack -F`,
 * or since a connection was idle longer than the operator's timeout. Without its entry, a connection stands
 * still. An entry can be made again with the same offsets.
 */
#include "netfilter/kernel/conntrack.h"

struct es_nf_kept;

/* es_nf_kept_new() - for one thread; @most: entries. Returns 0 or -errno. */
int es_nf_kept_new(size_t most, struct es_nf_kept **ret_kept);
void es_nf_kept_free(struct es_nf_kept **kept);

/* es_nf_kept_count() - number of entries */
size_t es_nf_kept_count(const struct es_nf_kept *kept);

/* es_nf_kept_may_have() - is the flow's entry kept, or were there too many to know? */
int es_nf_kept_may_have(const struct es_nf_kept *kept, const struct es_flow *flow);

/**
 * es_nf_kept_look() - keep the entry of a connection that was just made; replaces what was kept for its flow
 * Returns 0; -ENOENT if it has no entry of ours; -ENOSPC if @most are kept; or -errno.
 */
int es_nf_kept_look(struct es_nf_kept *kept, struct es_nf_conntrack *ct, const struct es_flow *flow);

/**
 * es_nf_kept_keep() - likewise, from @entry, which was read while the connection was being made
 * If it is restored, it gets the lifetime of an established connection. Returns 0; -ENOENT if @entry is not
 * ours; or -ENOSPC.
 */
int es_nf_kept_keep(struct es_nf_kept *kept, const struct es_nf_conntrack *ct,
		    const struct es_nf_entry *entry);

/*
 * es_nf_kept_look_all() - likewise for all entries that exist when a daemon starts, at most @most. Returns 0
 * or -errno.
 */
int es_nf_kept_look_all(struct es_nf_kept *kept, struct es_nf_conntrack *ct);

/* es_nf_kept_hold() - when restored, the entry has ES_NF_LABEL_HELD, or has it no more */
void es_nf_kept_hold(struct es_nf_kept *kept, const struct es_flow *flow, int is_held);

/* es_nf_kept_prove() - when restored, it has ES_NF_LABEL_PROVEN */
void es_nf_kept_prove(struct es_nf_kept *kept, const struct es_flow *flow);

/*
 * es_nf_kept_client_ts() - client_ts of the entry (struct es_nf_entry) if this daemon has made the
 * connection, else 0
 */
__u32 es_nf_kept_client_ts(const struct es_nf_kept *kept, const struct es_flow *flow);

/* es_nf_kept_forget() - the connection has left */
void es_nf_kept_forget(struct es_nf_kept *kept, const struct es_flow *flow);

/**
 * es_nf_kept_restore() - the kernel has lost this flow's entry (losses.h): make it again if the connection is
 * still here
 * @diag: NETLINK_SOCK_DIAG. If the connection is over, it is forgotten.
 * Returns 1 if the entry was made again; 0 if there is nothing to do; or -errno.
 */
int es_nf_kept_restore(struct es_nf_kept *kept, struct es_nf_conntrack *ct, struct es_nf_netlink *diag,
		       const struct es_flow *flow);

/**
 * es_nf_kept_restore_begin() - losses went unheard: look at all entries, and make again those that are
 * missing If called while that goes on, all are looked at once more after it.
 */
void es_nf_kept_restore_begin(struct es_nf_kept *kept);

/* es_nf_kept_is_restoring() - are there entries left to look at? */
int es_nf_kept_is_restoring(const struct es_nf_kept *kept);

/**
 * es_nf_kept_restore_some() - look at @most of them, as es_nf_kept_restore() does
 * Between two calls, any other function may be called. Returns how many were made again.
 */
size_t es_nf_kept_restore_some(struct es_nf_kept *kept, struct es_nf_conntrack *ct,
			       struct es_nf_netlink *diag, size_t most);

#endif
