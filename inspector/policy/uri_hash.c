// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Policy `uri-hash`: the node that owns MD5(URI) on the content ring (DTS Fig. 9, line C), so that each file
 * is cached by one node. The URI is the request target's path and query.
 *
 * With a load bound (an addition to the paper; "consistent hashing with bounded loads", Mirrokni et al. 2016)
 * a node that gets more than bound percent of its fair share passes the request on to the next node on the
 * ring. Load is what this worker itself sent within the last seconds; below ES_BOUND_FLOOR requests there is
 * no imbalance worth a cache miss.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "inspector/policy/list.h"

#define ES_BOUND_HALF_LIFE_NS 1e9
#define ES_BOUND_FLOOR	      64.0

struct es_uri_hash {
	struct es_content_hasher *hasher;
	unsigned int bound_percent;
	unsigned int handover_cost;
	double load[ES_NODES_MAX]; /* as of load_ns, halved every half-life */
	double load_sum;
	unsigned long long load_ns;
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
	uh->handover_cost = settings->handover_cost;
	rc = es_content_hasher_new(&uh->hasher);
	if (rc) {
		es_uri_hash_free(uh);
		return rc;
	}
	*ret_state = uh;
	return 0;
}

static void es_load_decay(struct es_uri_hash *uh, unsigned long long now_ns)
{
	double factor;

	if (now_ns - uh->load_ns < (unsigned long long)(ES_BOUND_HALF_LIFE_NS / 50))
		return;
	factor = uh->load_ns ? exp2(-(double)(now_ns - uh->load_ns) / ES_BOUND_HALF_LIFE_NS) : 0;
	for (unsigned int i = 0; i < ES_NODES_MAX; i++)
		uh->load[i] *= factor;
	uh->load_sum *= factor;
	uh->load_ns = now_ns;
}

static double es_weight_sum(const struct es_request_view *request, const struct es_cluster_view *view)
{
	double sum = 0;

	for (unsigned int i = 0; i < view->count; i++)
		if (es_view_is_target(request, view, i))
			sum += view->node[i].weight;
	return sum;
}

static int es_within_bound(const struct es_uri_hash *uh, const struct es_cluster_view *view,
			   unsigned int node, double weight_sum)
{
	double share = view->node[node].weight / weight_sum;
	double bound = (uh->load_sum + 1) * share * uh->bound_percent / 100.0;

	return uh->load[node] + 1 <= (bound > ES_BOUND_FLOOR ? bound : ES_BOUND_FLOOR);
}

static int es_uri_hash_route(void *state, const struct es_request_view *request,
			     const struct es_cluster_view *view)
{
	struct es_uri_hash *uh = state;
	double weight_sum = 0;
	struct es_ring_walk walk;
	int first = -1;
	__u64 hash;
	__u16 node;

	if (es_content_ring_hash(uh->hasher, request->uri, request->uri_len, &hash))
		return es_policy_fallback(request, view);
	if (uh->bound_percent) {
		if (!view->explain)
			es_load_decay(uh, view->now_ns);
		weight_sum = es_weight_sum(request, view);
	}
	es_ring_walk_init(&walk, view->ring, hash);
	while (es_ring_walk_next(&walk, &node)) {
		if (!es_view_is_target(request, view, node)) {
			es_explain(view, "on the content ring: #%u, which is no target", node);
			continue;
		}
		if (first < 0)
			first = node;
		if (!uh->bound_percent || es_within_bound(uh, view, node, weight_sum)) {
			es_explain(view, "on the content ring: #%u", node);
			first = node;
			break;
		}
		es_explain(
			view,
			"on the content ring: #%u, which has %.0f of %.0f requests, above %u%% of its share",
			node, uh->load[node], uh->load_sum, uh->bound_percent);
		/* The URI's own node has enough: any other is as good, so an open connection stays. */
		if (request->current >= 0 && uh->handover_cost &&
		    es_view_is_target(request, view, (unsigned int)request->current) &&
		    es_within_bound(uh, view, (unsigned int)request->current, weight_sum)) {
			es_explain(view, "the connection is at #%d, which is as good as the next",
				   request->current);
			first = request->current;
			break;
		}
	}
	if (first >= 0 && uh->bound_percent && !view->explain) {
		uh->load[first]++;
		uh->load_sum++;
	}
	return first;
}

const struct es_policy es_policy_uri_hash = {
	.name = "uri-hash",
	.description = "the node that owns MD5(URI) on the content ring (DTS Fig. 9)",
	.inspects = 1,
	.new = es_uri_hash_new,
	.free = es_uri_hash_free,
	.route = es_uri_hash_route,
};
