// SPDX-License-Identifier: GPL-2.0-or-later
/* A version of the cluster: the ring's table, what this node may do of it, and who may be given requests. */
#include "cmocka_all.h"
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/cluster/cluster.h"

#define NODES 3
#define SELF  1

static struct es_conf *conf_new(void)
{
	struct es_conf *conf = calloc(1, sizeof(*conf));

	assert_non_null(conf);
	conf->cluster.virtual_nodes = 63;
	conf->node_count = NODES;
	conf->service_count = 2;
	for (unsigned int i = 0; i < NODES; i++) {
		conf->nodes[i].address = es_addr_from_v4(htonl(10u << 24 | 78u << 16 | (i + 1)));
		conf->nodes[i].weight = 100;
	}
	return conf;
}

static struct es_cluster *cluster(const struct es_conf *conf, const unsigned int *weights,
				  const struct es_share *may)
{
	struct es_cluster *result = NULL;

	assert_int_equal(es_cluster_new(conf, SELF, 7, weights, may, &result), 0);
	return result;
}

static int is_in(const struct es_share *share, unsigned int slot)
{
	return share->bits[slot / 64] >> (slot % 64) & 1;
}

static __u64 hash_of(unsigned int slot)
{
	return (__u64)slot << 48 | 0x123456789abcULL;
}

static void test_without_a_share(void **state)
{
	struct es_conf *conf = conf_new();
	struct es_cluster *c = cluster(conf, NULL, NULL);
	unsigned int count[NODES] = {};
	struct es_share share;

	(void)state;
	memset(&share, 0xff, sizeof(share));
	es_cluster_share(c, &share);
	assert_int_equal(c->epoch, 7);
	for (unsigned int slot = 0; slot < ES_RING_SLOTS; slot++) {
		__u16 node = c->slots->table.node[slot];

		assert_in_range(node, 0, NODES - 1);
		count[node]++;
		assert_int_equal(is_in(&share, slot), node == SELF);
		assert_int_equal(es_cluster_inspects(c, hash_of(slot)), node == SELF);
		assert_int_equal(es_ring_answers(node, SELF), node == SELF);
		assert_int_equal(es_node_ring_answers(c->slots, hash_of(slot)), node == SELF);
	}
	for (unsigned int i = 0; i < NODES; i++) {
		assert_int_equal(c->weight[i], 100);
		assert_true(count[i] > ES_RING_SLOTS / 6);
	}
	es_cluster_free(&c);
	es_conf_free(&conf);
}

/* A node that is absent has no slot; the others keep theirs. */
static void test_weights(void **state)
{
	static const unsigned int weights[] = {100, 100, 0}, half[] = {100, 50, 100};
	struct es_conf *conf = conf_new();
	struct es_cluster *all = cluster(conf, NULL, NULL), *two = cluster(conf, weights, NULL);
	struct es_cluster *lighter = cluster(conf, half, NULL);
	unsigned int before = 0, after = 0;

	(void)state;
	for (unsigned int slot = 0; slot < ES_RING_SLOTS; slot++) {
		assert_in_range(two->slots->table.node[slot], 0, 1);
		if (all->slots->table.node[slot] != 2)
			assert_int_equal(two->slots->table.node[slot], all->slots->table.node[slot]);
		if (lighter->slots->table.node[slot] == SELF)
			assert_int_equal(all->slots->table.node[slot], SELF);
		before += all->slots->table.node[slot] == SELF;
		after += lighter->slots->table.node[slot] == SELF;
	}
	assert_true(after > before / 4 && after < before * 3 / 4);
	assert_memory_equal(two->weight, weights, sizeof(weights));
	/* Given weights stand in for the configuration's altogether. */
	conf->nodes[2].weight = 0;
	es_cluster_free(&lighter);
	lighter = cluster(conf, all->weight, NULL);
	assert_memory_equal(lighter->slots, all->slots, sizeof(*all->slots));
	es_cluster_free(&lighter);
	lighter = cluster(conf, NULL, NULL);
	assert_memory_equal(lighter->slots, two->slots, sizeof(*two->slots));
	es_cluster_free(&lighter);
	es_cluster_free(&two);
	es_cluster_free(&all);
	es_conf_free(&conf);
}

