// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Policy `wrr`: weighted round robin (turns.h) over the nodes that are targets, content-blind; the papers'
 * baseline.
 */
#include <errno.h>
#include <stdlib.h>
#include "inspector/policy/list.h"
#include "inspector/policy/stay.h"
#include "inspector/policy/turns.h"

struct es_wrr {
	struct es_turns turns;
};

static int es_wrr_new(const struct es_policy_settings *settings, void **ret_state)
{
	struct es_wrr *wrr = calloc(1, sizeof(*wrr));

	(void)settings;
	if (!wrr)
		return -ENOMEM;
	*ret_state = wrr;
	return 0;
}

static int es_wrr_route(void *state, const struct es_request_view *request,
			const struct es_cluster_view *view)
{
	struct es_wrr *wrr = state;

	/* Equal turns for connections are as good as for requests: moving an open one gains nothing. */
	if (es_stay_is_free(request, view)) {
		es_explain(view, "the connection is at #%d, and a turn is no reason to move it",
			   request->current);
		return request->current;
	}
	return es_turns_next(&wrr->turns, request, view);
}

const struct es_policy es_policy_wrr = {
	.name = "wrr",
	.description = "weighted round robin",
	.inspects = 1,
	.new = es_wrr_new,
	.free = free,
	.route = es_wrr_route,
};
