/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NODE_CLOCKS_H
#define ES_NODE_CLOCKS_H

/*
 * The nodes' clocks, as they tell each other together with their loads. A handover message is taken only if
 * it was sent less than ES_HANDOVER_LATE_S ago (kmod/core/handover.h), so a node whose clock is wrong by so
 * much takes nothing from the others, nor they from it.
 */
#include <linux/types.h>
#include "kmod/core/flow.h"
#include "kmod/core/node_ring.h"

/* From here on a clock is said to be wrong; so much less, and it is right again. */
#define ES_CLOCK_WRONG_MS 60000
#define ES_CLOCK_RIGHT_MS 50000

/* From here on nothing is given to the node. */
#define ES_CLOCK_USELESS_MS 110000

/* More than a datagram is late, and than clocks differ that are set by NTP; as stamps. */
#define ES_CLOCK_STAMPS_NEAR 256

/* All nodes tell their time more often than that. */
#define ES_CLOCK_TOLD_NS 1500000000ULL

/**
 * struct es_node_clock - one node's
 * @ahead_ms: of this node's, when it was heard last; @is_told: it told the time then, so it is a version that
 * tells it with its handover messages, too; @is_wrong: see ES_CLOCK_WRONG_MS
 */
struct es_node_clock {
	long long ahead_ms;
	__u8 is_told;
	__u8 is_wrong;
};

struct es_node_clocks {
	struct es_node_clock node[ES_NODES_MAX];
};

/**
 * es_node_clock_hear() - @node was heard
 * @theirs_ns: its wall clock, 0 if it did not tell; @ours_ns: this node's
 * Returns 1 if it is wrong now and was right, or the other way round.
 */
int es_node_clock_hear(struct es_node_clocks *clocks, unsigned int node, __u64 theirs_ns, __u64 ours_ns);

/* Have all of @count nodes but @self told the time when they were heard last? */
int es_node_clocks_are_told(const struct es_node_clocks *clocks, unsigned int count, unsigned int self);

/**
 * es_node_clock_began() - what stamp a node's clock showed when this node began to take messages
 * @before: what this said the last time, 0: nothing; @theirs_ns: what the node tells now; @since_ns: how long
 * ago this node began
 * A datagram that was under way for long makes it seem earlier than it was: the latest is right, unless the
 * clock was set meanwhile.
 */
__u32 es_node_clock_began(__u32 before, __u64 theirs_ns, __u64 since_ns);

/**
 * es_node_clock_is_credible() - may it be what the node tells, and not what somebody has recorded?
 * After a start, the datagrams' sequence numbers tell nothing; then one that seems to be behind is believed
 * when the node itself must have been heard.
 */
int es_node_clock_is_credible(__u32 began, __u32 own, __u64 since_ns);

/* Is it so wrong that nothing can be given to @node? */
int es_node_clock_is_useless(const struct es_node_clocks *clocks, unsigned int node);

#endif