/* From one ring to another, as a ring change does it: nothing is inspected but what is in both. */
static void change(const unsigned int *from, const unsigned int *to)
{
	struct es_conf *conf = conf_new();
	struct es_cluster *old = cluster(conf, from, NULL), *new = cluster(conf, to, NULL);
	struct es_share had, left;
	struct es_cluster *c;

	es_cluster_share(old, &had);
	c = cluster(conf, to, &had);
	es_cluster_share(c, &left);
	for (unsigned int slot = 0; slot < ES_RING_SLOTS; slot++) {
		int was = old->slots->table.node[slot] == SELF, is = new->slots->table.node[slot] == SELF;
		__u16 found = c->slots->table.node[slot];

		assert_int_equal(found & ES_RING_NODE, new->slots->table.node[slot]);
		assert_int_equal(!!(found & ES_RING_WAIT), is && !was);
		assert_int_equal(!!(found & ES_RING_ANSWER), was && !is);
		/* SYNs are answered all the while, by who had the slot and by who gets it. */
		assert_int_equal(es_ring_answers(found, SELF), was || is);
		assert_int_equal(es_node_ring_answers(c->slots, hash_of(slot)), was || is);
		/* The datapath looks for flags only where this node answers. */
		assert_true(was || is || !es_node_ring_waits(c->slots, hash_of(slot)));
		assert_int_equal(es_cluster_inspects(c, hash_of(slot)), was && is);
		assert_int_equal(is_in(&left, slot), was && is);
	}
	es_cluster_free(&c);
	/* A change in the middle of it: what was given up once is not taken up again by itself. */
	c = cluster(conf, from, &left);
	for (unsigned int slot = 0; slot < ES_RING_SLOTS; slot++)
		assert_int_equal(es_cluster_inspects(c, hash_of(slot)), is_in(&left, slot));
	es_cluster_free(&c);
	es_cluster_free(&new);
	es_cluster_free(&old);
	es_conf_free(&conf);
}

static void test_change(void **state)
{
	static const unsigned int all[] = {100, 100, 100}, without_2[] = {100, 100, 0},
				  without_self[] = {100, 0, 100}, alone[] = {0, 100, 0},
				  lighter[] = {100, 40, 100}, other[] = {100, 100, 300}, none[] = {0, 0, 0};
	const unsigned int *rings[] = {all, without_2, without_self, alone, lighter, other};

	(void)state;
	for (size_t i = 0; i < sizeof(rings) / sizeof(rings[0]); i++)
		for (size_t k = 0; k < sizeof(rings) / sizeof(rings[0]); k++)
			change(rings[i], rings[k]);
	change(none, all);
}

/* A slot is this node's since the change that gave it to it, whatever changed later; once it was another's,
 * anew. */
static void test_tenure(void **state)
{
	static const unsigned int steps[][NODES] = {
		{100, 100, 0}, {100, 100, 100}, {100, 40, 100}, {100, 100, 100}, {100, 100, 0}};
	struct es_conf *conf = conf_new();
	struct es_cluster *all = cluster(conf, NULL, NULL);
	static struct es_tenure tenure;
	struct es_share share = {}, before;
	static uint64_t since[ES_RING_SLOTS];

	(void)state;
	assert_true(es_cluster_since_ms(all, hash_of(0)) == UINT64_MAX &&
		    es_cluster_has_doubts(all, hash_of(0)));
	for (uint64_t now_ms = 1000; now_ms <= 5000; now_ms += 1000) {
		struct es_cluster *c = cluster(conf, steps[now_ms / 1000 - 1], NULL);

		before = share;
		es_cluster_share(c, &share);
		es_tenure_set(&tenure, &share, now_ms);
		tenure.doubts_ms = 3000;
		assert_int_equal(es_cluster_set_tenure(c, &tenure), 0);
		for (unsigned int slot = 0; slot < ES_RING_SLOTS; slot++) {
			if (!is_in(&share, slot))
				since[slot] = UINT64_MAX;
			else if (!is_in(&before, slot))
				since[slot] = now_ms;
			assert_true(es_cluster_since_ms(c, hash_of(slot)) == since[slot]);
			assert_int_equal(es_cluster_has_doubts(c, hash_of(slot)), since[slot] >= 3000);
		}
		es_cluster_free(&c);
	}
	es_cluster_free(&all);
	es_conf_free(&conf);
}

