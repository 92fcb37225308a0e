// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Policy `hylard`: Zhuang, Chiang: HyLARD, section 3 and Fig. 2. Large files are served by one node each
 * (LARD, without its move), others by a set (LARD/R, with its own rules): the least loaded node l joins when
 * the set's least loaded one, n, has M connections more; the connection's previous node o serves if it is in
 * the set and has at most P more than the chosen one, d; after Q seconds without change the most loaded node
 * leaves.
 *
 * Where Fig. 2 is not meant as written: "serverset <- l" for an overloaded set replaces it, while section 2.3
 * has sets grow, so l joins; "leastmod" is lastmod; n is d if it is not overloaded; "o and serverset" is
 * "o is in serverset". A response of unknown size is no large file, unless the threshold is 0, which by
 * section 4.3 is pure LARD. A KB is 1024 bytes. A large file whose size was not known at first may have
 * a set; it shrinks as others do. Connections are counted as for a node of weight 100. Nodes that are away:
 * sets.h.
 *
 * The paper's M is 2. With some dozen connections on a node a set's least loaded one has two more at nearly
 * any moment, so sets grow to all nodes. Unless somebody gives it, M is what LARD has between an idle node
 * and a slow one, T_high - T_low by the nodes' capacity (lard.h).
 */
#include <errno.h>
#include <stdlib.h>
#include "inspector/policy/lard.h"
#include "inspector/policy/list.h"
#include "inspector/policy/sets.h"

struct es_hylard {
	double threshold_bytes;
	double overload;
	double handoff;
	double keep_s;
};

enum { ES_HYLARD_THRESHOLD, ES_HYLARD_M, ES_HYLARD_P, ES_HYLARD_Q };

static const struct es_policy_param es_hylard_params[] = {
	[ES_HYLARD_THRESHOLD] = {"threshold", "KB; files that large are served by one node", 500, 0, 1e9},
	[ES_HYLARD_M] = {"M", "connections more than the least loaded node has: overloaded", 2, 0, 1e6, NULL,
			 1},
	[ES_HYLARD_P] = {"P", "connections more that are no reason to move an open one", 1, -1e6, 1e6},
	[ES_HYLARD_Q] = {"Q", "seconds after which a set that did not change loses a node", 60, 0, 1e6},
	{},
};

static int es_hylard_new(const struct es_policy_settings *settings, void **ret_state)
{
	struct es_hylard *hylard = calloc(1, sizeof(*hylard));

	if (!hylard)
		return -ENOMEM;
	hylard->threshold_bytes = settings->param[ES_HYLARD_THRESHOLD] * 1024;
	hylard->overload = settings->param[ES_HYLARD_M];
	hylard->handoff = settings->param[ES_HYLARD_P];
	hylard->keep_s = settings->param[ES_HYLARD_Q];
	*ret_state = hylard;
	return 0;
}

/* How many requests more has @node than @other? */
static double es_hylard_excess(const struct es_cluster_view *view, int node, int other)
{
	return es_view_at_least(view, (unsigned int)node, ES_MEASURE_ACTIVE) -
	       es_view_at_most(view, (unsigned int)other, ES_MEASURE_ACTIVE);
}

/* M */
static double es_hylard_overload(const struct es_hylard *hylard, const struct es_cluster_view *view)
{
	double low = ES_LARD_LOW, high = ES_LARD_HIGH;

	if (!isnan(hylard->overload))
		return hylard->overload;
	(void)es_lard_measured(view, &low, &high);
	return high - low;
}

/* LARD/R's part: the set's least loaded node, or @least, which joins. */
static void es_hylard_replicate(const struct es_hylard *hylard, const struct es_request_view *request,
				const struct es_cluster_view *view, const struct es_content_set *set,
				int least, struct es_node_set *nodes)
{
	int node = es_set_least(request, view, ES_MEASURE_ACTIVE, nodes);

	if (node == least)
		return;
	if (node >= 0) {
		double excess = es_hylard_excess(view, node, least);
		double overload = es_hylard_overload(hylard, view);

		es_explain(view, "of the set #%d has the least, %.1f requests more than #%d (M = %g)", node,
			   excess, least, overload);
		if (excess < overload || !es_set_may_change(view, set))
			return;
	}
	es_set_change(request, view, ES_CONTENT_ADD, (unsigned int)least, 0);
	es_node_set_add(nodes, (unsigned int)least);
}

static int es_hylard_route(void *state, const struct es_request_view *request,
			   const struct es_cluster_view *view)
{
	const struct es_hylard *hylard = state;
	/*
	 * P: so many requests more are no reason to move an open connection; below 0 there is no such check.
	 */
	const struct es_stay stay = {.cost = hylard->handoff > 0 ? hylard->handoff : 0};
	int least, most;
	struct es_content_set set;
	struct es_node_set nodes;

	if (!es_set_find(request, view, &stay, &set, &least))
		return least;
	nodes = es_set_targets(request, view, set.nodes);
	least = es_set_least(request, view, ES_MEASURE_ACTIVE, NULL);
	if (least < 0)
		return -1;
	if ((double)request->size_bytes >= hylard->threshold_bytes) {
		es_explain(view, "%llu bytes: a large file (threshold = %g KB), for one node",
			   (unsigned long long)request->size_bytes, hylard->threshold_bytes / 1024);
		if (es_node_set_is_empty(nodes)) {
			es_set_change(request, view, ES_CONTENT_MOVE, (unsigned int)least,
				      es_set_first(set.nodes));
			es_node_set_add(&nodes, (unsigned int)least);
		}
	} else {
		es_hylard_replicate(hylard, request, view, &set, least, &nodes);
	}
	most = es_set_most(view, ES_MEASURE_ACTIVE, 0, nodes);
	es_set_shrink(request, view, &set, nodes, most, hylard->keep_s, "Q");
	return hylard->handoff < 0 ? es_stay_pick(request, view, &stay, &nodes)
				   : es_set_serve(request, view, &stay, &set, nodes);
}

const struct es_policy es_policy_hylard = {
	.name = "hylard",
	.description = "LARD for large files, LARD/R for others, few moves (HyLARD, Zhuang and Chiang)",
	.inspects = 1,
	.needs_loads = 1,
	.needs_contents = 1,
	.params = es_hylard_params,
	.new = es_hylard_new,
	.free = free,
	.route = es_hylard_route,
};
