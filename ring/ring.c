// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Building a ring and looking it up. Which nodes there are and what their weights are is the caller's
 * business.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <earshot/ring.h>

struct es_ring {
	size_t count;
	struct es_ring_point point[];
};

/* A point with what decides a tie. */
struct es_placed {
	struct es_ring_point point;
	const struct es_addr *address;
};

unsigned int es_ring_virtual_nodes(unsigned int base, unsigned int weight_percent)
{
	unsigned long long points = ((unsigned long long)base * weight_percent + 50) / 100;

	if (!weight_percent || !base)
		return 0;
	if (points > ES_RING_POINTS_MAX)
		return ES_RING_POINTS_MAX;
	return points ? (unsigned int)points : 1;
}

static int es_placed_compare(const void *a, const void *b)
{
	const struct es_placed *x = a, *y = b;

	if (x->point.position != y->point.position)
		return x->point.position < y->point.position ? -1 : 1;
	return memcmp(x->address, y->address, sizeof(*x->address));
}

static int es_ring_check(const struct es_ring_node *nodes, size_t count, size_t *ret_points)
{
	size_t points = 0;

	if (count > ES_NODES_MAX)
		return -E2BIG;
	for (size_t i = 0; i < count; i++) {
		if (nodes[i].id >= ES_NODES_MAX)
			return -EINVAL;
		if (nodes[i].virtual_nodes > ES_RING_POINTS_MAX)
			return -E2BIG;
		points += nodes[i].virtual_nodes;
		for (size_t k = 0; k < i; k++)
			if (nodes[k].id == nodes[i].id || es_addr_equal(&nodes[k].address, &nodes[i].address))
				return -EEXIST;
	}
	if (points > ES_RING_POINTS_MAX)
		return -E2BIG;
	*ret_points = points;
	return 0;
}

static int es_ring_place(const struct es_ring_node *nodes, size_t count, struct es_placed *ret_placed)
{
	struct es_content_hasher *hasher;
	struct {
		struct es_addr address;
		__be32 index;
	} key;
	int rc = es_content_hasher_new(&hasher);

	for (size_t i = 0; !rc && i < count; i++) {
		key.address = nodes[i].address;
		for (unsigned int v = 0; !rc && v < nodes[i].virtual_nodes; v++) {
			key.index = es_htonl(v);
			rc = es_content_ring_hash(hasher, &key, sizeof(key), &ret_placed->point.position);
			ret_placed->point.id = nodes[i].id;
			ret_placed->address = &nodes[i].address;
			ret_placed++;
		}
	}
	es_content_hasher_free(&hasher);
	return rc;
}

int es_ring_new(const struct es_ring_node *nodes, size_t count, struct es_ring **ret_ring)
{
	struct es_placed *placed = NULL;
	struct es_ring *ring = NULL;
	size_t points = 0;
	int rc = es_ring_check(nodes, count, &points);

	if (rc)
		return rc;
	placed = calloc(points + 1, sizeof(*placed));
	ring = calloc(1, sizeof(*ring) + points * sizeof(ring->point[0]));
	rc = placed && ring ? es_ring_place(nodes, count, placed) : -ENOMEM;
	if (rc) {
		free(placed);
		free(ring);
		return rc;
	}
	qsort(placed, points, sizeof(*placed), es_placed_compare);
	/* The look-up finds the last of two points on one position: keep the lower address's only. */
	for (size_t i = 0; i < points; i++)
		if (!i || placed[i].point.position != placed[i - 1].point.position)
			ring->point[ring->count++] = placed[i].point;
	free(placed);
	*ret_ring = ring;
	return 0;
}

void es_ring_free(struct es_ring **ring)
{
	free(*ring);
	*ring = NULL;
}

/* Index of the greatest point <= @position; the last one if there is none below. */
static size_t es_ring_find(const struct es_ring *ring, __u64 position)
{
	size_t low = 0, high = ring->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ring->point[middle].position <= position)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : ring->count - 1;
}

__u16 es_ring_lookup(const struct es_ring *ring, __u64 position)
{
	return ring->count ? ring->point[es_ring_find(ring, position)].id : ES_NODE_NONE;
}

const struct es_ring_point *es_ring_points(const struct es_ring *ring, size_t *ret_count)
{
	*ret_count = ring->count;
	return ring->point;
}

void es_ring_fill_table(const struct es_ring *ring, struct es_ring_table *ret_table)
{
	size_t next = 0;
	__u16 owner = ES_NODE_NONE;

	if (ring->count)
		owner = ring->point[ring->count - 1].id;
	for (__u64 slot = 0; slot < ES_RING_SLOTS; slot++) {
		while (next < ring->count && ring->point[next].position <= slot << 48)
			owner = ring->point[next++].id;
		ret_table->node[slot] = owner;
	}
}

void es_ring_shares(const struct es_ring *ring, double *ret_shares, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ret_shares[i] = 0;
	for (size_t i = 0; i < ring->count; i++) {
		const struct es_ring_point *p = &ring->point[i];
		const struct es_ring_point *q = &ring->point[(i + 1) % ring->count];

		/* Modulo 2^64; the only point of a ring owns it whole. */
		if (p->id < count)
			ret_shares[p->id] += ring->count == 1 ? 1.0
							      : (double)(q->position - p->position) /
									18446744073709551616.0;
	}
}

void es_ring_walk_init(struct es_ring_walk *walk, const struct es_ring *ring, __u64 position)
{
	memset(walk->seen, 0, sizeof(walk->seen));
	walk->ring = ring;
	walk->left = ring->count;
	walk->at = ring->count ? es_ring_find(ring, position) : 0;
}

bool es_ring_walk_next(struct es_ring_walk *walk, __u16 *ret_id)
{
	while (walk->left) {
		__u16 id = walk->ring->point[walk->at].id;

		walk->left--;
		walk->at = walk->at ? walk->at - 1 : walk->ring->count - 1;
		if (walk->seen[id / 64] >> (id % 64) & 1)
			continue;
		walk->seen[id / 64] |= 1ULL << (id % 64);
		*ret_id = id;
		return true;
	}
	return false;
}
