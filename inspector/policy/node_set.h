/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NODE_SET_H
#define ES_NODE_SET_H

/*
 * A set of node ids, small enough to be passed by value.
 */
#include "kmod/core/ring.h"

struct es_node_set {
	__u64 bits[ES_NODES_MAX / 64];
};

static inline int es_node_set_has(struct es_node_set set, unsigned int node)
{
	return node < ES_NODES_MAX && (set.bits[node / 64] >> (node % 64) & 1);
}

static inline void es_node_set_add(struct es_node_set *set, unsigned int node)
{
	if (node < ES_NODES_MAX)
		set->bits[node / 64] |= 1ULL << (node % 64);
}

static inline void es_node_set_remove(struct es_node_set *set, unsigned int node)
{
	if (node < ES_NODES_MAX)
		set->bits[node / 64] &= ~(1ULL << (node % 64));
}

static inline unsigned int es_node_set_count(struct es_node_set set)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < ES_NODES_MAX / 64; i++)
		count += (unsigned int)__builtin_popcountll(set.bits[i]);
	return count;
}

static inline int es_node_set_is_empty(struct es_node_set set)
{
	return !es_node_set_count(set);
}

static inline int es_node_set_equal(struct es_node_set a, struct es_node_set b)
{
	return !__builtin_memcmp(&a, &b, sizeof(a));
}

#endif
