// SPDX-License-Identifier: GPL-2.0-or-later
/* Remembers until when members may doubt whether a node that was lost has executed a request. */
#include "membership/group_internal.h"

/*
 * Any node may have been lost before this process began, unseen by it, so none counts as lost earlier than
 * that.
 */
static void doubt_earlier(struct es_group *group)
{
	for (unsigned int i = 0; i < group->node_count; i++)
		if (group->node[i].lost_ms < group->started_ms)
			group->node[i].lost_ms = group->started_ms;
}

void es_group_doubt(struct es_group *group, uint64_t ms, uint64_t now_ms)
{
	uint64_t until_ms = now_ms + (ms < ES_GROUP_DOUBT_MS ? ms : ES_GROUP_DOUBT_MS);

	if (until_ms <= now_ms || until_ms <= group->doubt_until_ms)
		return;
	group->doubt_until_ms = until_ms;
	doubt_earlier(group);
}

void es_group_start(struct es_group *group, uint64_t doubt_until_ms, uint64_t now_ms)
{
	group->started_ms = now_ms;
	group->doubt_until_ms = doubt_until_ms;
	if (doubt_until_ms > now_ms)
		doubt_earlier(group);
}
