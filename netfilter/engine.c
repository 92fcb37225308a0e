// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The engine's life, and its thread.
 */
#include <errno.h>
#include <linux/if_ether.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "netfilter/attachment.h"
#include "netfilter/capture.h"
#include "netfilter/engine.h"
#include "netfilter/hands.h"
#include "netfilter/later.h"
#include "netfilter/mender.h"
#include "netfilter/other.h"
#include "netfilter/public.h"
#include "netfilter/reply.h"
#include "netfilter/target.h"
#include "netfilter/thread.h"
#include "netfilter/turns.h"
#include "netfilter/unproven.h"

#define ES_TICK_MS    100
#define ES_LET_IN_MAX 128 /* bytes: its headers */

/**
 * struct es_nf_engine
 * @turns: what the thread holds while it decides, and others while they change what is in force
 * @capture: of what is for service addresses; @unproven: of connections that are not proven, whose packets that were let in
 * within a batch are @let_in, @let_in_count of them
 * @looked_ns: when the thread last looked whether there is something; @is_late: what it has found since has waited too long
 */
struct es_nf_engine {
	struct es_nf_turns turns;
	struct es_nf_kernel *kernel;
	struct es_nf_node *node;
	struct es_nf_capture *capture;
	struct es_nf_capture *unproven;
	struct es_nf_capture *here;
	struct es_nf_tap *tap;
	size_t let_in_count;
	size_t let_in_len[ES_NF_CAPTURE_BATCH];
	uint8_t let_in[ES_NF_CAPTURE_BATCH][ES_LET_IN_MAX];
	struct es_nf_attachment attachment;
	struct es_nf_mender mender;
	pthread_t thread;
	int is_running;
	int is_ending;
	int stop_fd;
	__u64 looked_ns;
	int is_late;
};

static __u64 es_nf_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (__u64)now.tv_sec * 1000000000 + (__u64)now.tv_nsec;
}

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
	engine->stop_fd = engine->mender.stop_fd = -1;
	rc = es_nf_kernel_new(&engine->kernel, why);
	if (rc)
		goto err_free;
	hands = es_nf_kernel_hands(engine->kernel);
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

/* All others know what a node has that has left in order: it goes on without a daemon. */
static void es_nf_engine_open(struct es_nf_engine *engine)
{
	if (engine->capture && es_nf_read64(&engine->node->tables.state->lease_ns) == ES_LEASE_NEVER)
		es_nf_attachment_open_gate(&engine->attachment);
}

void es_nf_engine_free(struct es_nf_engine **engine)
{
	struct es_nf_engine *e = *engine;

	if (!e)
		return;
	es_nf_engine_stop(e);
	es_nf_mender_close(&e->mender);
	es_nf_engine_open(e);
	es_nf_capture_free(&e->here);
	es_nf_capture_free(&e->unproven);
	es_nf_capture_free(&e->capture);
	es_nf_attachment_close(&e->attachment);
	es_nf_tap_free(&e->tap);
	es_nf_node_free(&e->node);
	es_nf_kernel_free(&e->kernel);
	if (e->stop_fd >= 0)
		close(e->stop_fd);
	es_nf_turns_fini(&e->turns);
	free(e);
	*engine = NULL;
}

static void es_nf_engine_on_reply(void *ctx, const uint8_t *packet, size_t len)
{
	struct es_nf_engine *engine = ctx;

	if (engine->node->is_configured)
		es_nf_reply(engine->node, packet, len);
}

/* What a client says on a connection that is here: what it acknowledges has left before. */
static enum es_nf_fate es_nf_engine_on_here(void *ctx, const struct es_nf_frame *frame)
{
	struct es_nf_engine *engine = ctx;
	struct es_nf_frame here = *frame;

	if (!engine->node->is_configured)
		return ES_NF_ACCEPT;
	here.is_here = 1;
	es_nf_tap_read(engine->tap, es_nf_engine_on_reply, engine);
	return es_nf_public(engine->node, &here);
}

/* Of a server that ends its connection. */
static enum es_nf_fate es_nf_engine_reset(struct es_nf_engine *engine, const struct es_nf_frame *frame)
{
	if (!es_nf_reply_is_held(engine->node, frame->bytes, frame->len))
		return es_nf_kernel_reset(engine->kernel, frame, engine->node);
	es_nf_count(engine->node, ES_COUNT_reply_leaving);
	return ES_NF_DROP;
}

/* Messages come on either interface; where one network is for all, by their address. */
static int es_nf_engine_is_message(const struct es_nf_node *node, const struct es_nf_frame *frame)
{
	struct es_nf_ip ip;

	if (frame->ifindex != node->config.public_ifindex)
		return 1;
	return frame->ifindex == node->config.cluster_ifindex &&
	       !es_nf_ip_read(frame->bytes, frame->len, &ip) && !es_nf_is_service_address(node, &ip.dest);
}

/* A packet out of the queue. */
static enum es_nf_fate es_nf_engine_on_frame(void *ctx, const struct es_nf_frame *frame)
{
	struct es_nf_engine *engine = ctx;
	struct es_nf_node *node = engine->node;

