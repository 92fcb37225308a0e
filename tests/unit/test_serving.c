// SPDX-License-Identifier: GPL-2.0-or-later
/* Consequences of a fault of a node, or of one of its services. */
#include "cmocka_all.h"
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include "inspector/self/serving.h"

/* A node that claims a place among the outliers serves: where that comes to nothing, it has not been away. */
static void test_away(void **state)
{
	(void)state;
	assert_int_equal(es_serving_away(6, ES_TROUBLE_NONE, 1), 0);
	assert_int_equal(es_serving_away(6, ES_TROUBLE_OUTLIER, 1), 6);
	assert_int_equal(es_serving_away(6, ES_TROUBLE_CHECK, 0), 6);
	assert_int_equal(es_serving_away(6, ES_TROUBLE_CHECK, 1), 6);
	assert_int_equal(es_serving_away(6, ES_TROUBLE_KEPT, 0), 0);
	assert_int_equal(es_serving_away(6, ES_TROUBLE_NONE, 0),
			 6); /* of a version that does not know outliers */
}

static void test_out(void **state)
{
	static struct es_conf conf = {.service_count = 3,
				      .services = {{.name = "a"}, {.name = "b"}, {.name = "c"}}};
	struct es_serving s = {
		.trouble = ES_TROUBLE_NO_SERVER, .text = "of another service", .listens = {5, 1}};

	(void)state;
	es_serving_claims(&s, 0, 0);
	assert_true(s.failing == 1 && s.yields && !s.refused && !s.is_down &&
		    s.trouble == ES_TROUBLE_NO_SERVER);
	es_serving_is_out(&s, &conf, 0, ES_TROUBLE_VANISHING, "not heard of again");
	assert_true(s.refused == 1 && !s.is_down && s.trouble == ES_TROUBLE_VANISHING);
	assert_string_equal(s.text, "service a: not heard of again");
	es_serving_is_out(&s, &conf, 2, ES_TROUBLE_OUTLIER, "slow");
	assert_true(s.failing == 5 && s.refused == 5 && s.is_down && s.trouble == ES_TROUBLE_VANISHING);
	assert_true(s.yields);
	for (unsigned int i = 0; i < 300; i++)
		assert_int_equal(!*es_trouble_text(i), i == ES_TROUBLE_NONE);
}

/* A server that fails and is given requests is told of unless something worse is; its node has no place. */
static void test_kept(void **state)
{
	static struct es_conf conf = {.service_count = 2, .services = {{.name = "a"}, {.name = "b"}}};
	struct es_serving s = {.listens = {3, 0}};

	(void)state;
	es_serving_is_kept(&s, &conf, 0, "the answer is 503", "max_out = 1, and others are out");
	assert_true(s.failing == 1 && !s.refused && !s.is_down && !s.yields && s.trouble == ES_TROUBLE_KEPT);
	assert_string_equal(s.text,
			    "service a: the server fails its check: the answer is 503; this node serves all "
			    "the same: max_out = 1, and others are out");
	es_serving_claims(&s, 1, 0);
	assert_true(s.failing == 3 && s.yields && !s.refused && s.trouble == ES_TROUBLE_KEPT);
	es_serving_claims(&s, 1, 1);
	assert_true(s.refused == 2 && !s.is_down);
	es_serving_is_out(&s, &conf, 1, ES_TROUBLE_CHECK, "no answer within 2000 ms");
	assert_true(s.failing == 3 && s.yields && s.refused == 2 && s.trouble == ES_TROUBLE_CHECK);
	assert_string_equal(s.text, "service b: the server fails its check: no answer within 2000 ms");
	es_serving_is_kept(&s, &conf, 0, "the answer is 503", "max_out = 1, and others are out");
	assert_true(s.trouble == ES_TROUBLE_CHECK && s.refused == 2);
}

/* The trouble is still told, but it takes nobody's last node away. */
static void test_spared(void **state)
{
	struct es_serving s = {.trouble = ES_TROUBLE_MTU, .listens = {3, 0}, .refused = 3, .is_down = 1};

	(void)state;
	es_serving_spares(&s, 1);
	assert_true(s.refused == 1 && !s.is_down && s.trouble == ES_TROUBLE_MTU);
}

/* A service that is not on this node is no reason to be down, and keeps no node up. */
static void test_elsewhere(void **state)
{
	static struct es_conf conf = {
		.service_count = 2,
		.node_count = 2,
		.services = {{.name = "a", .nodes = {{2}}}, {.name = "b"}},
	};
	struct es_serving s;

	(void)state;
	assert_int_equal(es_conf_services_on(&conf, 0), 2);
	assert_int_equal(es_conf_services_on(&conf, 1), 3);
	es_serving_look(&conf, 0, ES_DATAPATH_BPF, 0, &s);
	assert_int_equal(s.elsewhere, 1);
	assert_int_equal(es_serving_state(&s, 0, &(const char *){NULL}), ES_SERVING_ELSEWHERE);
	assert_null(strstr(s.text, "service a"));
	s.listens[0] = 3;
	s.refused = 0;
	es_serving_spares(&s, 0);
	assert_false(s.is_down);
	s.refused = 2;
	es_serving_spares(&s, 0);
	assert_true(s.is_down);
	conf.services[1].nodes = conf.services[0].nodes;
	es_serving_look(&conf, 0, ES_DATAPATH_BPF, 0, &s);
	assert_true(s.elsewhere == 3 && !s.is_down);
}

