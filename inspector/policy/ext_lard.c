// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Policy `ext-lard`: extended LARD, Aron, Druschel, Zwaenepoel 1999, "Efficient Support for P-HTTP in
 * Cluster-Based Web Servers", the section on policies and its Figure 4.
 *
 * A connection's first request goes to the node with the lowest cost, the sum of
 *
 *	cost_balancing    0 below L_idle, infinite above L_overload, else load - L_idle
 *	cost_locality     1 if the content is mapped to the node, else miss_cost
 *	cost_replacement  0 below L_idle or if it is mapped, else miss_cost
 *
 * and the content is mapped to that node from then on. A later request is served by the connection's node if
 * it has the content, or if its disk is idle, in which case it has the content from then on. Else the costs
 * of that node and of those that have the content are compared; if the connection's wins, it serves without
 * being mapped to, as its cache is taken to be thrashing.
 *
 * Sure, read in the paper: the decision, the three costs' meaning, L_idle 30, L_overload 130, miss_cost 50.
 * From memory: the costs' exact cases as above, and that "idle" was a queue of fewer than 5 disk events; we
 * know the share of time in which the disk was busy, so disk_idle and its 0.3 are ours. Load is requests in
 * progress for a node of weight 100.
 *
 * Deviations: where the paper has the connection's node fetch from the other one (back-end forwarding), we
 * move the connection, so a later request for content that no node has is treated as a first one, and so is
 * one whose connection's node may not be given it. The paper drops a mapping when it assumes that the node
 * has dropped the file; we have LARD/R's K instead: a set of several that did not change for K seconds loses
 * its most loaded node. The 1/N load of pipelined requests is the caller's estimate of load. If all costs are
 * infinite, or some equal, the least loaded of those serves. Nodes that are away: sets.h.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "inspector/policy/list.h"
#include "inspector/policy/sets.h"

struct es_ext_lard {
	double idle;
	double overload;
	double miss_cost;
	double disk_idle;
	double keep_s;
};

enum { ES_EXT_L_IDLE, ES_EXT_L_OVERLOAD, ES_EXT_MISS_COST, ES_EXT_DISK_IDLE, ES_EXT_K };

static const struct es_policy_param es_ext_lard_params[] = {
	[ES_EXT_L_IDLE] = {"L_idle", "a node with fewer requests has resources to spare", 30, 0, 1e6,
			   "L_overload"},
	[ES_EXT_L_OVERLOAD] = {"L_overload", "a node with more requests is given none", 130, 1, 1e6},
	[ES_EXT_MISS_COST] = {"miss_cost", "what a cache miss costs, in cached requests", 50, 0, 1e6},
	[ES_EXT_DISK_IDLE] = {"disk_idle", "a disk that was busy for a smaller share of the time is idle",
			      0.3, 0, 1},
	[ES_EXT_K] = {"K", "seconds after which a set that did not change loses a node", 20, 0, 1e6},
	{},
};

static int es_ext_lard_new(const struct es_policy_settings *settings, void **ret_state)
{
	struct es_ext_lard *ext = calloc(1, sizeof(*ext));

	if (!ext)
		return -ENOMEM;
	ext->idle = settings->param[ES_EXT_L_IDLE];
	ext->overload = settings->param[ES_EXT_L_OVERLOAD];
	ext->miss_cost = settings->param[ES_EXT_MISS_COST];
	ext->disk_idle = settings->param[ES_EXT_DISK_IDLE];
	ext->keep_s = settings->param[ES_EXT_K];
	*ret_state = ext;
	return 0;
}

static double es_ext_cost(const struct es_ext_lard *ext, const struct es_cluster_view *view,
			  unsigned int node, int is_mapped)
{
	double load = es_view_measure(view, node, ES_MEASURE_ACTIVE);
	double balancing = load < ext->idle ? 0 : load > ext->overload ? (double)INFINITY : load - ext->idle;
	double locality = is_mapped ? 1 : ext->miss_cost;
	double replacement = load < ext->idle || is_mapped ? 0 : ext->miss_cost;

	return balancing + locality + replacement;
}

