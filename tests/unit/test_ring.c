// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libearshot-ring: positions against values computed elsewhere (python3's hashlib), and the properties for
 * which a consistent-hash ring is chosen: balance, monotonicity, weights.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <earshot/ring.h>

static struct es_ring_node node(unsigned int id, unsigned int virtual_nodes)
{
	struct es_ring_node n = {.virtual_nodes = virtual_nodes, .id = (__u16)id};

	/* 10.78.x.y */
	n.address = es_addr_from_v4(es_htonl(10u << 24 | 78u << 16 | (id + 1)));
	return n;
}

static struct es_ring *make(unsigned int count, unsigned int virtual_nodes)
{
	struct es_ring_node nodes[ES_NODES_MAX];
	struct es_ring *ring = NULL;

	for (unsigned int i = 0; i < count; i++)
		nodes[i] = node(i, virtual_nodes);
	assert_int_equal(es_ring_new(nodes, count, &ring), 0);
	return ring;
}

static struct es_ring_table *table_of(const struct es_ring *ring)
{
	struct es_ring_table *table = malloc(sizeof(*table));

	assert_non_null(table);
	es_ring_fill_table(ring, table);
	return table;
}

static void test_golden_positions(void **state)
{
	static const struct {
		__u64 position;
		unsigned int id;
	} golden[] = {
		{0xe89e90b2bbcea55c, 0}, {0xbddfd8eab1afdb38, 0}, {0xd67d808db11caa2b, 0},
		{0x20a8cf68a096a770, 1}, {0xd372aa9447cedffb, 1}, {0xd01505de8eb7f1be, 1},
		{0x677a07f1a6b3d00a, 2}, {0x165105ab99b61d17, 2}, {0xc079af4f382df37e, 2},
	};
	struct es_ring *ring = make(3, ES_RING_VIRTUAL_NODES_DEFAULT);
	const struct es_ring_point *points;
	size_t count, found = 0;

	(void)state;
	points = es_ring_points(ring, &count);
	assert_int_equal(count, 3 * 63);
	for (size_t i = 0; i < count; i++) {
		if (i)
			assert_true(points[i - 1].position < points[i].position);
		for (size_t k = 0; k < sizeof(golden) / sizeof(golden[0]); k++)
			found += golden[k].position == points[i].position && golden[k].id == points[i].id;
	}
	assert_int_equal(found, 9);
	for (size_t k = 0; k < 9; k++)
		assert_int_equal(es_ring_lookup(ring, golden[k].position), golden[k].id);
	es_ring_free(&ring);
	assert_null(ring);
	es_ring_free(&ring);
}

static void test_golden_table(void **state)
{
	static const unsigned char golden[16] = {0x24, 0x6b, 0x25, 0x8b, 0x0f, 0x68, 0x12, 0x03,
						 0xab, 0x83, 0xc7, 0x70, 0x37, 0xa2, 0x3d, 0xa4};
	struct es_ring *ring = make(3, ES_RING_VIRTUAL_NODES_DEFAULT);
	struct es_ring_table *table = table_of(ring);
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned char *bytes = malloc(2 * ES_RING_SLOTS);

	(void)state;
	assert_non_null(bytes);
	for (size_t i = 0; i < ES_RING_SLOTS; i++) {
		bytes[2 * i] = (unsigned char)table->node[i];
		bytes[2 * i + 1] = (unsigned char)(table->node[i] >> 8);
		assert_int_equal(table->node[i], es_ring_lookup(ring, (__u64)i << 48));
	}
	assert_true(EVP_Digest(bytes, (size_t)2 * ES_RING_SLOTS, digest, NULL, EVP_md5(), NULL));
	assert_memory_equal(digest, golden, sizeof(golden));
	assert_int_equal(es_ring_table_lookup(table, 0xffffffffffffffff), table->node[65535]);
	free(bytes);
	free(table);
	es_ring_free(&ring);
}

/* A flow's node is the same on the exact ring and in the table, also just before and after each point. */
static void test_flow_position(void **state)
{
	const struct es_ring_point *points;
	struct es_ring_table *table;
	struct es_ring *ring;
	size_t count;

	(void)state;
	ring = make(3, ES_RING_VIRTUAL_NODES_DEFAULT);
	table = table_of(ring);
	points = es_ring_points(ring, &count);
	assert_true(count > 100);
	for (size_t i = 0; i < count; i++)
		for (int near = -1; near <= 1; near++) {
			__u64 hash = points[i].position + (__u64)near;

			assert_int_equal(es_ring_lookup(ring, es_ring_flow_position(hash)),
					 es_ring_table_lookup(table, hash));
		}
	free(table);
	es_ring_free(&ring);
}

