// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Policy `cap`: client-aware dispatching, Casalicchio and Colajanni 2001, as LVS-CAD section 2.3 and HyLARD
 * section 2.6 sum it up: requests are of four classes, normal, CPU bound, disk bound, disk and CPU bound, and
 * each class takes turns on its own, so that no node gets all the heavy ones.
 *
 * Turns are weighted (wrr.c), where the paper's nodes are alike. With a handover cost an open connection
 * stays for normal requests, which are light wherever they go.
 */
#include <errno.h>
#include <stdlib.h>
#include "inspector/policy/list.h"
#include "inspector/policy/stay.h"
#include "inspector/policy/turns.h"

struct es_cap {
	struct es_turns turns[ES_CLASS_COUNT];
};

static const char *const es_class_names[] = {
	[ES_CLASS_NORMAL] = "normal",
	[ES_CLASS_CPU] = "CPU bound",
	[ES_CLASS_DISK] = "disk bound",
	[ES_CLASS_DISK_CPU] = "disk and CPU bound",
};

static int es_cap_new(const struct es_policy_settings *settings, void **ret_state)
{
	struct es_cap *cap = calloc(1, sizeof(*cap));

	(void)settings;
	if (!cap)
		return -ENOMEM;
	*ret_state = cap;
	return 0;
}

static int es_cap_route(void *state, const struct es_request_view *request,
			const struct es_cluster_view *view)
{
	enum es_request_class class = request->class < ES_CLASS_COUNT ? request->class : ES_CLASS_NORMAL;
	struct es_cap *cap = state;

	es_explain(view, "the request is %s", es_class_names[class]);
	if (class == ES_CLASS_NORMAL && es_stay_is_free(request, view)) {
		es_explain(view, "the connection is at #%d, and a normal request is no reason to move it",
			   request->current);
		return request->current;
	}
	es_view_why(view, ES_MOVE_LOAD);
	return es_turns_next(&cap->turns[class], request, view);
}

const struct es_policy es_policy_cap = {
	.name = "cap",
	.description = "round robin within normal, CPU, disk, and disk and CPU bound requests (CAP)",
	.inspects = 1,
	.new = es_cap_new,
	.free = free,
	.route = es_cap_route,
};
