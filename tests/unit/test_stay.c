// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The rule by which open connections stay or move (policy/stay.h), for each policy; and a cluster that is
 * played: three inspectors whose loads are late.
 */
#include "policy_view.h"
#include <stdio.h>
#include "inspector/policy/load.h"
#include "inspector/policy/stay.h"

/* Loads that have lasted, beside those of this moment. */
static void lasting(struct world *w, const double *active)
{
	for (unsigned int i = 0; i < w->view.count; i++)
		w->node[i].active_lasting = w->node[i].active_settled = w->node[i].load_lasting =
			w->node[i].load_settled = active[i];
}

#define LASTING(w, ...) lasting(w, (const double[WORLD_NODES]){__VA_ARGS__})

static int get(struct world *w, const char *uri, int current)
{
	struct es_request_view request = world_get(uri);

	request.current = current;
	return world_route(w, &request);
}

static enum es_move_why why_of(struct world *w, const char *uri, int current)
{
	struct es_request_view request = world_get(uri);
	enum es_move_why why = ES_MOVE_LOCALITY;

	request.current = current;
	w->view.why = &why;
	assert_int_not_equal(world_route(w, &request), current);
	w->view.why = NULL;
	return es_stay_why(&request, &w->view, why);
}

/* The daemon's settings. */
static void begin(struct world *w, const struct es_policy *policy, unsigned int count)
{
	world_init(w, policy, count);
	w->settings.settle_ms = 100;
	w->settings.load_bound = 125;
	world_handover_cost(w, 1);
}

/* Nodes that are alike, and idle: nothing moves, whatever the policy, and wherever the connection is. */
static void test_nothing_for_nothing(void **state)
{
	(void)state;
	for (const struct es_policy *const *p = es_policy_list(); *p; p++) {
		struct world w;

		if (!strcmp((*p)->name, "ring"))
			continue;
		begin(&w, *p, 3);
		for (int i = 0; i < 300; i++) {
			char uri[16];

			snprintf(uri, sizeof(uri), "/%d", i % 20);
			ACTIVE(&w, i % 7, i % 5, i % 3); /* what is no more than a moment's */
			LOAD(&w, i % 7, i % 5, i % 3);
			LASTING(&w, 3, 2.5, 2);
			w.view.now_ns += SECOND / 10;
			assert_int_equal(get(&w, uri, i % 3), i % 3);
		}
		/* A node that takes no more is left at once. */
		w.node[1].is_target = 0;
		for (int i = 0; i < 20; i++)
			assert_int_not_equal(get(&w, "/1", 1), 1);
		assert_int_equal(why_of(&w, "/1", 1), ES_MOVE_DRAIN);
		world_fini(&w);
	}
}

/* The nodes that the rules before the policy leave are compared. */
static void test_allowed(void **state)
{
	(void)state;
	for (const struct es_policy *const *p = es_policy_list(); *p; p++) {
		struct es_request_view request = world_get("/a");
		struct world w;

		if (!strcmp((*p)->name, "ring"))
			continue;
		begin(&w, *p, 4);
		request.has_allowed = 1;
		es_node_set_add(&request.allowed, 1);
		es_node_set_add(&request.allowed, 2);
		for (request.current = 1; request.current < 3; request.current++)
			for (int i = 0; i < 10; i++)
				assert_int_equal(world_route(&w, &request), request.current);
		request.current = 0;
		assert_in_range(world_route(&w, &request), 1, 2);
		assert_int_equal(es_stay_why(&request, &w.view, ES_MOVE_LOAD), ES_MOVE_RULE);
		world_fini(&w);
	}
}

