/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_UNPROVEN_H
#define ES_NETFILTER_NODE_UNPROVEN_H

/*
 * Unproven connections: they were made here, and their clients have acknowledged nothing that was sent here.
 * So a client may repeat its request, and another node may be asked for the response. Where nodes have
 * leases, the kernel asks this datapath about each packet of such a connection, in both directions (rules.h).
 * So nothing of it moves when the lease is over, nor without a daemon. The kernel is told when a connection
 * is proven (prove() of struct es_nf_hands), and then asks no more. Each flow hash has a set of eight. A note
 * stays until its connection is proven or over; without room for a note, no connection is made.
 */
#include "kmod/core/flow.h"
#include "netfilter/node/node.h"
#include "netfilter/node/unproven_table.h"

/**
 * es_nf_unproven_note() - a connection is about to be made, from a request, or from a program's handover
 * @request: its first segment; @source: the node that inspected it, or handed it over; @is_moved: it is not
 * its connection's first Without leases, nothing is noted. Returns 0; or -ENOSPC: there is no room.
 */
int es_nf_unproven_note(struct es_nf_node *node, const struct es_flow *flow, const struct es_segment *request,
			__u16 source, int is_moved);

/* es_nf_unproven_forget() - the connection was not made */
void es_nf_unproven_forget(struct es_nf_node *node, const struct es_flow *flow);

/* es_nf_unproven_in() - decide about a client's packet on such a connection; its headers suffice */
enum es_nf_fate es_nf_unproven_in(struct es_nf_node *node, const struct es_nf_frame *frame);

/* es_nf_unproven_out() - likewise, about a packet of the server's stack other than a RST */
enum es_nf_fate es_nf_unproven_out(struct es_nf_node *node, const struct es_nf_frame *frame);

/**
 * es_nf_unproven_look() - the stack has got a packet that es_nf_unproven_in() let pass: did it prove
 * something?
 */
void es_nf_unproven_look(struct es_nf_node *node, const struct es_nf_frame *frame);

/**
 * es_nf_unproven_reset() - a server's RST: may its client hear it?
 * @is_proven: the kernel was told that the connection is proven
 * Returns ES_NF_DROP if not. If the client was kept from repeating its request, it gets another RST instead.
 */
enum es_nf_fate es_nf_unproven_reset(struct es_nf_node *node, const struct es_flow *flow, int is_proven);

/**
 * es_nf_unproven_walk() - call @fn for each connection that is still unproven, as a struct
 * es_connection_entry
 * @at: 0 at first, then the value returned. Each call asks the kernel about at most ES_NF_UNPROVEN_SLICE
 * connections, as there may be tens of thousands. Connections noted between two calls may be left out.
 * Returns 0 after the last one.
 */
#define ES_NF_UNPROVEN_SLICE 128
typedef void (*es_nf_unproven_fn)(void *ctx, const struct es_connection_entry *entry);
size_t es_nf_unproven_walk(struct es_nf_node *node, size_t at, es_nf_unproven_fn fn, void *ctx);

/**
 * es_nf_unproven_end() - end all of them, while the lease is over
 * Only clients that were kept from repeating their requests hear of it. @at and the returned value are as for
 * es_nf_unproven_walk(); adds to @count how many were ended.
 */
size_t es_nf_unproven_end(struct es_nf_node *node, size_t at, unsigned int *count);

/*
 * es_nf_unproven_is() - may the client of any connection, perhaps made by a daemon that noted none, repeat
 * its first request? Yes, unless the kernel says otherwise.
 */
int es_nf_unproven_is(struct es_nf_node *node, const struct es_flow *flow);

/* es_nf_unproven_ended() - it was ended by other means: its client's request may be served here again */
void es_nf_unproven_ended(struct es_nf_node *node, const struct es_flow *flow);

#endif
