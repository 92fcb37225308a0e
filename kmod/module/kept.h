/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_KEPT_H
#define ES_MODULE_KEPT_H

/*
 * Connections that outlive their node (kmod/core/kept.h): other nodes' idle ones, and which of this node's
 * another one may go on with, if this one has no lease.
 *
 * The table is made when a daemon asks for it. Such a daemon tells other nodes of this node's connections, so
 * from then on those stand still without a lease. A daemon that is older than the table tells nobody, and
 * nothing stands still for it in vain.
 */
#include "kmod/core/kept.h"
#include "node.h"
#include "socket.h"

/* es_kept_slot() - the slot of a flow; NULL if no daemon has asked for the table */
static inline struct es_kept_slot *es_kept_slot(const struct es_node *node, u64 flow_hash)
{
	const struct es_table *table = smp_load_acquire(&node->kept_table);

	return table ? (struct es_kept_slot *)table->memory.at + es_kept_index(flow_hash) : NULL;
}

/* es_kept_table() - the table, made if it is not there yet. Under es_net.lock. Returns 0 or -ENOMEM. */
int es_kept_table(struct es_node *node, struct es_table **ret_table);

/**
 * es_note_is_ceded() - may another node go on with the connection of @sk, without a lease here?
 * @service: its own, an index; @note: its note, whose bucket is locked; NULL if it has none
 * Nobody knows any more what was told of a connection whose note is lost: another node may have it.
 */
int es_note_is_ceded(const struct es_node *node, const struct es_config *cfg, u32 service,
		     const struct es_note *note, const struct sock *sk);

/* es_socket_is_ceded() - the same; takes the lock. @sk: a TCP socket of flow @flow_hash */
int es_socket_is_ceded(const struct es_node *node, const struct es_config *cfg, u32 service, u64 flow_hash,
		       const struct sock *sk);

/*
 * es_socket_cede() - without a lease: if another node may go on with the connection, it does, and this one
 * never does again, whatever becomes of the lease (es_track_cede()). Returns 1 if so.
 */
int es_socket_cede(const struct es_node *node, const struct es_config *cfg, u32 service, u64 flow_hash,
		   const struct sock *sk);

#endif