static void test_load_must_last(void **state)
{
	struct world w;

	(void)state;
	begin(&w, &es_policy_wlc, 3);
	ACTIVE(&w, 60, 0, 0);
	LASTING(&w, 20, 20, 20);
	assert_int_equal(get(&w, "/a", 0), 0);
	LASTING(&w, 40, 10, 10);
	assert_int_equal(get(&w, "/a", 0), 1 + (int)(es_content_hash("/a", 2) % 3 == 2));
	assert_int_equal(why_of(&w, "/a", 0), ES_MOVE_LOAD);
	/* A fifth of what there is besides its cost: 25 - 20 = 5 < 1 + 5. */
	LASTING(&w, 25, 20, 20);
	assert_int_equal(get(&w, "/a", 0), 0);
	assert_true(world_explained(&w, "would be 5.0 cheaper, a move costs 6.0: it stays"));
	LASTING(&w, 26.5, 20, 20);
	assert_int_not_equal(get(&w, "/a", 0), 0);
	/* Two with too much do not fill the third one twice: only what has more than the mean gives. */
	LASTING(&w, 20, 40, 0);
	assert_int_equal(get(&w, "/a", 0), 0);
	assert_true(world_explained(&w, "no more than the mean"));
	assert_int_equal(get(&w, "/a", 1), 2);
	/* A first request goes by the moment. */
	ACTIVE(&w, 1, 2, 3);
	assert_int_equal(get(&w, "/a", -1), 0);
	world_fini(&w);
}

/* Content that is elsewhere is fetched where the disk has time; else the connection goes there. */
static void test_locality(void **state)
{
	static const struct es_policy *const policies[] = {
		&es_policy_lard,  &es_policy_lard_r,   &es_policy_hylard, &es_policy_xlard_r,
		&es_policy_cahrd, &es_policy_uri_hash, &es_policy_ward,	  NULL};

	(void)state;
	for (const struct es_policy *const *p = policies; *p; p++) {
		struct world w;
		int home, other;

		begin(&w, *p, 3);
		home = world_first(&w, "/a");
		other = (home + 1) % 3;
		assert_int_equal(get(&w, "/a", other), other);
		w.node[other].disk = 0.5;
		assert_int_equal(get(&w, "/a", other), home);
		assert_int_equal(why_of(&w, "/a", other), ES_MOVE_LOCALITY);
		assert_int_equal(get(&w, "/a", home), home);
		/* Content that no disk has is a reason to move, however idle the disk is. */
		w.node[other].disk = 0;
		assert_int_equal(get(&w, "/a", other), other);
		w.settings.content_off_disk = 1;
		assert_int_equal(get(&w, "/a", other), home);
		assert_int_equal(why_of(&w, "/a", other), ES_MOVE_LOCALITY);
		assert_int_equal(get(&w, "/a", home), home);
		world_fini(&w);
	}
}

/* LARD: home moves after an imbalance that has lasted, and then rests; what is at the former one stays until
 * it has too much. */
static void test_home(void **state)
{
	struct world w;
	int first, second;

	(void)state;
	begin(&w, &es_policy_lard, 3);
	first = world_first(&w, "/a");
	for (int i = 0; i < 3; i++) {
		w.node[i].active = i == first ? 100 : 0;
		w.node[i].active_lasting = w.node[i].active_settled = 10;
		w.node[i].disk = 1;
	}
	w.view.now_ns += 5 * SECOND;
	assert_int_equal(world_first(&w, "/a"), first); /* a moment's */
	w.node[first].active_lasting = w.node[first].active_settled = 100;
	second = world_first(&w, "/a");
	assert_int_not_equal(second, first);
	assert_int_equal(world_set_of(&w, "/a"), SET(second));
	/* Now the other way round, at once: it rests. */
	w.node[second].active = w.node[second].active_lasting = w.node[second].active_settled = 100;
	w.node[first].active = w.node[first].active_lasting = w.node[first].active_settled = 10;
	w.view.now_ns += SECOND / 2;
	assert_int_equal(world_first(&w, "/a"), second);
	assert_int_equal(world_set_of(&w, "/a"), SET(second));
	/* Connections at the former home have no reason to follow to one with more to do. */
	assert_int_equal(get(&w, "/a", first), first);
	w.view.now_ns += SECOND;
	assert_int_not_equal(world_first(&w, "/a"), second);
	world_fini(&w);
}

