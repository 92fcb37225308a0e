// SPDX-License-Identifier: GPL-2.0-or-later
/* Steps on server sets that the LARD family shares: look up, find the least loaded, grow, shrink. */
#include <stdio.h>
#include "inspector/policy/sets.h"

static double es_set_age_s(const struct es_cluster_view *view, const struct es_content_set *set)
{
	/* Another thread, with a later clock, may have been here. */
	return view->now_ns > set->changed_ns ? (double)(view->now_ns - set->changed_ns) / 1e9 : 0;
}

static void es_set_explain(const struct es_cluster_view *view, const struct es_content_set *set)
{
	char text[ES_EXPLAIN_STEP_SIZE];
	size_t at = 0;

	text[0] = '\0';
	for (unsigned int i = 0; i < ES_NODES_MAX && at + 8 < sizeof(text); i++)
		if (es_node_set_has(set->nodes, i))
			at += (size_t)snprintf(text + at, sizeof(text) - at, " #%u", i);
	es_explain(view, "its set, unchanged for %.1f s:%s", es_set_age_s(view, set), text);
}

int es_set_lookup(const struct es_request_view *request, const struct es_cluster_view *view,
		  struct es_content_set *ret_set)
{
	int found;

	if (!view->contents || !request->content) {
		es_explain(view, "no server set can be known: the least loaded");
		return -1;
	}
	found = view->explain ? es_contents_peek(view->contents, request->content, ret_set)
			      : es_contents_get(view->contents, request->content, ret_set);
	if (view->explain && found)
		es_set_explain(view, ret_set);
	return found;
}

struct es_node_set es_set_targets(const struct es_request_view *request, const struct es_cluster_view *view,
				  struct es_node_set nodes)
{
	for (unsigned int i = 0; i < ES_NODES_MAX; i++) {
		if (!es_node_set_has(nodes, i) || es_view_is_target(request, view, i))
			continue;
		es_explain(view, "of its set #%u is no target", i);
		es_node_set_remove(&nodes, i);
	}
	return nodes;
}

int es_set_may_change(const struct es_cluster_view *view, const struct es_content_set *set)
{
	if (!es_view_settle_ms(view) || view->now_ns - set->changed_ns >= ES_SET_REST_NS ||
	    !es_node_set_count(set->nodes))
		return 1;
	es_explain(view, "the set has changed %.2f s ago, and rests for %.0f s", es_set_age_s(view, set),
		   (double)ES_SET_REST_NS / 1e9);
	return 0;
}

int es_set_least(const struct es_request_view *request, const struct es_cluster_view *view,
		 enum es_measure measure, const struct es_node_set *among)
{
	return es_policy_least_by(request, view, es_view_at_most, measure, among);
}

int es_set_serve(const struct es_request_view *request, const struct es_cluster_view *view,
		 const struct es_stay *stay, const struct es_content_set *set, struct es_node_set nodes)
{
	int is_recent = view->now_ns < set->former_ns || view->now_ns - set->former_ns < ES_CONTENT_FORMER_NS;
	struct es_node_set former = is_recent ? set->former : (struct es_node_set){};
	int node;

	if (es_node_set_is_empty(nodes))
		return -1;
	node = es_stay_among(request, view, stay, nodes, former);
	if (!is_recent && request->current >= 0 && node != request->current &&
	    es_node_set_has(set->former, (unsigned int)request->current))
		es_view_why(view, ES_MOVE_HOME);
	return node;
}

unsigned int es_set_first(struct es_node_set nodes)
{
	unsigned int i = 0;

	while (i < ES_NODES_MAX - 1 && !es_node_set_has(nodes, i))
		i++;
	return i;
}

void es_set_change(const struct es_request_view *request, const struct es_cluster_view *view,
		   enum es_content_op op, unsigned int node, unsigned int from)
{
	if (!view->explain) {
		es_contents_propose(view->contents, request->content, op, node, from, view->now_ns);
		return;
	}
	switch (op) {
	case ES_CONTENT_ASSIGN:
		es_explain(view, "it has no set yet: #%u", node);
		break;
	case ES_CONTENT_ADD:
		es_explain(view, "#%u joins the set", node);
		break;
	case ES_CONTENT_REMOVE:
		es_explain(view, "#%u leaves the set", node);
		break;
	case ES_CONTENT_MOVE:
		es_explain(view, "in the set, #%u takes the place of #%u", node, from);
		break;
	default:
		break;
	}
}

int es_set_find(const struct es_request_view *request, const struct es_cluster_view *view,
		const struct es_stay *stay, struct es_content_set *ret_set, int *ret_node)
{
	int found = es_set_lookup(request, view, ret_set);

	if (found > 0)
		return 1;
	*ret_node = es_stay_pick(request, view, stay, NULL);
	if (!found && *ret_node >= 0)
		es_set_change(request, view, ES_CONTENT_ASSIGN, (unsigned int)*ret_node, 0);
	return 0;
}

int es_set_most(const struct es_cluster_view *view, enum es_measure measure, double more,
		struct es_node_set nodes)
{
	double most = 0;
	int best = -1;

	for (unsigned int i = 0; i < view->count; i++) {
		double value;

		if (!es_node_set_has(nodes, i))
			continue;
		value = es_view_measure(view, i, measure) + more * 100 / view->node[i].weight;
		if (best < 0 || value > most) {
			best = (int)i;
			most = value;
		}
	}
	return best;
}

void es_set_shrink(const struct es_request_view *request, const struct es_cluster_view *view,
		   const struct es_content_set *set, struct es_node_set nodes, int most, double keep_s,
		   const char *keep_name)
{
	if (es_node_set_count(nodes) < 2 || most < 0 || es_set_age_s(view, set) <= keep_s)
		return;
	es_explain(view, "the set was not changed for more than %s = %g s, and #%d has the most to do",
		   keep_name, keep_s, most);
	es_set_change(request, view, ES_CONTENT_REMOVE, (unsigned int)most, 0);
}