	if (!frame->ifindex) /* it has come from here */
		return es_nf_engine_reset(engine, frame);
	/* Its client, or its node, has repeated it since: another may have acted on that. */
	if (engine->is_late || !node->is_configured)
		return ES_NF_DROP;
	if (es_nf_engine_is_message(node, frame))
		return es_nf_cluster(node, frame);
	es_nf_kernel_hurry(engine->kernel, frame);
	return es_nf_public(node, frame);
}

/* A packet of a connection that is not proven. */
static enum es_nf_fate es_nf_engine_on_unproven(void *ctx, const struct es_nf_frame *frame)
{
	struct es_nf_engine *engine = ctx;
	enum es_nf_fate fate;

	/* It may be of a time in which another node has answered. */
	if (engine->is_late || !engine->node->is_configured)
		return ES_NF_DROP;
	if (!frame->ifindex)
		return es_nf_unproven_out(engine->node, frame);
	fate = es_nf_unproven_in(engine->node, frame);
	if (fate == ES_NF_ACCEPT && engine->let_in_count < ES_NF_CAPTURE_BATCH) {
		size_t len = frame->len < ES_LET_IN_MAX ? frame->len : ES_LET_IN_MAX;

		memcpy(engine->let_in[engine->let_in_count], frame->bytes, len);
		engine->let_in_len[engine->let_in_count++] = len;
	}
	return fate;
}

/* This thread may have been stopped since the batch was decided. */
static int es_nf_engine_may_pass(void *ctx)
{
	const struct es_nf_engine *engine = ctx;

	return !es_lease_is_over(es_nf_read64(&engine->node->tables.state->lease_ns), es_nf_now_ns());
}

/* They come first: clients wait for them who have an answer to come. Returns how many there were. */
static int es_nf_engine_unproven(struct es_nf_engine *engine)
{
	int count;

	engine->let_in_count = 0;
	count = es_nf_capture_read(engine->unproven, es_nf_engine_on_unproven, engine);
	for (size_t i = 0; i < engine->let_in_count; i++) {
		const struct es_nf_frame frame = {.bytes = engine->let_in[i], .len = engine->let_in_len[i]};

		es_nf_unproven_look(engine->node, &frame);
	}
	return count;
}

/* Some of it: a flood of ARP must not keep the thread from clients. */
static void es_nf_engine_arp(struct es_nf_engine *engine)
{
	uint8_t arp[ETH_DATA_LEN];
	int len = 1;

	for (int i = 0; i < ES_NF_CAPTURE_BATCH && len > 0; i++) {
		len = es_nf_kernel_arp(engine->kernel, arp, sizeof(arp));
		if (len > 0 && !engine->is_late && engine->node->is_configured)
			es_nf_other_arp(engine->node, arp, (size_t)len);
	}
}

/*
 * A thread that slept, or had something else to do, while packets came, finds such as have been repeated since. Until it
 * has looked at all that is there, it cannot tell them from others.
 */
static void es_nf_engine_notice(struct es_nf_engine *engine)
{
	struct es_nf_node *node = engine->node;
	__u64 limit_ns = node->config.fallback_after_ms * 1000000ULL + ES_TICK_MS * 1000000ULL;

	node->now_ns = es_nf_now_ns();
	if (engine->looked_ns && node->now_ns - engine->looked_ns > limit_ns)
		engine->is_late = 1;
	engine->looked_ns = node->now_ns;
}

/* Everything that is there. What is in force may change between two batches. */
static void es_nf_engine_turn(struct es_nf_engine *engine)
{
	int count, unproven, here;

	do {
		es_nf_engine_lock(engine);
		es_nf_kernel_recover(engine->kernel);
		es_nf_engine_notice(engine);
		es_nf_engine_arp(engine);
		unproven = es_nf_engine_unproven(engine);
		es_nf_tap_read(engine->tap, es_nf_engine_on_reply, engine);
		/* The kernel hears what becomes of these before messages about their connections are read. */
		here = es_nf_capture_read(engine->here, es_nf_engine_on_here, engine);
		count = es_nf_capture_read(engine->capture, es_nf_engine_on_frame, engine);
		es_nf_engine_unlock(engine);
	} while ((count == ES_NF_CAPTURE_BATCH || unproven == ES_NF_CAPTURE_BATCH ||
		  here == ES_NF_CAPTURE_BATCH) &&
		 !__atomic_load_n(&engine->is_ending, __ATOMIC_RELAXED));
	engine->is_late = 0;
}