/* uri-hash: a home above its bound gives some away, and does not call for what sits on one below. */
static void test_bound(void **state)
{
	struct world w;
	int home, other;

	(void)state;
	begin(&w, &es_policy_uri_hash, 3);
	home = world_first(&w, "/a");
	other = (home + 1) % 3;
	w.node[other].disk = w.node[home].disk = 1;
	LASTING(&w, 10, 10, 10);
	w.node[home].active_settled = 40;
	assert_int_not_equal(get(&w, "/a", home), home);
	assert_int_equal(why_of(&w, "/a", home), ES_MOVE_LOAD);
	assert_int_equal(get(&w, "/a", other), other);
	w.node[home].active_settled = 10;
	assert_int_equal(get(&w, "/a", other), home);
	world_fini(&w);
}

/* --- a cluster that is played */

#define NODES	 3
#define CLIENTS	 96
#define STEP_NS	 1000000ULL
#define REPORT	 25 /* steps */
#define LATE	 3
#define CONTENTS 4
#define BUS_MAX	 256

struct client {
	int node; /* -1: no connection yet */
	int content;
	unsigned int busy; /* steps yet */
};

struct inspector {
	struct world w;
	struct es_load load[NODES];
};

struct played {
	struct inspector inspector[NODES];
	struct client client[CLIENTS];
	struct es_load_report late[LATE][NODES];
	int has_late[LATE];
	struct es_content_change bus[BUS_MAX];
	unsigned int from[BUS_MAX];
	unsigned int bus_count;
	unsigned long long now_ns, changed_ns[CONTENTS];
	unsigned int requests, moves, changes;
	__u64 random;
};

static unsigned int roll(struct played *p, unsigned int sides)
{
	p->random = p->random * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned int)(p->random >> 33) % sides;
}

static const char *content(int number)
{
	static const char *const names[CONTENTS] = {"/hot", "/b", "/c", "/d"};

	return names[number];
}

static void played_init(struct played *p, const struct es_policy *policy, unsigned int settle_ms)
{
	memset(p, 0, sizeof(*p));
	p->now_ns = 1000 * SECOND;
	for (unsigned int i = 0; i < NODES; i++) {
		struct inspector *in = &p->inspector[i];

		begin(&in->w, policy, NODES);
		in->w.settings.settle_ms = settle_ms;
		/* So that 96 connections are more than one node can have. */
		world_param(&in->w, "T_low", 10);
		world_param(&in->w, "T_high", 30);
		in->w.view.self = i;
		for (unsigned int k = 0; k < NODES; k++) {
			assert_int_equal(es_load_init(&in->load[k]), 0);
			es_load_settle(&in->load[k], settle_ms);
			in->w.node[k].disk = 1; /* content matters */
		}
	}
	for (unsigned int i = 0; i < CLIENTS; i++) {
		p->client[i].node = -1;
		p->client[i].content = i < CLIENTS * 3 / 4 ? 0 : 1 + (int)(i % (CONTENTS - 1));
		p->client[i].busy = roll(p, 200);
	}
}

static void played_fini(struct played *p)
{
	for (unsigned int i = 0; i < NODES; i++) {
		for (unsigned int k = 0; k < NODES; k++)
			es_load_fini(&p->inspector[i].load[k]);
		world_fini(&p->inspector[i].w);
	}
}

/* Delivers to all what was said two steps ago. */
static void played_bus(struct played *p)
{
	for (unsigned int c = 0; c < p->bus_count; c++) {
		for (int k = 0; k < CONTENTS; k++) {
			struct es_content_change *change = &p->bus[c];
			int is_home = change->content == es_content_hash(content(k), strlen(content(k)));
			struct es_content_set before = world_set(&p->inspector[0].w, change->content), after;

			if (!is_home)
				continue;
			for (unsigned int i = 0; i < NODES; i++)
				es_contents_deliver(p->inspector[i].w.contents, change, 1, i == p->from[c],
						    p->now_ns);
			after = world_set(&p->inspector[0].w, change->content);
			if (change->op != ES_CONTENT_MOVE || es_node_set_equal(before.nodes, after.nodes))
				continue;
			p->changes++;
			p->changed_ns[k] = p->now_ns;
		}
	}
	p->bus_count = 0;
}

