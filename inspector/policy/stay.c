// SPDX-License-Identifier: GPL-2.0-or-later
/* Compares the connection's node with the others. Which those are is the policies' matter. */
#include <math.h>
#include "inspector/policy/stay.h"

double es_view_lasting(const struct es_cluster_view *view, unsigned int node, enum es_measure measure)
{
	const struct es_node_view *n = &view->node[node];

	if (!es_view_settle_ms(view))
		return es_view_measure(view, node, measure);
	return (measure == ES_MEASURE_ACTIVE ? n->active_lasting : n->load_lasting) * 100 / n->weight;
}

double es_view_settled(const struct es_cluster_view *view, unsigned int node, enum es_measure measure)
{
	const struct es_node_view *n = &view->node[node];

	if (!es_view_settle_ms(view))
		return es_view_measure(view, node, measure);
	return (measure == ES_MEASURE_ACTIVE ? n->active_settled : n->load_settled) * 100 / n->weight;
}

double es_view_at_least(const struct es_cluster_view *view, unsigned int node, enum es_measure measure)
{
	return fmin(es_view_lasting(view, node, measure), es_view_measure(view, node, measure));
}

double es_view_at_most(const struct es_cluster_view *view, unsigned int node, enum es_measure measure)
{
	return fmax(es_view_lasting(view, node, measure), es_view_measure(view, node, measure));
}

static double es_stay_value(const struct es_request_view *request, const struct es_cluster_view *view,
			    const struct es_stay *stay, unsigned int node, double cost)
{
	double load = stay->is_of_set	     ? es_view_at_most(view, node, stay->measure)
		      : request->current < 0 ? es_view_measure(view, node, stay->measure)
					     : es_view_settled(view, node, stay->measure);

	return load +
	       (stay->add + ((int)node == request->current ? 0 : cost)) * 100 / view->node[node].weight;
}

/* The least of @among, where others than the connection's pay @cost; @ret_mean: of all of them. */
static int es_stay_least(const struct es_request_view *request, const struct es_cluster_view *view,
			 const struct es_stay *stay, const struct es_node_set *among, double cost,
			 double *ret_mean)
{
	unsigned int start = view->count ? (unsigned int)(request->content % view->count) : 0, found = 0;
	double least = 0, sum = 0;
	int best = -1;

	for (unsigned int i = 0; i < view->count; i++) {
		unsigned int node = (start + i) % view->count;
		double value;

		if ((among && !es_node_set_has(*among, node)) || !es_view_is_target(request, view, node))
			continue;
		value = es_stay_value(request, view, stay, node, cost);
		if (best < 0 || value < least || (value <= least && (int)node == request->current)) {
			best = (int)node;
			least = value;
		}
		sum += es_view_settled(view, node, stay->measure);
		found++;
	}
	*ret_mean = found ? sum / found : 0;
	return best;
}

