/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TARGETS_H
#define ES_TARGETS_H

/*
 * Which nodes serve a target: the server sets of LARD, shared by all inspectors, so that they decide as one
 * front-end would. A change takes effect at once where it is made, as a proposal; the ordered bus delivers it
 * to all nodes in one order, and what they make of it is the agreed state. Two that give a new target to
 * different nodes at the same time thus end with the first one's. Between, two inspectors may differ for as
 * long as the bus takes.
 *
 * Bounded. When the table is full, the entry that was put in or kept first goes (FIFO with reinsertion: an
 * entry that is used while it is in the older half is put in again, by a message). The order is the bus's, so
 * the same entries go everywhere.
 */
#include "inspector/policy/node_set.h"

struct es_targets;

/* What happens to a set. A proposal that the agreed state has overtaken does nothing. */
enum es_target_op {
	ES_TARGET_ASSIGN = 1, /* {node}, if the target has no set */
	ES_TARGET_ADD,	      /* node joins the set */
	ES_TARGET_REMOVE,     /* node leaves it, if it is not the last one */
	ES_TARGET_MOVE,	      /* from -> node, if from is in the set */
	ES_TARGET_KEEP,	      /* it is used: put it in again; made by the table itself */
	ES_TARGET_DROP,	      /* es_targets_drop_node(); of no target in particular */
	ES_TARGET_TELL,	      /* nothing changes: others are to be told of the set; without a bus only */
	ES_TARGET_OP_COUNT,
};

/* Does such a change come of a request that is given to its node? */
static inline int es_target_op_gives(unsigned int op)
{
	return op == ES_TARGET_ASSIGN || op == ES_TARGET_ADD || op == ES_TARGET_MOVE;
}

/* struct es_target_change - on its way through the bus; @from is used by ES_TARGET_MOVE only */
struct es_target_change {
	__u64 target;
	__u8 op;
	__u8 node;
	__u8 from;
};

/**
 * struct es_target_set - what a policy sees
 * @former: nodes that have left it lately, and so have the content still; @former_ns: when the last one did
 * @changed_ns: when its nodes changed, here; LARD's lastMod
 * @hits: look-ups on this node
 */
struct es_target_set {
	struct es_node_set nodes;
	struct es_node_set former;
	unsigned long long former_ns;
	unsigned long long changed_ns;
	__u64 hits;
};

/* So long a node that has left a set is taken to have the content in its memory yet. */
#define ES_TARGET_FORMER_NS 20000000000ULL

/**
 * es_targets_new() - an empty table for @max_entries targets, at least 16
 * Returns 0 or -ENOMEM. Memory is taken as entries come.
 */
int es_targets_new(size_t max_entries, struct es_targets **ret_targets);
void es_targets_free(struct es_targets **targets);

/**
 * es_targets_get() - the set of a target, as far as this node knows, proposals included
 * Any thread. Returns 1, or 0 if it has none.
 */
int es_targets_get(struct es_targets *targets, __u64 target, struct es_target_set *ret_set);

/* es_targets_peek() - the same, and leaves no trace */
int es_targets_peek(struct es_targets *targets, __u64 target, struct es_target_set *ret_set);

/**
 * es_targets_propose() - change a set
 * Any thread. If too many proposals wait for the bus, this one has no effect at all and is counted: the
 * request goes to its node all the same, the set stays.
 */
void es_targets_propose(struct es_targets *targets, __u64 target, enum es_target_op op, unsigned int node,
			unsigned int from, unsigned long long now_ns);

/* --- what carries the proposals: the control thread, or the simulator */

/* es_targets_take() - up to @max proposals, oldest first, to be delivered to all; returns how many */
size_t es_targets_take(struct es_targets *targets, struct es_target_change *ret_changes, size_t max);

/* es_targets_on_proposal() - call @notify(@ctx), in the proposing thread,
 * when there is a first one to take */
void es_targets_on_proposal(struct es_targets *targets, void (*notify)(void *ctx), void *ctx);

/**
 * es_targets_deliver() - changes in the agreed order
 * @is_own: this table proposed them. This and all that follows: one thread.
 */
void es_targets_deliver(struct es_targets *targets, const struct es_target_change *changes, size_t count,
			int is_own, unsigned long long now_ns);

/* es_targets_drop_node() - it has left the cluster: no set holds it any more. In the bus's order too
 * (ES_TARGET_DROP). */
void es_targets_drop_node(struct es_targets *targets, unsigned int node, unsigned long long now_ns);

/* --- without a bus: nodes tell each other of the sets that they change, and the last word counts */

/**
 * struct es_target_word - what a node says of a set
 * @stamp: when it was changed, in a clock that runs ahead with what is heard; of two words the later one
 * counts, of two with the same stamp that of the node with the higher number
 */
struct es_target_word {
	__u64 target;
	__u64 stamp;
	struct es_node_set nodes;
	unsigned int by;
};

/* es_targets_stamp() - this node, @by, has changed the set just now, and has the last word about it. Returns 1,
 * or 0 if there is no set. */
int es_targets_stamp(struct es_targets *targets, __u64 target, unsigned int by, __u64 wall_ns,
		     struct es_target_word *ret_word);

/* es_targets_word() - the last word about a set. Returns 1, or 0 if there is none. */
int es_targets_word(struct es_targets *targets, __u64 target, struct es_target_word *ret_word);

/* es_targets_hear() - another node's word. Returns 1 if it counts, 0 if a later one is known. */
int es_targets_hear(struct es_targets *targets, const struct es_target_word *word, unsigned long long now_ns);

/* es_targets_tell() - any thread: have the others told of the set, at most once a second */
void es_targets_tell(struct es_targets *targets, __u64 target, unsigned long long now_ns);

/* --- snapshots, and reports */

/* struct es_target_entry - one target, agreed; @hits: look-ups on this node; @order: the table's clock when
 * it was put in */
struct es_target_entry {
	__u64 target;
	struct es_node_set nodes;
	__u64 hits;
	__u64 order;
	unsigned long long changed_ns;
};

/**
 * es_targets_list() - all agreed entries, oldest first
 * @ret_clock: entries put in so far, over time. The caller frees *@ret_entries. Returns 0 or -ENOMEM.
 */
int es_targets_list(struct es_targets *targets, struct es_target_entry **ret_entries, size_t *ret_count,
		    __u64 *ret_clock);

/* es_targets_digest() - of the agreed sets: alike if two tables are, and hardly otherwise */
__u64 es_targets_digest(const struct es_targets *targets);

/* es_targets_clear() - forget everything; what was proposed and not taken, too */
void es_targets_clear(struct es_targets *targets);

/**
 * es_targets_restore() - put agreed entries of another table, with their orders, behind those that are there
 * A joiner's snapshot: with the same entries and the same clock, the same changes have the same effects.
 */
void es_targets_restore(struct es_targets *targets, const struct es_target_entry *entries, size_t count,
			__u64 clock, unsigned long long now_ns);

struct es_targets_counts {
	__u64 entries; /* agreed */
	__u64 max_entries;
	__u64 assigned; /* agreed changes of each kind, over time */
	__u64 added;
	__u64 removed;
	__u64 moved;
	__u64 kept;
	__u64 evicted;
	__u64 overtaken; /* own proposals that another inspector's had made moot */
	__u64 refused;	 /* proposals that found no room */
	__u64 told;	 /* sets that another node's word has changed, without a bus */
};
void es_targets_count(struct es_targets *targets, struct es_targets_counts *ret_counts);

#endif
