/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_CONNTRACK_H
#define ES_NETFILTER_KERNEL_CONNTRACK_H

/*
 * Conntrack entries, by ctnetlink. An entry made from user space has the extensions that the SYNPROXY hook
 * needs to finish a handshake and to shift sequence numbers and timestamps. An entry made by a packet has
 * not.
 */
#include <stddef.h>
#include "kmod/core/tcp.h"
#include "netfilter/kernel/entry.h"
#include "netfilter/kernel/netlink.h"

/**
 * struct es_nf_conntrack - for one thread
 * @zone: the operator's conntrack zone for the services' packets; 0: none
 * @has_label: our entries get ES_NF_LABEL, and others are not ours (struct es_nf_hook)
 * @established_s: how long the kernel keeps the entry of a silent connection
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
 * es_nf_conntrack_expect() - make entries for SYNs that are about to come in, all in one call
 * @n: at most ES_NF_BATCH; @ret_rc: for each, 0, -EEXIST or -errno
 * An entry without a SYN expires after ten seconds. If the flow already has an entry, delete that first
 * instead of changing it: its offset would shift the handshake.
 */
#define ES_NF_BATCH 32
struct es_nf_expected {
	struct es_flow flow;
	struct es_flow socket; /* as in struct es_nf_entry */
	struct es_tcp_options options;
	__u32 first_seq; /* for es_nf_entry_first() */
	int is_making;	 /* the entry gets ES_NF_LABEL_MAKING, until es_nf_conntrack_made() */
};
void es_nf_conntrack_expect(struct es_nf_conntrack *ct, const struct es_nf_expected *expected, size_t n,
			    int *ret_rc);

/**
 * es_nf_conntrack_expect_copy() - the same SYN is about to come in again, before anything else of its flow
 * Otherwise conntrack takes the copy for a stray SYN, believes that it is itself out of step, and refuses
 * shifted packets. The entry's offsets stay, since the server repeats the same SYN-ACK. Returns 0 or -errno.
 */
int es_nf_conntrack_expect_copy(struct es_nf_conntrack *ct, const struct es_nf_expected *expected);

/*
 * es_nf_conntrack_made() - take ES_NF_LABEL_MAKING away from an entry of ours. Returns 0; -ENOENT; or -errno.
 */
int es_nf_conntrack_made(struct es_nf_conntrack *ct, const struct es_flow *flow);

/*
 * es_nf_conntrack_prove() - give an entry of ours the label ES_NF_LABEL_PROVEN. Returns as
 * es_nf_conntrack_hold() does.
 */
int es_nf_conntrack_prove(struct es_nf_conntrack *ct, const struct es_flow *flow);

/**
 * es_nf_conntrack_hold() - give a connection's entry the label ES_NF_LABEL_HELD, or take it away
 * Returns 0; -ENOENT if the flow has no entry; -EOPNOTSUPP if the kernel has no labels; or -errno.
 */
int es_nf_conntrack_hold(struct es_nf_conntrack *ct, const struct es_flow *flow, int is_held);

/* es_nf_conntrack_delete() - Returns 0; -ENOENT if the flow has no entry; or -errno. */
int es_nf_conntrack_delete(struct es_nf_conntrack *ct, const struct es_flow *flow);

/* es_nf_conntrack_get() - Returns 0; -ENOENT if the flow has no entry; or -errno. */
int es_nf_conntrack_get(struct es_nf_conntrack *ct, const struct es_flow *flow,
			struct es_nf_entry *ret_entry);

/* es_nf_conntrack_get_socket() - likewise, by the flow of the server's socket */
int es_nf_conntrack_get_socket(struct es_nf_conntrack *ct, const struct es_flow *socket,
			       struct es_nf_entry *ret_entry);

/**
 * es_nf_conntrack_restore() - make an established connection's entry again, as es_nf_conntrack_get() returned
 * it Replaces an entry that a packet may have made meanwhile. Returns 0 or -errno.
 */
int es_nf_conntrack_restore(struct es_nf_conntrack *ct, const struct es_nf_entry *entry);

/**
 * es_nf_conntrack_walk() - call @fn for each entry that is ours and in our zone
 * @fn: must not use @ct. Returns 0; -EINTR if the table changed meanwhile, so that entries may be missing; or
 * -errno.
 */
typedef void (*es_nf_entry_fn)(void *ctx, const struct es_nf_entry *entry);
int es_nf_conntrack_walk(struct es_nf_conntrack *ct, es_nf_entry_fn fn, void *ctx);

/* es_nf_conntrack_is_ours() - did es_nf_conntrack_expect() or es_nf_conntrack_restore() make it? */
static inline int es_nf_conntrack_is_ours(const struct es_nf_conntrack *ct, const struct es_nf_entry *entry)
{
	return entry->zone == ct->zone && (ct->has_label ? entry->has_label : entry->has_synproxy);
}

#endif
