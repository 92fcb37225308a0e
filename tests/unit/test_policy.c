// SPDX-License-Identifier: GPL-2.0-or-later
/* The policies, step by step; and that none ever picks a node that is no target. */
#include "route_world.h"

static void test_list(void **state)
{
	(void)state;
	for (const struct es_policy *const *p = es_policy_list(); *p; p++)
		assert_ptr_equal(es_policy_find((*p)->name), *p);
	assert_null(es_policy_find("no-such"));
}

static void test_wrr(void **state)
{
	static const unsigned int weights[] = {200, 100, 100};
	static const int smooth[] = {0, 1, 2, 0, 0, 1, 2, 0};
	struct es_cluster *c = cluster(3, weights);
	struct es_router *router;

	(void)state;
	router = router_new(&es_policy_wrr, c, 0);
	for (size_t i = 0; i < 8; i++)
		assert_int_equal(route(router, "/", 0, 0), smooth[i]);
	es_health_suspend(&health, 0, 100);
	for (size_t i = 0; i < 6; i++)
		assert_int_not_equal(route(router, "/", 0, 99), 0);
	assert_int_equal(route(router, "/", 0, 100), 0);
	router_free(router);
	cluster_free(c);
}

static void test_uri_hash(void **state)
{
	struct es_cluster *c = cluster(3, NULL);
	unsigned int per_node[3] = {};
	struct es_router *router;
	char uri[64];
	int where, next;

	(void)state;
	router = router_new(&es_policy_uri_hash, c, 0);
	/* MD5("/index.html") = d1546d73..., which node 1 owns (test_ring.c has the golden values). */
	assert_int_equal(route(router, "/index.html", 0, 0), 1);
	assert_int_equal(route(router, "http://any.example/index.html", 99, 0), 1);
	/* The front pages of many sites are as many pieces of content. */
	content_host = 1;
	for (unsigned int i = 0; i < 60; i++) {
		snprintf(uri, sizeof(uri), "http://s%u.example", i);
		per_node[route(router, uri, i, 0)]++;
	}
	for (unsigned int i = 0; i < 3; i++) {
		assert_in_range(per_node[i], 10, 30);
		per_node[i] = 0;
	}
	content_host = 0;
	for (unsigned int i = 0; i < 3000; i++) {
		snprintf(uri, sizeof(uri), "/f?id=%u", i);
		where = route(router, uri, i, 0);
		assert_in_range(where, 0, 2);
		per_node[where]++;
		assert_int_equal(route(router, uri, i + 7, 0), where);
		/* Its node away: another one, always the same, and back when it is back. */
		if (i % 100 == 0) {
			es_health_suspend(&health, (unsigned int)where, 50);
			next = route(router, uri, i, 49);
			assert_in_range(next, 0, 2);
			assert_int_not_equal(next, where);
			assert_int_equal(route(router, uri, i + 3, 49), next);
			assert_int_equal(route(router, uri, i, 50), where);
			es_health_suspend(&health, (unsigned int)where, 0);
		}
	}
	for (int i = 0; i < 3; i++)
		assert_true(per_node[i] > 600);
	router_free(router);
	cluster_free(c);
}

/* How many of 3000 contents the node of @c gets from this policy at @now_ns; they are asked for once each. */
static unsigned int share_of(const struct es_policy *policy, struct es_cluster *c, unsigned int node,
			     unsigned long long now_ns, unsigned char *ret_has)
{
	struct es_router *router = router_new(policy, c, 0);
	unsigned int count = 0;
	char uri[64];

	for (unsigned int i = 0; i < 3000; i++) {
		snprintf(uri, sizeof(uri), "/slow?id=%u", i);
		ret_has[i] = route(router, uri, i, now_ns) == (int)node;
		count += ret_has[i];
	}
	router_free(router);
	return count;
}

