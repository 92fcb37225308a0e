// SPDX-License-Identifier: GPL-2.0-or-later
/* Whether a node that joins has to wait until another one is heard on the cluster network. */
#include "inspector/self/cluster_link.h"

int es_cluster_link_may_join(struct es_cluster_link *link, int is_heard, uint64_t now_ms)
{
	link->is_waiting = 0;
	if (!link->out_ms)
		link->out_ms = now_ms;
	return is_heard || now_ms - link->out_ms >= ES_CLUSTER_LINK_FIRST_MS;
}

int es_cluster_link_join(struct es_cluster_link *link, int has_others, int is_heard, uint64_t now_ms)
{
	link->out_ms = 0;
	link->wait_ms = now_ms;
	link->is_waiting = has_others && !is_heard;
	return link->is_waiting;
}

enum es_cluster_link_turn es_cluster_link_look(struct es_cluster_link *link, int is_heard, int is_settled,
					       int another_serves, uint64_t now_ms)
{
	if (!link->is_waiting)
		return ES_CLUSTER_LINK_NOTHING;
	if (is_heard || (is_settled && !another_serves)) {
		link->is_waiting = 0;
		return ES_CLUSTER_LINK_TAKE;
	}
	return now_ms - link->wait_ms >= ES_CLUSTER_LINK_TELL_MS ? ES_CLUSTER_LINK_TELL
								 : ES_CLUSTER_LINK_NOTHING;
}