/* A server that is not checked yet is no trouble, and yet its node does not serve. */
static void test_unchecked(void **state)
{
	static const struct es_conf conf = {.service_count = 2,
					    .services = {{.name = "web"}, {.name = "shop"}}};
	struct es_serving s = {.listens = {3, 0}};

	(void)state;
	es_serving_is_unchecked(&s, &conf, 1, 1);
	assert_true(s.failing == 2 && s.refused == 2 && !s.yields && s.is_open && !s.is_down && !s.trouble);
	assert_true(es_serving_waits(s.failing, s.trouble, s.yields));
	assert_int_equal(es_serving_away(s.failing, s.trouble, s.yields), 2);
	es_serving_is_unchecked(&s, &conf, 0, 0); /* no other node serves it */
	assert_true(s.failing == 3 && s.refused == 2 && !s.is_down);
	es_serving_is_unchecked(&s, &conf, 0, 1);
	assert_true(s.is_down && strstr(s.text, "service web: its server has not been checked"));
	es_serving_fails(&s, &conf, 1, "why", 1);
	assert_true(s.trouble == ES_TROUBLE_CHECK &&
		    strstr(s.text, "service shop: the server fails its check: why"));
	assert_false(es_serving_waits(s.failing, s.trouble, s.yields));
}

static enum es_serving_state state_of(const struct es_serving *s, unsigned int service, const char *expected)
{
	const char *text;
	enum es_serving_state state = es_serving_state(s, service, &text);

	assert_string_equal(text, expected);
	return state;
}

/* Each service is judged and described alone, whatever is told first of the node. */
static void test_states(void **state)
{
	static const struct es_conf conf = {
		.service_count = 4, .services = {{.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "d"}}};
	struct es_serving s = {.listens = {7, 8}, .absent = {0, 8}};

	(void)state;
	assert_int_equal(state_of(&s, 0, ""), ES_SERVING_UP);
	es_serving_is_kept(&s, &conf, 0, "the answer is 503", "none passes");
	assert_int_equal(
		state_of(&s, 0,
			 "the server fails its check: the answer is 503; this node serves all the same: "
			 "none passes"),
		ES_SERVING_DEGRADED);
	es_serving_is_out(&s, &conf, 1, ES_TROUBLE_OUTLIER, "slow");
	assert_int_equal(state_of(&s, 1, "the server is an outlier: slow"), ES_SERVING_DOWN);
	es_serving_is_unchecked(&s, &conf, 2, 0);
	assert_int_equal(state_of(&s, 2, "its server has not been checked yet"), ES_SERVING_PENDING);
	es_serving_fails(&s, &conf, 2, "no answer", 1);
	assert_int_equal(state_of(&s, 2, "the server fails its check: no answer"), ES_SERVING_DOWN);
	es_serving_claims(&s, 3, 0);
	assert_int_equal(es_serving_state(&s, 3, &(const char *){NULL}), ES_SERVING_PENDING);
	/* A sysctl concerns all services, unless one has to be served all the same. */
	s = (struct es_serving){.trouble = ES_TROUBLE_MTU, .text = "small", .listens = {3, 0}, .refused = 3};
	es_serving_spares(&s, 1);
	assert_int_equal(state_of(&s, 0, "small"), ES_SERVING_DOWN);
	assert_int_equal(state_of(&s, 1, "small"), ES_SERVING_DEGRADED);
	for (unsigned int i = ES_SERVING_UP; i <= ES_SERVING_ELSEWHERE; i++)
		assert_true(*es_serving_state_name((enum es_serving_state)i));
}

/* A service for which nothing listens is known by its number, and by its words. */
static void test_lacks(void **state)
{
	static struct es_conf conf = {.service_count = 2, .services = {{.name = "a"}, {.name = "b"}}};
	struct es_serving s;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		conf.services[i].port = 1 + i; /* of root, so that nobody has them */
		conf.services[i].address = es_addr_from_v4(htonl(INADDR_LOOPBACK));
	}
	snprintf(conf.datapath.cluster_interface, sizeof(conf.datapath.cluster_interface), "lo");
	es_serving_look(&conf, 0, ES_DATAPATH_NETFILTER, 0, &s);
	assert_int_equal(s.lacks, 3);
	assert_int_equal(s.of[1].trouble, ES_TROUBLE_NO_SERVER);
	assert_string_equal(s.of[1].text, "nothing listens on 127.0.0.1 port 2");
	assert_int_equal(state_of(&s, 1, "nothing listens on 127.0.0.1 port 2"), ES_SERVING_DOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_away),	  cmocka_unit_test(test_out),
		cmocka_unit_test(test_kept),	  cmocka_unit_test(test_spared),
		cmocka_unit_test(test_unchecked), cmocka_unit_test(test_states),
		cmocka_unit_test(test_lacks),	  cmocka_unit_test(test_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
