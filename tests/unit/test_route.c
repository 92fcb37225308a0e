// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where a request goes before and after the policy: what it is for, rules, backup nodes, and when no node is
 * a target.
 */
#include "route_world.h"

/* Describes a request as the daemon does: which content it is for, and its path for rules. */
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
	/* The cost that the caller accounts for. */
	assert_int_equal(request.cost, 41);
	router_free(router);
	cluster_free(c);
}

/* Requests of TLS are placed as others are, by whoever reads them; packets tell nothing of them. */
static void test_tls(void **state)
{
	struct es_cluster *c = cluster(3, NULL);
	struct es_conf *conf = (struct es_conf *)c->conf;
	struct es_router *router;
	unsigned int nodes = 0;

	(void)state;
	conf->rule_count = 1;
	conf->rules = calloc(1, sizeof(*conf->rules));
	assert_non_null(conf->rules);
	conf->rules[0].is_location = 1;
	conf->rules[0].service = -1;
	conf->rules[0].node_names.count = 1;
	es_node_set_add(&conf->rules[0].nodes, 2);
	strcpy(conf->rules[0].name, "/there/");
	router = router_new(&es_policy_wrr, c, 0);
	assert_int_equal(es_route_is_layer4(c, 0), 0);
	conf->services[0].tls.line = 1;
	assert_int_equal(es_route_is_layer4(c, 0), 1);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(route(router, "/there/x", 1, 0), 2);
		nodes |= 1u << route(router, "/x", 1, 0);
	}
	assert_int_equal(nodes, 7); /* one after the other, though the ring has one for all */
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
		/* It is still there if it has refused what was for another service. */
		es_health_suspend_service(&health, 1, 1, 0, 60);
		for (unsigned int i = 0; i < 40; i++)
			assert_int_equal(route(router, "/a", (__u64)i << 58, 0), 1);
		es_health_suspend_service(&health, 1, 0, 0, 60);
		assert_in_range(route(router, "/a", 1, 0), 2, 3);
		es_health_suspend_service(&health, 1, 0, 0, 0);
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

/*
 * With nobody left, those that have refused something, or were not reached, are tried, each once, the first
 * one first.
 */
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
	/* A node that wants no more is chosen after those that do; but before those that are not asked. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_describe),     cmocka_unit_test(test_rules),
		cmocka_unit_test(test_tls),	     cmocka_unit_test(test_backup),
		cmocka_unit_test(test_backup_named), cmocka_unit_test(test_page),
		cmocka_unit_test(test_fallback),     cmocka_unit_test(test_suspended_before_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