static void *es_nf_engine_main(void *arg)
{
	struct es_nf_engine *engine = arg;
	struct pollfd fds[] = {
		{.fd = engine->stop_fd, .events = POLLIN},
		{.fd = es_nf_capture_fd(engine->capture), .events = POLLIN},
		{.fd = es_nf_kernel_arp_fd(engine->kernel), .events = POLLIN},
		{.fd = es_nf_kernel_losses_fd(engine->kernel), .events = POLLIN},
		{.fd = es_nf_capture_fd(engine->unproven), .events = POLLIN},
		{.fd = es_nf_capture_fd(engine->here), .events = POLLIN},
		{.fd = es_nf_tap_fd(engine->tap), .events = POLLIN},
	};

	while (!(fds[0].revents & POLLIN)) {
		es_nf_engine_turn(engine);
		poll(fds, sizeof(fds) / sizeof(fds[0]),
		     es_nf_kernel_is_recovering(engine->kernel) ? 0 : ES_TICK_MS);
	}
	return NULL;
}

static int es_nf_engine_start(struct es_nf_engine *engine, struct es_nf_why *why)
{
	const struct es_nf_capture_params service = {.queue = ES_NF_RULES_QUEUE};
	const struct es_nf_capture_params unproven = {.queue = ES_NF_RULES_UNPROVEN,
						      .is_headers = 1,
						      .may_pass = es_nf_engine_may_pass,
						      .ctx = engine};
	const struct es_nf_capture_params here = {.queue = ES_NF_RULES_HERE};
	int rc = es_nf_capture_new(&service, &engine->capture, why);

	if (!rc)
		rc = es_nf_capture_new(&unproven, &engine->unproven, why);
	if (!rc)
		rc = es_nf_capture_new(&here, &engine->here, why);
	if (rc) {
		es_nf_capture_free(&engine->unproven);
		es_nf_capture_free(&engine->capture);
		return rc;
	}
	rc = es_nf_thread_start(&engine->thread, es_nf_engine_main, engine);
	if (rc) {
		es_nf_capture_free(&engine->here);
		es_nf_capture_free(&engine->unproven);
		es_nf_capture_free(&engine->capture);
		return es_nf_why(why, rc, "thread: %s", strerror(-rc));
	}
	engine->is_running = 1;
	rc = es_nf_mender_start(&engine->mender);
	return rc ? es_nf_why(why, rc, "thread: %s", strerror(-rc)) : 0;
}

/* Set the rules, if they are others than those that are set; or @anyway. */
static int es_nf_engine_follow(struct es_nf_engine *engine, const struct es_nf_rules *rules, int anyway,
			       struct es_nf_why *why)
{
	struct es_nf_overheard overheard;

	es_nf_overheard_of(&engine->node->config, &engine->node->ring, &overheard);
	if (es_nf_rules_serve(rules, 1) && !es_nf_kernel_has_v6(engine->kernel))
		return es_nf_why(
			why, -EOPNOTSUPP,
			"a service has an IPv6 address, and the kernel has no SYNPROXY for IPv6 "
			"(CONFIG_NFT_SYNPROXY, or CONFIG_NFT_COMPAT and CONFIG_IP6_NF_TARGET_SYNPROXY)");
	return es_nf_attachment_follow(&engine->attachment, rules, &overheard, anyway, why);
}

static void es_nf_engine_rules(const struct es_nf_engine *engine, const struct es_config *config,
			       struct es_nf_rules *ret_rules)
{
	es_nf_rules_of(config, ret_rules);
	ret_rules->holds = (__u32)es_nf_kernel_has_label(engine->kernel);
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
	rc = es_nf_kernel_listen(engine->kernel, public_ifindex, why);
	es_nf_engine_unlock(engine);
	/* The reader first: without it, the rules drop. */
	if (!rc && !engine->is_running)
		rc = es_nf_engine_start(engine, why);
	if (rc)
		return rc;
	es_nf_engine_rules(engine, &engine->node->config, &rules);
	if (rules.gate != ES_NF_GATE_NONE && !es_nf_kernel_can_gate(engine->kernel))
		return es_nf_why(why, -EOPNOTSUPP,
				 "membership = corosync: the kernel has no connection labels "
				 "(CONFIG_NF_CONNTRACK_LABELS), without which a node cannot fall silent");
	/* An interface that was made anew may have the same index, and has lost its chain. */
	return es_nf_engine_follow(engine, &rules, 1, why);
}

const struct es_nf_tables *es_nf_engine_tables(const struct es_nf_engine *engine)
{
	return &engine->node->tables;
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
		node->tables.connections, es_flow_hash(&node->config.ring_key, node->config.ring_seed, flow));

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
	is_late = es_nf_later_is_ending(engine->node, flow);
	if (is_late && !end(ctx))
		es_nf_count(engine->node, ES_COUNT_end_late);
	es_nf_engine_unlock(engine);
	return is_late;
}

/* What the kernel has dropped is counted as if it had been dropped here. */
void es_nf_engine_counters(struct es_nf_engine *engine, unsigned long long *ret_values)
{
	unsigned long long dropped = es_nf_attachment_dropped(&engine->attachment);

	es_nf_engine_lock(engine);
	engine->node->tables.counters[ES_COUNT_drop_not_mine] += dropped;
	for (int i = 0; i < ES_COUNTER_COUNT; i++)
		ret_values[i] = engine->node->tables.counters[i];
	es_nf_engine_unlock(engine);
}
