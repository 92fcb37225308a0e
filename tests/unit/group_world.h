/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_GROUP_WORLD_H
#define ES_TESTS_GROUP_WORLD_H

/*
 * Nodes that agree on the ring over a bus that is played: partitions, crashes, joins, leaves, stalls. It
 * watches that at no time two nodes inspect the same slot. Include after cmocka.h.
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
#define LETTERS_MAX 4096

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

/* A datagram in which a node asks for grants, and grants; at its receiver's from @at on. */
struct letter {
	unsigned int from, to;
	uint64_t at;
	struct es_grants_ask ask;
	uint64_t granted;
};

/* The last views: each node's partition, whether the node was in its view, and as which process. */
struct views {
	unsigned int part[NODES];
	int is_in[NODES];
	uint32_t pid[NODES];
};

static struct process process[NODES];
static struct datapath datapath[NODES];
static unsigned int weights[NODES][NODES]; /* as each has installed them */
static unsigned int part[NODES];	   /* which partition a node is in */
static uint64_t frozen_until[NODES];	   /* of a partition: no token goes round */
static uint32_t served[NODES];
static uint64_t now, seed;
static int clock_drift[NODES]; /* by so many in 1,000 a node's clock runs too fast */
static struct letter letters[LETTERS_MAX];
static unsigned int letter_count;
static unsigned int tie_quorum; /* not 0: so many nodes with the first one are enough, and none without it */
static unsigned int vote_late_ms; /* of nodes that start: es_corosync_vote_late_ms() */
static unsigned int lost_late_ms; /* up to so much later a minority hears that it is one */
static unsigned int lose_percent, late_percent, late_ms, pass_percent; /* what becomes of datagrams */
static const struct world_hooks *hooks;

static unsigned int random_below(unsigned int n)
{
	return (unsigned int)(es_test_random(&seed) % n);
}

static uint64_t local(unsigned int node)
{
	return now + (uint64_t)((int64_t)now * clock_drift[node] / 1000);
}

static void trace(const char *what, unsigned int node, const char *more);

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

static int is_quorate(unsigned int which)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < NODES; i++)
		n += part[i] == which;
	if (tie_quorum)
		return part[0] == which && n >= tie_quorum;
	return n * 2 > NODES;
}

static void queue_add(struct process *p, const struct event *e)
{
	assert_true(p->tail - p->head < QUEUE_MAX);
	p->queue[p->tail++ % QUEUE_MAX] = *e;
}

/*
 * Give the members of a partition the view that they have now; one that vanished from the last one is a
 * leaver of the reason given.
 */
static void views_give(unsigned int which, const struct views *was, enum es_group_reason reason)
{
	struct event view = {.is_view = 1};

	for (unsigned int i = 0; i < NODES; i++)
		if (part[i] == which && process[i].in_view)
			view.members[view.count++] = (struct es_group_id){i + 1, process[i].pid};
	for (unsigned int i = 0; i < NODES; i++) {
		struct event mine = view;

		if (part[i] != which || !process[i].in_view)
			continue;
		for (unsigned int j = 0; j < NODES; j++)
			if (was->is_in[i] && was->is_in[j] && was->part[i] == was->part[j] &&
			    (part[j] != which || !process[j].in_view || was->pid[j] != process[j].pid))
				mine.leavers[mine.leaver_count++] = (struct es_group_leaver){
					{j + 1, was->pid[j]}, part[j] != which ? ES_GROUP_NODE : reason};
		queue_add(&process[i], &mine);
	}
}

/* Some event of the world changed partitions or processes: tell everyone. */
static void world_changed(const struct views *was, enum es_group_reason reason)
{
	for (unsigned int which = 0; which < NODES; which++) {
		int differs = 0;

		for (unsigned int i = 0; i < NODES; i++)
			differs |= (part[i] == which || was->part[i] == which) &&
				   (part[i] != was->part[i] || process[i].in_view != was->is_in[i] ||
				    process[i].pid != was->pid[i]);
		if (!differs)
			continue;
		if (is_quorate(which)) {
			for (unsigned int i = 0; i < NODES; i++)
				if (part[i] == which && process[i].is_running && !process[i].in_view &&
				    !process[i].has_left && !process[i].wants_rejoin && !process[i].is_lost)
					process[i].in_view = 1;
			views_give(which, was, reason);
			continue;
		}
		for (unsigned int i = 0; i < NODES; i++)
			if (part[i] == which && process[i].in_view) {
				process[i].in_view = 0;
				process[i].is_lost = 1; /* noticed when the process runs */
				process[i].lost_at = now;
				if (lost_late_ms)
					process[i].lost_at += random_below(lost_late_ms);
			}
	}
}

