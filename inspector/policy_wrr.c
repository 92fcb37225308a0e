// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Policy `wrr`: weighted round robin over the nodes that are targets, content-blind; the papers' baseline.
 *
 * Smooth weighted round robin: each turn every node gains its weight, the richest is picked and pays the sum
 * of all weights. Nodes of weight 2, 1, 1 are served a b a c, never a a b c.
 */
#include <errno.h>
#include <stdlib.h>
#include "inspector/policy.h"

struct es_wrr {
	unsigned int handover_cost;
	long credit[ES_NODES_MAX];
};

static int es_wrr_new(const struct es_conf_service *service, void **ret_state)
{
	struct es_wrr *wrr = calloc(1, sizeof(*wrr));

	if (!wrr)
		return -ENOMEM;
	wrr->handover_cost = service->handover_cost;
	*ret_state = wrr;
	return 0;
}

static int es_wrr_route(void *state, const struct es_request_view *request,
			const struct es_cluster_view *view)
{
	const struct es_conf *conf = view->cluster->conf;
	struct es_wrr *wrr = state;
	long total = 0;
	int best = -1;

	/* Equal turns for connections are as good as for requests: moving an open one gains nothing. */
	if (request->current >= 0 && wrr->handover_cost &&
	    es_view_is_target(view, (unsigned int)request->current))
		return request->current;
	for (unsigned int i = 0; i < conf->node_count; i++) {
		if (!es_view_is_target(view, i)) {
			wrr->credit[i] = 0;
			continue;
		}
		wrr->credit[i] += (long)view->cluster->weight[i];
		total += (long)view->cluster->weight[i];
		if (best < 0 || wrr->credit[i] > wrr->credit[best])
			best = (int)i;
	}
	if (best >= 0)
		wrr->credit[best] -= total;
	return best;
}

const struct es_policy es_policy_wrr = {
	.name = "wrr",
	.description = "weighted round robin",
	.inspects = 1,
	.new = es_wrr_new,
	.free = free,
	.route = es_wrr_route,
};
