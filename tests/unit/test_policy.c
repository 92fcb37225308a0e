// SPDX-License-Identifier: GPL-2.0-or-later
/* The policies, step by step; and that none ever picks a node that is no target. */
#include "cmocka_all.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/policy/list.h"
#include "inspector/inspect/route.h"

static struct es_name name; /* large */
static int content_host;

static struct es_health health;

static void cluster_free(struct es_cluster *c)
{
	struct es_conf *conf = (struct es_conf *)c->conf;

	es_cluster_free(&c);
	es_conf_free(&conf);
}

static struct es_cluster *cluster(unsigned int nodes, const unsigned int *weights)
{
	struct es_conf *conf = calloc(1, sizeof(*conf));
	struct es_cluster *result = NULL;

	assert_non_null(conf);
	conf->cluster.virtual_nodes = 63;
	conf->node_count = nodes;
	for (unsigned int i = 0; i < nodes; i++) {
		conf->nodes[i].address = es_addr_from_v4(htonl(10u << 24 | 78u << 16 | (i + 1)));
		conf->nodes[i].weight = weights ? weights[i] : 100;
	}
	assert_int_equal(es_cluster_new(conf, 0, 1, NULL, NULL, &result), 0);
	memset(&health, 0, sizeof(health));
	return result;
}

/* One policy for one service on cluster @c. */
static struct es_router *router_new(const struct es_policy *policy, struct es_cluster *c,
				    unsigned int load_bound)
{
	struct es_conf *conf = (struct es_conf *)c->conf;
	struct es_router *router = calloc(1, sizeof(*router));

	assert_non_null(router);
	conf->service_count = 1;
	conf->services[0].load_bound = load_bound;
	snprintf(conf->services[0].policy, sizeof(conf->services[0].policy), "%s", policy->name);
	assert_int_equal(es_router_init(router, c, &health, NULL), 0);
	return router;
}

static void router_free(struct es_router *router)
{
	es_router_fini(router);
	free(router);
}

/* The node for a GET of @uri. */
static int route(struct es_router *router, const char *uri, __u64 flow_hash, unsigned long long now_ns)
{
	struct es_request_view request = {.flow_hash = flow_hash, .current = -1};
	struct es_rejection rejection;
	struct es_http_head head;
	char text[512];
	size_t len = (size_t)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", uri);

	es_http_head_init(&head);
	assert_int_equal(es_http_head_scan(&head, text, len), ES_HTTP_DONE);
	es_request_describe(&request, &head, text, len, content_host, &name);
	return es_route(router, 0, &request, now_ns, NULL, &rejection);
}

/* What the daemon makes of a request: which content it is for, and its path for rules. */
static void describe(const char *bytes, int has_host, struct es_request_view *ret)
{
	static struct es_http_head head;

	*ret = (struct es_request_view){.current = -1};
	es_http_head_init(&head);
	assert_int_equal(es_http_head_scan(&head, bytes, strlen(bytes)), ES_HTTP_DONE);
	es_request_describe(ret, &head, bytes, strlen(bytes), has_host, &name);
}

static void test_describe(void **state)
{
	static const struct {
		const char *bytes, *uri, *name, *name_without_host;
	} cases[] = {
		{"GET /%7ea HTTP/1.1\r\nHost: A:80\r\n\r\n", "/%7ea", "//a/~a", "/~a"},
		{"GET http://B/x?y HTTP/1.1\r\nHost: a\r\n\r\n", "/x?y", "//b/x?y", "/x?y"},
		{"GET http://b HTTP/1.1\r\nHost: b\r\n\r\n", "/", "//b/", "/"},
		{"GET http://b?y HTTP/1.1\r\nHost: b\r\n\r\n", "/", "//b/?y", "/?y"},
		{"GET /x HTTP/1.0\r\n\r\n", "/x", "/x", "/x"},
		{"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", NULL, NULL, NULL},
		{"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", NULL, NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int has_host = 0; has_host < 2; has_host++) {
			const char *expected = has_host ? cases[i].name : cases[i].name_without_host;
			struct es_request_view r;

			describe(cases[i].bytes, has_host, &r);
			if (!expected) {
				assert_null(r.uri);
				assert_int_equal(r.content, 0);
				continue;
			}
			assert_int_equal(r.uri_len, strlen(cases[i].uri));
			assert_memory_equal(r.uri, cases[i].uri, r.uri_len);
			assert_int_equal(r.name_len, strlen(expected));
			assert_memory_equal(r.name, expected, r.name_len);
			assert_true(r.content == es_content_hash(expected, strlen(expected)));
		}
	}
}

