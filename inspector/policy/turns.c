// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Smooth weighted round robin: each turn every node gains its weight, the richest is picked and pays the sum
 * of all weights. Nodes of weight 2, 1, 1 are served a b a c, never a a b c.
 */
#include <string.h>
#include "inspector/policy/turns.h"

int es_turns_next(struct es_turns *turns, const struct es_request_view *request,
		  const struct es_cluster_view *view)
{
	long credit[ES_NODES_MAX];
	long total = 0;
	int best = -1;

	for (unsigned int i = 0; i < view->count; i++) {
		double share = view->node[i].weight;
		long weight = share > 0 && share < 1 ? 1 : (long)share;

		/* A node that is away gains nothing; one that the rules exclude keeps what it has. */
		credit[i] = view->node[i].is_target ? turns->credit[i] : 0;
		if (!es_view_is_target(request, view, i))
			continue;
		credit[i] += weight;
		total += weight;
		if (best < 0 || credit[i] > credit[best])
			best = (int)i;
	}
	if (best < 0)
		return -1;
	es_explain(view, "it is #%d's turn: %ld of %ld credits", best, credit[best], total);
	credit[best] -= total;
	if (!view->explain)
		memcpy(turns->credit, credit, sizeof(*credit) * view->count);
	return best;
}
