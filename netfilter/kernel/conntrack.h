/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_CONNTRACK_H
#define ES_NETFILTER_KERNEL_CONNTRACK_H

/*
 * Entries of the kernel's connection tracking, by ctnetlink. Entries that user space makes have the extensions by
 * which the SYNPROXY hook finishes a handshake and shifts sequence numbers and timestamps; those that packets make
 * have not.
 */
#include <stddef.h>
#include "kmod/core/tcp.h"
#include "netfilter/kernel/entry.h"
#include "netfilter/kernel/netlink.h"

/**
 * struct es_nf_conntrack - for one thread
 * @zone: the operator's zone, in which the services' packets are tracked; 0: none
 * @has_label: entries get ES_NF_LABEL, and what has none is not ours (struct es_nf_hook's)
 * @established_s: how long the kernel keeps the entry of a connection that says nothing
 */
struct es_nf_conntrack {
	struct es_nf_netlink nl;
	__u16 zone;
	int has_label;
	__u32 established_s;
};

/* es_nf_conntrack_open() - Returns 0 or -errno. */
int es_nf_conntrack_open(struct es_nf_conntrack *ct, __u16 zone, int has_label);
void es_nf_conntrack_close(struct es_nf_conntrack *ct);

/**
 * es_nf_conntrack_expect() - entries for SYNs that are about to come in, all at once
 * @n: at most ES_NF_BATCH; @ret_rc: of each, 0, -EEXIST or -errno
 * An entry that no SYN follows is gone after ten seconds. One that the flow has already must be deleted before, and not
 * changed: the offset that it has would shift the handshake.
 */
#define ES_NF_BATCH 32
struct es_nf_expected {
	struct es_flow flow;
	struct es_flow socket; /* as of struct es_nf_entry */
	struct es_tcp_options options;
	__u32 first_seq; /* what es_nf_entry_first() tells of the entry */
	int is_making;	 /* the entry gets ES_NF_LABEL_MAKING, up to es_nf_conntrack_made() */
};
void es_nf_conntrack_expect(struct es_nf_conntrack *ct, const struct es_nf_expected *expected, size_t n,
			    int *ret_rc);

/**
 * es_nf_conntrack_expect_copy() - the same SYN is about to come in once more, before anything else of the flow's
 * Without that, the connection tracking takes it for a stray one and itself for out of step, and then refuses what
 * is shifted. The entry's offsets do not change, since its server's SYN-ACK does not. Returns 0 or -errno.
 */
int es_nf_conntrack_expect_copy(struct es_nf_conntrack *ct, const struct es_nf_expected *expected);

/*
 * es_nf_conntrack_made() - take ES_NF_LABEL_MAKING from an entry of ours
 * Returns 0; -ENOENT; or -errno.
 */
int es_nf_conntrack_made(struct es_nf_conntrack *ct, const struct es_flow *flow);

/* es_nf_conntrack_prove() - give an entry of ours the label ES_NF_LABEL_PROVEN. Returns as es_nf_conntrack_hold(). */
int es_nf_conntrack_prove(struct es_nf_conntrack *ct, const struct es_flow *flow);

/**
 * es_nf_conntrack_hold() - give a connection's entry the label ES_NF_LABEL_HELD, or take it away
 * Returns 0; -ENOENT if the flow has no entry; -EOPNOTSUPP where the kernel has no labels; or -errno.
 */
int es_nf_conntrack_hold(struct es_nf_conntrack *ct, const struct es_flow *flow, int is_held);

/* es_nf_conntrack_delete() - Returns 0; -ENOENT if the flow has no entry; or -errno. */
int es_nf_conntrack_delete(struct es_nf_conntrack *ct, const struct es_flow *flow);

/* es_nf_conntrack_get() - Returns 0; -ENOENT if the flow has no entry; or -errno. */
int es_nf_conntrack_get(struct es_nf_conntrack *ct, const struct es_flow *flow,
			struct es_nf_entry *ret_entry);

/* es_nf_conntrack_get_socket() - the same, by what its server's socket has for the flow */
int es_nf_conntrack_get_socket(struct es_nf_conntrack *ct, const struct es_flow *socket,
			       struct es_nf_entry *ret_entry);

/**
 * es_nf_conntrack_restore() - make an established connection's entry again, as es_nf_conntrack_get() told of it
 * Replaces the entry that a packet may have made since. Returns 0 or -errno.
 */
int es_nf_conntrack_restore(struct es_nf_conntrack *ct, const struct es_nf_entry *entry);

/**
 * es_nf_conntrack_walk() - call @fn for each entry that is ours, in our zone
 * @fn: must not use @ct. Returns 0; -EINTR if the table changed meanwhile, so that some may be missing; or -errno.
 */
typedef void (*es_nf_entry_fn)(void *ctx, const struct es_nf_entry *entry);
int es_nf_conntrack_walk(struct es_nf_conntrack *ct, es_nf_entry_fn fn, void *ctx);

/* es_nf_conntrack_is_ours() - is it one that this library has made? */
static inline int es_nf_conntrack_is_ours(const struct es_nf_conntrack *ct, const struct es_nf_entry *entry)
{
	return entry->zone == ct->zone && (ct->has_label ? entry->has_label : entry->has_synproxy);
}

#endif
