// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Policy `cahrd`: LVS-CAD section 5.3, Fig. 15: dynamic requests by CAWLL, with the handoff cost counted, all
 * others by xLARD/R. A dynamic request neither has nor makes a server set.
 */
#include <stdlib.h>
#include "inspector/policy/list.h"
#include "inspector/policy/lvs_cad.h"

static int es_cahrd_route(void *state, const struct es_request_view *request,
			  const struct es_cluster_view *view)
{
	const struct es_xlard_r *xlard = state;

	es_explain(view, request->is_dynamic ? "dynamic: by load" : "static: by its server set");
	return request->is_dynamic ? es_cawll_pick(request, view, xlard->handoff_cost)
				   : es_xlard_r_pick(xlard, request, view);
}

const struct es_policy es_policy_cahrd = {
	.name = "cahrd",
	.description = "CAWLL for dynamic requests, xLARD/R for others (CAHRD, LVS-CAD section 5.3)",
	.inspects = 1,
	.needs_loads = 1,
	.needs_contents = 1,
	.params = es_xlard_r_params,
	.new = es_xlard_r_new,
	.free = free,
	.route = es_cahrd_route,
};
