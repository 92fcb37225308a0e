/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_ENTRY_H
#define ES_NETFILTER_KERNEL_ENTRY_H

/*
 * What ctnetlink says of a conntrack entry of TCP.
 */
#include <libmnl/libmnl.h>
#include "kmod/core/flow.h"

/*
 * Bits of the connection label, where the kernel has labels (hook.h). ES_NF_LABEL: our entries carry it.
 * ES_NF_LABEL_PROVEN: the kernel need not ask about the connection's packets any more (unproven.h). ES_NF_LABEL_HELD: it is
 * just leaving, and nothing of it leaves this node. ES_NF_LABEL_MAKING: it is just being made, and what comes from the wire waits.
 * The last two together: it was to be made, and is not to be any more (withdraw.h).
 */
#define ES_NF_LABEL	   127
#define ES_NF_LABEL_PROVEN 126
#define ES_NF_LABEL_HELD   125
#define ES_NF_LABEL_MAKING 124
#define ES_NF_LABEL_BYTES  16
#define ES_NF_LABEL_LONGS  (ES_NF_LABEL_BYTES / sizeof(long))

/* es_nf_label_set() - in a label as the kernel has it: a bitmap of longs */
static inline void es_nf_label_set(unsigned long bits[ES_NF_LABEL_LONGS], unsigned int bit)
{
	bits[bit / (8 * sizeof(long))] |= 1UL << bit % (8 * sizeof(long));
}

/* es_nf_label() - our label, and nothing else */
static inline void es_nf_label(unsigned long ret_bits[ES_NF_LABEL_LONGS])
{
	for (size_t i = 0; i < ES_NF_LABEL_LONGS; i++)
		ret_bits[i] = 0;
	es_nf_label_set(ret_bits, ES_NF_LABEL);
}

/**
 * struct es_nf_shift - how far one direction's sequence numbers are shifted (the kernel's struct nf_ct_seqadj)
 */
struct es_nf_shift {
	__u32 position;
	__s32 before;
	__s32 after;
};

/**
 * struct es_nf_offsets - all that the kernel knows of a rebuilt connection, and would forget with its entry
 * @isn, @its, @tsoff: the kernel's struct nf_conn_synproxy
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
 * struct es_nf_entry
 * @flow: by its original direction; @socket: the same, as its server's socket has it, which is another one of connections that
 * programs have handed over (program_name.h)
 * @client_ts: its client's timestamp when it was made, which the kernel does not tell; 0: unknown, or it has none
 * @state: enum tcp_conntrack, 0 if the kernel does not tell; @timeout_s: until it would be dropped
 * @client_wscale, @server_wscale: what the SYN and the SYN-ACK offered, @has_wscale: both did; @has_sack likewise
 * @has_synproxy: it has the extension that the hook works by; @has_label: it has our label; @is_proven, @is_held, @is_making: and
 * that one, too
 */
struct es_nf_entry {
	struct es_flow flow;
	struct es_flow socket;
	struct es_nf_offsets offsets;
	__u32 timeout_s;
	__u32 client_ts;
	__u16 zone;
	__u8 state;
	__u8 client_wscale;
	__u8 server_wscale;
	__u8 has_wscale;
	__u8 has_sack;
	__u8 has_synproxy;
	__u8 has_label;
	__u8 is_proven;
	__u8 is_held;
	__u8 is_making;
};

/**
 * es_nf_entry_first() - the first byte of the request of which the connection was made
 * What clients send is not shifted, so it has a place in the entry, which the kernel keeps, for what it does not need: the position
 * from which on it would be. 0: it is not known, as of entries that a version before has made.
 */
static inline __u32 es_nf_entry_first(const struct es_nf_entry *entry)
{
	return entry->offsets.client.position;
}

/* es_nf_entry_is_withdrawn() - is it of an attempt that is not to become a connection? Only of one with our label. */
static inline int es_nf_entry_is_withdrawn(const struct es_nf_entry *entry)
{
	return entry->is_making && entry->is_held;
}

/* es_nf_entry_read() - from a message of ctnetlink. Returns 0; -ENOENT if it is about no entry of TCP. */
int es_nf_entry_read(const struct nlmsghdr *nlh, struct es_nf_entry *ret_entry);

#endif
