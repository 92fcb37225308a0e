// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The list of policies and what they share.
 */
#include <string.h>
#include "inspector/policy.h"

static const struct es_policy *const es_policies[] = {&es_policy_ring, &es_policy_wrr, &es_policy_uri_hash,
						      NULL};

const struct es_policy *const *es_policy_list(void)
{
	return es_policies;
}

const struct es_policy *es_policy_find(const char *name)
{
	for (const struct es_policy *const *p = es_policies; *p; p++)
		if (!strcmp((*p)->name, name))
			return *p;
	return NULL;
}

int es_policy_fallback(const struct es_request_view *request, const struct es_cluster_view *view)
{
	struct es_ring_walk walk;
	__u16 node;

	es_ring_walk_init(&walk, view->cluster->ring, request->flow_hash);
	while (es_ring_walk_next(&walk, &node))
		if (es_view_is_target(view, node))
			return node;
	/* Better a node that wants no more than an error. */
	es_ring_walk_init(&walk, view->cluster->ring, request->flow_hash);
	while (es_ring_walk_next(&walk, &node))
		if (es_health_state(view->health, node) == ES_NODE_DRAINING)
			return node;
	return -1;
}
