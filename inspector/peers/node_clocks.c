// SPDX-License-Identifier: GPL-2.0-or-later
/* Judges the other nodes' clocks by what they say; nothing is measured or set here. */
#include <stdlib.h>
#include "inspector/peers/node_clocks.h"
#include "kmod/core/handover.h"

int es_node_clock_hear(struct es_node_clocks *clocks, unsigned int node, __u64 theirs_ns, __u64 ours_ns)
{
	struct es_node_clock *clock = &clocks->node[node];
	__u8 was_wrong = clock->is_wrong;

	clock->is_told = theirs_ns != 0;
	clock->ahead_ms = theirs_ns ? (long long)(theirs_ns - ours_ns) / 1000000 : 0;
	clock->is_wrong = llabs(clock->ahead_ms) >= (was_wrong ? ES_CLOCK_RIGHT_MS : ES_CLOCK_WRONG_MS);
	return clock->is_wrong != was_wrong;
}

int es_node_clocks_are_told(const struct es_node_clocks *clocks, unsigned int count, unsigned int self)
{
	for (unsigned int i = 0; i < count; i++)
		if (i != self && !clocks->node[i].is_told)
			return 0;
	return 1;
}

__u32 es_node_clock_began(__u32 before, __u64 theirs_ns, __u64 since_ns)
{
	__u32 began = (__u32)((theirs_ns - since_ns) / ES_HANDOVER_STAMP_NS);
	__s32 later = (__s32)(began - before);

	if (!began)
		began = 1;
	return before && later < 0 && later > -ES_CLOCK_STAMPS_NEAR ? before : began;
}

int es_node_clock_is_credible(__u32 began, __u32 own, __u64 since_ns)
{
	return since_ns >= ES_CLOCK_TOLD_NS || (__s32)(began - own) > -ES_CLOCK_STAMPS_NEAR;
}

int es_node_clock_is_useless(const struct es_node_clocks *clocks, unsigned int node)
{
	return llabs(clocks->node[node].ahead_ms) >= ES_CLOCK_USELESS_MS;
}
