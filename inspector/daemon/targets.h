/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_TARGETS_H
#define ES_DAEMON_TARGETS_H

/*
 * The target tables of the services whose policies need them, and their way over the bus. Owned by the
 * control thread; workers use them through the version of the cluster that they have.
 */
#include <ev.h>
#include "inspector/cluster/cluster.h"
#include "inspector/cluster/target_sync.h"

struct es_daemon_targets;

/* struct es_table_set - the tables of a configuration's services, in their order; NULL for one without */
struct es_table_set {
	unsigned int count;
	struct es_service_table *table[ES_CONF_SERVICES_MAX];
};

/**
 * es_daemon_targets_new() - no tables yet
 * @send: puts a message on the bus; never called before es_daemon_targets_view()
 * Returns 0 or -ENOMEM.
 */
int es_daemon_targets_new(struct ev_loop *loop, const struct es_target_sync_ops *ops, void *ctx,
			  struct es_daemon_targets **ret_targets);
void es_daemon_targets_free(struct es_daemon_targets **targets);

/* es_daemon_targets_self() - this node's number, with which it signs what it says of sets */
void es_daemon_targets_self(struct es_daemon_targets *targets, unsigned int self);

/**
 * es_daemon_targets_prepare() - the tables that @conf needs: a service of the same name and policy keeps its own
 * Returns 0 or -ENOMEM. Then one of commit and discard.
 */
int es_daemon_targets_prepare(struct es_daemon_targets *targets, const struct es_conf *conf,
			      struct es_table_set *ret_set);
/* es_daemon_targets_commit() - @set is in force, and no worker uses another one any more */
void es_daemon_targets_commit(struct es_daemon_targets *targets, struct es_table_set *set);
void es_daemon_targets_discard(struct es_daemon_targets *targets, struct es_table_set *set);

/* es_table_set_fill() - let a version of the cluster have these tables; NULL: those in force */
void es_table_set_fill(const struct es_daemon_targets *targets, const struct es_table_set *set,
		       struct es_cluster *cluster);

/* As the functions of cluster/target_sync.h, for all tables. */
void es_daemon_targets_view(struct es_daemon_targets *targets, struct es_group_id self,
			    const struct es_group_id *members, unsigned int count, __u64 now_ms);
void es_daemon_targets_message(struct es_daemon_targets *targets, struct es_group_id from, __u8 type,
			       const void *payload, size_t len, __u64 now_ns);
void es_daemon_targets_lost(struct es_daemon_targets *targets);
void es_daemon_targets_tick(struct es_daemon_targets *targets, __u64 now_ms);
void es_daemon_targets_heard(struct es_daemon_targets *targets, __u32 tag, const struct es_target_word *word,
			     __u64 now_ns);
void es_daemon_targets_drop(struct es_daemon_targets *targets, unsigned int node, __u64 now_ns);

/* es_daemon_targets_of() - a service's table and its state; NULL if it has none */
struct es_targets *es_daemon_targets_of(const struct es_daemon_targets *targets, unsigned int service,
					struct es_target_sync_state *ret_state);

#endif
