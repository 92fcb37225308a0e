// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Policy `ring`: layer 4, content-blind. The inspecting node serves; the datapath does it without the daemon.
 * DTS section 2.3, used alone.
 */
#include "inspector/policy/list.h"

static int es_ring_route(void *state, const struct es_request_view *request,
			 const struct es_cluster_view *view)
{
	(void)state;
	return es_policy_fallback(request, view);
}

const struct es_policy es_policy_ring = {
	.name = "ring",
	.description = "layer 4: the flow's node on the ring serves, nothing is inspected",
	.route = es_ring_route,
};