/* A node that is up again has more and more of its share; content that it has got stays there. */
static void test_slow_start(void **state)
{
	static const struct es_policy *const policies[] = {&es_policy_uri_hash, &es_policy_ward,
							   &es_policy_wrr};
	const unsigned long long second = 1000000000ULL, up = 1000 * second;
	static unsigned char has[3000], before[3000];
	struct es_cluster *c = cluster(3, NULL);
	struct es_conf *conf = (struct es_conf *)c->conf;

	(void)state;
	conf->services[0].check.slow_start_s = 10;
	for (int p = 0; p < 3; p++) {
		unsigned int whole, last = 0;

		es_health_is_back(&health, 2, ~0ULL, 0);
		whole = share_of(policies[p], c, 2, up, before);
		assert_in_range(whole, 600, 1400);
		es_health_change_state(&health, 2, ES_NODE_DOWN, up - second);
		assert_int_equal(share_of(policies[p], c, 2, up, has), 0);
		es_health_change_state(&health, 2, ES_NODE_UP, up);
		memset(before, 0, sizeof(before));
		for (unsigned int s = 0; s <= 10; s++) {
			/* Between n of 2 + n nodes and n of 3 is no difference that matters here. */
			double part = 0.05 + 0.95 * s / 10, at_least = whole * part * 0.75;
			unsigned int count = share_of(policies[p], c, 2, up + s * second, has);

			assert_in_range(count, (unsigned int)at_least,
					(unsigned int)(whole * part * 1.5 + 5));
			assert_true(count > last);
			last = count;
			for (int i = 0; p < 2 && i < 3000; i++)
				assert_true(has[i] >= before[i]);
			memcpy(before, has, sizeof(before));
		}
		assert_int_equal(last, whole);
	}
	/* Nobody else is there: it has all, at once. */
	es_health_is_back(&health, 2, ~0ULL, up);
	es_health_set_state(&health, 0, ES_NODE_DOWN);
	es_health_set_state(&health, 1, ES_NODE_DOWN);
	assert_int_equal(share_of(&es_policy_uri_hash, c, 2, up, has), 3000);
	assert_int_equal(share_of(&es_policy_wrr, c, 2, up, has), 3000);
	memset(&health, 0, sizeof(health));
	conf->services[0].check.slow_start_s = 0;
	cluster_free(c);
}

/* One hot URI: without a bound one node gets it all, with one the others get what is above. */
static void test_load_bound(void **state)
{
	static struct es_load load[4];
	const struct es_route_shared shared = {.load = load};
	struct es_cluster *c = cluster(4, NULL);
	unsigned int per_node[4] = {};
	struct es_router *router;

	(void)state;
	router = router_new(&es_policy_uri_hash, c, 125);
	for (int i = 0; i < 4; i++)
		assert_int_equal(es_load_init(&load[i]), 0);
	router->shared = &shared;
	for (unsigned int i = 0; i < 4000; i++) {
		int node = route(router, "/hot", i, 1000000000ULL);

		per_node[node]++;
		es_route_sent(router, (unsigned int)node, 1, 1000000000ULL);
		/* Few requests are no imbalance: they stay together. */
		if (i < 25)
			assert_int_equal(per_node[node], i + 1);
	}
	for (int i = 0; i < 4; i++) {
		assert_in_range(per_node[i], 100, 1300); /* 125% of a fair share is 1,250 */
		es_load_fini(&load[i]);
	}
	router_free(router);
	cluster_free(c);
}

static void test_never_a_node_that_is_none(void **state)
{
	static const unsigned int weights[] = {100, 0, 50, 100, 0, 10};
	const __u64 zero_weights = 1 << 1 | 1 << 4;
	struct es_cluster *c = cluster(6, weights);
	uint64_t seed = 8;

	(void)state;
	for (const struct es_policy *const *p = es_policy_list(); *p; p++) {
		struct es_router *router;

		router = router_new(*p, c, 110);
		for (unsigned int i = 0; i < 20000; i++) {
			__u64 r = es_test_random(&seed);
			unsigned int targets = 0, suspended = 0;
			char uri[32];
			int got;

			for (unsigned int n = 0; n < 6; n++) {
				es_health_suspend(&health, n, r >> n & 1 && r >> (8 + n) & 1 ? 10 : 0);
				es_health_set_mistimed(&health, n,
						       r >> n & 1 && !(r >> (8 + n) & 1) ? 10 : 0);
				targets += weights[n] && !(r >> n & 1);
				suspended += weights[n] && r >> n & 1 && r >> (8 + n) & 1;
			}
			snprintf(uri, sizeof(uri), "/%u", (unsigned int)(r >> 32) % 1000);
			got = route(router, uri, r, 5);
			if (!targets && (r & zero_weights) != zero_weights) /* the last resort */
				assert_true(got >= 0 && !weights[got] && !(r >> got & 1));
			else if (!targets && suspended) /* rather than none */
				assert_true(got >= 0 && weights[got] && r >> (8 + got) & 1);
			else if (!targets)
				assert_int_equal(got, -1);
			else
				assert_true(got >= 0 && weights[got] && !(r >> got & 1));
		}
		router_free(router);
	}
	cluster_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),	   cmocka_unit_test(test_wrr),
		cmocka_unit_test(test_uri_hash),   cmocka_unit_test(test_slow_start),
		cmocka_unit_test(test_load_bound), cmocka_unit_test(test_never_a_node_that_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
