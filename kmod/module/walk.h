/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_WALK_H
#define ES_MODULE_WALK_H

/*
 * Walks over this node's connections: what it has in hand (kmod/core/load.h), which of them another node
 * could be asked to make once more, and what `earshot flows` shows. All may sleep; the caller holds
 * es_net.lock.
 */
#include "kmod/core/load.h"
#include "node.h"

/* es_walk_loads() - what the connections are busy with. One pass over the kernel's socket table; what is
 * found that should have ended (ES_TRACK_ENDING) is ended. May sleep. */
void es_walk_loads(struct es_node *node, struct es_load_sums *ret_sums);

/**
 * es_walk_connections(), es_walk_flows() - fill @entries, room for @room, from where @at says
 * @at: two numbers, zero before the first call; the walk is over when @at[0] has reached the end, which the
 * functions tell by returning 0. Connections that come or go meanwhile may be missed.
 * Returns how many entries were written.
 */
unsigned int es_walk_connections(struct es_node *node, unsigned long at[2],
				 struct es_connection_entry *entries, unsigned int room);
unsigned int es_walk_flows(struct es_node *node, unsigned long at[2], struct es_track_entry *entries,
			   unsigned int room);

/*
 * es_walk_end_unproven() - end what is unproven or ceded, while the lease is over. The kernel tells the
 * client with a RST, which es_reply_hook() drops, but for clients whose request was acknowledged here.
 * Returns how many.
 */
unsigned int es_walk_end_unproven(struct es_node *node);

#endif