static void test_content(void **state)
{
	struct es_content_hasher *hasher = NULL;
	struct es_ring *ring = make(3, ES_RING_VIRTUAL_NODES_DEFAULT);
	__u64 position = 0;

	(void)state;
	assert_int_equal(es_content_hasher_new(&hasher), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(es_content_ring_hash(hasher, "/index.html", 11, &position), 0);
		assert_true(position == 0xd1546d731a9f30cc);
	}
	assert_int_equal(es_ring_lookup(ring, position), 1);
	assert_int_equal(es_content_ring_hash(hasher, "", 0, &position), 0);
	assert_true(position == 0xd41d8cd98f00b204);
	es_content_hasher_free(&hasher);
	assert_null(hasher);
	es_ring_free(&ring);
}

static void test_empty_and_single(void **state)
{
	struct es_ring *ring = make(0, 0);
	struct es_ring_table *table = table_of(ring);
	struct es_ring_walk walk;
	double share = 7;
	__u16 id = 42;

	(void)state;
	assert_int_equal(es_ring_lookup(ring, 1), ES_NODE_NONE);
	assert_int_equal(table->node[0], ES_NODE_NONE);
	assert_int_equal(table->node[65535], ES_NODE_NONE);
	es_ring_walk_init(&walk, ring, 1);
	assert_false(es_ring_walk_next(&walk, &id));
	assert_int_equal(id, 42);
	free(table);
	es_ring_free(&ring);

	ring = make(1, 1);
	assert_int_equal(es_ring_lookup(ring, 0), 0);
	assert_int_equal(es_ring_lookup(ring, ~0ULL), 0);
	es_ring_shares(ring, &share, 1);
	assert_true(share == 1.0);
	es_ring_free(&ring);
}

static void test_errors(void **state)
{
	struct es_ring *ring = (struct es_ring *)0x1;
	struct es_ring_node nodes[ES_NODES_MAX + 1];

	(void)state;
	for (unsigned int i = 0; i <= ES_NODES_MAX; i++)
		nodes[i] = node(i, 1);
	assert_int_equal(es_ring_new(nodes, ES_NODES_MAX + 1, &ring), -E2BIG);
	nodes[0].virtual_nodes = ES_RING_POINTS_MAX;
	assert_int_equal(es_ring_new(nodes, 2, &ring), -E2BIG);
	nodes[0] = node(1, 1);
	assert_int_equal(es_ring_new(nodes, 2, &ring), -EEXIST);
	nodes[0].id = 0; /* another id, the same address */
	assert_int_equal(es_ring_new(nodes, 2, &ring), -EEXIST);
	nodes[0] = node(0, 1);
	nodes[0].id = ES_NODES_MAX;
	assert_int_equal(es_ring_new(nodes, 2, &ring), -EINVAL);
	assert_ptr_equal(ring, (struct es_ring *)0x1);
}

static void test_order_does_not_matter(void **state)
{
	struct es_ring_node forth[10], back[10];
	struct es_ring *a = NULL, *b = NULL;
	struct es_ring_table *ta, *tb;

	(void)state;
	for (unsigned int i = 0; i < 10; i++)
		forth[i] = back[9 - i] = node(i, 63);
	assert_int_equal(es_ring_new(forth, 10, &a), 0);
	assert_int_equal(es_ring_new(back, 10, &b), 0);
	ta = table_of(a);
	tb = table_of(b);
	assert_memory_equal(ta, tb, sizeof(*ta));
	free(ta);
	free(tb);
	es_ring_free(&a);
	es_ring_free(&b);
}

static void test_limits(void **state)
{
	struct es_ring *ring = make(64, 256);
	double shares[64], sum = 0;
	size_t count;

	(void)state;
	es_ring_points(ring, &count);
	assert_int_equal(count, 16384);
	es_ring_shares(ring, shares, 64);
	for (int i = 0; i < 64; i++) {
		assert_true(shares[i] > 0.7 / 64 && shares[i] < 1.4 / 64);
		sum += shares[i];
	}
	assert_true(fabs(sum - 1) < 1e-9);
	es_ring_free(&ring);
}

/* DTS Fig. 8: 8 nodes; from 31 virtual nodes on the load is nearly equal. ring-balance prints the figure. */
static void test_balance(void **state)
{
	static const struct {
		unsigned int virtual_nodes;
		double min, max;
	} band[] = {{31, 0.08, 0.19}, {63, 0.09, 0.17}, {255, 0.105, 0.15}};

	(void)state;
	for (size_t b = 0; b < sizeof(band) / sizeof(band[0]); b++) {
		struct es_ring *ring = make(8, band[b].virtual_nodes);
		double shares[8];

		es_ring_shares(ring, shares, 8);
		for (int i = 0; i < 8; i++)
			assert_true(shares[i] > band[b].min && shares[i] < band[b].max);
		es_ring_free(&ring);
	}
}