/* Nobody is on it: nobody is answered, whatever this node had. */
static void test_empty_ring(void **state)
{
	static const unsigned int none[NODES];
	struct es_conf *conf = conf_new();
	struct es_health health = {};
	struct es_share share;
	struct es_cluster *c;

	(void)state;
	for (int with_share = 0; with_share < 2; with_share++) {
		memset(&share, 0xff, sizeof(share));
		c = cluster(conf, none, with_share ? &share : NULL);
		es_cluster_share(c, &share);
		for (unsigned int slot = 0; slot < ES_RING_SLOTS; slot++) {
			assert_int_equal(c->slots->table.node[slot], ES_NODE_NONE);
			assert_false(es_ring_answers(c->slots->table.node[slot], SELF));
			assert_false(es_node_ring_answers(c->slots, hash_of(slot)));
			assert_false(es_cluster_inspects(c, hash_of(slot)));
			assert_false(is_in(&share, slot));
		}
		for (unsigned int i = 0; i < NODES; i++)
			assert_false(es_cluster_is_target(c, &health, i, 0));
		es_cluster_free(&c);
	}
	es_conf_free(&conf);
}

static void test_flags_and_ids_are_apart(void **state)
{
	(void)state;
	assert_int_equal(ES_RING_NODE & (ES_RING_WAIT | ES_RING_ANSWER), 0);
	assert_int_equal(ES_NODE_NONE & ~ES_RING_NODE, 0);
	for (__u32 self = 0; self < ES_NODES_MAX; self++) {
		assert_false(es_ring_answers(ES_NODE_NONE, self));
		assert_true(es_ring_answers(self, self));
		assert_true(es_ring_answers(self | ES_RING_WAIT, self));
		assert_true(es_ring_answers((self ^ 1) | ES_RING_ANSWER, self));
		assert_false(es_ring_answers(self ^ 1, self));
		assert_false(es_ring_answers((self ^ 1) | ES_RING_WAIT, self));
	}
}

/* A server that does not listen says nothing about the node's others. */
static void leave_one_service(const struct es_cluster *c)
{
	struct es_node_set none = {};
	struct es_health health = {};

	for (unsigned int service = 0; service < 2; service++) {
		for (unsigned int family = 0; family < ES_CONF_FAMILIES; family++) {
			es_health_suspend_service(&health, 0, service, family, 6);
			assert_false(es_cluster_is_target_of(c, &health, 0, service, family, 5));
			assert_true(es_cluster_is_target_of(c, &health, 0, service, family, 6));
			assert_true(es_cluster_is_target_of(c, &health, 0, service, !family, 5));
			assert_true(es_cluster_is_target_of(c, &health, 0, !service, family, 5));
			assert_true(es_cluster_is_target_of(c, &health, 1, service, family, 5));
			assert_false(es_cluster_is_target(c, &health, 0, 5)); /* of whatever service */
			/* If none is left, the one that was left alone first, or not at all, comes first. */
			assert_int_equal(es_cluster_first_suspended(c, &health, service, family, none, 5), 1);
			assert_int_equal(es_cluster_first_suspended(c, &health, !service, family, none, 5),
					 0);
			es_health_renumber(&health);
			assert_true(es_cluster_is_target(c, &health, 0, 5));
		}
	}
	es_health_suspend_service(&health, 0, ES_CONF_SERVICES_MAX, 0, 6); /* a number from the network */
	es_health_suspend_service(&health, ES_NODES_MAX, 0, 0, 6);
	assert_true(es_cluster_is_target(c, &health, 0, 5));
}