int es_stay_pick(const struct es_request_view *request, const struct es_cluster_view *view,
		 const struct es_stay *stay, const struct es_node_set *among)
{
	int current = request->current, best;
	double mean, own, gain, slack = 0;

	if (stay->is_of_set)
		return es_stay_least(request, view, stay, among, stay->cost, &mean);
	if (current < 0 || !es_view_is_target(request, view, (unsigned int)current) ||
	    (among && !es_node_set_has(*among, (unsigned int)current))) {
		best = es_stay_least(request, view, stay, among, stay->cost, &mean);
		if (best >= 0)
			es_explain(view, "#%d has the least to do: %.1f", best,
				   es_stay_value(request, view, stay, (unsigned int)best, 0));
		return best;
	}
	own = es_view_settled(view, (unsigned int)current, stay->measure);
	if (es_view_settle_ms(view))
		slack = own * ES_STAY_SLACK;
	best = es_stay_least(request, view, stay, among, stay->cost + slack, &mean);
	if (best < 0)
		return -1;
	if (best == current && view->explain) {
		/* Which one it was compared with. */
		struct es_request_view other = *request;
		struct es_node_set rest = {};

		for (unsigned int i = 0; i < view->count; i++)
			if ((int)i != current && (!among || es_node_set_has(*among, i)))
				es_node_set_add(&rest, i);
		best = es_stay_least(&other, view, stay, &rest, 0, &gain);
		if (best < 0) {
			es_explain(view, "the connection is at #%d, and no other node will do", current);
			return current;
		}
		gain = es_stay_value(request, view, stay, (unsigned int)current, 0) -
		       es_stay_value(request, view, stay, (unsigned int)best, 0);
		if (gain <= 0)
			es_explain(view, "the connection is at #%d: #%d would be no cheaper: it stays",
				   current, best);
		else
			es_explain(view,
				   "the connection is at #%d: #%d would be %.1f cheaper, a move costs %.1f: "
				   "it stays",
				   current, best, gain, stay->cost + slack);
		return current;
	}
	if (best == current)
		return current;
	gain = es_stay_value(request, view, stay, (unsigned int)current, 0) -
	       es_stay_value(request, view, stay, (unsigned int)best, 0);
	if (es_view_settle_ms(view) && own <= mean) {
		es_explain(
			view,
			"the connection is at #%d: #%d would be %.1f cheaper, but #%d has no more than the "
			"mean, %.1f: it stays",
			current, best, gain, current, mean);
		return current;
	}
	es_explain(view, "the connection is at #%d: #%d would be %.1f cheaper, a move costs %.1f: it moves",
		   current, best, gain, stay->cost + slack);
	es_view_why(view, ES_MOVE_LOAD);
	return best;
}

struct es_stay es_stay_requests(const struct es_cluster_view *view)
{
	return (struct es_stay){
		.measure = ES_MEASURE_ACTIVE,
		.cost = view->settings ? view->settings->handover_cost : 0,
	};
}

int es_stay_is_free(const struct es_request_view *request, const struct es_cluster_view *view)
{
	return request->current >= 0 && view->settings && view->settings->handover_cost &&
	       es_view_is_target(request, view, (unsigned int)request->current);
}

int es_stay_may_read(const struct es_request_view *request, const struct es_cluster_view *view)
{
	if (!es_stay_is_free(request, view))
		return 0;
	if (view->settings->content_off_disk) {
		es_explain(view, "the connection is at #%d, whose disk does not have the content",
			   request->current);
		return 0;
	}
	if (!es_view_may_read(view, (unsigned int)request->current, ES_STAY_DISK_IDLE)) {
		es_explain(view, "the connection is at #%d, whose disk is busy: %.2f (idle: below %g)",
			   request->current, view->node[request->current].disk, ES_STAY_DISK_IDLE);
		return 0;
	}
	es_explain(view, "the connection is at #%d, whose disk is idle: %.2f (below %g)", request->current,
		   view->node[request->current].disk, ES_STAY_DISK_IDLE);
	return 1;
}

int es_stay_among(const struct es_request_view *request, const struct es_cluster_view *view,
		  const struct es_stay *stay, struct es_node_set homes, struct es_node_set former)
{
	int current = request->current;

	if (current >= 0 && !es_node_set_has(homes, (unsigned int)current)) {
		es_view_why(view, ES_MOVE_LOCALITY);
		if (es_node_set_has(former, (unsigned int)current)) {
			es_explain(view, "the connection is at #%d, which had it until lately", current);
			es_node_set_add(&homes, (unsigned int)current);
		} else if (es_stay_may_read(request, view)) {
			es_node_set_add(&homes, (unsigned int)current);
		}
	}
	return es_stay_pick(request, view, stay, &homes);
}

int es_stay_or_go_home(const struct es_request_view *request, const struct es_cluster_view *view,
		       unsigned int home)
{
	const struct es_stay stay = es_stay_requests(view);
	struct es_node_set homes = {};

	es_node_set_add(&homes, home);
	return es_stay_among(request, view, &stay, homes, (struct es_node_set){});
}

enum es_move_why es_stay_why(const struct es_request_view *request, const struct es_cluster_view *view,
			     enum es_move_why said)
{
	const struct es_node_view *current = &view->node[request->current];

	if ((unsigned int)request->current >= view->count || !current->is_target || current->weight <= 0)
		return ES_MOVE_DRAIN;
	return es_view_is_target(request, view, (unsigned int)request->current) ? said : ES_MOVE_RULE;
}
