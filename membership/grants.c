// SPDX-License-Identifier: GPL-2.0-or-later
/* Keeps what this node has asked for, what it was granted, and what it has promised to others. */
#include <errno.h>
#include <string.h>
#include "membership/grants.h"

static unsigned int set_count(const struct es_grants_set *set)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < ES_GRANTS_WORDS; i++)
		count += (unsigned int)__builtin_popcountll(set->word[i]);
	return count;
}

static void set_remove(struct es_grants_set *set, unsigned int node)
{
	set->word[node / 64] &= ~(1ULL << node % 64);
}

void es_grants_init(struct es_grants *grants, unsigned int self)
{
	memset(grants, 0, sizeof(*grants));
	grants->self = self;
}

void es_grants_start(struct es_grants *grants, uint64_t number, uint64_t now_ms)
{
	grants->started_ms = now_ms;
	grants->number = grants->first_number = number;
}

void es_grants_begin(struct es_grants *grants, uint64_t id, const struct es_grants_set *members)
{
	if (grants->ring_count < ES_GRANTS_RINGS)
		grants->ring_count++;
	memmove(&grants->ring[1], &grants->ring[0], (grants->ring_count - 1) * sizeof(grants->ring[0]));
	grants->ring[0] = (struct es_grants_ring){.id = id, .all = *members, .has = *members};
	for (unsigned int w = 0; w < ES_GRANTS_WORDS; w++) {
		for (unsigned int i = 1; i < grants->ring_count; i++)
			grants->ring[i].has.word[w] &= members->word[w];
		grants->counted.word[w] &= members->word[w];
	}
}

void es_grants_in_force(struct es_grants *grants)
{
	if (!grants->ring_count)
		return;
	grants->counted = grants->ring[0].all;
	/* Whoever is on this ring has stopped for it, and lags behind no further. */
	grants->ring_count = 1;
}

void es_grants_gone(struct es_grants *grants, unsigned int node, int in_order)
{
	/* It may come back before this node stops for a ring without it: others may have done so. */
	for (unsigned int i = 0; i < grants->ring_count; i++)
		set_remove(&grants->ring[i].has, node);
	grants->node[node].asked = 0;
	if (in_order)
		grants->node[node].given_until_ms = 0;
}

void es_grants_lost(struct es_grants *grants)
{
	grants->ring_count = 0;
	memset(&grants->counted, 0, sizeof(grants->counted));
	for (unsigned int i = 0; i < ES_GRANTS_NODES_MAX; i++)
		grants->node[i].asked = grants->node[i].granted_until_ms = 0;
}

void es_grants_slept(struct es_grants *grants)
{
	grants->first_number = grants->number;
	for (unsigned int i = 0; i < ES_GRANTS_NODES_MAX; i++)
		grants->node[i].granted_until_ms = 0;
}

int es_grants_ask(struct es_grants *grants, uint32_t lease_ms, uint64_t now_ms, struct es_grants_ask *ret_ask)
{
	uint64_t until_ms = now_ms + lease_ms;

	if (!grants->number || !grants->ring_count || !es_grants_set_has(&grants->ring[0].has, grants->self))
		return -ENOENT;
	grants->number++;
	grants->asked_until_ms[grants->number % ES_GRANTS_ASKS] = until_ms;
	grants->node[grants->self].granted_until_ms = until_ms;
	*ret_ask = (struct es_grants_ask){grants->ring[0].id, grants->number, lease_ms};
	return 0;
}

void es_grants_hear(struct es_grants *grants, unsigned int from, const struct es_grants_ask *ask,
		    uint64_t now_ms)
{
	struct es_grants_node *node = &grants->node[from];
	uint64_t until_ms = now_ms + es_grants_wait_ms(ask->lease_ms);
	unsigned int i = 0;

	while (i < grants->ring_count &&
	       (grants->ring[i].id != ask->ring || !es_grants_set_has(&grants->ring[i].has, from)))
		i++;
	if (i == grants->ring_count || from == grants->self || ask->lease_ms > ES_GRANTS_LEASE_MAX_MS ||
	    ask->number <= node->asked)
		return;
	node->asked = ask->number;
	if (until_ms > node->given_until_ms)
		node->given_until_ms = until_ms;
}

uint64_t es_grants_tell(const struct es_grants *grants, unsigned int node)
{
	return grants->node[node].asked;
}

void es_grants_take(struct es_grants *grants, unsigned int from, uint64_t number)
{
	uint64_t until_ms;

	if (number <= grants->first_number || number > grants->number ||
	    grants->number - number >= ES_GRANTS_ASKS || from == grants->self)
		return;
	until_ms = grants->asked_until_ms[number % ES_GRANTS_ASKS];
	if (until_ms > grants->node[from].granted_until_ms)
		grants->node[from].granted_until_ms = until_ms;
}

uint64_t es_grants_until_ms(const struct es_grants *grants, unsigned int need)
{
	uint64_t best = 0;

	/* The latest time to which enough grants reach is the end of one of them. */
	for (unsigned int i = 0; i < ES_GRANTS_NODES_MAX; i++) {
		uint64_t until_ms = grants->node[i].granted_until_ms;
		unsigned int count = 0;

		if (until_ms <= best || !es_grants_set_has(&grants->counted, i))
			continue;
		for (unsigned int k = 0; k < ES_GRANTS_NODES_MAX; k++)
			count += es_grants_set_has(&grants->counted, k) &&
				 grants->node[k].granted_until_ms >= until_ms;
		if (count >= need)
			best = until_ms;
	}
	return best;
}

int es_grants_meets(const struct es_grants *grants, unsigned int node, const struct es_grants_set *known,
		    unsigned int count, unsigned int need)
{
	int is_on_one = 0;

	if (set_count(known) + need > count)
		return 1;
	/* Whose grants count with it is on its ring, and each ring that it may have in force is one of these.
	 */
	for (unsigned int i = 0; i < grants->ring_count; i++) {
		struct es_grants_set others = grants->ring[i].all;

		if (!es_grants_set_has(&others, node))
			continue;
		is_on_one = 1;
		for (unsigned int w = 0; w < ES_GRANTS_WORDS; w++)
			others.word[w] &= ~known->word[w];
		if (set_count(&others) >= need)
			return 0;
	}
	return is_on_one;
}
