/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_POLICY_VIEW_H
#define ES_TESTS_POLICY_VIEW_H

/*
 * A world for one policy: nodes with the loads that a test states, a content ring, a table of server sets
 * whose bus goes in a circle, a clock. Every decision is explained first, and a dry run that names another
 * node, or leaves a trace, fails the test.
 */
#include "cmocka_all.h"
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/policy/list.h"

#define WORLD_NODES 8
#define SECOND	    1000000000ULL

/* The set of the nodes 0, 1, 3: SET(0) | SET(1) | SET(3). */
#define SET(node) (1ULL << (node))

struct world {
	const struct es_policy *policy;
	struct es_policy_settings settings;
	void *state;
	struct es_node_view node[WORLD_NODES];
	struct es_ring *ring;
	struct es_contents *contents;
	struct es_random random;
	struct es_cluster_view view;
	struct es_explain explain;
};

static inline void world_policy_free(struct world *w)
{
	if (w->policy->free)
		w->policy->free(w->state);
	w->state = NULL;
}

/* Makes the instance, with the settings as they are now. */
static inline void world_policy_new(struct world *w)
{
	if (w->policy->new)
		assert_int_equal(w->policy->new (&w->settings, &w->state), 0);
}

/* @count idle nodes of weight 100, of which the first @on_ring are on the ring, at time 1,000 s. */
static inline void world_init_ring(struct world *w, const struct es_policy *policy, unsigned int count,
				   unsigned int on_ring)
{
	struct es_ring_node nodes[WORLD_NODES];

	memset(w, 0, sizeof(*w));
	w->policy = policy;
	es_policy_defaults(policy, &w->settings);
	world_policy_new(w);
	for (unsigned int i = 0; i < count; i++) {
		w->node[i] = (struct es_node_view){.weight = 100, .is_target = 1};
		nodes[i] = (struct es_ring_node){
			.address = es_addr_from_v4(htonl(10u << 24 | 78u << 16 | (i + 1))),
			.virtual_nodes = 63,
			.id = (__u16)i,
		};
	}
	assert_int_equal(es_ring_new(nodes, on_ring, &w->ring), 0);
	assert_int_equal(es_contents_new(4096, &w->contents), 0);
	w->view = (struct es_cluster_view){
		.count = count,
		.node = w->node,
		.ring = w->ring,
		.now_ns = 1000 * SECOND,
		.random = &w->random,
		.contents = w->contents,
		.settings = &w->settings,
	};
}

static inline void world_init(struct world *w, const struct es_policy *policy, unsigned int count)
{
	world_init_ring(w, policy, count, count);
}

static inline void world_fini(struct world *w)
{
	world_policy_free(w);
	es_ring_free(&w->ring);
	es_contents_free(&w->contents);
}

/* Another value for a parameter; the instance is a new one. */
static inline void world_param(struct world *w, const char *name, double value)
{
	int i = es_policy_param_index(w->policy, name);

	assert_true(i >= 0);
	world_policy_free(w);
	w->settings.param[i] = value;
	world_policy_new(w);
}

static inline void world_handover_cost(struct world *w, unsigned int cost)
{
	world_policy_free(w);
	w->settings.handover_cost = cost;
	world_policy_new(w);
}

static inline void world_active(struct world *w, const double *active)
{
	for (unsigned int i = 0; i < w->view.count; i++)
		w->node[i].active = active[i];
}

static inline void world_load(struct world *w, const double *load)
{
	for (unsigned int i = 0; i < w->view.count; i++)
		w->node[i].load = load[i];
}

#define ACTIVE(w, ...) world_active(w, (const double[WORLD_NODES]){__VA_ARGS__})
#define LOAD(w, ...)   world_load(w, (const double[WORLD_NODES]){__VA_ARGS__})

/* A first request for @uri, at cost 1. */
static inline struct es_request_view world_get(const char *uri)
{
	return (struct es_request_view){
		.uri = uri,
		.uri_len = strlen(uri),
		.name = uri,
		.name_len = strlen(uri),
		.content = es_content_hash(uri, strlen(uri)),
		.current = -1,
		.cost = 1,
	};
}

/* The proposals come back, and are what all agree on. */
static inline void world_bus(struct world *w)
{
	struct es_content_change changes[16];
	size_t count;

	while ((count = es_contents_take(w->contents, changes, 16)))
		es_contents_deliver(w->contents, changes, count, 1, w->view.now_ns);
}

static inline struct es_content_set world_set(const struct world *w, __u64 content)
{
	struct es_content_set set = {};

	es_contents_peek(w->contents, content, &set);
	return set;
}

/* The set of @uri as SET(...), 0 if it has none. */
static inline unsigned long long world_set_of(const struct world *w, const char *uri)
{
	return world_set(w, es_content_hash(uri, strlen(uri))).nodes.bits[0];
}

/* @node joins the set of @content, as if a policy had said so. */
static inline void world_add(struct world *w, __u64 content, unsigned int node)
{
	es_contents_propose(w->contents, content, ES_CONTENT_ADD, node, 0, w->view.now_ns);
	world_bus(w);
}

/* The decision and its reasons, in w->explain. Fails if that changes what a test can see. The bus has nothing
 * to carry before. */
static inline int world_explain(struct world *w, const struct es_request_view *request)
{
	struct es_content_set before = world_set(w, request->content), after;
	struct es_random random = w->random;
	struct es_content_change change;
	int node;

	memset(&w->explain, 0, sizeof(w->explain));
	w->view.explain = &w->explain;
	node = w->policy->route(w->state, request, &w->view);
	w->view.explain = NULL;
	after = world_set(w, request->content);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(es_contents_take(w->contents, &change, 1), 0);
	assert_true(random.state == w->random.state);
	return node;
}

/* The decision, with the bus still to come. */
static inline int world_decide(struct world *w, const struct es_request_view *request)
{
	int dry = world_explain(w, request);
	int node = w->policy->route(w->state, request, &w->view);

	assert_int_equal(node, dry);
	assert_true(node < 0 || w->explain.count > 0);
	return node;
}

static inline int world_route(struct world *w, const struct es_request_view *request)
{
	int node = world_decide(w, request);

	world_bus(w);
	return node;
}

/* A first request for @uri. */
static inline int world_first(struct world *w, const char *uri)
{
	struct es_request_view request = world_get(uri);

	return world_route(w, &request);
}

/* Does a reason contain @text? */
static inline int world_explained(const struct world *w, const char *text)
{
	for (unsigned int i = 0; i < w->explain.count; i++)
		if (strstr(w->explain.step[i], text))
			return 1;
	return 0;
}

#endif
