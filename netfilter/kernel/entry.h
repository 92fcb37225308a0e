/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_ENTRY_H
#define ES_NETFILTER_KERNEL_ENTRY_H

/* A conntrack entry of a TCP connection, as ctnetlink describes it. */
#include <libmnl/libmnl.h>
#include "kmod/core/flow.h"

/*
 * Bits of the connection label, where the kernel has labels (hook.h):
 * - ES_NF_LABEL: an entry of ours.
 * - ES_NF_LABEL_PROVEN: the kernel need not ask about the connection's packets any more (unproven.h).
 * - ES_NF_LABEL_HELD: the connection is just leaving; this node sends nothing of it.
 * - ES_NF_LABEL_MAKING: the connection is just being made; packets from the wire wait.
 * - HELD and MAKING together: it was to be made, and must not be any more (withdraw.h).
 */
#define ES_NF_LABEL	   127
#define ES_NF_LABEL_PROVEN 126
#define ES_NF_LABEL_HELD   125
#define ES_NF_LABEL_MAKING 124
#define ES_NF_LABEL_BYTES  16
#define ES_NF_LABEL_LONGS  (ES_NF_LABEL_BYTES / sizeof(long))

/* es_nf_label_set() - set a bit of a label: a bitmap of longs, as in the kernel */
static inline void es_nf_label_set(unsigned long bits[ES_NF_LABEL_LONGS], unsigned int bit)
{
	bits[bit / (8 * sizeof(long))] |= 1UL << bit % (8 * sizeof(long));
}

/* es_nf_label() - ES_NF_LABEL and no other bit */
static inline void es_nf_label(unsigned long ret_bits[ES_NF_LABEL_LONGS])
{
	for (size_t i = 0; i < ES_NF_LABEL_LONGS; i++)
		ret_bits[i] = 0;
	es_nf_label_set(ret_bits, ES_NF_LABEL);
}

/**
 * struct es_nf_shift - by how much the sequence numbers of one direction are shifted (the kernel's struct
 * nf_ct_seqadj)
 */
struct es_nf_shift {
	__u32 position;
	__s32 before;
	__s32 after;
};

/**
 * struct es_nf_offsets - what the kernel knows of a rebuilt connection, and forgets with its entry
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
 * @flow: the original direction; @socket: the flow of the server's socket, which differs if a program has
 * handed over the connection (program_name.h)
 * @client_ts: the client's timestamp when the connection was made, which the kernel does not tell; 0:
 * unknown, or none
 * @state: enum tcp_conntrack, 0 if the kernel does not tell; @timeout_s: until the entry expires
 * @client_wscale, @server_wscale: window scales of the SYN and the SYN-ACK; @has_wscale: both had one;
 * @has_sack likewise
 * @has_synproxy: it has the SYNPROXY extension; @has_label: it has ES_NF_LABEL; @is_proven, @is_held,
 * @is_making: the other labels
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
 * es_nf_entry_first() - sequence number of the first byte of the request from which the connection was made
 * The kernel does not shift what clients send, so it does not need that shift's position. The entry keeps
 * this number there. 0: unknown, since an older version made the entry.
 */
static inline __u32 es_nf_entry_first(const struct es_nf_entry *entry)
{
	return entry->offsets.client.position;
}

/*
 * es_nf_entry_is_withdrawn() - is it an attempt that must not become a connection? Only of an entry with our
 * label.
 */
static inline int es_nf_entry_is_withdrawn(const struct es_nf_entry *entry)
{
	return entry->is_making && entry->is_held;
}

/* es_nf_entry_read() - read a message of ctnetlink. Returns 0; -ENOENT if it is not about a TCP entry. */
int es_nf_entry_read(const struct nlmsghdr *nlh, struct es_nf_entry *ret_entry);

#endif
