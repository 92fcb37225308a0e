/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_GROUP_NODES_H
#define ES_TESTS_GROUP_NODES_H

/*
 * The nodes of group_world.h: each has a process, which may die, and a datapath, which then goes on in its
 * name. Two datapaths never inspect the same slot. Include after cmocka.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "membership/group.h"

#define NODES	    5
#define SLOTS	    64
#define LEASE_MS    1000
#define PATIENCE_MS 3000
#define QUEUE_MAX   4096
#define FLIGHT_MAX  512

struct event {
	int is_view;
	struct es_group_id from;
	struct es_group_id members[NODES];
	struct es_group_leaver leavers[NODES];
	unsigned int count, leaver_count;
	uint8_t type;
	size_t len;
	char *payload;
};

struct process;

/* The callbacks of a world that has more than the ring; each is called after what its node does. */
struct world_hooks {
	void (*stop)(struct process *p);
	void (*serve)(struct process *p);
	void (*proofs)(struct process *p, unsigned int node, const struct es_wire_proof *proofs,
		       size_t count);
	void (*start)(struct process *p);
	void (*tick)(void);
};

/* A daemon. Its node's datapath goes on in its name when it has died. */
struct process {
	struct es_group group;
	unsigned int node;
	int is_running;
	int is_stalled;
	int in_view;
	int wants_rejoin;
	int is_lost;
	uint64_t lost_at; /* when it hears of that */
	int has_left;
	int must_end; /* what is unproven, before its lease begins again */
	uint32_t pid;
	uint64_t load_at;
	uint64_t grants_at;
	uint64_t bus_ms; /* when the message was sent that renewed its lease last */
	struct event queue[QUEUE_MAX];
	unsigned int head, tail;
	struct event flight[FLIGHT_MAX];
	unsigned int flight_head, flight_tail;
};

/* The state of a node's datapath. */
struct datapath {
	uint64_t share;
	uint64_t lease_until;
};

static struct process process[NODES];
static struct datapath datapath[NODES];
static unsigned int weights[NODES][NODES]; /* as each has installed them */
static unsigned int part[NODES];	   /* which partition a node is in */
static uint32_t served[NODES];
static uint64_t now, seed;
static int clock_drift[NODES];	  /* by so many in 1,000 a node's clock runs too fast */
static unsigned int vote_late_ms; /* of nodes that start: es_corosync_vote_late_ms() */
static const struct world_hooks *hooks;

static unsigned int random_below(unsigned int n)
{
	return (unsigned int)(es_test_random(&seed) % n);
}

static uint64_t local(unsigned int node)
{
	return now + (uint64_t)((int64_t)now * clock_drift[node] / 1000);
}

static int owner(const unsigned int *w, unsigned int slot)
{
	uint64_t best = 0;
	int result = -1;

	for (unsigned int i = 0; i < NODES; i++) {
		uint64_t mix = slot * 0x1000003ULL + i;
		uint64_t score = es_test_random(&mix) >> 8;

		if (w[i] && score * w[i] / 100 >= best) {
			best = score * w[i] / 100;
			result = (int)i;
		}
	}
	return result;
}

static uint64_t owned(unsigned int node)
{
	uint64_t share = 0;

	for (unsigned int slot = 0; slot < SLOTS; slot++)
		if (owner(weights[node], slot) == (int)node)
			share |= 1ULL << slot;
	return share;
}

static void trace(const char *what, unsigned int node, const char *more)
{
	if (!getenv("EARSHOT_TEST_VERBOSE"))
		return;
	printf("%llu n%u %s %s |", (unsigned long long)now, node + 1, what, more);
	for (unsigned int i = 0; i < NODES; i++)
		printf(" p%u%s%s %s e%u share %016llx lease %lld;", part[i], process[i].in_view ? "v" : "",
		       process[i].is_stalled ? "S" : "", es_group_phase_text(process[i].group.phase),
		       process[i].group.epoch, (unsigned long long)datapath[i].share,
		       (long long)(datapath[i].lease_until - local(i)));
	printf("\n");
}