static void test_list(void **state)
{
	(void)state;
	for (const struct es_policy *const *p = es_policy_list(); *p; p++)
		assert_ptr_equal(es_policy_find((*p)->name), *p);
	assert_null(es_policy_find("no-such"));
}

/* Rules come before the policy, and what the policy picks stays within what they leave. */
static void test_rules(void **state)
{
	struct es_cluster *c = cluster(3, NULL);
	struct es_conf *conf = (struct es_conf *)c->conf;
	struct es_request_view request = {.current = -1};
	static const char text[] = "HEAD /only/ HTTP/1.1\r\nHost: x\r\n\r\n";
	struct es_rejection rejection;
	struct es_router *router;
	struct es_http_head head;

	(void)state;
	conf->rule_count = 2;
	conf->rules = calloc(2, sizeof(*conf->rules));
	assert_non_null(conf->rules);
	conf->services[0].retry_after_s = 9;
	for (unsigned int i = 0; i < 2; i++) {
		struct es_conf_rule *rule = &conf->rules[i];

		rule->is_location = 1;
		rule->service = -1;
		rule->cost = 40 + i;
		rule->node_names.count = 1;
		es_node_set_add(&rule->nodes, 2);
		snprintf(rule->name, sizeof(rule->name), "%s", i ? "/only/" : "/any/");
	}
	conf->rules[1].otherwise = ES_CONF_OTHERWISE_REJECT;
	router = router_new(&es_policy_wrr, c, 0);
	for (unsigned int i = 0; i < 6; i++) {
		assert_int_equal(route(router, "/any/x", i, 0), 2);
		assert_int_equal(route(router, "/only/x", i, 0), 2);
	}
	es_health_suspend(&health, 2, 100);
	for (unsigned int i = 0; i < 6; i++) {
		assert_in_range(route(router, "/any/x", i, 1), 0, 1);
		assert_int_equal(route(router, "/only/x", i, 1), ES_ROUTE_REJECT);
	}
	es_http_head_init(&head);
	assert_int_equal(es_http_head_scan(&head, text, sizeof(text) - 1), ES_HTTP_DONE);
	es_request_describe(&request, &head, text, sizeof(text) - 1, 1, &name);
	assert_int_equal(es_route(router, 0, &request, 1, NULL, &rejection), ES_ROUTE_REJECT);
	assert_int_equal(rejection.status, 503);
	assert_int_equal(rejection.retry_after_s, 9);
	assert_true(rejection.is_head);
	/* What the caller accounts for. */
	assert_int_equal(request.cost, 41);
	router_free(router);
	cluster_free(c);
}

/* A backup node is given nothing while another one serves, whoever asks; and all of it while none does. */
static void test_backup(void **state)
{
	static const struct es_policy *const policies[] = {&es_policy_wrr, &es_policy_uri_hash,
							   &es_policy_ring};

	(void)state;
	for (size_t p = 0; p < sizeof(policies) / sizeof(policies[0]); p++) {
		struct es_cluster *c = cluster(4, NULL);
		struct es_conf *conf = (struct es_conf *)c->conf;
		struct es_request_view request = {.current = -1};
		struct es_router *router;

		conf->services[0].backup_names.count = 2;
		es_node_set_add(&conf->services[0].backup, 2);
		es_node_set_add(&conf->services[0].backup, 3);
		router = router_new(policies[p], c, 0);
		for (unsigned int i = 0; i < 40; i++) {
			request.flow_hash = (__u64)i << 58;
			assert_in_range(route(router, "/a", request.flow_hash, 0), 0, 1);
			assert_in_range(es_route_layer4(router, 0, &request, 0, NULL), 0, 1);
			assert_in_range(es_route_fallback(router, 0, &request, 0), 0, 1);
		}
		/* One of the first choice is enough. */
		es_health_set_state(&health, 0, ES_NODE_DOWN);
		for (unsigned int i = 0; i < 40; i++)
			assert_int_equal(route(router, "/a", (__u64)i << 58, 0), 1);
		/* None is, in whatever way. */
		es_health_set_state(&health, 1, ES_NODE_DRAINING);
		for (unsigned int i = 0; i < 40; i++) {
			request.flow_hash = (__u64)i << 58;
			assert_in_range(route(router, "/a", request.flow_hash, 0), 2, 3);
			assert_in_range(es_route_layer4(router, 0, &request, 0, NULL), 2, 3);
		}
		es_health_set_state(&health, 2, ES_NODE_DOWN);
		assert_int_equal(route(router, "/a", 1, 0), 3);
		/* One that drains is the last. */
		es_health_set_state(&health, 3, ES_NODE_ABSENT);
		assert_int_equal(route(router, "/a", 1, 0), 1);
		es_health_set_state(&health, 0, ES_NODE_UP);
		assert_int_equal(route(router, "/a", 1, 0), 0);
		router_free(router);
		cluster_free(c);
	}
}

