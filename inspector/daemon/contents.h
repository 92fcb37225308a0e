/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_CONTENTS_H
#define ES_DAEMON_CONTENTS_H

/*
 * The content tables of the services whose policies need them, and their way over the bus. Owned by the
 * control thread; workers use them through the version of the cluster that they have.
 */
#include <ev.h>
#include "inspector/cluster/cluster.h"
#include "inspector/cluster/content_sync.h"

struct es_daemon_contents;

/* struct es_table_set - the tables of a configuration's services, in their order; NULL for one without */
struct es_table_set {
	unsigned int count;
	struct es_service_table *table[ES_CONF_SERVICES_MAX];
};

/**
 * es_daemon_contents_new() - no tables yet
 * @send: puts a message on the bus; never called before es_daemon_contents_view()
 * Returns 0 or -ENOMEM.
 */
int es_daemon_contents_new(struct ev_loop *loop, const struct es_content_sync_ops *ops, void *ctx,
			   struct es_daemon_contents **ret_contents);
void es_daemon_contents_free(struct es_daemon_contents **contents);

/* es_daemon_contents_self() - this node's number, with which it signs what it says of sets */
void es_daemon_contents_self(struct es_daemon_contents *contents, unsigned int self);

/**
 * es_daemon_contents_prepare() - the tables that @conf needs: a service of the same name and policy keeps its
 * own
 * Returns 0 or -ENOMEM. Then one of commit and discard.
 */
int es_daemon_contents_prepare(struct es_daemon_contents *contents, const struct es_conf *conf,
			       struct es_table_set *ret_set);
/* es_daemon_contents_commit() - @set is in force, and no worker uses another one any more */
void es_daemon_contents_commit(struct es_daemon_contents *contents, struct es_table_set *set);
void es_daemon_contents_discard(struct es_daemon_contents *contents, struct es_table_set *set);

/* es_table_set_fill() - let a version of the cluster have these tables; NULL: those in force */
void es_table_set_fill(const struct es_daemon_contents *contents, const struct es_table_set *set,
		       struct es_cluster *cluster);

/* As the functions of cluster/content_sync.h, for all tables. */
void es_daemon_contents_view(struct es_daemon_contents *contents, struct es_group_id self,
			     const struct es_group_id *members, unsigned int count, __u64 now_ms);
void es_daemon_contents_message(struct es_daemon_contents *contents, struct es_group_id from, __u8 type,
				const void *payload, size_t len, __u64 now_ns);
void es_daemon_contents_lost(struct es_daemon_contents *contents);
void es_daemon_contents_tick(struct es_daemon_contents *contents, __u64 now_ms);
void es_daemon_contents_heard(struct es_daemon_contents *contents, __u32 tag,
			      const struct es_content_word *word, __u64 now_ns);
void es_daemon_contents_drop(struct es_daemon_contents *contents, unsigned int node, __u64 now_ns);

/* es_daemon_contents_of() - a service's table and its state; NULL if it has none */
struct es_contents *es_daemon_contents_of(const struct es_daemon_contents *contents, unsigned int service,
					  struct es_content_sync_state *ret_state);

#endif