/* A node that leaves gives away its own keys only, and the others' are where they were: exact and sampled. */
static void test_monotonic(void **state)
{
	struct es_ring *all = make(9, 63);
	struct es_ring_table *with = table_of(all);

	(void)state;
	for (unsigned int gone = 0; gone < 9; gone++) {
		struct es_ring_node nodes[8];
		struct es_ring_table *without;
		struct es_ring *rest = NULL;
		unsigned int moved = 0, n = 0;

		for (unsigned int i = 0; i < 9; i++)
			if (i != gone)
				nodes[n++] = node(i, 63);
		assert_int_equal(es_ring_new(nodes, 8, &rest), 0);
		without = table_of(rest);
		for (size_t s = 0; s < ES_RING_SLOTS; s++) {
			if (with->node[s] == gone) {
				assert_int_not_equal(without->node[s], gone);
				moved++;
			} else {
				assert_int_equal(without->node[s], with->node[s]);
			}
		}
		assert_true(moved > 0);
		for (unsigned int k = 0; k < 20000; k++) {
			__u64 position = (__u64)k * 0x9e3779b97f4a7c15ULL;
			__u16 owner = es_ring_lookup(all, position);

			if (owner != gone)
				assert_int_equal(es_ring_lookup(rest, position), owner);
		}
		free(without);
		es_ring_free(&rest);
	}
	free(with);
	es_ring_free(&all);
}

static void test_weights(void **state)
{
	struct es_ring_node nodes[4];
	struct es_ring *ring = NULL;
	double shares[4];

	(void)state;
	assert_int_equal(es_ring_virtual_nodes(63, 100), 63);
	assert_int_equal(es_ring_virtual_nodes(63, 0), 0);
	assert_int_equal(es_ring_virtual_nodes(63, 1), 1);
	assert_int_equal(es_ring_virtual_nodes(63, 50), 32);
	assert_int_equal(es_ring_virtual_nodes(63, 200), 126);
	assert_int_equal(es_ring_virtual_nodes(0, 100), 0);
	assert_int_equal(es_ring_virtual_nodes(1024, 100000), ES_RING_POINTS_MAX);
	for (unsigned int i = 0; i < 4; i++)
		nodes[i] = node(i, es_ring_virtual_nodes(1000, i ? 100 : 300));
	nodes[3].virtual_nodes = 0;
	assert_int_equal(es_ring_new(nodes, 4, &ring), 0);
	es_ring_shares(ring, shares, 4);
	assert_true(fabs(shares[0] - 0.6) < 0.05);
	assert_true(fabs(shares[1] - 0.2) < 0.03);
	assert_true(shares[3] == 0);
	es_ring_free(&ring);
}

static void test_walk(void **state)
{
	struct es_ring *ring = make(ES_NODES_MAX, 8);

	(void)state;
	for (unsigned int k = 0; k < 500; k++) {
		__u64 position = (__u64)k * 0x9e3779b97f4a7c15ULL;
		char seen[ES_NODES_MAX] = {};
		struct es_ring_walk walk;
		unsigned int n = 0;
		__u16 id = 0;

		es_ring_walk_init(&walk, ring, position);
		while (es_ring_walk_next(&walk, &id)) {
			if (!n++)
				assert_int_equal(id, es_ring_lookup(ring, position));
			assert_int_equal(seen[id]++, 0);
		}
		assert_int_equal(n, ES_NODES_MAX);
	}
	es_ring_free(&ring);
}

/* The second node of a walk is where the key goes when the first one leaves. */
static void test_walk_is_succession(void **state)
{
	struct es_ring *all = make(5, 63);

	(void)state;
	for (unsigned int k = 0; k < 2000; k++) {
		__u64 position = (__u64)k * 0x9e3779b97f4a7c15ULL;
		struct es_ring_node nodes[4];
		struct es_ring *rest = NULL;
		struct es_ring_walk walk;
		unsigned int n = 0;
		__u16 first = 0, second = 0;

		es_ring_walk_init(&walk, all, position);
		assert_true(es_ring_walk_next(&walk, &first));
		assert_true(es_ring_walk_next(&walk, &second));
		for (unsigned int i = 0; i < 5; i++)
			if (i != first)
				nodes[n++] = node(i, 63);
		if (k % 50 == 0) {
			assert_int_equal(es_ring_new(nodes, 4, &rest), 0);
			assert_int_equal(es_ring_lookup(rest, position), second);
			es_ring_free(&rest);
		}
	}
	es_ring_free(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden_positions),
		cmocka_unit_test(test_golden_table),
		cmocka_unit_test(test_flow_position),
		cmocka_unit_test(test_content),
		cmocka_unit_test(test_empty_and_single),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_order_does_not_matter),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_balance),
		cmocka_unit_test(test_monotonic),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_walk_is_succession),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