/* Each proposal that an inspector makes is seen: no content's home changes twice within a second. */
static void played_say(struct played *p, unsigned int i, unsigned long long *last_ns)
{
	struct es_content_change change;

	while (es_contents_take(p->inspector[i].w.contents, &change, 1)) {
		for (int k = 0; k < CONTENTS; k++) {
			if (change.op != ES_CONTENT_MOVE ||
			    change.content != es_content_hash(content(k), strlen(content(k))))
				continue;
			/* Others who thought the same at the same time are no second change. */
			if (last_ns[k] && p->now_ns - last_ns[k] > 10 * STEP_NS)
				assert_true(p->now_ns - last_ns[k] >= SECOND);
			last_ns[k] = p->now_ns;
		}
		assert_true(p->bus_count < BUS_MAX);
		p->from[p->bus_count] = i;
		p->bus[p->bus_count++] = change;
	}
}

static void played_report(struct played *p, unsigned int step)
{
	unsigned int slot = step % LATE;

	if (p->has_late[slot])
		for (unsigned int i = 0; i < NODES; i++)
			for (unsigned int k = 0; k < NODES; k++) {
				struct es_load_report report = p->late[slot][k];

				report.at_ns = p->now_ns;
				es_load_report(&p->inspector[i].load[k], &report);
			}
	p->has_late[slot] = 0;
	if (step % REPORT)
		return;
	memset(p->late[slot], 0, sizeof(p->late[slot]));
	for (unsigned int i = 0; i < CLIENTS; i++) {
		if (p->client[i].node < 0 || !p->client[i].busy)
			continue;
		p->late[slot][p->client[i].node].active++;
		p->late[slot][p->client[i].node].load++;
	}
	for (unsigned int k = 0; k < NODES; k++)
		p->late[slot][k].mean_us = 10000;
	p->has_late[slot] = 1;
}

static void played_ask(struct played *p, struct client *c, unsigned long long *last_ns)
{
	unsigned int self = c->node >= 0 ? (unsigned int)c->node : roll(p, NODES);
	struct inspector *in = &p->inspector[self];
	struct es_request_view request = world_get(content(c->content));
	int node;

	request.current = c->node;
	in->w.view.now_ns = p->now_ns;
	for (unsigned int k = 0; k < NODES; k++)
		es_load_estimate(&in->load[k], p->now_ns, &in->w.node[k]);
	for (unsigned int k = 0; k < NODES; k++)
		in->w.node[k].disk = 1;
	node = in->w.policy->route(in->w.state, &request, &in->w.view);
	assert_in_range(node, 0, NODES - 1);
	if (c->node < 0) {
		es_load_sent(&in->load[node], 1, p->now_ns, &in->w.node[node]);
	} else if (node != c->node) {
		es_load_moved(&in->load[self], -1, 1, &in->w.node[self]);
		es_load_moved(&in->load[node], 1, 1, &in->w.node[node]);
		p->moves++;
	}
	p->requests++;
	c->node = node;
	c->busy = 1 + roll(p, 19);
	played_say(p, self, last_ns);
}

static void play(const struct es_policy *policy, unsigned int settle_ms, struct played *p)
{
	unsigned long long last_ns[CONTENTS] = {};

	played_init(p, policy, settle_ms);
	for (unsigned int step = 1; step <= 20000; step++) {
		p->now_ns += STEP_NS;
		if (step % 2)
			played_bus(p);
		played_report(p, step);
		for (unsigned int i = 0; i < CLIENTS; i++) {
			struct client *c = &p->client[i];

			if (c->busy && --c->busy)
				continue;
			played_ask(p, c, last_ns);
		}
	}
}