/* The node of @among (NULL: of all) with the lowest cost. @mapped: those that have the content. */
static int es_ext_cheapest(const struct es_ext_lard *ext, const struct es_request_view *request,
			   const struct es_cluster_view *view, const struct es_node_set *among,
			   struct es_node_set mapped)
{
	struct es_node_set cheapest = {};
	double least = INFINITY;
	int node;

	for (unsigned int i = 0; i < view->count; i++) {
		double cost;

		if (!es_view_is_target(request, view, i) || (among && !es_node_set_has(*among, i)))
			continue;
		cost = es_ext_cost(ext, view, i, es_node_set_has(mapped, i));
		if (cost < least)
			cheapest = (struct es_node_set){};
		if (cost <= least) {
			es_node_set_add(&cheapest, i);
			least = cost;
		}
	}
	node = es_policy_least(request, view, ES_MEASURE_ACTIVE, &cheapest);
	if (node >= 0)
		es_explain(view, "#%d, with %.1f requests, has the lowest cost: %.1f", node,
			   es_view_measure(view, (unsigned int)node, ES_MEASURE_ACTIVE), least);
	return node;
}

/* A request on a connection that is at @current, a target that does not have the file. */
static int es_ext_later(const struct es_ext_lard *ext, const struct es_request_view *request,
			const struct es_cluster_view *view, struct es_node_set nodes, int *ret_is_mapped)
{
	unsigned int current = (unsigned int)request->current;
	struct es_node_set among = nodes;
	double disk = view->node[current].disk;

	if (es_view_may_read(view, current, ext->disk_idle)) {
		es_explain(
			view,
			"the connection's #%u does not have it, but its disk is idle: %.2f (disk_idle = %g)",
			current, disk, ext->disk_idle);
		*ret_is_mapped = 1;
		return request->current;
	}
	if (disk < ext->disk_idle)
		es_explain(view, "the connection's #%u does not have it, nor has its disk", current);
	else
		es_explain(
			view,
			"the connection's #%u does not have it, and its disk is busy: %.2f (disk_idle = %g)",
			current, disk, ext->disk_idle);
	if (es_node_set_is_empty(nodes)) {
		*ret_is_mapped = 1;
		return es_ext_cheapest(ext, request, view, NULL, nodes);
	}
	es_node_set_add(&among, current);
	*ret_is_mapped = 0;
	return es_ext_cheapest(ext, request, view, &among, nodes);
}

static int es_ext_lard_route(void *state, const struct es_request_view *request,
			     const struct es_cluster_view *view)
{
	const struct es_ext_lard *ext = state;
	struct es_node_set nodes = {};
	struct es_content_set set;
	int found, node, most, is_mapped = 1;

	found = es_set_lookup(request, view, &set);
	if (found < 0)
		return es_policy_least(request, view, ES_MEASURE_ACTIVE, NULL);
	if (found)
		nodes = es_set_targets(request, view, set.nodes);
	if (request->current < 0 || !es_view_is_target(request, view, (unsigned int)request->current)) {
		node = es_ext_cheapest(ext, request, view, NULL, nodes);
	} else if (es_node_set_has(nodes, (unsigned int)request->current)) {
		node = request->current;
		es_explain(view, "the connection's #%d has it", node);
	} else {
		node = es_ext_later(ext, request, view, nodes, &is_mapped);
	}
	if (node < 0)
		return -1;
	most = es_set_most(view, ES_MEASURE_ACTIVE, 0, nodes);
	if (is_mapped && !es_node_set_has(nodes, (unsigned int)node)) {
		es_set_change(request, view, found ? ES_CONTENT_ADD : ES_CONTENT_ASSIGN, (unsigned int)node,
			      0);
		es_node_set_add(&nodes, (unsigned int)node);
	}
	if (found)
		es_set_shrink(request, view, &set, nodes, most, ext->keep_s, "K");
	return node;
}

const struct es_policy es_policy_ext_lard = {
	.name = "ext-lard",
	.description = "LARD that keeps a connection where the disk is idle (extLARD, Aron et al. 1999)",
	.inspects = 1,
	.needs_loads = 1,
	.needs_contents = 1,
	.params = es_ext_lard_params,
	.new = es_ext_lard_new,
	.free = free,
	.route = es_ext_lard_route,
};
