// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes, keeps and drops the content tables as the configuration changes, and ties them to the bus by
 * cluster/content_sync.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/base/wall.h"
#include "inspector/daemon/contents.h"
#include "inspector/policy/policy.h"

/* Proposals are gathered for so long: one message for all that come in a burst. */
#define ES_GATHER_S 0.001

/* struct es_service_table - @users: sets that have it */
struct es_service_table {
	unsigned int users;
	char service[ES_CONF_NAME_SIZE];
	char policy[ES_CONF_NAME_SIZE];
	struct es_contents *contents;
	struct es_content_sync *sync;
};

/*
 * @node: this one's number; @self, @members, @member_count: of the bus, for tables that come later; 0
 * members: none
 */
struct es_daemon_contents {
	struct ev_loop *loop;
	const struct es_content_sync_ops *ops;
	void *ctx;
	struct es_table_set set;
	unsigned int node;
	struct es_group_id self;
	struct es_group_id members[ES_GROUP_MEMBERS_MAX];
	unsigned int member_count;
	struct ev_async proposed;
	struct ev_timer gather;
};

static void on_gathered(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	struct es_daemon_contents *t = timer->data;

	(void)loop;
	(void)events;
	for (unsigned int i = 0; i < t->set.count; i++)
		if (t->set.table[i]) {
			es_content_sync_clock(t->set.table[i]->sync, t->node, es_wall_ns());
			es_content_sync_flush(t->set.table[i]->sync, es_clock_now_ns());
		}
}

static void on_proposed(struct ev_loop *loop, struct ev_async *async, int events)
{
	struct es_daemon_contents *t = async->data;

	(void)events;
	if (ev_is_active(&t->gather))
		return;
	ev_timer_set(&t->gather, ES_GATHER_S, 0);
	ev_timer_start(loop, &t->gather);
}

/* In a worker. */
static void on_proposal(void *ctx)
{
	struct es_daemon_contents *t = ctx;

	ev_async_send(t->loop, &t->proposed);
}

int es_daemon_contents_new(struct ev_loop *loop, const struct es_content_sync_ops *ops, void *ctx,
			   struct es_daemon_contents **ret_contents)
{
	struct es_daemon_contents *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->loop = loop;
	t->ops = ops;
	t->ctx = ctx;
	ev_async_init(&t->proposed, on_proposed);
	ev_timer_init(&t->gather, on_gathered, 0, 0);
	t->proposed.data = t->gather.data = t;
	ev_async_start(loop, &t->proposed);
	*ret_contents = t;
	return 0;
}

static void table_put(struct es_service_table *table)
{
	if (!table || --table->users)
		return;
	es_content_sync_free(&table->sync);
	es_contents_free(&table->contents);
	free(table);
}

static int table_new(struct es_daemon_contents *t, const struct es_conf *conf, unsigned int service,
		     struct es_service_table **ret_table)
{
	const struct es_conf_service *s = &conf->services[service];
	struct es_service_table *table = calloc(1, sizeof(*table));
	int rc = -ENOMEM;

	if (!table)
		return rc;
	table->users = 1;
	memcpy(table->service, s->name, sizeof(table->service));
	memcpy(table->policy, s->policy, sizeof(table->policy));
	rc = es_contents_new(conf->inspector.target_entries, &table->contents);
	if (!rc)
		rc = es_content_sync_new(table->contents, es_content_sync_tag(s->name), t->ops, t->ctx,
					 &table->sync);
	if (rc) {
		table_put(table);
		return rc;
	}
	es_contents_on_proposal(table->contents, on_proposal, t);
	if (t->member_count)
		es_content_sync_view(table->sync, t->self, t->members, t->member_count,
				     es_clock_now_ns() / 1000000);
	*ret_table = table;
	return 0;
}

static struct es_service_table *table_find(const struct es_daemon_contents *t,
					   const struct es_conf_service *service)
{
	for (unsigned int i = 0; i < t->set.count; i++) {
		struct es_service_table *table = t->set.table[i];

		if (table && !strcmp(table->service, service->name) &&
		    !strcmp(table->policy, service->policy))
			return table;
	}
	return NULL;
}

