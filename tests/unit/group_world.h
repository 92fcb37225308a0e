/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_GROUP_WORLD_H
#define ES_TESTS_GROUP_WORLD_H

/*
 * Nodes that agree on the ring over a bus that is played: partitions, crashes, joins, leaves, stalls. It
 * watches that at no time two nodes inspect the same slot. Include after cmocka.h.
 */
#include "tests/unit/group_bus.h"
#include "tests/unit/group_letters.h"

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