static void test_is_target(void **state)
{
	static const unsigned int weights[] = {100, 100, 0};
	struct es_conf *conf = conf_new();
	struct es_cluster *c = cluster(conf, weights, NULL);
	struct es_health health = {};

	(void)state;
	assert_true(es_cluster_is_target(c, &health, 0, 5));
	assert_false(es_cluster_is_target(c, &health, 2, 5)); /* not on the ring */
	assert_false(es_cluster_is_target(c, &health, NODES, 5));
	for (unsigned int node = 0; node < 2; node++) {
		for (enum es_node_state s = ES_NODE_UP; s <= ES_NODE_ABSENT; s++) {
			es_health_set_state(&health, node, s);
			assert_int_equal(es_health_state(&health, node), s);
			assert_int_equal(es_cluster_is_target(c, &health, node, 5), s == ES_NODE_UP);
			assert_true(es_cluster_is_target(c, &health, !node, 5)); /* the other one */
		}
		es_health_set_state(&health, node, ES_NODE_UP);
		es_health_suspend(&health, node, 6);
		assert_false(es_cluster_is_target(c, &health, node, 5));
		assert_true(es_cluster_is_target(c, &health, node, 6));
		es_health_suspend(&health, node, 0);
		/*
		 * A server that listens there for one family, or does not, says nothing about the other
		 * family.
		 */
		for (unsigned int family = 0; family < ES_CONF_FAMILIES; family++) {
			es_health_suspend_for(&health, node, family, 6);
			assert_false(es_cluster_is_target(c, &health, node, 5));
			assert_false(es_cluster_is_target_of(c, &health, node, 1, family, 5));
			assert_true(es_cluster_is_target_of(c, &health, node, 1, !family, 5));
			assert_true(es_cluster_is_target_of(c, &health, node, 1, family, 6));
			es_health_set_state(&health, node, ES_NODE_DRAINING);
			assert_false(es_cluster_is_last_resort(c, &health, node, 1, family, 5));
			assert_true(es_cluster_is_last_resort(c, &health, node, 1, !family, 5));
			es_health_set_state(&health, node, ES_NODE_UP);
			es_health_suspend_for(&health, node, family, 0);
		}
	}
	leave_one_service(c);
	/* One of weight 0 serves when nobody else does, be it up or draining, as long as it can. */
	for (enum es_node_state s = ES_NODE_UP; s <= ES_NODE_ABSENT; s++) {
		es_health_set_state(&health, 2, s);
		assert_false(es_cluster_is_target(c, &health, 2, 5));
		assert_int_equal(es_cluster_is_last_resort(c, &health, 2, 0, 0, 5),
				 s == ES_NODE_UP || s == ES_NODE_DRAINING);
		es_health_set_state(&health, 0, s);
		assert_int_equal(es_cluster_is_last_resort(c, &health, 0, 0, 0, 5), s == ES_NODE_DRAINING);
	}
	es_health_set_state(&health, 2, ES_NODE_UP);
	es_health_suspend(&health, 2, 6);
	assert_false(es_cluster_is_last_resort(c, &health, 2, 0, 0, 5));
	assert_true(es_cluster_is_last_resort(c, &health, 2, 0, 0, 6));
	es_cluster_free(&c);
	es_conf_free(&conf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_a_share), cmocka_unit_test(test_weights),
		cmocka_unit_test(test_change),		cmocka_unit_test(test_tenure),
		cmocka_unit_test(test_empty_ring),	cmocka_unit_test(test_flags_and_ids_are_apart),
		cmocka_unit_test(test_is_target),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