int es_daemon_contents_prepare(struct es_daemon_contents *t, const struct es_conf *conf,
			       struct es_table_set *ret_set)
{
	*ret_set = (struct es_table_set){.count = conf->service_count};
	for (unsigned int i = 0; i < conf->service_count; i++) {
		const struct es_policy *policy = es_policy_find(conf->services[i].policy);
		struct es_service_table *table;
		int rc = 0;

		if (!policy || !policy->needs_contents)
			continue;
		table = table_find(t, &conf->services[i]);
		if (table)
			table->users++;
		else
			rc = table_new(t, conf, i, &table);
		if (rc) {
			es_daemon_contents_discard(t, ret_set);
			return rc;
		}
		ret_set->table[i] = table;
	}
	return 0;
}

void es_daemon_contents_discard(struct es_daemon_contents *t, struct es_table_set *set)
{
	(void)t;
	for (unsigned int i = 0; i < set->count; i++)
		table_put(set->table[i]);
	set->count = 0;
}

void es_daemon_contents_commit(struct es_daemon_contents *t, struct es_table_set *set)
{
	struct es_table_set old = t->set;

	t->set = *set;
	es_daemon_contents_discard(t, &old);
	set->count = 0;
}

void es_daemon_contents_free(struct es_daemon_contents **contents)
{
	struct es_daemon_contents *t = *contents;

	if (!t)
		return;
	ev_async_stop(t->loop, &t->proposed);
	ev_timer_stop(t->loop, &t->gather);
	es_daemon_contents_discard(t, &t->set);
	free(t);
	*contents = NULL;
}

void es_table_set_fill(const struct es_daemon_contents *t, const struct es_table_set *set,
		       struct es_cluster *cluster)
{
	if (!set)
		set = &t->set;
	for (unsigned int i = 0; i < set->count; i++)
		cluster->contents[i] = set->table[i] ? set->table[i]->contents : NULL;
}

void es_daemon_contents_view(struct es_daemon_contents *t, struct es_group_id self,
			     const struct es_group_id *members, unsigned int count, __u64 now_ms)
{
	t->self = self;
	t->member_count = count;
	memcpy(t->members, members, count * sizeof(*members));
	for (unsigned int i = 0; i < t->set.count; i++)
		if (t->set.table[i])
			es_content_sync_view(t->set.table[i]->sync, self, members, count, now_ms);
}

void es_daemon_contents_message(struct es_daemon_contents *t, struct es_group_id from, __u8 type,
				const void *payload, size_t len, __u64 time_ns)
{
	for (unsigned int i = 0; i < t->set.count; i++)
		if (t->set.table[i])
			es_content_sync_message(t->set.table[i]->sync, from, type, payload, len, time_ns);
}

void es_daemon_contents_self(struct es_daemon_contents *t, unsigned int self)
{
	t->node = self;
}

void es_daemon_contents_heard(struct es_daemon_contents *t, __u32 tag, const struct es_content_word *word,
			      __u64 now_ns)
{
	for (unsigned int i = 0; i < t->set.count; i++)
		if (t->set.table[i])
			es_content_sync_heard(t->set.table[i]->sync, tag, word, now_ns);
}

void es_daemon_contents_lost(struct es_daemon_contents *t)
{
	t->member_count = 0;
	for (unsigned int i = 0; i < t->set.count; i++)
		if (t->set.table[i])
			es_content_sync_lost(t->set.table[i]->sync);
}

void es_daemon_contents_tick(struct es_daemon_contents *t, __u64 now_ms)
{
	for (unsigned int i = 0; i < t->set.count; i++)
		if (t->set.table[i])
			es_content_sync_tick(t->set.table[i]->sync, now_ms);
}

void es_daemon_contents_drop(struct es_daemon_contents *t, unsigned int node, __u64 time_ns)
{
	for (unsigned int i = 0; i < t->set.count; i++)
		if (t->set.table[i])
			es_content_sync_drop(t->set.table[i]->sync, node, time_ns);
}

struct es_contents *es_daemon_contents_of(const struct es_daemon_contents *t, unsigned int service,
					  struct es_content_sync_state *ret_state)
{
	if (service >= t->set.count || !t->set.table[service])
		return NULL;
	es_content_sync_state(t->set.table[service]->sync, ret_state);
	return t->set.table[service]->contents;
}
