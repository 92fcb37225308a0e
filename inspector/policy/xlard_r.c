// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Policy `xlard-r`: LARD/R with the costs of a handoff and of a disk access, LVS-CAD section 5.2, Figs.
 *13, 14. The numbers in the code are the lines of Fig. 14.
 *
 *	load_A = load + request cost + handoff cost, 0 for the node that has the connection
 *	load_B = load_A + disk cost * request cost
 *	load_C = load + request cost
 *
 * By the text where the figure is garbled or says other: lines 7 and 8 are one condition, an overloaded n and
 * a lightly loaded l; line 10 adds p to the set; lines 12 to 15 are done for new sets too, where they do
 * nothing. The figure takes load_B for all nodes alike, in the set or not. lastMod is written last: an old
 * set may gain p and lose m.
 *
 * n.weight in line 8, the load that means overloaded, is the parameter capacity, in costs, for a node of
 * weight 100; all loads are scaled to that weight. The paper gives no value. The default is LARD's T_high of
 *65 requests times 10 packets, which section 6.1's mean page of 13 kB takes. Nodes that are away: sets.h.
 */
#include <errno.h>
#include <stdlib.h>
#include "inspector/policy/list.h"
#include "inspector/policy/lvs_cad.h"
#include "inspector/policy/sets.h"

enum { ES_XLARD_HANDOFF, ES_XLARD_DISK, ES_XLARD_CAPACITY, ES_XLARD_K };

const struct es_policy_param es_xlard_r_params[] = {
	[ES_XLARD_HANDOFF] = {"handoff_cost", "what moving a connection costs, in packets", 20, 0, 1e9},
	[ES_XLARD_DISK] = {"disk_cost", "what reading from disk costs, times the request's cost", 10, 0, 1e6},
	[ES_XLARD_CAPACITY] = {"capacity", "the load, in packets, above which a node is overloaded", 650, 1,
			       1e9},
	[ES_XLARD_K] = {"K", "seconds after which a set that did not change loses a node", 20, 0, 1e6},
	{},
};

int es_xlard_r_new(const struct es_policy_settings *settings, void **ret_state)
{
	struct es_xlard_r *xlard = calloc(1, sizeof(*xlard));

	if (!xlard)
		return -ENOMEM;
	xlard->handoff_cost = settings->param[ES_XLARD_HANDOFF];
	xlard->disk_cost = settings->param[ES_XLARD_DISK];
	xlard->capacity = settings->param[ES_XLARD_CAPACITY];
	xlard->keep_s = settings->param[ES_XLARD_K];
	*ret_state = xlard;
	return 0;
}

/* The least of those that may have it anew: p. */
static int es_least_b(const struct es_xlard_r *xlard, const struct es_request_view *request,
		      const struct es_cluster_view *view)
{
	const struct es_stay stay = {
		.is_of_set = 1,
		.measure = ES_MEASURE_LOAD,
		.add = request->cost * (1 + xlard->disk_cost),
		.cost = xlard->handoff_cost,
	};

	return es_stay_pick(request, view, &stay, NULL);
}

/* 8: is @node overloaded, and another one light? */
static int es_xlard_is_imbalance(const struct es_xlard_r *xlard, const struct es_request_view *request,
				 const struct es_cluster_view *view, unsigned int node)
{
	double cost = request->cost + ((int)node == request->current ? 0 : xlard->handoff_cost);
	double load = es_view_at_least(view, node, ES_MEASURE_LOAD) + cost * 100 / view->node[node].weight;
	const struct es_stay stay = {.is_of_set = 1, .measure = ES_MEASURE_LOAD, .add = request->cost};
	int light;

	es_explain(view, "of the set #%u has the least load_A: %.1f (capacity = %g)", node, load,
		   xlard->capacity);
	if (load <= xlard->capacity)
		return 0;
	light = es_stay_pick(request, view, &stay, NULL);
	load = es_view_at_most(view, (unsigned int)light, ES_MEASURE_LOAD) +
	       request->cost * 100.0 / view->node[light].weight;
	es_explain(view, "overloaded; #%d has the least load_C of all: %.1f (capacity / 2 = %g)", light, load,
		   xlard->capacity / 2);
	return load < xlard->capacity / 2;
}

int es_xlard_r_pick(const struct es_xlard_r *xlard, const struct es_request_view *request,
		    const struct es_cluster_view *view)
{
	const struct es_stay stay = {
		.measure = ES_MEASURE_LOAD, .add = request->cost, .cost = xlard->handoff_cost};
	const struct es_stay of_set = {
		.is_of_set = 1, .measure = stay.measure, .add = stay.add, .cost = stay.cost};
	struct es_content_set set;
	struct es_node_set nodes;
	int found, node, p, most;

	p = es_least_b(xlard, request, view);
	if (p < 0)
		return -1;
	found = es_set_lookup(request, view, &set);
	if (found < 0)
		return es_policy_least(request, view, ES_MEASURE_LOAD, NULL);
	if (!found) {
		es_set_change(request, view, ES_CONTENT_ASSIGN, (unsigned int)p, 0); /* 3, 4 */
		return p;
	}
	nodes = es_set_targets(request, view, set.nodes);
	node = es_stay_pick(request, view, &of_set, &nodes);				    /* 6 */
	if (node < 0 || (es_xlard_is_imbalance(xlard, request, view, (unsigned int)node) && /* 7, 8 */
			 es_set_may_change(view, &set))) {
		if (!es_node_set_has(nodes, (unsigned int)p))
			es_set_change(request, view, ES_CONTENT_ADD, (unsigned int)p, 0); /* 9 to 11 */
		es_node_set_add(&nodes, (unsigned int)p);
		node = p;
	} else {
		node = es_set_serve(request, view, &stay, &set, nodes);
	}
	most = es_set_most(view, ES_MEASURE_LOAD, request->cost, nodes); /* 12 to 15 */
	es_set_shrink(request, view, &set, nodes, most, xlard->keep_s, "K");
	return node;
}

static int es_xlard_r_route(void *state, const struct es_request_view *request,
			    const struct es_cluster_view *view)
{
	return es_xlard_r_pick(state, request, view);
}

const struct es_policy es_policy_xlard_r = {
	.name = "xlard-r",
	.description = "LARD/R with the costs of handoff and disk (xLARD/R, LVS-CAD section 5.2)",
	.inspects = 1,
	.needs_loads = 1,
	.needs_contents = 1,
	.params = es_xlard_r_params,
	.new = es_xlard_r_new,
	.free = free,
	.route = es_xlard_r_route,
};