static void test_played(void **state)
{
	static const struct es_policy *const policies[] = {&es_policy_lard, &es_policy_lard_r, NULL};
	static struct played p;

	(void)state;
	for (const struct es_policy *const *policy = policies; *policy; policy++) {
		unsigned int on[NODES] = {};

		play(*policy, 100, &p);
		for (unsigned int i = 0; i < CLIENTS; i++)
			on[p.client[i].node]++;
		print_message("%s: %u requests, %u moves, %u changes of a home; connections %u %u %u\n",
			      (*policy)->name, p.requests, p.moves, p.changes, on[0], on[1], on[2]);
		assert_true(p.requests > 100000);
		assert_true(p.moves * 100 < p.requests);
		/* Nobody is left with what is more than slow. */
		for (unsigned int i = 0; i < NODES; i++)
			assert_true(on[i] < 66);
		played_fini(&p);
	}
}

/* Where not all nodes are heard, first requests go by what was sent from here, and open connections stay. */
static void test_alone(void **state)
{
	struct es_load_report only_time = {.mean_us = 100000, .is_mean_only = 1, .at_ns = SECOND};
	struct es_node_view node;
	struct es_load load;

	(void)state;
	assert_int_equal(es_load_init(&load), 0);
	es_load_settle(&load, 100);
	for (int i = 0; i < 400; i++) {
		for (int k = 0; k < 5; k++)
			es_load_sent(&load, 1, only_time.at_ns, &node);
		only_time.at_ns += SECOND / 40;
		es_load_report(&load, &only_time);
	}
	es_load_estimate(&load, only_time.at_ns, &node);
	/* 200 in a second, each for 0.1 s. */
	assert_in_range((int)node.active_lasting, 16, 24);
	assert_float_equal(node.active_settled, 0, 1e-6);
	es_load_fini(&load);
}

/* A request that moves counts once: at its new node, from that moment on, until both have spoken. */
static void test_counted_once(void **state)
{
	struct es_load_report report = {.active = 20, .load = 20, .mean_us = 300, .at_ns = SECOND};
	struct es_node_view node[2];
	struct es_load load[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(es_load_init(&load[i]), 0);
		es_load_settle(&load[i], 100);
		es_load_report(&load[i], &report);
		es_load_estimate(&load[i], SECOND, &node[i]);
	}
	for (int i = 0; i < 8; i++) {
		es_load_moved(&load[0], -1, 1, &node[0]);
		es_load_moved(&load[1], 1, 1, &node[1]);
	}
	for (int i = 0; i < 2; i++) {
		assert_float_equal(node[i].active, i ? 28 : 12, 1e-6);
		assert_float_equal(node[i].active_lasting, i ? 28 : 12, 1e-6);
		/* A request that was sent fades with the time that one takes; a connection does not. */
		es_load_estimate(&load[i], SECOND + SECOND / 50, &node[i]);
		assert_float_equal(node[i].active, i ? 28 : 12, 1e-6);
	}
	/* The next word has them in it. */
	report.at_ns += SECOND / 40;
	report.active = 28;
	es_load_report(&load[1], &report);
	es_load_estimate(&load[1], report.at_ns, &node[1]);
	assert_float_equal(node[1].active, 28, 1e-6);
	assert_float_equal(node[1].active_lasting, 28, 1e-6);
	/* A mean of what was said: a fifth of the way after a quarter of the time. */
	report.at_ns += SECOND / 40;
	report.active = 38;
	es_load_report(&load[1], &report);
	es_load_estimate(&load[1], report.at_ns, &node[1]);
	assert_float_equal(node[1].active_lasting, 30.2, 0.1);
	assert_float_equal(node[1].active_settled, 28.2, 0.1);
	for (int i = 0; i < 2; i++)
		es_load_fini(&load[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_for_nothing),
		cmocka_unit_test(test_allowed),
		cmocka_unit_test(test_load_must_last),
		cmocka_unit_test(test_locality),
		cmocka_unit_test(test_home),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_played),
		cmocka_unit_test(test_counted_once),
		cmocka_unit_test(test_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
