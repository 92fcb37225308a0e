// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Policy `lard-r`: LARD with replication, Pai et al. 1998 (Figure 3). A set of nodes serves some content; the
 * least loaded of them, n, is chosen. Where LARD would move the content, the least loaded node of all joins
 * the set and is chosen. A set of several nodes that was not changed for more than K seconds loses the most
 * loaded one.
 *
 * As published, the most loaded node is the one before a node joined, and lastMod is written last: an old set
 * of one node that is too busy moves, as with LARD, and grows only when it is too busy again within K. Load,
 * nodes that are away, connections that are open: lard.c, sets.h, stay.h.
 */
#include <stdlib.h>
#include "inspector/policy/lard.h"
#include "inspector/policy/list.h"

static const struct es_policy_param es_lard_r_params[] = {
	[ES_LARD_T_LOW] = {"T_low", "a node with fewer requests has resources to spare", ES_LARD_LOW, 0, 1e6,
			   "T_high", 1},
	[ES_LARD_T_HIGH] = {"T_high", "a node with more requests is slow", ES_LARD_HIGH, 1, 1e6, NULL, 1},
	[ES_LARD_K] = {"K", "seconds after which a set that did not change loses a node", 20, 0, 1e6},
	{},
};

static int es_lard_r_route(void *state, const struct es_request_view *request,
			   const struct es_cluster_view *view)
{
	const struct es_stay stay = es_stay_requests(view);
	int least, node, most;
	const struct es_lard now = es_lard_now(state, view), *lard = &now;
	struct es_content_set set;
	struct es_node_set nodes;

	if (!es_set_find(request, view, &stay, &set, &least))
		return least;
	nodes = es_set_targets(request, view, set.nodes);
	node = es_set_least(request, view, ES_MEASURE_ACTIVE, &nodes);
	least = es_set_least(request, view, ES_MEASURE_ACTIVE, NULL);
	if (least < 0)
		return -1;
	most = es_set_most(view, ES_MEASURE_ACTIVE, 0, nodes);
	if (node < 0 || (es_lard_is_imbalance(lard, view, (unsigned int)node, (unsigned int)least) &&
			 es_set_may_change(view, &set))) {
		es_set_change(request, view, ES_CONTENT_ADD, (unsigned int)least, 0);
		es_node_set_add(&nodes, (unsigned int)least);
	}
	es_set_shrink(request, view, &set, nodes, most, lard->keep_s, "K");
	return es_set_serve(request, view, &stay, &set, nodes);
}

const struct es_policy es_policy_lard_r = {
	.name = "lard-r",
	.description = "a set of nodes serves some content, as large as it needs (LARD/R, Pai et al. 1998)",
	.inspects = 1,
	.needs_loads = 1,
	.needs_contents = 1,
	.params = es_lard_r_params,
	.new = es_lard_new,
	.free = free,
	.route = es_lard_r_route,
};
