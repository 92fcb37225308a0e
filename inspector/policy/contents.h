/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CONTENTS_H
#define ES_CONTENTS_H

/*
 * Which nodes serve which content: the server sets of LARD, shared by all inspectors, so that they decide as
 * one front-end would. A change takes effect at once where it is made, as a proposal; the ordered bus
 * delivers it to all nodes in one order, and what they make of it is the agreed state. Two that give new
 * content to different nodes at the same time thus end with the first one's. Between, two inspectors may
 * differ for as long as the bus takes.
 *
 * Bounded. When the table is full, the entry that was put in or kept first goes (FIFO with reinsertion: an
 * entry that is used while it is in the older half is put in again, by a message). The order is the bus's, so
 * the same entries go everywhere.
 */
#include "inspector/policy/node_set.h"

struct es_contents;

/* The operations on a set. A proposal that the agreed state has overtaken does nothing. */
enum es_content_op {
	ES_CONTENT_ASSIGN = 1, /* {node}, if the content has no set */
	ES_CONTENT_ADD,	       /* node joins the set */
	ES_CONTENT_REMOVE,     /* node leaves it, if it is not the last one */
	ES_CONTENT_MOVE,       /* from -> node, if from is in the set */
	ES_CONTENT_KEEP,       /* it is used: put it in again; made by the table itself */
	ES_CONTENT_DROP,       /* es_contents_drop_node(); of no particular content */
	ES_CONTENT_TELL,       /* nothing changes: others are to be told of the set; without a bus only */
	ES_CONTENT_OP_COUNT,
};

/* Does such a change come of a request that is given to its node? */
static inline int es_content_op_gives(unsigned int op)
{
	return op == ES_CONTENT_ASSIGN || op == ES_CONTENT_ADD || op == ES_CONTENT_MOVE;
}

/* struct es_content_change - on its way through the bus; @from is used by ES_CONTENT_MOVE only */
struct es_content_change {
	__u64 content;
	__u8 op;
	__u8 node;
	__u8 from;
};

/**
 * struct es_content_set - what a policy sees
 * @former: nodes that have left it lately, and so have the content still; @former_ns: when the last one did
 * @changed_ns: when its nodes changed, here; LARD's lastMod
 * @hits: look-ups on this node
 */
struct es_content_set {
	struct es_node_set nodes;
	struct es_node_set former;
	unsigned long long former_ns;
	unsigned long long changed_ns;
	__u64 hits;
};

/* So long a node that has left a set is taken to have the content in its memory yet. */
#define ES_CONTENT_FORMER_NS 20000000000ULL

/**
 * es_contents_new() - an empty table for @max_entries URIs, at least 16
 * Returns 0 or -ENOMEM. Memory is taken as entries come.
 */
int es_contents_new(size_t max_entries, struct es_contents **ret_contents);
void es_contents_free(struct es_contents **contents);

/**
 * es_contents_get() - the set of some content, as far as this node knows, proposals included
 * Any thread. Returns 1, or 0 if it has none.
 */
int es_contents_get(struct es_contents *contents, __u64 content, struct es_content_set *ret_set);

/* es_contents_peek() - the same, and leaves no trace */
int es_contents_peek(struct es_contents *contents, __u64 content, struct es_content_set *ret_set);

/**
 * es_contents_propose() - change a set
 * Any thread. If too many proposals wait for the bus, this one has no effect at all and is counted: the
 * request goes to its node all the same, the set stays.
 */
void es_contents_propose(struct es_contents *contents, __u64 content, enum es_content_op op,
			 unsigned int node, unsigned int from, unsigned long long now_ns);

/* --- what carries the proposals: the control thread, or the simulator */

/* es_contents_take() - up to @max proposals, oldest first, to be delivered to all; returns how many */
size_t es_contents_take(struct es_contents *contents, struct es_content_change *ret_changes, size_t max);

/* es_contents_on_proposal() - call @notify(@ctx), in the proposing thread,
 * when there is a first one to take */
void es_contents_on_proposal(struct es_contents *contents, void (*notify)(void *ctx), void *ctx);

/**
 * es_contents_deliver() - changes in the agreed order
 * @is_own: this table proposed them. This and all that follows: one thread.
 */
void es_contents_deliver(struct es_contents *contents, const struct es_content_change *changes, size_t count,
			 int is_own, unsigned long long now_ns);

/* es_contents_drop_node() - it has left the cluster: no set holds it any more. In the bus's order too
 * (ES_CONTENT_DROP). */
void es_contents_drop_node(struct es_contents *contents, unsigned int node, unsigned long long now_ns);

/* --- without a bus: nodes tell each other of the sets that they change, and the last word counts */

/**
 * struct es_content_word - what a node says of a set
 * @stamp: when it was changed, in a clock that runs ahead with what is heard; of two words the later one
 * counts, of two with the same stamp that of the node with the higher number
 */
struct es_content_word {
	__u64 content;
	__u64 stamp;
	struct es_node_set nodes;
	unsigned int by;
};

/* es_contents_stamp() - this node, @by, has changed the set just now, and has the last word about it. Returns
 * 1, or 0 if there is no set. */
int es_contents_stamp(struct es_contents *contents, __u64 content, unsigned int by, __u64 wall_ns,
		      struct es_content_word *ret_word);

/* es_contents_word() - the last word about a set. Returns 1, or 0 if there is none. */
int es_contents_word(struct es_contents *contents, __u64 content, struct es_content_word *ret_word);

/* es_contents_hear() - another node's word. Returns 1 if it counts, 0 if a later one is known. */
int es_contents_hear(struct es_contents *contents, const struct es_content_word *word,
		     unsigned long long now_ns);

/* es_contents_tell() - any thread: have the others told of the set, at most once a second */
void es_contents_tell(struct es_contents *contents, __u64 content, unsigned long long now_ns);

/* --- snapshots, and reports */

/* struct es_content_entry - the agreed set of one content; @hits: look-ups on this node; @order: the table's
 * clock when it was put in */
struct es_content_entry {
	__u64 content;
	struct es_node_set nodes;
	__u64 hits;
	__u64 order;
	unsigned long long changed_ns;
};

/**
 * es_contents_list() - all agreed entries, oldest first
 * @ret_clock: entries put in so far, over time. The caller frees *@ret_entries. Returns 0 or -ENOMEM.
 */
int es_contents_list(struct es_contents *contents, struct es_content_entry **ret_entries, size_t *ret_count,
		     __u64 *ret_clock);

/* es_contents_digest() - of the agreed sets: alike if two tables are, and hardly otherwise */
__u64 es_contents_digest(const struct es_contents *contents);

/* es_contents_clear() - forget everything; what was proposed and not taken, too */
void es_contents_clear(struct es_contents *contents);

/**
 * es_contents_restore() - put agreed entries of another table, with their orders, behind those that are there
 * A joiner's snapshot: with the same entries and the same clock, the same changes have the same effects.
 */
void es_contents_restore(struct es_contents *contents, const struct es_content_entry *entries, size_t count,
			 __u64 clock, unsigned long long now_ns);

struct es_contents_counts {
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
void es_contents_count(struct es_contents *contents, struct es_contents_counts *ret_counts);

#endif
