// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Policy `cawll`: content-aware weighted least load, LVS-CAD section 5.1. The node with the least load by
 * weight, where load is what the requests in progress cost, by content, and not how many they are.
 *
 * In the paper, the cost of moving a connection does not count (CAHRD has that); here handover_cost does, in
 * requests that cost as much as this one. The load is that before the request. If nodes have the same load,
 * the one that has the connection serves.
 */
#include "inspector/policy/list.h"
#include "inspector/policy/lvs_cad.h"

int es_least_if_given(const struct es_request_view *request, const struct es_cluster_view *view, double cost,
		      double handoff_cost, const struct es_node_set *among)
{
	const struct es_stay stay = {.measure = ES_MEASURE_LOAD, .add = cost, .cost = handoff_cost};

	return es_stay_pick(request, view, &stay, among);
}

int es_cawll_pick(const struct es_request_view *request, const struct es_cluster_view *view,
		  double handoff_cost)
{
	int node = es_least_if_given(request, view, 0, handoff_cost, NULL);

	if (node >= 0 && handoff_cost > 0)
		es_explain(view, "#%d has the least load with the handoff cost of %g: %.1f", node,
			   handoff_cost,
			   es_load_if_given(request, view, (unsigned int)node, 0, handoff_cost));
	else if (node >= 0)
		es_explain(view, "#%d has the least load: %.1f", node,
			   es_view_measure(view, (unsigned int)node, ES_MEASURE_LOAD));
	return node;
}

static int es_cawll_route(void *state, const struct es_request_view *request,
			  const struct es_cluster_view *view)
{
	(void)state;
	/* A request as this one is what handover_cost counts in. */
	return es_cawll_pick(request, view, es_stay_requests(view).cost * request->cost);
}

const struct es_policy es_policy_cawll = {
	.name = "cawll",
	.description = "the least load, as the requests' costs (CAWLL, LVS-CAD section 5.1)",
	.inspects = 1,
	.needs_loads = 1,
	.route = es_cawll_route,
};
