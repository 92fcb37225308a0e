// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules that keep a session on its node: by a value, or by the node that a value names. */
#include "rules_world.h"

static int with_cookie(const char *line, unsigned int value)
{
	char headers[64];

	snprintf(headers, sizeof(headers), "Cookie: x=1; sid=%u\r\n", value);
	return ask_of(0, line, headers, NULL);
}

static void test_affinity(void **state)
{
	int of[200], moved = 0;
	unsigned int served[NODES] = {};

	(void)state;
	with("rule s { cookie = sid affinity = yes }\nrule u { header = X-User affinity = yes }\n"
	     "location /p/ { nodes = {n0, n1} }");
	for (unsigned int i = 0; i < 200; i++) {
		of[i] = with_cookie("GET /a", i);
		assert_true(of[i] >= 0 && of[i] < NODES);
		served[of[i]]++;
		assert_int_equal(with_cookie("POST /b?c", i), of[i]);
	}
	for (unsigned int i = 0; i < NODES; i++)
		assert_true(served[i] > 20);
	/* MD5 of "7", as the content ring has it. */
	assert_int_equal(with_cookie("GET /", 7), of[7]);
	assert_non_null(
		strstr(explain.step[1], "rule s: cookie sid is at 8f14e45fceea167a of the content ring: #"));
	/* The header alike; the first rule that matches decides. */
	assert_int_equal(ask_of(0, "GET /", "X-User: 7\r\n", NULL), of[7]);
	assert_int_equal(ask_of(0, "GET /", "X-User: 9\r\nCookie: sid=7\r\n", NULL), of[7]);
	/* No value, no affinity. */
	assert_int_equal(ask("GET /"), ES_RULES_PASS);
	assert_int_equal(ask_of(0, "GET /", "Cookie: sid=\r\n", NULL), ES_RULES_PASS);
	/* Only the sessions of a node that is gone move. */
	node[2].is_target = 0;
	for (unsigned int i = 0; i < 200; i++) {
		int now = with_cookie("GET /", i);

		assert_true(now != 2 && now >= 0);
		assert_true(of[i] == 2 || now == of[i]);
		moved += now != of[i];
	}
	assert_int_equal(moved, served[2]);
	node[2].is_target = 1;
	/* Among the nodes that have the content. */
	for (unsigned int i = 0; i < 50; i++) {
		int now = with_cookie("GET /p/", i);

		assert_true(now == 0 || now == 1);
		assert_true(of[i] > 1 || now == of[i]);
	}
	for (unsigned int i = 0; i < NODES; i++)
		node[i].is_target = 0;
	assert_int_equal(with_cookie("GET /", 1), ES_RULES_PASS);
}

static int with_value(const char *value)
{
	char headers[256];

	snprintf(headers, sizeof(headers), "Cookie: x=1; sid=%s\r\n", value);
	return ask_of(0, "GET /", headers, NULL);
}

/* A value that names a node is that node's: alone, or as Tomcat's jvmRoute. */
static void test_route(void **state)
{
	(void)state;
	with("rule s { cookie = sid affinity = route }\nrule u { header = X-Node affinity = route }\n"
	     "location /p/ { nodes = {n0, n1} }");
	for (unsigned int i = 0; i < 50; i++) {
		char value[64];

		snprintf(value, sizeof(value), "%04X.n%u", i * 4711, i % NODES);
		assert_int_equal(with_value(value), i % NODES);
	}
	assert_string_equal(explain.step[1], "rule s: cookie sid names #1");
	assert_int_equal(with_value("n2"), 2);
	assert_int_equal(with_value("\"A.b.n3\""), 3);
	assert_int_equal(with_value(".n3"), 3);
	assert_int_equal(ask_of(0, "GET /", "X-Node: n1\r\n", NULL), 1);
	/* A value that names no node leaves the request to the rules after it, and at last to the policy. */
	assert_int_equal(with_value("A"), ES_RULES_PASS);
	assert_string_equal(explain.step[0], "rule s: cookie sid names no node");
	assert_int_equal(with_value(""), ES_RULES_PASS);
	assert_int_equal(with_value("."), ES_RULES_PASS);
	assert_int_equal(with_value("n"), ES_RULES_PASS);
	assert_int_equal(with_value("A.N2"), ES_RULES_PASS);
	assert_int_equal(with_value("An2"), ES_RULES_PASS);
	assert_int_equal(with_value("A-n2"), ES_RULES_PASS);
	assert_int_equal(with_value("A.n2."), ES_RULES_PASS);
	assert_int_equal(with_value("A.n22"), ES_RULES_PASS);
	assert_int_equal(with_value("\""), ES_RULES_PASS);
	assert_int_equal(ask("GET /"), ES_RULES_PASS);
	assert_int_equal(ask_of(0, "GET /", "Cookie: sid=A.n9\r\nX-Node: n1\r\n", NULL), 1);
	assert_string_equal(explain.step[0], "rule s: cookie sid names no node");
	assert_string_equal(explain.step[2], "rule u: header X-Node names #1");
	/* If there are cookies of several paths, the first that names a node counts; the first rule wins. */
	assert_int_equal(ask_of(0, "GET /", "Cookie: sid=A; sid=B.n2; sid=C.n3\r\n", NULL), 2);
	assert_int_equal(ask_of(0, "GET /", "Cookie: sid=A\r\nCookie: sid=B.n2\r\nX-Node: n1\r\n", NULL), 2);
	assert_int_equal(with_value("1; sid=2; sid=3; sid=4; sid=5; sid=6; sid=7; sid=8.n1"), 1);
	assert_int_equal(with_value("1; sid=2; sid=3; sid=4; sid=5; sid=6; sid=7; sid=8; sid=9.n1"),
			 ES_RULES_PASS);
	/*
	 * If the named node cannot have the request, the policy decides, and the session returns to the node
	 * later.
	 */
	node[2].is_target = 0;
	assert_int_equal(with_value("A.n2"), ES_RULES_PASS);
	assert_string_equal(explain.step[1], "rule s: cookie sid names #2, which is no target");
	assert_int_equal(with_value("A.n3"), 3);
	node[2].is_target = 1;
	node[2].weight = 0;
	assert_int_equal(with_value("A.n2"), ES_RULES_PASS);
	node[2].weight = 100;
	assert_int_equal(with_value("A.n2"), 2);
	assert_int_equal(ask_of(0, "GET /p/x", "Cookie: sid=A.n2\r\n", NULL), ES_RULES_PASS);
	assert_int_equal(ask_of(0, "GET /p/x", "Cookie: sid=A.n1\r\n", NULL), 1);
}

