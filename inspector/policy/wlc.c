// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Policy `wlc`: weighted least connections, content-blind; LVS's scheduler, with which the LVS-CAD
 * (section 6.2) and HyLARD papers compare. The node with the fewest requests in progress (connections, where
 * only first requests are inspected) by weight.
 *
 * Beyond the papers: with a handover cost an open connection stays unless the other node has that many
 * requests less.
 */
#include <errno.h>
#include <stdlib.h>
#include "inspector/policy/list.h"
#include "inspector/policy/wlc.h"

struct es_wlc {
	unsigned int handover_cost;
};

int es_wlc_pick(const struct es_request_view *request, const struct es_cluster_view *view,
		unsigned int handover_cost)
{
	int least = es_policy_least(request, view, ES_MEASURE_ACTIVE, NULL);
	int current = request->current;
	double gain;

	if (least < 0)
		return -1;
	es_explain(view, "#%d has the fewest requests: %.1f", least,
		   es_view_measure(view, (unsigned int)least, ES_MEASURE_ACTIVE));
	if (!handover_cost || current < 0 || current == least ||
	    !es_view_is_target(request, view, (unsigned int)current))
		return least;
	gain = es_view_measure(view, (unsigned int)current, ES_MEASURE_ACTIVE) -
	       es_view_measure(view, (unsigned int)least, ES_MEASURE_ACTIVE);
	es_explain(view, "the connection is at #%d; moving it gains %.1f requests, of at least %u", current,
		   gain, handover_cost);
	return gain < handover_cost ? current : least;
}

static int es_wlc_new(const struct es_policy_settings *settings, void **ret_state)
{
	struct es_wlc *wlc = calloc(1, sizeof(*wlc));

	if (!wlc)
		return -ENOMEM;
	wlc->handover_cost = settings->handover_cost;
	*ret_state = wlc;
	return 0;
}

static int es_wlc_route(void *state, const struct es_request_view *request,
			const struct es_cluster_view *view)
{
	const struct es_wlc *wlc = state;

	return es_wlc_pick(request, view, wlc->handover_cost);
}

const struct es_policy es_policy_wlc = {
	.name = "wlc",
	.description = "weighted least connections",
	.inspects = 1,
	.needs_loads = 1,
	.new = es_wlc_new,
	.free = free,
	.route = es_wlc_route,
};
