// SPDX-License-Identifier: GPL-2.0-or-later
/* The engine's life and its thread. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "netfilter/engine/attachment.h"
#include "netfilter/engine/batch.h"
#include "netfilter/engine/engine.h"
#include "netfilter/engine/hands.h"
#include "netfilter/engine/mender.h"
#include "netfilter/engine/rules_wanted.h"
#include "netfilter/engine/turns.h"
#include "netfilter/kernel/clock.h"
#include "netfilter/kernel/thread.h"
#include "netfilter/node/tracks.h"
#include "netfilter/node/unproven.h"

/**
 * struct es_nf_engine
 * @turns: the thread holds it while it decides, and others while they change what is in force
 * @batch: takes packets for the thread; has no captures until that runs
 */
struct es_nf_engine {
	struct es_nf_turns turns;
	struct es_nf_hand_state *kernel;
	struct es_nf_node *node;
	struct es_nf_tap *tap;
	struct es_nf_batch batch;
	struct es_nf_attachment attachment;
	struct es_nf_mender mender;
	pthread_t thread;
	int is_running;
	int is_ending;
	int stop_fd;
};

static void es_nf_engine_lock(struct es_nf_engine *engine)
{
	es_nf_turns_take(&engine->turns);
}

static void es_nf_engine_unlock(struct es_nf_engine *engine)
{
	es_nf_turns_give(&engine->turns);
}

int es_nf_engine_new(const struct es_nf_engine_params *params, struct es_nf_engine **ret_engine,
		     struct es_nf_why *why)
{
	struct es_nf_engine *engine = calloc(1, sizeof(*engine));
	struct es_nf_node_params node = {
		.path = params->path,
		.workers = params->workers,
		.queue_bytes = params->queue_bytes,
		.decision_sets = params->decision_sets,
	};
	struct es_nf_hands hands;
	int rc;

