// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Policy `lard`: Pai et al. 1998, "Locality-Aware Request Distribution in Cluster-based Network Servers", the
 * basic algorithm (Figure 2): one node serves a URI's content, the least loaded one when it is first asked
 * for. It goes to the least loaded node again when (n.load > T_high and some node has less than T_low) or
 * n.load >= 2 * T_high; but not to one that has as much to do.
 *
 * Load is requests in progress, for a node of weight 100. Beyond the paper: T_low and T_high follow from the
 * nodes' measured capacity, unless somebody gives them, since 25 and 65 were those of the paper's machines.
 * Content whose node may not be given the request goes to the least loaded one. An imbalance counts only when
 * it has lasted, and content that has just moved rests (sets.h); what is open stays or follows by the rule of
 * stay.h. If a set has several nodes, as another policy had left them, the least loaded of them is n. The
 * paper bounds what is admitted to the cluster, (count - 1) * T_high + T_low - 1 connections, so that not all
 * nodes can pass 2 * T_high; that is not for a policy to do.
 */
#include <errno.h>
#include <stdlib.h>
#include "inspector/policy/lard.h"
#include "inspector/policy/list.h"

static const struct es_policy_param es_lard_params[] = {
	[ES_LARD_T_LOW] = {"T_low", "a node with fewer requests has resources to spare", ES_LARD_LOW, 0, 1e6,
			   "T_high", 1},
	[ES_LARD_T_HIGH] = {"T_high", "a node with more requests is slow", ES_LARD_HIGH, 1, 1e6, NULL, 1},
	[ES_LARD_K] = {},
};

int es_lard_new(const struct es_policy_settings *settings, void **ret_state)
{
	struct es_lard *lard = calloc(1, sizeof(*lard));

	if (!lard)
		return -ENOMEM;
	lard->low = settings->param[ES_LARD_T_LOW];
	lard->high = settings->param[ES_LARD_T_HIGH];
	lard->keep_s = settings->param[ES_LARD_K];
	*ret_state = lard;
	return 0;
}

static int compare_doubles(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int es_lard_measured(const struct es_cluster_view *view, double *ret_low, double *ret_high)
{
	double known[ES_NODES_MAX];
	unsigned int count = 0;

	for (unsigned int i = 0; i < view->count; i++) {
		const struct es_node_view *node = &view->node[i];

		if (node->is_target && node->weight > 0 && node->capacity > 0)
			known[count++] = node->capacity * 100 / node->weight;
	}
	if (!count)
		return -1;
	qsort(known, count, sizeof(known[0]), compare_doubles);
	*ret_low = known[(count - 1) / 2];
	if (*ret_low < ES_LARD_LOW_MIN)
		*ret_low = ES_LARD_LOW_MIN;
	*ret_high = *ret_low * ES_LARD_SLOW;
	return 0;
}

struct es_lard es_lard_now(const struct es_lard *lard, const struct es_cluster_view *view)
{
	double low = ES_LARD_LOW, high = ES_LARD_HIGH;
	struct es_lard now = *lard;

	if (!isnan(lard->low) && !isnan(lard->high))
		return now;
	if (es_lard_measured(view, &low, &high))
		es_explain(view, "no node's capacity is known: T_low = %g, T_high = %g", low, high);
	else
		es_explain(view, "by the nodes' capacity, T_low = %.1f and T_high = %.1f", low, high);
	/* If one is given, the other goes no further than that. */
	if (isnan(lard->low))
		now.low = isnan(lard->high) || low < lard->high ? low : lard->high;
	if (isnan(lard->high))
		now.high = high > now.low ? high : now.low;
	return now;
}

int es_lard_is_imbalance(const struct es_lard *lard, const struct es_cluster_view *view, unsigned int node,
			 unsigned int least)
{
	double load = es_view_at_least(view, node, ES_MEASURE_ACTIVE);
	double idle = es_view_at_most(view, least, ES_MEASURE_ACTIVE);

	if (idle >= load) {
		es_explain(view, "#%u has %.1f requests, and no node has fewer", node, load);
		return 0;
	}
	if (load >= 2 * lard->high) {
		es_explain(view, "#%u has %.1f requests, 2 * T_high = %g or more; #%u has the least, %.1f",
			   node, load, 2 * lard->high, least, idle);
		return 1;
	}
	if (load > lard->high && idle < lard->low) {
		es_explain(view, "#%u has %.1f requests, above T_high = %g, and #%u %.1f, below T_low = %g",
			   node, load, lard->high, least, idle, lard->low);
		return 1;
	}
	es_explain(view, "#%u has %.1f requests (T_high = %g), #%u %.1f (T_low = %g): no imbalance", node,
		   load, lard->high, least, idle, lard->low);
	return 0;
}

/*
 * The connection's node, if it has resources to spare: a home that has too much to do does not send for what
 * is there.
 */
static struct es_node_set es_lard_spared(const struct es_lard *lard, const struct es_request_view *request,
					 const struct es_cluster_view *view)
{
	struct es_node_set spared = {};
	int current = request->current;

	if (current >= 0 && es_view_settle_ms(view) &&
	    es_view_is_target(request, view, (unsigned int)current) &&
	    es_view_lasting(view, (unsigned int)current, ES_MEASURE_ACTIVE) < lard->low)
		es_node_set_add(&spared, (unsigned int)current);
	return spared;
}

static int es_lard_route(void *state, const struct es_request_view *request,
			 const struct es_cluster_view *view)
{
	const struct es_stay stay = es_stay_requests(view);
	int least, node;
	const struct es_lard now = es_lard_now(state, view), *lard = &now;
	struct es_node_set nodes, homes = {};
	struct es_content_set set;

	if (!es_set_find(request, view, &stay, &set, &least))
		return least;
	nodes = es_set_targets(request, view, set.nodes);
	node = es_set_least(request, view, ES_MEASURE_ACTIVE, &nodes);
	least = es_set_least(request, view, ES_MEASURE_ACTIVE, NULL);
	if (least < 0)
		return -1;
	if (node >= 0) {
		if (!es_lard_is_imbalance(lard, view, (unsigned int)node, (unsigned int)least))
			return es_set_serve(request, view, &stay, &set, nodes);
		if (!es_set_may_change(view, &set)) {
			struct es_node_set spared = es_lard_spared(lard, request, view);

			for (unsigned int i = 0; i < ES_NODES_MAX / 64; i++)
				set.former.bits[i] |= spared.bits[i];
			return es_set_serve(request, view, &stay, &set, nodes);
		}
	}
	es_set_change(request, view, ES_CONTENT_MOVE, (unsigned int)least,
		      node >= 0 ? (unsigned int)node : es_set_first(set.nodes));
	es_node_set_add(&homes, (unsigned int)least);
	return es_stay_among(request, view, &stay, homes, nodes);
}

const struct es_policy es_policy_lard = {
	.name = "lard",
	.description = "one node serves some content, unless it gets too busy (LARD, Pai et al. 1998)",
	.inspects = 1,
	.needs_loads = 1,
	.needs_contents = 1,
	.params = es_lard_params,
	.new = es_lard_new,
	.free = free,
	.route = es_lard_route,
};
