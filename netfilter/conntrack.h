/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_CONNTRACK_H
#define ES_NETFILTER_CONNTRACK_H

/*
 * Entries of the kernel's connection tracking, by ctnetlink. Entries that user space makes have the extensions by
 * which the SYNPROXY hook finishes a handshake and shifts sequence numbers and timestamps; those that packets make
 * have not.
 */
#include "kmod/core/flow.h"
#include "kmod/core/tcp.h"
#include "netfilter/netlink.h"

/**
 * struct es_nf_conntrack - for one thread
 * @zone: the operator's zone, in which the service's packets are tracked; 0: none
 * @has_label: entries get ES_NF_LABEL (hook.h)
 */
struct es_nf_conntrack {
	struct es_nf_netlink nl;
	__u16 zone;
	int has_label;
};

/**
 * struct es_nf_shift - how far one direction's sequence numbers are shifted (struct nf_ct_seqadj)
 */
struct es_nf_shift {
	__u32 position;
	__s32 before;
	__s32 after;
};

/**
 * struct es_nf_offsets - all that the kernel knows of a rebuilt connection, and would forget with its entry
 * @isn, @its, @tsoff: struct nf_conn_synproxy's
 * @client, @server: shifts of what the client, and the server, sends
 */
struct es_nf_offsets {
	__u32 isn;
	__u32 its;
	__u32 tsoff;
	struct es_nf_shift client;
	struct es_nf_shift server;
};

/**
 * struct es_nf_entry - an entry as the kernel tells of it
 * @state: enum tcp_conntrack; @timeout_s: until it would be dropped
 * @is_ours: it has our label, or, where there are no labels, a SYNPROXY extension
 */
struct es_nf_entry {
	struct es_flow flow;
	struct es_nf_offsets offsets;
	__u32 timeout_s;
	__u16 zone;
	__u8 state;
	__u8 client_wscale;
	__u8 server_wscale;
	__u8 is_ours;
};

/* es_nf_conntrack_open() - Returns 0 or -errno. */
int es_nf_conntrack_open(struct es_nf_conntrack *ct, __u16 zone, int has_label);
void es_nf_conntrack_close(struct es_nf_conntrack *ct);

/**
 * es_nf_conntrack_expect() - entries for SYNs that are about to come in, all by one system call
 * @n: at most ES_NF_BATCH; @ret_rc: of each, 0 or -errno
 * An entry that the flow has already is deleted first: its old offset would shift the handshake. Entries that no SYN
 * follows are gone after ten seconds.
 */
#define ES_NF_BATCH 32
struct es_nf_expected {
	struct es_flow flow;
	struct es_tcp_options options;
};
void es_nf_conntrack_expect(struct es_nf_conntrack *ct, const struct es_nf_expected *expected, size_t n,
			    int *ret_rc);

/* es_nf_conntrack_delete() - Returns 0; -ENOENT if the flow has no entry; or -errno. */
int es_nf_conntrack_delete(struct es_nf_conntrack *ct, const struct es_flow *flow);

/* es_nf_conntrack_get() - Returns 0, -ENOENT or -errno. */
int es_nf_conntrack_get(struct es_nf_conntrack *ct, const struct es_flow *flow, struct es_nf_entry *ret_entry);

/**
 * es_nf_conntrack_restore() - make an established connection's entry again, as es_nf_conntrack_get() told of it
 * Replaces the entry that a packet may have made since. Returns 0 or -errno.
 */
int es_nf_conntrack_restore(struct es_nf_conntrack *ct, const struct es_nf_entry *entry);

/**
 * es_nf_conntrack_walk() - call @fn for each TCP entry that is ours
 * @fn: must not use @ct. Returns 0; -EINTR if entries came or went meanwhile, so that some may be missing; or -errno.
 */
typedef void (*es_nf_entry_fn)(void *ctx, const struct es_nf_entry *entry);
int es_nf_conntrack_walk(struct es_nf_conntrack *ct, es_nf_entry_fn fn, void *ctx);

#endif
