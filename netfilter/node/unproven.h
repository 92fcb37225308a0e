/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_UNPROVEN_H
#define ES_NETFILTER_NODE_UNPROVEN_H

/*
 * Connections that were made here, and whose clients have acknowledged nothing of what was sent here: they may repeat
 * their requests, and another node may be asked for them. Where nodes have leases, the kernel asks this datapath about
 * each packet of such a connection, in both directions (rules.h), so nothing of it moves when the lease is over, nor
 * without a daemon. The kernel is told of those that are proven (struct es_nf_hands' prove()), and asks no more.
 *
 * A set per flow hash, of eight. None goes before it is proven or over: where there is no room, no connection is made.
 */
#include "kmod/core/flow.h"
#include "netfilter/node/unproven_table.h"
#include "netfilter/node/node.h"

/**
 * es_nf_unproven_note() - a connection is about to be made, of a request, or of what a program has handed over
 * @request: its first segment; @source: the node that inspected it, or handed it over; @is_moved: it is not its connection's first
 * Nothing is noted without leases. Returns 0; or -ENOSPC: there is no room.
 */
int es_nf_unproven_note(struct es_nf_node *node, const struct es_flow *flow, const struct es_segment *request,
			__u16 source, int is_moved);

/* es_nf_unproven_forget() - it was not made */
void es_nf_unproven_forget(struct es_nf_node *node, const struct es_flow *flow);

/* es_nf_unproven_in() - a client's packet for such a connection. Only its headers need be there. */
enum es_nf_fate es_nf_unproven_in(struct es_nf_node *node, const struct es_nf_frame *frame);

/* es_nf_unproven_out() - what its stack sends to its client, but for the RST; the same */
enum es_nf_fate es_nf_unproven_out(struct es_nf_node *node, const struct es_nf_frame *frame);

/**
 * es_nf_unproven_look() - the stack has got this packet, that es_nf_unproven_in() has let pass: did it prove something?
 */
void es_nf_unproven_look(struct es_nf_node *node, const struct es_nf_frame *frame);

/**
 * es_nf_unproven_reset() - a server's RST: may its client hear it?
 * @is_proven: of a connection of which the kernel was told that it is
 * Returns ES_NF_DROP if it must not; whoever was kept from repeating his request is told by another one.
 */
enum es_nf_fate es_nf_unproven_reset(struct es_nf_node *node, const struct es_flow *flow, int is_proven);

/**
 * es_nf_unproven_walk() - call @fn for each that is still unproven, as of struct es_connection_entry
 * @at: 0; then what was returned: each call asks the kernel about ES_NF_UNPROVEN_SLICE of them at most, as there may be
 * tens of thousands. What is noted between two calls may be left out. Returns 0 behind the last one.
 */
#define ES_NF_UNPROVEN_SLICE 128
typedef void (*es_nf_unproven_fn)(void *ctx, const struct es_connection_entry *entry);
size_t es_nf_unproven_walk(struct es_nf_node *node, size_t at, es_nf_unproven_fn fn, void *ctx);

/**
 * es_nf_unproven_end() - end them all, while the lease is over
 * No client hears of it but those that were kept from repeating their requests. @at, and what is returned, as of
 * es_nf_unproven_walk(); @count: how many were ended is added to it.
 */
size_t es_nf_unproven_end(struct es_nf_node *node, size_t at, unsigned int *count);

/*
 * es_nf_unproven_is() - of any connection, which may have been made by a daemon that noted none: may its client repeat
 * its first request? As long as the kernel does not say otherwise.
 */
int es_nf_unproven_is(struct es_nf_node *node, const struct es_flow *flow);

/* es_nf_unproven_ended() - it was, and has been ended by other means: its client's request may be served here again */
void es_nf_unproven_ended(struct es_nf_node *node, const struct es_flow *flow);

#endif