static void on_send(void *ctx, enum es_wire_type type, const void *payload, size_t len)
{
	struct process *p = ctx;
	struct event *e = &p->flight[p->flight_tail++ % FLIGHT_MAX];

	assert_true(p->flight_tail - p->flight_head < FLIGHT_MAX);
	memset(e, 0, sizeof(*e));
	e->from = (struct es_group_id){p->node + 1, p->pid};
	e->type = (uint8_t)type;
	e->len = len;
	e->payload = malloc(len + 1);
	assert_non_null(e->payload);
	if (len)
		memcpy(e->payload, payload, len);
}

static void on_stop(void *ctx, uint32_t epoch, const unsigned int *w)
{
	struct process *p = ctx;

	(void)epoch;
	memcpy(weights[p->node], w, sizeof(weights[p->node]));
	datapath[p->node].share &= owned(p->node);
	if (p->group.others_began)
		datapath[p->node] = (struct datapath){};
	trace("stops", p->node, "");
	if (hooks)
		hooks->stop(p);
	if (p->group.others_ahead)
		p->must_end = 0;
}

static void on_serve(void *ctx, uint32_t epoch)
{
	struct process *p = ctx;

	served[p->node] = epoch;
	datapath[p->node].share = owned(p->node);
	trace("serves", p->node, "");
	if (hooks)
		hooks->serve(p);
	p->must_end = 0;
}

static void on_proofs(void *ctx, unsigned int node, const struct es_wire_proof *proofs, size_t count)
{
	if (hooks)
		hooks->proofs(ctx, node, proofs, count);
}

static void on_changed(void *ctx)
{
	(void)ctx;
}

static void silence(struct process *p)
{
	datapath[p->node].share = 0;
	datapath[p->node].lease_until = 0;
	p->must_end = 1;
}

static void on_rejoin(void *ctx, const char *reason)
{
	struct process *p = ctx;

	(void)reason;
	silence(p);
	p->wants_rejoin = 1;
}

static void on_left(void *ctx)
{
	struct process *p = ctx;

	silence(p);
	p->must_end = 0;
	p->has_left = 1;
}

static void on_log(void *ctx, const char *text)
{
	(void)ctx;
	if (getenv("EARSHOT_TEST_VERBOSE"))
		printf("%llu %s\n", (unsigned long long)now, text);
}

static const struct es_group_ops ops = {on_send,    on_stop,   on_serve, on_proofs,
					on_changed, on_rejoin, on_left,	 on_log};

static void drop_events(struct process *p)
{
	while (p->head != p->tail)
		free(p->queue[p->head++ % QUEUE_MAX].payload);
	while (p->flight_head != p->flight_tail)
		free(p->flight[p->flight_head++ % FLIGHT_MAX].payload);
}

static void start(unsigned int node, const char *settings)
{
	static const char *const names[NODES] = {"n1", "n2", "n3", "n4", "n5"};
	struct process *p = &process[node];
	int had_left = p->has_left;

	drop_events(p);
	silence(p); /* as a daemon does that starts */
	p->must_end = !had_left;
	memset(&p->group, 0, sizeof(p->group));
	es_group_init(&p->group, &ops, p, names, NODES, node, served[node], LEASE_MS, PATIENCE_MS);
	es_group_describe(&p->group, 100, settings);
	es_grants_start(&p->group.grants, now << 20, local(node));
	p->group.vote_late_ms = vote_late_ms;
	p->node = node;
	p->pid++;
	p->is_running = 1;
	p->is_stalled = p->in_view = p->wants_rejoin = p->is_lost = p->has_left = 0;
	p->load_at = p->grants_at = 0;
	if (hooks)
		hooks->start(p);
}

static void check(void)
{
	for (unsigned int slot = 0; slot < SLOTS; slot++) {
		int who = -1;

		for (unsigned int i = 0; i < NODES; i++) {
			if (!(datapath[i].share >> slot & 1) || local(i) >= datapath[i].lease_until)
				continue;
			if (who >= 0)
				fail_msg("slot %u is inspected by n%d and n%u at %llu ms", slot, who + 1,
					 i + 1, (unsigned long long)now);
			who = (int)i;
		}
	}
}

#endif
