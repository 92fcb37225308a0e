// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Policy `wlc`: weighted least connections, content-blind; LVS's scheduler, with which the LVS-CAD
 * (section 6.2) and HyLARD papers compare. The node with the fewest requests in progress (connections, where
 * only first requests are inspected) by weight.
 *
 * Beyond the papers: an open connection moves by the rule of stay.h.
 */
#include "inspector/policy/list.h"
#include "inspector/policy/stay.h"
#include "inspector/policy/wlc.h"

int es_wlc_pick(const struct es_request_view *request, const struct es_cluster_view *view)
{
	const struct es_stay stay = es_stay_requests(view);

	return es_stay_pick(request, view, &stay, NULL);
}

static int es_wlc_route(void *state, const struct es_request_view *request,
			const struct es_cluster_view *view)
{
	(void)state;
	return es_wlc_pick(request, view);
}

const struct es_policy es_policy_wlc = {
	.name = "wlc",
	.description = "weighted least connections",
	.inspects = 1,
	.needs_loads = 1,
	.route = es_wlc_route,
};