/* A rule has whom it names, be it a backup node. */
static void test_backup_named(void **state)
{
	struct es_cluster *c = cluster(3, NULL);
	struct es_conf *conf = (struct es_conf *)c->conf;
	struct es_router *router;

	(void)state;
	conf->services[0].backup_names.count = 1;
	es_node_set_add(&conf->services[0].backup, 2);
	conf->rule_count = 1;
	conf->rules = calloc(1, sizeof(*conf->rules));
	assert_non_null(conf->rules);
	conf->rules[0].is_location = 1;
	conf->rules[0].service = -1;
	conf->rules[0].node_names.count = 1;
	es_node_set_add(&conf->rules[0].nodes, 2);
	snprintf(conf->rules[0].name, sizeof(conf->rules[0].name), "/own/");
	router = router_new(&es_policy_wrr, c, 0);
	for (unsigned int i = 0; i < 10; i++) {
		assert_int_equal(route(router, "/own/x", i, 0), 2);
		assert_in_range(route(router, "/x", i, 0), 0, 1);
	}
	es_health_set_state(&health, 2, ES_NODE_DOWN);
	for (unsigned int i = 0; i < 10; i++)
		assert_in_range(route(router, "/own/x", i, 0), 0, 1);
	router_free(router);
	cluster_free(c);
}

