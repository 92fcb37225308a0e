// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rules that every policy keeps, in random worlds: nodes come and go, loads jump, the bus is late, rules
 * exclude nodes. EARSHOT_SEED is the first world, EARSHOT_WORLDS says how many.
 */
#include "policy_view.h"
#include <stdio.h>

#define STEPS	400
#define URIS	12
#define BUS_MAX 64

static uint64_t seed;

/* Where a failure was. */
static const struct es_policy *policy_at;
static uint64_t world_at;

static unsigned int below(unsigned int n)
{
	return (unsigned int)(es_test_random(&seed) % n);
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

/* The results that another look at the same trace must give again. */
struct trace {
	int node[STEPS];
	__u64 digest[STEPS];
};

/* Proposals on their way. */
struct bus {
	struct es_content_change change[BUS_MAX];
	size_t count;
};

static void bus_step(struct world *w, struct bus *bus)
{
	if (bus->count + 8 > BUS_MAX || !below(3)) {
		es_contents_deliver(w->contents, bus->change, bus->count, 1, w->view.now_ns);
		bus->count = 0;
	}
	/* Another inspector's. */
	if (!below(20)) {
		struct es_content_change change = {
			.content = 1 + below(URIS),
			.op = (__u8)(ES_CONTENT_ASSIGN + below(4)),
			.node = (__u8)below(w->view.count),
			.from = (__u8)below(w->view.count),
		};

		es_contents_deliver(w->contents, &change, 1, 0, w->view.now_ns);
	}
	if (!below(200))
		es_contents_drop_node(w->contents, below(w->view.count), w->view.now_ns);
}

static void world_jump(struct world *w)
{
	static const double scales[] = {1, 30, 140, 1000};
	static const unsigned int weights[] = {100, 100, 100, 50, 200, 10, 0};

	w->view.now_ns += below(4) ? below(1000) : below(30) * SECOND;
	for (unsigned int i = 0; i < w->view.count; i++) {
		struct es_node_view *n = &w->node[i];

		if (!below(20))
			n->weight = weights[below(7)];
		if (!below(6))
			n->is_target = below(4) > 0;
		if (!below(3))
			n->active = below((unsigned int)scales[below(4)] + 1) * (below(2) ? 1 : 0.7);
		if (!below(3))
			n->load = below((unsigned int)scales[below(4)] + 1);
		n->disk = below(100) / 100.0;
		n->cpu = below(100) / 100.0;
	}
}

static void random_request(struct world *w, struct es_request_view *ret_request, char uri[16])
{
	unsigned int t = 1 + below(below(2) ? 3 : URIS);

	snprintf(uri, 16, "/%u", t);
	*ret_request = world_get(uri);
	ret_request->content = t;
	ret_request->flow_hash = es_test_random(&seed);
	ret_request->current = (int)below(w->view.count + 1) - 1;
	ret_request->cost = 1 + below(200);
	ret_request->size_bytes = below(4) ? below(2000000) : 0;
	ret_request->is_dynamic = below(4) == 0;
	ret_request->class = (enum es_request_class)below(ES_CLASS_COUNT);
	ret_request->has_allowed = below(5) == 0;
	for (unsigned int i = 0; ret_request->has_allowed && i < w->view.count; i++)
		if (below(2))
			es_node_set_add(&ret_request->allowed, i);
}

static int has_target(const struct world *w, const struct es_request_view *request)
{
	for (unsigned int i = 0; i < w->view.count; i++)
		if (es_view_is_target(request, &w->view, i))
			return 1;
	return 0;
}

/* One request changes a set by at most one node that joins, a target, and one that leaves; and never empties
 * it. */
static void check_set(const struct world *w, const struct es_request_view *request,
		      struct es_content_set before, struct es_content_set after)
{
	unsigned int joined = 0, left = 0;

	assert_true(es_node_set_is_empty(before.nodes) || !es_node_set_is_empty(after.nodes));
	for (unsigned int i = 0; i < ES_NODES_MAX; i++) {
		int had = es_node_set_has(before.nodes, i), has = es_node_set_has(after.nodes, i);

		if (has && !had) {
			assert_true(es_view_is_target(request, &w->view, i));
			joined++;
		}
		left += had && !has;
	}
	assert_true(joined <= 1 && left <= 1);
}

/* LARD: none that has 2 * T_high is given more while another one has less; by what moving costs, of what is
 * there already. */
static void check_bound(const struct world *w, const struct es_request_view *request, int node)
{
	if (w->policy != &es_policy_lard && w->policy != &es_policy_lard_r)
		return;
	if (es_view_measure(&w->view, (unsigned int)node, ES_MEASURE_ACTIVE) < 130)
		return;
	for (unsigned int i = 0; i < w->view.count; i++)
		if (es_view_is_target(request, &w->view, i))
			assert_true(es_view_measure(&w->view, i, ES_MEASURE_ACTIVE) +
					    (node == request->current
						     ? w->settings.handover_cost * 100 / w->node[i].weight
						     : 0) +
					    1e-6 >=
				    es_view_measure(&w->view, (unsigned int)node, ES_MEASURE_ACTIVE));
}

static void run(const struct es_policy *policy, uint64_t world, int is_explained, struct trace *ret_trace)
{
	struct bus bus = {.count = 0};
	struct world w;

	seed = world_at = world;
	policy_at = policy;
	world_init(&w, policy, 1 + below(WORLD_NODES));
	w.settings.load_bound = below(2) ? 0 : 110;
	world_handover_cost(&w, below(2) ? 0 : 3);
	for (unsigned int i = 0; i < STEPS; i++) {
		struct es_request_view request;
		struct es_content_set before;
		char uri[16];
		int node;

		world_jump(&w);
		bus_step(&w, &bus);
		/* `earshot explain` asks about another request in between. */
		random_request(&w, &request, uri);
		if (is_explained)
			(void)world_explain(&w, &request);
		w.view.now_ns += below(SECOND);
		random_request(&w, &request, uri);
		before = world_set(&w, request.content);
		node = is_explained ? world_decide(&w, &request) : policy->route(w.state, &request, &w.view);
		check_set(&w, &request, before, world_set(&w, request.content));
		if (has_target(&w, &request)) {
			assert_true(node >= 0 && es_view_is_target(&request, &w.view, (unsigned int)node));
			check_bound(&w, &request, node);
		} else {
			assert_int_equal(node, -1);
		}
		assert_true(policy->needs_contents ||
			    es_node_set_equal(before.nodes, world_set(&w, request.content).nodes));
		bus.count += es_contents_take(w.contents, bus.change + bus.count, BUS_MAX - bus.count);
		assert_true(bus.count < BUS_MAX);
		ret_trace->node[i] = node;
		ret_trace->digest[i] = es_contents_digest(w.contents);
	}
	world_fini(&w);
	policy_at = NULL;
}

static int say_where(void **state)
{
	(void)state;
	if (policy_at)
		print_error("policy %s, EARSHOT_SEED=%llu\n", policy_at->name, (unsigned long long)world_at);
	return 0;
}

/* The same trace gives the same decisions, with dry runs in between or without. */
static void test_worlds(void **state)
{
	uint64_t first = setting("EARSHOT_SEED", 1), worlds = setting("EARSHOT_WORLDS", 40);
	static struct trace once, again;

	(void)state;
	for (uint64_t world = first; world < first + worlds; world++) {
		for (const struct es_policy *const *p = es_policy_list(); *p; p++) {
			run(*p, world, 1, &once);
			run(*p, world, 0, &again);
			if (memcmp(&once, &again, sizeof(once)) != 0)
				fail_msg("%s: world %llu is not the same again", (*p)->name,
					 (unsigned long long)world);
		}
	}
}

/* With a load bound, no node gets more than that part of its share, or of 25 requests. */
static void test_uri_hash_bound(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 20; round++) {
		unsigned int bound = 101 + 10 * round, count[WORLD_NODES] = {};
		double weights = 0;
		struct world w;

		seed = round;
		world_init(&w, &es_policy_uri_hash, 2 + below(WORLD_NODES - 1));
		w.settings.load_bound = bound;
		world_handover_cost(&w, round & 1);
		for (unsigned int i = 0; i < w.view.count; i++)
			weights += w.node[i].weight = 50 + below(150);
		for (unsigned int i = 0; i < 3000; i++) {
			struct es_request_view request;
			char uri[16];
			double most;
			int node;

			random_request(&w, &request, uri);
			request.has_allowed = 0;
			request.current = -1;
			node = world_route(&w, &request);
			assert_true(node >= 0);
			count[node]++;
			w.node[node].active++;
			most = (i + 1) * w.node[node].weight / weights * bound / 100;
			assert_true(count[node] <= 25 * w.node[node].weight / 100 || count[node] < most + 1);
		}
		world_fini(&w);
	}
}

/* Names, defaults and bounds of all parameters. */
static void test_parameters(void **state)
{
	(void)state;
	for (const struct es_policy *const *p = es_policy_list(); *p; p++) {
		struct es_policy_settings settings;
		unsigned int count = 0;

		for (const struct es_policy_param *param = (*p)->params; param && param->name;
		     param++, count++) {
			assert_non_null(param->description);
			assert_true(param->min <= param->value && param->value <= param->max);
			assert_int_equal(es_policy_param_index(*p, param->name), count);
		}
		assert_true(count <= ES_POLICY_PARAMS_MAX);
		assert_int_equal(es_policy_param_index(*p, "no-such"), -1);
		es_policy_defaults(*p, &settings);
		for (unsigned int i = 0; i < count; i++)
			assert_true(settings.param[i] >= (*p)->params[i].min ||
				    ((*p)->params[i].may_be_auto && isnan(settings.param[i])));
		assert_true(!(*p)->needs_contents || (*p)->inspects);
		assert_true(!(*p)->new == !(*p)->free);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_worlds, say_where),
		cmocka_unit_test(test_uri_hash_bound),
		cmocka_unit_test(test_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
