/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_MEMBERSHIP_GRANTS_H
#define ES_MEMBERSHIP_GRANTS_H

/*
 * Leases that nodes grant each other, so that those that are left need not wait for the bus to form anew when
 * one is lost. A node asks all others again and again, in datagrams that may be lost, late or doubled. One
 * that has it on its ring grants it, and promises with that: "I take part in no ring without you before the
 * lease that you asked for must be over by my clock." The node that asks counts from when it sent, the other
 * from when it heard that, so the former's lease ends first.
 *
 * A node may act while so many have granted it a lease that any ring without it has at least one of them:
 * more than half of all nodes, on its last ring. A ring that may have none of them waits for longer
 * (group_grants.c).
 *
 * Rings have ids, since two sides of a partition may give one number to two rings. A node grants only one
 * that has stopped for a ring which it knows itself, and that has been on all its rings since.
 *
 * Pure: clocks and datagrams are the caller's.
 */
#include <stdint.h>

#define ES_GRANTS_NODES_MAX 128
#define ES_GRANTS_WORDS	    (ES_GRANTS_NODES_MAX / 64)
#define ES_GRANTS_RINGS	    8  /* that a node remembers; whoever lags behind further is granted nothing */
#define ES_GRANTS_ASKS	    32 /* that may be answered yet */

/* No node may ask for a longer lease, since a ring without it has to wait for the end. */
#define ES_GRANTS_LEASE_MAX_MS 2000

/* struct es_grants_set - of nodes: bit i % 64 of word i / 64 */
struct es_grants_set {
	uint64_t word[ES_GRANTS_WORDS];
};

/* struct es_grants_ring - @has: of @all that are on it, those that were on each ring since */
struct es_grants_ring {
	uint64_t id;
	struct es_grants_set all;
	struct es_grants_set has;
};

/**
 * struct es_grants_ask - what a node asks for
 * @ring: the last one that it has stopped for; @number: of this request
 */
struct es_grants_ask {
	uint64_t ring;
	uint64_t number;
	uint32_t lease_ms;
};

/**
 * struct es_grants_node -
 * @asked: the number of its last request that was granted, 0: none; @given_until_ms: so long its grants from
 * here may count
 * @granted_until_ms: so long its grant to this node counts, 0: none
 */
struct es_grants_node {
	uint64_t asked;
	uint64_t given_until_ms;
	uint64_t granted_until_ms;
};

/**
 * struct es_grants -
 * @number: of this node's last request; 0: not started
 * @asked_until_ms: until when each of the last requests is for
 * @ring: the rings that this node has stopped for, the newest first
 * @counted: the nodes on the ring that was in force here last and on each ring since: their grants count
 */
struct es_grants {
	unsigned int self;
	uint64_t started_ms;
	uint64_t number;
	uint64_t first_number;
	uint64_t asked_until_ms[ES_GRANTS_ASKS];
	unsigned int ring_count;
	struct es_grants_ring ring[ES_GRANTS_RINGS];
	struct es_grants_set counted;
	struct es_grants_node node[ES_GRANTS_NODES_MAX];
};

static inline int es_grants_set_has(const struct es_grants_set *set, unsigned int node)
{
	return (int)(set->word[node / 64] >> node % 64 & 1);
}

static inline void es_grants_set_add(struct es_grants_set *set, unsigned int node)
{
	set->word[node / 64] |= 1ULL << node % 64;
}

/* So long a node has to wait for the end of what it granted: clocks that run apart by 2%, and their ticks. */
static inline uint64_t es_grants_wait_ms(uint64_t lease_ms)
{
	return lease_ms + lease_ms / 40 + 20;
}

/* es_grants_init() - nothing is asked for before es_grants_start() */
void es_grants_init(struct es_grants *grants, unsigned int self);

/*
 * es_grants_start() - this process begins now, and does not know what the one before it has granted
 * @number: greater than any that this node has used before, in this life or a former one
 */
void es_grants_start(struct es_grants *grants, uint64_t number, uint64_t now_ms);

/* es_grants_begin() - this node stops for ring @id, and those in @members are on it */
void es_grants_begin(struct es_grants *grants, uint64_t id, const struct es_grants_set *members);

/* es_grants_in_force() - the ring that began last is in force here: all members have stopped for it */
void es_grants_in_force(struct es_grants *grants);

/* es_grants_gone() - @node is no member any more; @in_order: and does not take itself for one */
void es_grants_gone(struct es_grants *grants, unsigned int node, int in_order);

/* es_grants_lost() - this node is no member any more; what it has granted still counts */
void es_grants_lost(struct es_grants *grants);

/* es_grants_slept() - this node's clock has stood still: what it was granted or asked for may be over */
void es_grants_slept(struct es_grants *grants);

/* es_grants_ask() - begin a request, to all that are on the ring. Returns 0, or -ENOENT: this node is not. */
int es_grants_ask(struct es_grants *grants, uint32_t lease_ms, uint64_t now_ms,
		  struct es_grants_ask *ret_ask);

/* es_grants_hear() - another node's request: grants it, or not */
void es_grants_hear(struct es_grants *grants, unsigned int from, const struct es_grants_ask *ask,
		    uint64_t now_ms);

/* es_grants_tell() - the number of the request of @node that this node grants now; 0: none */
uint64_t es_grants_tell(const struct es_grants *grants, unsigned int node);

/* es_grants_take() - @from grants this node's request of that number */
void es_grants_take(struct es_grants *grants, unsigned int from, uint64_t number);

/* es_grants_until_ms() - so long @need nodes, this one among them, have granted; 0: they have not */
uint64_t es_grants_until_ms(const struct es_grants *grants, unsigned int need);

/*
 * es_grants_meets() - does whoever has @need grants, with @node on its ring, have one of a node in @known?
 * @known: nodes that know what they have granted; @count: of all nodes
 */
int es_grants_meets(const struct es_grants *grants, unsigned int node, const struct es_grants_set *known,
		    unsigned int count, unsigned int need);

#endif