static void snapshot(struct views *ret_was)
{
	for (unsigned int i = 0; i < NODES; i++) {
		ret_was->part[i] = part[i];
		ret_was->is_in[i] = process[i].in_view;
		ret_was->pid[i] = process[i].pid;
	}
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

static void letter_add(const struct letter *letter)
{
	struct letter *l = &letters[letter_count];

	if (letter_count == LETTERS_MAX || random_below(100) < lose_percent ||
	    (part[letter->from] != part[letter->to] && random_below(100) >= pass_percent))
		return;
	*l = *letter;
	l->at = now + (random_below(100) < late_percent ? random_below(late_ms) : random_below(5));
	letter_count++;
}

static void letters_send(struct process *p)
{
	struct letter letter = {.from = p->node};

	p->grants_at = local(p->node) + LEASE_MS / 5;
	if (!es_group_grants_are_for_all(&p->group) ||
	    es_grants_ask(&p->group.grants, LEASE_MS, local(p->node), &letter.ask))
		letter.ask = (struct es_grants_ask){};
	for (letter.to = 0; letter.to < NODES; letter.to++) {
		letter.granted = es_grants_tell(&p->group.grants, letter.to);
		if (letter.to != p->node)
			letter_add(&letter);
		if (letter.to != p->node && random_below(100) < late_percent)
			letter_add(&letter); /* twice */
	}
}

/* As lease.c in inspector/daemon/ does: grants renew a lease that is not over. */
static void letter_take(struct process *p, const struct letter *letter)
{
	uint64_t until;

	if (letter->ask.number)
		es_grants_hear(&p->group.grants, letter->from, &letter->ask, local(p->node));
	es_grants_take(&p->group.grants, letter->from, letter->granted);
	until = es_group_granted_ms(&p->group, p->bus_ms);
	if (es_group_is_in(&p->group) && !p->wants_rejoin && !p->has_left && !p->must_end &&
	    local(p->node) < datapath[p->node].lease_until && until > datapath[p->node].lease_until)
		datapath[p->node].lease_until = until;
}

/* Takes a datagram, in any order. Returns 0 if there is none. */
static int letters_step(struct process *p)
{
	for (unsigned int i = 0; i < letter_count; i++) {
		struct letter letter = letters[i];

		if (letter.to != p->node || now < letter.at)
			continue;
		letters[i] = letters[--letter_count];
		letter_take(p, &letter);
		check();
		return 1;
	}
	return 0;
}

/* One process does one thing. */
static void process_step(struct process *p)
{
	struct es_group_id self = {p->node + 1, p->pid};

	if (!p->is_running || p->is_stalled)
		return;
	if ((p->is_lost && now >= p->lost_at) || p->wants_rejoin) {
		struct views was;

		trace("rejoins", p->node, "");
		snapshot(&was);
		silence(p);
		drop_events(p);
		es_group_lost(&p->group, local(p->node));
		p->is_lost = p->wants_rejoin = 0;
		if (p->in_view) { /* leaves the bus, and joins it anew */
			p->in_view = 0;
			views_give(part[p->node], &was, ES_GROUP_PROCESS);
			snapshot(&was);
		}
		if (is_quorate(part[p->node])) {
			p->in_view = 1;
			views_give(part[p->node], &was, ES_GROUP_PROCESS);
		}
		return;
	}
	if (letter_count && random_below(2) && letters_step(p))
		return;
	if (p->head != p->tail) {
		struct event e = p->queue[p->head++ % QUEUE_MAX];

		if (e.is_view) {
			es_group_view(&p->group, self, e.members, e.count, e.leavers, e.leaver_count,
				      local(p->node));
		} else {
			es_group_message(&p->group, e.from, e.type, e.payload, e.len, local(p->node));
			if (e.type == ES_WIRE_LOAD && e.from.nodeid == self.nodeid &&
			    e.from.pid == self.pid && es_group_is_in(&p->group) && !p->wants_rejoin &&
			    !p->has_left && !p->must_end) {
				struct es_wire_load load;

				assert_int_equal(es_wire_get_load(e.payload, e.len, &load), 0);
				p->bus_ms = load.sent_ns / 1000000;
				if (p->bus_ms + LEASE_MS > datapath[p->node].lease_until)
					datapath[p->node].lease_until = p->bus_ms + LEASE_MS;
			}
		}
		free(e.payload);
		check();
		return;
	}
	es_group_tick(&p->group, local(p->node));
	if (es_group_is_alike_again(&p->group))
		on_rejoin(p, "it was made alike");
	check();
	if (p->in_view && local(p->node) >= p->load_at && p->group.phase != ES_GROUP_OUT) {
		struct es_wire_load load = {.sent_ns = local(p->node) * 1000000};
		char buf[32];

		on_send(p, ES_WIRE_LOAD, buf, es_wire_put_load(buf, sizeof(buf), &load));
		p->load_at = local(p->node) + LEASE_MS / 3;
	}
	if (local(p->node) >= p->grants_at)
		letters_send(p);
}

/* The bus takes one message of a random sender. */
static void bus_step(void)
{
	struct process *p = &process[random_below(NODES)];
	struct event e;

	if (!p->in_view || p->flight_head == p->flight_tail || now < frozen_until[part[p->node]])
		return;
	e = p->flight[p->flight_head++ % FLIGHT_MAX];
	for (unsigned int i = 0; i < NODES; i++) {
		struct event copy = e;

		if (part[i] != part[p->node] || !process[i].in_view)
			continue;
		copy.payload = malloc(e.len + 1);
		assert_non_null(copy.payload);
		memcpy(copy.payload, e.payload, e.len);
		queue_add(&process[i], &copy);
	}
	free(e.payload);
}

static void run(uint64_t ms)
{
	uint64_t end = now + ms;

	while (now < end) {
		for (unsigned int i = 0; i < 12; i++) {
			bus_step();
			process_step(&process[random_below(NODES)]);
		}
		if (hooks)
			hooks->tick();
		now += 1 + random_below(4);
		check();
	}
}

/* A cut: the token is lost, and after its timeout each side learns of it. */
static void split(const unsigned int *to)
{
	struct views was;

	for (unsigned int i = 0; i < NODES; i++)
		frozen_until[i] = now + LEASE_MS + random_below(400);
	run(LEASE_MS);
	snapshot(&was);
	trace("split", 0, "");
	memcpy(part, to, sizeof(part));
	world_changed(&was, ES_GROUP_NODE);
}

static void merge(void)
{
	struct views was;

	snapshot(&was);
	trace("merge", 0, "");
	memset(part, 0, sizeof(part));
	world_changed(&was, ES_GROUP_NODE);
}

static void crash(unsigned int node)
{
	struct views was;

	snapshot(&was);
	trace("crashes", node, "");
	process[node].is_running = process[node].in_view = 0;
	drop_events(&process[node]);
	world_changed(&was, ES_GROUP_PROCESS);
}

static void join(unsigned int node, const char *settings)
{
	struct views was;

	snapshot(&was);
	trace("joins", node, "");
	start(node, settings);
	was.pid[node] = process[node].pid;
	world_changed(&was, ES_GROUP_PROCESS);
	/* world_changed() sees no difference of one that was not in a view. */
	if (!process[node].in_view && is_quorate(part[node])) {
		process[node].in_view = 1;
		views_give(part[node], &was, ES_GROUP_PROCESS);
	}
}

static const char same[] = "=protocol=1\n=key=aa bb\n";

static void begin(void)
{
	const struct views was = {};

	now = 100000;
	for (unsigned int i = 0; i < NODES; i++)
		drop_events(&process[i]);
	memset(process, 0, sizeof(process));
	memset(weights, 0, sizeof(weights));
	memset(served, 0, sizeof(served));
	memset(part, 0, sizeof(part));
	memset(frozen_until, 0, sizeof(frozen_until));
	memset(datapath, 0, sizeof(datapath));
	letter_count = 0;
	for (unsigned int i = 0; i < NODES; i++)
		start(i, same);
	world_changed(&was, ES_GROUP_PROCESS);
}

static void end(void)
{
	for (unsigned int i = 0; i < NODES; i++)
		drop_events(&process[i]);
}

/* The events that happen to a node, or to all nodes, in random worlds. */
enum deed { SPLIT, MERGE, CRASH, COME_BACK, POWER_OFF, LEAVE, STALL, CHANGE };

/* Does @deed to @node if it can be done, except COME_BACK and POWER_OFF, which differ from world to world. */
static void world_do(enum deed deed, unsigned int node)
{
	struct process *p = &process[node];
	unsigned int to[NODES];

	switch (deed) {
	case SPLIT:
		for (unsigned int n = 0; n < NODES; n++)
			to[n] = random_below(2);
		split(to);
		break;
	case MERGE:
		merge();
		break;
	case CRASH:
		if (p->is_running)
			crash(node);
		break;
	case LEAVE:
		if (p->in_view && !p->group.is_leaving)
			es_group_leave(&p->group);
		break;
	case STALL:
		p->is_stalled = !p->is_stalled;
		break;
	case CHANGE:
		if (p->in_view)
			es_group_change(&p->group, random_below(NODES), ES_WIRE_CHANGE_WEIGHT,
					(uint16_t)(50 * random_below(5)));
		break;
	default:
		break;
	}
}

/* All is well again: a node that is away returns by @come_back, and there is one partition. */
static void world_mend(void (*come_back)(unsigned int node))
{
	for (unsigned int i = 0; i < NODES; i++) {
		process[i].is_stalled = 0;
		if (!process[i].is_running || process[i].group.is_leaving)
			come_back(i);
	}
	merge();
	run(12000);
}

/* A number from the environment, as EARSHOT_SEED. */
static uint64_t world_setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

static uint64_t inspected(void)
{
	uint64_t all = 0;

	for (unsigned int i = 0; i < NODES; i++)
		if (local(i) < datapath[i].lease_until)
			all |= datapath[i].share;
	return all;
}

static void assert_whole(void)
{
	for (unsigned int i = 0; i < NODES; i++) {
		if (process[i].group.phase != ES_GROUP_STABLE)
			fail_msg("n%u is %s", i + 1, es_group_phase_text(process[i].group.phase));
		assert_int_equal(process[i].group.epoch, process[0].group.epoch);
		assert_memory_equal(weights[i], weights[0], sizeof(weights[0]));
	}
	assert_true(inspected() == ~0ULL);
}

#endif
