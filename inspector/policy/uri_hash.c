// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Policy `uri-hash`: the node that owns MD5(URI) on the content ring (DTS Fig. 9, line C), so that each file
 * is cached by one node. The URI is the content's name (name.h): host, path and query.
 *
 * With a load bound (an addition to the paper; "consistent hashing with bounded loads", Mirrokni et al. 2016)
 * a node that has more than bound percent of its fair share of the requests in progress passes the request on
 * to the next node on the ring; below ES_BOUND_FLOOR requests there is no imbalance worth a cache miss. The
 * load is one that has lasted, so that a moment's fluctuation sends nobody away and calls nobody back. An
 * open connection stays where it is if its URI's own node has too much to do and its node has not, or if its
 * node's disk is idle (stay.h). Without a bound each URI has its one node, whatever that costs.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "inspector/policy/list.h"
#include "inspector/policy/stay.h"

#define ES_BOUND_FLOOR 25.0

struct es_uri_hash {
	struct es_content_hasher *hasher;
	unsigned int bound_percent;
};

/*
 * struct es_bound - @sum: of the load of all targets; @weights: of theirs; @is_open: for an open connection
 */
struct es_bound {
	int is_open;
	double sum;
	double weights;
	unsigned int percent;
};

static void es_uri_hash_free(void *state)
{
	struct es_uri_hash *uh = state;

	if (uh)
		es_content_hasher_free(&uh->hasher);
	free(uh);
}

static int es_uri_hash_new(const struct es_policy_settings *settings, void **ret_state)
{
	struct es_uri_hash *uh = calloc(1, sizeof(*uh));
	int rc;

	if (!uh)
		return -ENOMEM;
	uh->bound_percent = settings->load_bound;
	rc = es_content_hasher_new(&uh->hasher);
	if (rc) {
		es_uri_hash_free(uh);
		return rc;
	}
	*ret_state = uh;
	return 0;
}

/* Requests in hand, not by weight. */
static double es_bound_load(const struct es_bound *bound, const struct es_cluster_view *view,
			    unsigned int node)
{
	double load = bound->is_open ? es_view_settled(view, node, ES_MEASURE_ACTIVE)
				     : es_view_lasting(view, node, ES_MEASURE_ACTIVE);

	return load * view->node[node].weight / 100;
}

static struct es_bound es_bound_of(const struct es_request_view *request, const struct es_cluster_view *view,
				   unsigned int percent)
{
	struct es_bound bound = {.percent = percent, .is_open = request->current >= 0};

	for (unsigned int i = 0; percent && i < view->count; i++) {
		if (!es_view_is_target(request, view, i))
			continue;
		bound.sum += es_bound_load(&bound, view, i);
		bound.weights += view->node[i].weight;
	}
	return bound;
}

/* May @node have @more requests than it has? */
static int es_within_bound(const struct es_bound *bound, const struct es_cluster_view *view,
			   unsigned int node, double more)
{
	double weight = view->node[node].weight;
	/* Rounded up, so that there is always a node with room. */
	double share = ceil((bound->sum + more) * weight / bound->weights * bound->percent / 100.0);
	double floor = ES_BOUND_FLOOR * weight / 100;

	return !bound->percent || es_bound_load(bound, view, node) + more <= (share > floor ? share : floor);
}

/* The first target on the ring at or after @hash that has room; the first one if none has. */
static int es_bound_walk(const struct es_request_view *request, const struct es_cluster_view *view,
			 const struct es_bound *bound, __u64 hash, int *ret_home)
{
	struct es_ring_walk walk;
	int first = -1; /* that begins slowly: if nobody else is there, it takes all */
	__u16 node;

	*ret_home = -1;
	es_ring_walk_init(&walk, view->ring, hash);
	while (es_ring_walk_next(&walk, &node)) {
		if (!es_view_is_target(request, view, node)) {
			es_explain(view, "on the content ring: #%u, which is no target", node);
			continue;
		}
		if (!es_view_takes(view, node, hash)) {
			es_explain(view,
				   "on the content ring: #%u, which begins slowly, with %.0f%% of its share",
				   node, 100 - 100 * view->node[node].withheld);
			first = first < 0 ? node : first;
			continue;
		}
		if (*ret_home < 0)
			*ret_home = node;
		/* The request of a connection that is there is part of its load. */
		if (es_within_bound(bound, view, node, (int)node == request->current ? 0 : 1)) {
			es_explain(view, "on the content ring: #%u", node);
			return node;
		}
		es_explain(
			view,
			"on the content ring: #%u, which has %.1f of %.1f requests, above %u%% of its share",
			node, es_bound_load(bound, view, node), bound->sum, bound->percent);
	}
	if (*ret_home < 0)
		*ret_home = first;
	return *ret_home;
}

static int es_uri_hash_route(void *state, const struct es_request_view *request,
			     const struct es_cluster_view *view)
{
	const struct es_uri_hash *uh = state;
	struct es_bound bound = es_bound_of(request, view, uh->bound_percent);
	int current = request->current, node, home;
	__u64 hash;

	if (es_request_ring_hash(uh->hasher, request, &hash))
		return es_policy_fallback(request, view);
	node = es_bound_walk(request, view, &bound, hash, &home);
	if (node < 0 || node == current || !bound.percent || !es_stay_is_free(request, view))
		return node;
	if (!es_within_bound(&bound, view, (unsigned int)current, 0)) {
		es_explain(
			view,
			"the connection is at #%d, which has %.1f of %.1f requests, above %u%% of its share",
			current, es_bound_load(&bound, view, (unsigned int)current), bound.sum,
			bound.percent);
		es_view_why(view, ES_MOVE_LOAD);
		/* None has room: one as good as the other. */
		return es_within_bound(&bound, view, (unsigned int)node, 1) ? node : current;
	}
	if (node != home) {
		es_explain(view, "the connection is at #%d, which is as good as the next: it stays", current);
		return current;
	}
	return es_stay_may_read(request, view) ? current : node;
}

const struct es_policy es_policy_uri_hash = {
	.name = "uri-hash",
	.description = "the node that owns MD5(URI) on the content ring (DTS Fig. 9)",
	.inspects = 1,
	.needs_loads = ES_LOADS_IF_BOUND,
	.new = es_uri_hash_new,
	.free = es_uri_hash_free,
	.route = es_uri_hash_route,
};