/* A node that drains goes on with its sessions if the rule says so; it begins none. */
static void test_route_drained(void **state)
{
	(void)state;
	with("rule s { cookie = sid affinity = route when_drained = stay }\n"
	     "rule t { header = X-Node affinity = route when_drained = leave }\n"
	     "location /p/ { nodes = {n0, n1} }");
	node[2].is_target = 0;
	assert_int_equal(with_value("A.n2"), ES_RULES_PASS);
	node[2].is_draining = 1;
	assert_int_equal(with_value("A.n2"), 2);
	assert_string_equal(explain.step[1], "rule s: cookie sid names #2, which drains: its sessions stay");
	assert_int_equal(with_value("A.n1"), 1);
	assert_int_equal(with_value("A"), ES_RULES_PASS);
	assert_int_equal(ask_of(0, "GET /", "X-Node: n2\r\n", NULL), ES_RULES_PASS);
	assert_string_equal(explain.step[1], "rule t: header X-Node names #2, which is no target");
	assert_int_equal(ask_of(0, "GET /p/x", "Cookie: sid=A.n2\r\n", NULL), ES_RULES_PASS);
	/* One that waits until it hears the others has weight 0, and would lose what it is given. */
	node[2].weight = 0;
	assert_int_equal(with_value("A.n2"), ES_RULES_PASS);
}

/* A rule of another kind after it says where such a session goes while its node is away. */
static void test_route_then_value(void **state)
{
	int of[40];

	(void)state;
	with("rule s { cookie = sid affinity = route }\nrule t { cookie = sid affinity = yes }\n"
	     "rule u { header = X-Node affinity = route }");
	for (unsigned int i = 0; i < 40; i++) {
		char value[64];

		snprintf(value, sizeof(value), "%u.n2", i);
		assert_int_equal(with_value(value), 2);
		node[2].is_target = 0;
		of[i] = with_value(value);
		assert_true(of[i] >= 0 && of[i] != 2);
		assert_int_equal(with_value(value), of[i]);
		node[2].is_target = 1;
	}
	assert_string_equal(explain.step[1], "rule s: cookie sid names #2, which is no target");
	assert_non_null(strstr(explain.step[2], "rule t: cookie sid is at "));
	/* The other way round, the value decides alone. */
	with("rule t { cookie = sid affinity = yes }\nrule s { cookie = sid affinity = route }");
	assert_int_not_equal(with_value("1.n2"), 2);
	assert_int_not_equal(with_value("1.n0"), with_value("1.n1"));
	assert_null(strstr(explain.step[1], "names"));
}

/* Other names than the nodes' own, several of one node, and of two that fit the longer one. */
static void test_route_names(void **state)
{
	static const char base[] =
		"datapath { interface = eth0 cluster_interface = eth1 }\n"
		"node n0 { address = 10.78.0.1 } node n1 { address = 10.78.0.2 route = jvm1 }\n"
		"node n2 { address = 10.78.0.3 route = {jvm2, old-2, \"n1\"} }\n"
		"node n3 { address = 10.78.0.4 route = eu.jvm1 }\n"
		"service web { address = 10.77.0.100 port = 80 }\nrule s { cookie = sid affinity = route }";
	struct es_conf_error err;

	(void)state;
	if (es_conf_parse(base, strlen(base), "t.conf", &conf, &err))
		fail_msg("%s", err.text);
	assert_int_equal(conf->warning_count, 0);
	assert_int_equal(es_rules_new(conf, &rules), 0);
	assert_int_equal(with_value("A.n0"), 0);
	assert_int_equal(with_value("A.jvm1"), 1);
	assert_int_equal(with_value("A.jvm2"), 2);
	assert_int_equal(with_value("A.old-2"), 2);
	assert_int_equal(with_value("A.n1"), 2);
	assert_int_equal(with_value("A.n2"), ES_RULES_PASS);
	assert_int_equal(with_value("A.eu.jvm1"), 3);
	assert_int_equal(with_value("eu.jvm1"), 3);
	assert_int_equal(with_value("us.jvm1"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(affinity), TEST(route), TEST(route_drained), TEST(route_then_value), TEST(route_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
