/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef EARSHOT_RING_H
#define EARSHOT_RING_H

/*
 * libearshot-ring: the consistent-hash ring of DTS (section 2.3) with virtual nodes (section 3.1), and the
 * content ring on which URIs are placed (Fig. 9). A ring is immutable once made and may be read by any number
 * of threads.
 */
#include <stdbool.h>
#include <stddef.h>
#include "kmod/core/ring.h"
#include "kmod/core/types.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define ES_RING_POINTS_MAX	      16384
#define ES_RING_VIRTUAL_NODES_DEFAULT 63 /* DTS section 4.2 */

struct es_ring;

/**
 * struct es_ring_node - a node to be placed
 * @address: its cluster address, which gives the positions; unique
 * @virtual_nodes: number of points, es_ring_virtual_nodes(); 0 keeps the node off the ring
 * @id: what look-ups return; below ES_NODES_MAX
 */
struct es_ring_node {
	struct es_addr address;
	unsigned int virtual_nodes;
	__u16 id;
};

/* struct es_ring_point - one virtual node: a position of the 64-bit hash space */
struct es_ring_point {
	__u64 position;
	__u16 id;
};

/**
 * es_ring_virtual_nodes() - points of a node of @weight_percent, where 100 percent are @base points
 * Rounded to the nearest, at least 1; 0 for weight 0.
 */
unsigned int es_ring_virtual_nodes(unsigned int base, unsigned int weight_percent);

/**
 * es_ring_new() - place nodes on a ring
 * The position of virtual node i is the first 8 bytes, big endian, of MD5(address, i), with the address in
 * its 16-byte form and i as 32 bits in network byte order. Points of two nodes on one position (never seen)
 * belong to the lower address, so the ring does not depend on the order of @nodes. Returns 0; -E2BIG above
 * ES_NODES_MAX nodes or ES_RING_POINTS_MAX points; -EINVAL for an id out of range; -EEXIST for an address or
 * id given twice; -ENOMEM; -EIO if OpenSSL has no MD5. The caller owns *@ret_ring.
 */
int es_ring_new(const struct es_ring_node *nodes, size_t count, struct es_ring **ret_ring);
void es_ring_free(struct es_ring **ring);

/**
 * es_ring_lookup() - the node with the greatest point <= @position, wrapping (DTS section 2.3)
 * Returns ES_NODE_NONE on an empty ring.
 */
__u16 es_ring_lookup(const struct es_ring *ring, __u64 position);

/* es_ring_points() - all points in order of position; owned by the ring */
const struct es_ring_point *es_ring_points(const struct es_ring *ring, size_t *ret_count);

/* es_ring_fill_table() - sample the ring for the datapath (kmod/core/ring.h) */
void es_ring_fill_table(const struct es_ring *ring, struct es_ring_table *ret_table);

/* es_ring_shares() - fraction of the hash space of each id below @count, 0..1 */
void es_ring_shares(const struct es_ring *ring, double *ret_shares, size_t count);

/**
 * struct es_ring_walk - visits the nodes in ring order from a position on, each once
 * The second node is where a key goes when the first one is full or away, and so on: the same order on every
 * node. The walk follows the points downwards, as a leaving node's keys do. The ring must outlive it.
 */
struct es_ring_walk {
	const struct es_ring *ring;
	size_t at;
	size_t left;
	__u64 seen[ES_NODES_MAX / 64];
};

void es_ring_walk_init(struct es_ring_walk *walk, const struct es_ring *ring, __u64 position);

/* Returns false when all nodes were visited. */
bool es_ring_walk_next(struct es_ring_walk *walk, __u16 *ret_id);

/**
 * struct es_content_hasher - MD5 for keys of the content ring, set up once; for one thread at a time
 * es_content_hasher_new() returns 0, -ENOMEM or -EIO.
 */
struct es_content_hasher;
int es_content_hasher_new(struct es_content_hasher **ret_hasher);
void es_content_hasher_free(struct es_content_hasher **hasher);

/**
 * es_content_ring_hash() - position of a URI or another key: the first 8 bytes, big endian, of its MD5
 * (DTS Fig. 9, "hash = md5(uri)"). Returns 0 or -EIO.
 */
int es_content_ring_hash(struct es_content_hasher *hasher, const void *key, size_t len, __u64 *ret_position);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