/* Nobody can: the client is told, if the service says what. */
static void test_page(void **state)
{
	struct es_cluster *c = cluster(2, NULL);
	struct es_conf *conf = (struct es_conf *)c->conf;
	struct es_rejection rejection = {};
	struct es_request_view request = {.current = -1, .uri = "/", .uri_len = 1};
	static struct es_http_head head;
	static const char text[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
	struct es_router *router;

	(void)state;
	for (int has_page = 0; has_page < 2; has_page++) {
		conf->services[0].page = (struct es_conf_page){.status = 502, .line = has_page};
		snprintf(conf->services[0].page.body, sizeof(conf->services[0].page.body), "Back soon.");
		conf->services[0].retry_after_s = 60;
		router = router_new(&es_policy_wrr, c, 0);
		es_health_set_state(&health, 0, ES_NODE_DOWN);
		es_health_set_state(&health, 1, ES_NODE_DOWN);
		es_http_head_init(&head);
		assert_int_equal(es_http_head_scan(&head, text, sizeof(text) - 1), ES_HTTP_DONE);
		es_request_describe(&request, &head, text, sizeof(text) - 1, 1, &name);
		assert_int_equal(es_route(router, 0, &request, 1, NULL, &rejection),
				 has_page ? ES_ROUTE_REJECT : -1);
		if (has_page) {
			assert_int_equal(rejection.status, 502);
			assert_int_equal(rejection.retry_after_s, 60);
			assert_string_equal(rejection.body, "Back soon.");
			assert_null(rejection.type);
		}
		router_free(router);
	}
	cluster_free(c);
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

/* With nobody left, those that have refused something, or were not reached, are tried, each once, the first one first. */
static void test_suspended_before_none(void **state)
{
	struct es_cluster *c = cluster(4, NULL);
	struct es_router *router = router_new(&es_policy_wrr, c, 0);
	const struct es_addr client6 = {.b = {0x20, 1, 0xd, 0xb8}};
	struct es_request_view request = {.current = -1, .client = &client6};

	(void)state;
	for (unsigned int n = 0; n < 4; n++)
		es_health_suspend(&health, n, 60 - 10 * n);
	assert_int_equal(es_route_fallback(router, 0, &request, 20), 3);
	es_health_suspend_for(&health, 3, 1, 70); /* for its family alone */
	assert_int_equal(es_route_fallback(router, 0, &request, 20), 2);
	request.attempts = 1;
	request.before = 2;
	assert_int_equal(es_route_fallback(router, 0, &request, 20), 1);
	request.before = 1;
	assert_int_equal(es_route_fallback(router, 0, &request, 20), 2);
	request.attempts = 4;
	assert_int_equal(es_route_fallback(router, 0, &request, 20), -1);
	request.attempts = 0;
	/* One that wants no more comes behind those that do; but before those that are not asked. */
	es_health_set_state(&health, 2, ES_NODE_DRAINING);
	assert_int_equal(es_route_fallback(router, 0, &request, 20), 1);
	for (unsigned int n = 0; n < 4; n++)
		if (n != 2)
			es_health_set_state(&health, n, ES_NODE_DOWN);
	assert_int_equal(es_route_fallback(router, 0, &request, 20), 2);
	es_health_set_mistimed(&health, 2, 30);
	assert_int_equal(es_route_fallback(router, 0, &request, 20), -1);
	es_health_set_mistimed(&health, 2, 0);
	/* Its connection has a node. */
	request.current = 0;
	assert_int_equal(es_route_fallback(router, 0, &request, 20), -1);
	request.current = -1;
	/* They will be sure of themselves, or others will have their place, in a moment. */
	es_health_set_unsure(&health, 30);
	assert_int_equal(es_route_fallback(router, 0, &request, 20), -1);
	router_free(router);
	cluster_free(c);
	memset(&health, 0, sizeof(health));
}

/* A request that no policy can judge: the ring's order, and of those that want no more,
 * none before all else. */
static void test_fallback(void **state)
{
	static const unsigned int weights[] = {100, 100, 100, 100, 0};
	struct es_cluster *c = cluster(5, weights);
	struct es_router *router = router_new(&es_policy_wrr, c, 0);
	unsigned int last_resorts = 0;
	uint64_t seed = 10;

	(void)state;
	for (int i = 0; i < 50000; i++) {
		__u64 r = es_test_random(&seed);
		struct es_request_view request = {.flow_hash = es_test_random(&seed)};
		struct es_ring_walk walk;
		int up = -1, draining = -1, got;
		__u16 node;

		for (unsigned int n = 0; n < 5; n++) {
			/* Often none is up. */
			unsigned int s = (r >> (n * 4) & 15) % (r >> 40 & 1 ? 5 : 4) + !(r >> 40 & 1);

			es_health_set_state(&health, n, (enum es_node_state)s);
			es_health_suspend(&health, n, r >> (20 + n) & 1 ? 6 : 0);
		}
		es_ring_walk_init(&walk, c->ring, es_ring_flow_position(request.flow_hash));
		while (es_ring_walk_next(&walk, &node)) {
			if (up < 0 && es_health_state(&health, node) == ES_NODE_UP && !(r >> (20 + node) & 1))
				up = node;
			if (draining < 0 && es_health_state(&health, node) == ES_NODE_DRAINING &&
			    !(r >> (20 + node) & 1))
				draining = node;
		}
		/* Behind them, what is not on the ring. */
		if (draining < 0 && !(r >> 24 & 1) &&
		    (es_health_state(&health, 4) == ES_NODE_UP ||
		     es_health_state(&health, 4) == ES_NODE_DRAINING))
			draining = 4;
		got = es_route_fallback(router, 0, &request, 5);
		assert_int_equal(got, up >= 0 ? up : draining);
		last_resorts += got == 4;
	}
	assert_true(last_resorts > 100);
	router_free(router);
	/* No policy picks a draining node by itself. */
	memset(&health, 0, sizeof(health));
	for (unsigned int n = 0; n < 4; n++)
		es_health_set_state(&health, n, n == 2 ? ES_NODE_UP : ES_NODE_DRAINING);
	for (const struct es_policy *const *p = es_policy_list(); *p; p++) {
		router = router_new(*p, c, 0);
		for (unsigned int i = 0; i < 100; i++)
			assert_int_equal(route(router, "/", es_test_random(&seed), 5), 2);
		router_free(router);
	}
	cluster_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_describe),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_backup),
		cmocka_unit_test(test_backup_named),
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_wrr),
		cmocka_unit_test(test_uri_hash),
		cmocka_unit_test(test_slow_start),
		cmocka_unit_test(test_load_bound),
		cmocka_unit_test(test_never_a_node_that_is_none),
		cmocka_unit_test(test_fallback),
		cmocka_unit_test(test_suspended_before_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