	if (!engine)
		return es_nf_why(why, -ENOMEM, "no memory");
	es_nf_turns_init(&engine->turns);
	engine->stop_fd = engine->mender.stop_fd = engine->batch.poll_fd = -1;
	rc = es_nf_hand_state_new(params->zone, &engine->kernel, why);
	if (rc)
		goto err_free;
	hands = es_nf_hand_state_hands(engine->kernel);
	node.hands = &hands;
	rc = es_nf_node_new(&node, &engine->node);
	if (rc) {
		es_nf_why(why, rc, "%s: %s", params->path,
			  rc == -EBUSY ? "another daemon has it" : strerror(-rc));
		goto err_free;
	}
	engine->node->responses = params->responses;
	rc = es_nf_tap_new(&engine->tap, why);
	if (rc)
		goto err_free;
	rc = es_nf_attachment_open(&engine->attachment, engine->kernel, engine->tap);
	if (!rc)
		rc = es_nf_mender_open(&engine->mender, &engine->attachment);
	if (!rc && (engine->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
		rc = -errno;
	if (rc) {
		es_nf_why(why, rc, "nf_tables: %s", strerror(-rc));
		goto err_free;
	}
	*ret_engine = engine;
	return 0;

err_free:
	es_nf_engine_free(&engine);
	return rc;
}

static void es_nf_engine_stop(struct es_nf_engine *engine)
{
	static const uint64_t one = 1;

	if (!engine->is_running)
		return;
	__atomic_store_n(&engine->is_ending, 1, __ATOMIC_RELAXED);
	if (write(engine->stop_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(engine->thread, NULL);
	engine->is_running = 0;
}

/* If this node has left in order, the others know all that it has: its connections go on without a daemon. */
static void es_nf_engine_open(struct es_nf_engine *engine)
{
	if (engine->batch.capture[0] && es_nf_read64(&engine->node->memory.state->lease_ns) == ES_LEASE_NEVER)
		es_nf_attachment_open_gate(&engine->attachment);
}

void es_nf_engine_free(struct es_nf_engine **engine)
{
	struct es_nf_engine *e = *engine;

	if (!e)
		return;
	es_nf_engine_stop(e);
	/* Nobody is left to see what becomes of these attempts. */
	if (e->node)
		es_nf_hand_state_give_up(e->kernel);
	es_nf_mender_close(&e->mender);
	es_nf_engine_open(e);
	es_nf_batch_close(&e->batch);
	es_nf_attachment_close(&e->attachment);
	es_nf_tap_free(&e->tap);
	es_nf_node_free(&e->node);
	es_nf_hand_state_free(&e->kernel);
	if (e->stop_fd >= 0)
		close(e->stop_fd);
	es_nf_turns_fini(&e->turns);
	free(e);
	*engine = NULL;
}

/* Reads all that has arrived. Between two batches, another configuration may be put in force. */
static void es_nf_engine_turn(struct es_nf_engine *engine)
{
	int is_more;

	do {
		es_nf_engine_lock(engine);
		is_more = es_nf_batch_read(&engine->batch);
		es_nf_engine_unlock(engine);
	} while (is_more && !__atomic_load_n(&engine->is_ending, __ATOMIC_RELAXED));
	es_nf_batch_end(&engine->batch);
}

static void *es_nf_engine_main(void *arg)
{
	const struct sched_param param = {.sched_priority = 0};
	struct es_nf_engine *engine = arg;

	/*
	 * As the workers (inspect/worker.c): more packets for each wake-up when the CPU is busy. If the
	 * kernel refuses, no harm is done.
	 */
	pthread_setschedparam(pthread_self(), SCHED_BATCH, &param);
	do
		es_nf_engine_turn(engine);
	while (!es_nf_batch_wait(&engine->batch));
	return NULL;
}

static int es_nf_engine_start(struct es_nf_engine *engine, struct es_nf_why *why)
{
	int rc;

	engine->batch =
		(struct es_nf_batch){.node = engine->node, .kernel = engine->kernel, .tap = engine->tap};
	rc = es_nf_batch_open(&engine->batch, engine->stop_fd, why);
	if (rc)
		return rc;
	rc = es_nf_thread_start(&engine->thread, es_nf_engine_main, engine);
	engine->is_running = !rc;
	if (!rc)
		rc = es_nf_mender_start(&engine->mender);
	if (!engine->is_running)
		es_nf_batch_close(&engine->batch);
	return rc ? es_nf_why(why, rc, "thread: %s", strerror(-rc)) : 0;
}

/* Sets the rules if they have changed; or @anyway. */
static int es_nf_engine_follow(struct es_nf_engine *engine, const struct es_nf_rules *rules, int anyway,
			       struct es_nf_why *why)
{
	struct es_nf_drop_by_ring overheard;
	int rc;

	es_nf_drop_by_ring_of(&engine->node->config, &engine->node->ring, &overheard);
	if (es_nf_rules_serve(rules, 1) && !es_nf_hand_state_has_v6(engine->kernel))
		return es_nf_why(
			why, -EOPNOTSUPP,
			"a service has an IPv6 address, and the kernel has no SYNPROXY for IPv6 "
			"(CONFIG_NFT_SYNPROXY, or CONFIG_NFT_COMPAT and CONFIG_IP6_NF_TARGET_SYNPROXY)");
	rc = es_nf_attachment_follow(&engine->attachment, rules, &overheard, anyway, why);
	/* The kernel remembers flows by the previous ring. */
	if (!rc)
		es_nf_attachment_forget(&engine->attachment);
	es_nf_engine_lock(engine);
	engine->node->remembers = !rc && es_nf_attachment_remembers(&engine->attachment);
	es_nf_engine_unlock(engine);
	return rc;
}

static void es_nf_engine_rules(const struct es_nf_engine *engine, const struct es_config *config,
			       struct es_nf_rules *ret_rules)
{
	es_nf_rules_of(config, ret_rules);
	ret_rules->holds = (__u32)es_nf_hand_state_has_label(engine->kernel);
}

int es_nf_engine_configure(struct es_nf_engine *engine, const struct es_config *config,
			   const struct es_node_ring *ring)
{
	struct es_nf_rules rules;

	es_nf_engine_lock(engine);
	es_nf_node_configure(engine->node, config, ring);
	es_nf_engine_unlock(engine);
	es_nf_engine_rules(engine, config, &rules);
	return engine->is_running ? es_nf_engine_follow(engine, &rules, 0, NULL) : 0;
}

int es_nf_engine_attach(struct es_nf_engine *engine, unsigned int public_ifindex,
			unsigned int cluster_ifindex, struct es_nf_why *why)
{
	struct es_nf_rules rules;
	int rc;

	es_nf_engine_lock(engine);
	engine->node->config.public_ifindex = public_ifindex;
	engine->node->config.cluster_ifindex = cluster_ifindex;
	rc = es_nf_hand_state_listen(engine->kernel, public_ifindex, why);
	es_nf_engine_unlock(engine);
	/* First the reader: without it, the kernel drops what the rules queue. */
	if (!rc && !engine->is_running)
		rc = es_nf_engine_start(engine, why);
	if (rc)
		return rc;
	es_nf_engine_rules(engine, &engine->node->config, &rules);
	if (rules.gate != ES_NF_GATE_NONE && !es_nf_hand_state_can_gate(engine->kernel))
		return es_nf_why(why, -EOPNOTSUPP,
				 "membership = corosync: the kernel has no connection labels "
				 "(CONFIG_NF_CONNTRACK_LABELS), without which a node cannot fall silent");
	/* An interface that was made anew may have the same index, but has lost its chain. */
	return es_nf_engine_follow(engine, &rules, 1, why);
}

const struct es_nf_memory *es_nf_engine_memory(const struct es_nf_engine *engine)
{
	return &engine->node->memory;
}

int es_nf_engine_queue_fd(const struct es_nf_engine *engine, unsigned int worker)
{
	return es_nf_ring_fd(engine->node->queue[worker]);
}

int es_nf_engine_wake_fd(const struct es_nf_engine *engine, unsigned int worker)
{
	return es_nf_ring_wake_fd(engine->node->queue[worker]);
}

void es_nf_engine_connections(struct es_nf_engine *engine,
			      void (*fn)(void *ctx, const struct es_connection_entry *entry), void *ctx)
{
	size_t at = 0;

	/* Packets are decided between two slices. */
	do {
		es_nf_engine_lock(engine);
		engine->node->now_ns = es_nf_now_ns();
		at = es_nf_unproven_walk(engine->node, at, fn, ctx);
		es_nf_engine_unlock(engine);
	} while (at);
}

unsigned int es_nf_engine_end_unproven(struct es_nf_engine *engine)
{
	unsigned int count = 0;
	size_t at = 0;

	do {
		es_nf_engine_lock(engine);
		engine->node->now_ns = es_nf_now_ns();
		at = es_nf_unproven_end(engine->node, at, &count);
		es_nf_engine_unlock(engine);
	} while (at);
	return count;
}

int es_nf_engine_end_stranger(struct es_nf_engine *engine, const struct es_flow *flow,
			      int (*end)(const void *ctx), const void *ctx)
{
	int rc = 0;

	es_nf_engine_lock(engine);
	engine->node->now_ns = es_nf_now_ns();
	if (es_nf_unproven_is(engine->node, flow)) {
		rc = end(ctx);
		if (!rc) {
			es_nf_unproven_ended(engine->node, flow);
			rc = 1;
		}
	}
	es_nf_engine_unlock(engine);
	return rc == -ENOENT ? 0 : rc;
}

int es_nf_engine_track(const struct es_nf_engine *engine, const struct es_flow *flow,
		       struct es_track *ret_track)
{
	const struct es_nf_node *node = engine->node;
	const struct es_nf_connection *c = es_nf_connection_find(
		node->memory.connections, es_flow_hash(&node->config.ring_key, node->config.ring_seed, flow));

	if (!c)
		return -ENOENT;
	*ret_track = c->track;
	return 0;
}

int es_nf_engine_end_late(struct es_nf_engine *engine, const struct es_flow *flow,
			  int (*end)(const void *ctx), const void *ctx)
{
	int is_late;

	es_nf_engine_lock(engine);
	is_late = es_nf_track_is_ending(engine->node, flow);
	if (is_late && !end(ctx))
		es_nf_count(engine->node, ES_COUNT_end_late);
	es_nf_engine_unlock(engine);
	return is_late;
}

int es_nf_engine_connection(struct es_nf_engine *engine, const struct es_flow *flow,
			    struct es_connection_state *ret_state, __u32 *ret_ahead)
{
	int rc;

	es_nf_engine_lock(engine);
	rc = es_nf_hand_state_connection(engine->kernel, flow, ret_state, ret_ahead);
	ret_state->flow_hash =
		es_flow_hash(&engine->node->config.ring_key, engine->node->config.ring_seed, flow);
	es_nf_engine_unlock(engine);
	return rc;
}

int es_nf_engine_leave(struct es_nf_engine *engine, const struct es_flow *flow)
{
	struct es_nf_node *node = engine->node;
	int rc;

	es_nf_engine_lock(engine);
	es_nf_left_note(node->left, es_flow_hash(&node->config.ring_key, node->config.ring_seed, flow),
			es_ns_to_ms(es_nf_now_ns()));
	es_nf_unproven_forget(node, flow);
	rc = node->hands.forget(node->hands.ctx, flow);
	es_nf_engine_unlock(engine);
	return rc;
}

/* Counts what the kernel has dropped as if it had been dropped here. */
void es_nf_engine_counters(struct es_nf_engine *engine, unsigned long long *ret_values)
{
	struct es_nf_dropped_by_flow dropped = es_nf_attachment_dropped(&engine->attachment);

	es_nf_engine_lock(engine);
	engine->node->memory.counters[ES_COUNT_drop_not_mine] += dropped.others;
	engine->node->memory.counters[ES_COUNT_drop_no_flow] += dropped.given;
	engine->node->memory.counters[ES_COUNT_cookie_invalid] += dropped.gone;
	for (int i = 0; i < ES_COUNTER_COUNT; i++)
		ret_values[i] = engine->node->memory.counters[i];
	es_nf_engine_unlock(engine);
}
