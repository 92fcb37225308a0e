// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rules at work: each condition, which of several rules wins, what the URL table adds, placement without its
 * nodes, admission, affinity, and what explain says.
 */
#include "tests/unit/cmocka_all.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/rules/rules.h"
#include "inspector/http/head.h"

#define BASE                                                                                                 \
	"datapath { interface = eth0 cluster_interface = eth1 }\n"                                           \
	"node n0 { address = 10.78.0.1 } node n1 { address = 10.78.0.2 } node n2 { address = 10.78.0.3 }\n"  \
	"node n3 { address = 10.78.0.4 }\n"                                                                  \
	"service web { address = 10.77.0.100 port = 80 admit_low = 10 admit_normal = 20 retry_after_s = 7 "  \
	"}\n"                                                                                                \
	"service api { address = 10.77.0.100 port = 81 }\n"
#define NODES 4

static struct es_conf *conf;
static struct es_rules *rules;
static struct es_ring *ring;
static struct es_url_table *table;
static struct es_node_view node[NODES];
static struct es_explain explain;
static struct es_request_view request;
static struct es_rules_refusal refusal;

static int setup(void **state)
{
	struct es_ring_node nodes[NODES] = {};

	(void)state;
	for (unsigned int i = 0; i < NODES; i++) {
		nodes[i].address = es_addr_from_v4(htonl(0x0a4e0001 + i));
		nodes[i].virtual_nodes = 63;
		nodes[i].id = (__u16)i;
		node[i] = (struct es_node_view){.weight = 100, .is_target = 1};
	}
	return es_ring_new(nodes, NODES, &ring);
}

static int teardown(void **state)
{
	(void)state;
	es_rules_free(&rules);
	es_conf_free(&conf);
	es_ring_free(&ring);
	es_url_table_free(&table);
	return 0;
}

static void with(const char *text)
{
	struct es_conf_error err;
	char *all = NULL;

	es_rules_free(&rules);
	es_conf_free(&conf);
	assert_true(asprintf(&all, BASE "%s", text) > 0);
	if (es_conf_parse(all, strlen(all), "t.conf", &conf, &err))
		fail_msg("%s", err.text);
	free(all);
	assert_int_equal(es_rules_new(conf, &rules), 0);
}

/* Of service web; @line: "GET /path", @headers: with CRLF each. */
static int ask_of(unsigned int service, const char *line, const char *headers, const char *client)
{
	static struct es_http_head head;
	static char text[1024];
	struct es_addr address = {};
	struct es_cluster_view view = {
		.count = NODES,
		.node = node,
		.ring = ring,
		.explain = &explain,
	};
	int len = snprintf(text, sizeof(text), "%s HTTP/1.1\r\n%s\r\n", line, headers);

	memset(&explain, 0, sizeof(explain));
	memset(&refusal, 0, sizeof(refusal));
	es_http_head_init(&head);
	assert_int_equal(es_http_head_scan(&head, text, (size_t)len), ES_HTTP_DONE);
	request = (struct es_request_view){
		.flow_hash = 12345,
		.current = -1,
		.cost = 1,
		.head = &head,
		.text = text,
		.len = (size_t)len,
		.uri = text + head.path.off,
		.uri_len = head.path.len + (head.has_query ? 1 + head.query.len : 0),
	};
	if (client) {
		assert_int_equal(es_conf_addr_parse(client, &address), 0);
		request.client = &address;
	}
	len = es_rules_apply(rules, service, table, &request, &view, &refusal);
	request.client = NULL;
	return len;
}

/* Of service web: is it waited for what follows @text? */
static int waits(const char *text, const char *client)
{
	static struct es_http_head head;
	static struct es_addr address;

	es_http_head_init(&head);
	assert_int_equal(es_http_head_scan(&head, text, strlen(text)), ES_HTTP_MORE);
	es_http_head_truncate(&head);
	request = (struct es_request_view){.head = &head, .text = text, .len = strlen(text)};
	if (head.target_complete) {
		request.uri = text + head.path.off;
		request.uri_len = head.path.len;
	}
	if (client) {
		assert_int_equal(es_conf_addr_parse(client, &address), 0);
		request.client = &address;
	}
	return es_rules_wait(rules, 0, &request);
}

static void test_wait(void **state)
{
	(void)state;
	with("");
	assert_false(waits("GET /a", NULL));
	with("rule r { path = \"/a/\"  nodes = n1 } location \"/b/\" { nodes = n1 }");
	assert_false(waits("GET /a", NULL)); /* it refuses nothing */
	with("rule r { path = \"/a/\"  deny = yes }");
	assert_true(waits("GET /a", NULL));
	assert_true(waits("GET /b", NULL)); /* more of the path may come, as in /b/../a/ */
	assert_false(waits("GET /b HTTP/1.1\r\n", NULL));
	assert_false(waits("GET /a/ HTTP/1.1\r\nHo", NULL)); /* it is refused already */
	with("rule r { service = api  path = \"/a/\"  deny = yes }");
	assert_false(waits("GET /a", NULL));
	with("rule r { client = 192.0.2.0/24  deny = yes }");
	assert_true(waits("GET /a", "192.0.2.1"));
	assert_false(waits("GET /a", "192.0.3.1"));
	assert_false(waits("GET /a HTTP/1.1\r\n", "192.0.2.1"));
	with("rule r { path = \"/a/\"  host = x  deny = yes }");
	assert_true(waits("GET /a/ HTTP/1.1\r\nA: b\r\n", NULL));
	assert_false(waits("GET /b HTTP/1.1\r\nA: b\r\n", NULL));
	assert_false(waits("GET /a/ HTTP/1.1\r\nHost: y\r\n", NULL));
	assert_false(waits("GET http://y/a/ HTTP/1.1\r\nA: b\r\n", NULL));
	with("rule r { header = \"A: b\"  deny = yes }");
	assert_true(waits("GET / HTTP/1.1\r\nHost: y\r\n", NULL));
	assert_false(waits("GET / HTTP/1.1\r\nA: b\r\n", NULL));
	with("rule r { cookie = c  method = POST  deny = yes }");
	assert_true(waits("POST / HTTP/1.1\r\nHost: y\r\n", NULL));
	assert_false(waits("GET / HTTP/1.1\r\nHost: y\r\n", NULL));
	/* One that allows goes before one that denies. */
	with("rule o { header = X  deny = no } rule r { path = \"/a/\"  deny = yes }");
	assert_true(waits("GET /a/ HTTP/1.1\r\nHost: y\r\n", NULL));
	assert_false(waits("GET /a/ HTTP/1.1\r\nX: y\r\n", NULL));
	assert_false(waits("GET /b HTTP/1.1\r\nHost: y\r\n", NULL));
	with("rule o { path = \"/a/\"  deny = no } rule r { header = X  deny = yes }");
	assert_false(waits("GET /a/ HTTP/1.1\r\nHost: y\r\n", NULL));
	/* What its nodes alone may serve. */
	with("rule r { host = x  nodes = n1  otherwise = reject }");
	assert_true(waits("GET /a HTTP/1.1\r\n", NULL));
	with("location \"/b/\" { nodes = n1  otherwise = reject }");
	assert_true(waits("GET /a", NULL));
	assert_false(waits("GET /a HTTP/1.1\r\n", NULL));
	with("location \"/b/\" { service = api  nodes = n1  otherwise = reject }");
	assert_false(waits("GET /a", NULL));
}

static int ask(const char *line)
{
	return ask_of(0, line, "Host: h\r\n", NULL);
}

/* The cost tells which rule matched; 1 if none did. */
static unsigned int cost(const char *line, const char *headers, const char *client)
{
	assert_int_equal(ask_of(0, line, headers, client), ES_RULES_PASS);
	return request.cost;
}

/* Networks of both families, who is in one of them, and who is in none. */
static void test_clients(void **state)
{
	static const struct {
		const char *networks;
		const char *in[4];
		const char *out[6];
	} tests[] = {
		{"10.0.0.0/8", {"10.0.0.0", "10.255.0.1"}, {"11.0.0.1", "9.255.255.255", "a00::1"}},
		{"192.0.2.1", {"192.0.2.1"}, {"192.0.2.2", "192.0.2.0", "2001:db8::c000:201"}},
		{"198.51.100.128/25", {"198.51.100.128"}, {"198.51.100.127", "198.51.101.128"}},
		{"0.0.0.0/0", {"203.0.113.9", "0.0.0.1"}, {"::1", "2001:db8::1"}},
		{"2001:db8::/32",
		 {"2001:db8::", "2001:db8:ffff::1"},
		 {"2001:db9::1", "2001:db7:ffff::", "32.1.13.184"}},
		{"2001:db8::1", {"2001:db8::1"}, {"2001:db8::2", "2001:db8::", "0.0.0.1"}},
		{"2001:db8::8000/113",
		 {"2001:db8::8000", "2001:db8::ffff"},
		 {"2001:db8::7fff", "2001:db8::1:8000"}},
		{"2001:db8:0:0:8000::/65", {"2001:db8:0:0:8000::1"}, {"2001:db8::1", "2001:db8:0:1:8000::1"}},
		{"::/0", {"2001:db8::1", "fe80::1"}, {"192.0.2.1", "0.0.0.0"}},
		{"{10.0.0.0/8, 2001:db8::/48}", {"10.1.2.3", "2001:db8::9"}, {"11.1.2.3", "2001:db8:1::"}},
	};
	char text[128];

	(void)state;
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		snprintf(text, sizeof(text), "rule r { client = %s cost = 2 }", tests[i].networks);
		with(text);
		for (unsigned int k = 0; tests[i].in[k]; k++)
			if (cost("GET /", "", tests[i].in[k]) != 2)
				fail_msg("%s is not in %s", tests[i].in[k], tests[i].networks);
		for (unsigned int k = 0; tests[i].out[k]; k++)
			if (cost("GET /", "", tests[i].out[k]) != 1)
				fail_msg("%s is in %s", tests[i].out[k], tests[i].networks);
		assert_int_equal(cost("GET /", "", NULL), 1);
	}
}

static void test_conditions(void **state)
{
	(void)state;
	with("rule r { method = {GET, PURGE} cost = 2 }");
	assert_int_equal(cost("GET /", "", NULL), 2);
	assert_int_equal(cost("PURGE /", "", NULL), 2);
	assert_int_equal(cost("get /", "", NULL), 1);
	assert_int_equal(cost("POST /", "", NULL), 1);

	with("rule r { host = {\"www.example.org\", \"*.example.com\"} cost = 2 }");
	assert_int_equal(cost("GET /", "Host: WWW.example.org\r\n", NULL), 2);
	assert_int_equal(cost("GET /", "Host: www.example.org:8080\r\n", NULL), 2);
	assert_int_equal(cost("GET /", "Host: www.example.org.\r\n", NULL), 2);
	assert_int_equal(cost("GET http://www.example.org/", "Host: other\r\n", NULL), 2);
	assert_int_equal(cost("GET /", "Host: a.b.Example.com\r\n", NULL), 2);
	assert_int_equal(cost("GET /", "Host: example.com\r\n", NULL), 1);
	assert_int_equal(cost("GET /", "Host: notexample.com\r\n", NULL), 1);
	assert_int_equal(cost("GET /", "Host: .example.com\r\n", NULL), 1);
	assert_int_equal(cost("GET /", "Host: www.example.org.evil\r\n", NULL), 1);
	assert_int_equal(cost("GET /", "Host: [::1]:80\r\n", NULL), 1);
	assert_int_equal(cost("GET /", "Host: \r\n", NULL), 1);

	with("rule r { path = {\"/a/\", \"/b\"} cost = 2 }");
	assert_int_equal(cost("GET /a/", "", NULL), 2);
	assert_int_equal(cost("GET /a/x?y", "", NULL), 2);
	assert_int_equal(cost("GET /x/..//%61/y", "", NULL), 2);
	assert_int_equal(cost("GET /b?q", "", NULL), 2);
	assert_int_equal(cost("GET /a", "", NULL), 1);
	assert_int_equal(cost("GET /b/", "", NULL), 1);
	assert_int_equal(cost("GET /bb", "", NULL), 1);
	assert_int_equal(cost("GET /a%2fx", "", NULL), 1);
	assert_int_equal(cost("GET /a/../x", "", NULL), 1);

	/* One path, however the file and the client spell it. */
	with("rule r { path = {'/caf%C3%A9/', '/th\xc3\xa9', '/a%20b', '/100%25'} cost = 2 }");
	assert_int_equal(cost("GET /caf%C3%A9/x", "", NULL), 2);
	assert_int_equal(cost("GET /%63af%c3%a9/x", "", NULL), 2);
	assert_int_equal(cost("GET /th%C3%A9", "", NULL), 2);
	assert_int_equal(cost("GET /a%20b", "", NULL), 2);
	assert_int_equal(cost("GET /100%25", "", NULL), 2);
	assert_int_equal(cost("GET /caf%E9/x", "", NULL), 1);
	assert_int_equal(cost("GET /a%2520b", "", NULL), 1);
	with("location '/caf%C3%A9/' { cost = 2 } location '/th\xc3\xa9' { cost = 3 } rule r { suffix = "
	     "'.%C3%A9' cost = 4 }");
	assert_int_equal(cost("GET /caf%C3%A9/x", "", NULL), 2);
	assert_int_equal(cost("GET /th%C3%A9", "", NULL), 3);
	assert_int_equal(cost("GET /x.%C3%A9", "", NULL), 4);

	with("rule r { suffix = {.mp4, .webm} cost = 2 }");
	assert_int_equal(cost("GET /v/film.webm?x=.y", "", NULL), 2);
	assert_int_equal(cost("GET /film.mp%34", "", NULL), 2);
	assert_int_equal(cost("GET /film.mp4/", "", NULL), 1);
	assert_int_equal(cost("GET /x?film.mp4", "", NULL), 1);

	with("rule r { header = X-User cost = 2 }\nrule s { header = \"X-Mode: a b\" cost = 3 }");
	assert_int_equal(cost("GET /", "x-user: \r\n", NULL), 2);
	assert_int_equal(cost("GET /", "X-Mode:  a b \r\n", NULL), 3);
	assert_int_equal(cost("GET /", "X-Mode: a bc\r\n", NULL), 1);
	assert_int_equal(cost("GET /", "X-Mode: A b\r\n", NULL), 1);
	assert_int_equal(cost("GET /", "X-Users: 1\r\n", NULL), 1);

	with("rule r { cookie = sid cost = 2 }");
	assert_int_equal(cost("GET /", "Cookie: a=b; sid=1\r\n", NULL), 2);
	assert_int_equal(cost("GET /", "Cookie: SID=1\r\n", NULL), 1);
	assert_int_equal(cost("GET /", "Cookie: x=sid\r\n", NULL), 1);

	/* All of them, or it does not match. */
	with("rule r { method = GET path = \"/a/\" suffix = .x client = 10.0.0.0/8 cookie = c header = h\n"
	     " host = w cost = 2 }");
#define ALL "Host: w\r\nh: 1\r\nCookie: c=1\r\n"
	assert_int_equal(cost("GET /a/b.x", ALL, "10.1.1.1"), 2);
	assert_int_equal(cost("HEAD /a/b.x", ALL, "10.1.1.1"), 1);
	assert_int_equal(cost("GET /b/b.x", ALL, "10.1.1.1"), 1);
	assert_int_equal(cost("GET /a/b.y", ALL, "10.1.1.1"), 1);
	assert_int_equal(cost("GET /a/b.x", ALL, "11.1.1.1"), 1);
	assert_int_equal(cost("GET /a/b.x", "Host: w\r\nh: 1\r\n", "10.1.1.1"), 1);
	assert_int_equal(cost("GET /a/b.x", "Host: w\r\nCookie: c=1\r\n", "10.1.1.1"), 1);
	assert_int_equal(cost("GET /a/b.x", "Host: v\r\nh: 1\r\nCookie: c=1\r\n", "10.1.1.1"), 1);
	/* None at all: matches. */
	with("rule r { cost = 2 }");
	assert_int_equal(cost("GET /%2f", "", NULL), 2);
	with("rule r { service = api cost = 2 }");
	assert_int_equal(cost("GET /", "", NULL), 1);
	assert_int_equal(ask_of(1, "GET /", "", NULL), ES_RULES_PASS);
	assert_int_equal(request.cost, 2);
}

static void test_first_wins(void **state)
{
	(void)state;
	with("rule a { path = /a/ cost = 2 }\n"
	     "rule b { path = /a/b/ cost = 3 class = cpu }\n"
	     "rule c { cost = 4 class = disk type = dynamic }\n"
	     "location /a/b/ { cost = 5 nodes = n1 }\n"
	     "location / { nodes = n2 size_bytes = 1000 }\n"
	     "location /x/y/ { service = api nodes = n3 }\n");
	assert_int_equal(ask("GET /a/b/x"), ES_RULES_PASS);
	assert_int_equal(request.cost, 2);
	assert_int_equal(request.class, ES_CLASS_CPU);
	assert_int_equal(request.is_dynamic, 1);
	assert_int_equal(request.size_bytes, 1000);
	assert_true(request.has_allowed);
	assert_int_equal(request.allowed.bits[0], 1 << 1);
	assert_int_equal(explain.count, 5); /* and the admission */
	assert_string_equal(explain.step[0], "rule a: cost 2");
	assert_string_equal(explain.step[1], "rule b: class cpu");
	assert_string_equal(explain.step[2], "rule c: dynamic");
	assert_string_equal(explain.step[3], "URL table: nodes #1, otherwise any; size 1000");
	assert_int_equal(ask("GET /x/y/z"), ES_RULES_PASS);
	assert_int_equal(request.cost, 4);
	assert_int_equal(request.class, ES_CLASS_DISK);
	assert_int_equal(request.allowed.bits[0], 1 << 2);
	assert_int_equal(ask_of(1, "GET /x/y/z", "", NULL), ES_RULES_PASS);
	assert_int_equal(request.allowed.bits[0], 1 << 3);
	assert_int_equal(ask("GET /a%2f"), ES_RULES_PASS);
	assert_false(request.has_allowed);
	assert_string_equal(explain.step[1], "the path has no normal form: not looked up");
}

static void test_table(void **state)
{
	struct es_url_tree *scan = NULL;
	__u32 entry;

	(void)state;
	assert_int_equal(es_url_table_new(1024, &table), 0);
	assert_int_equal(es_url_tree_new(10, &scan), 0);
	assert_int_equal(es_url_tree_insert(scan, "/big", 4, &entry), 0);
	*es_url_tree_info(scan, entry) =
		(struct es_url_info){.has = ES_URL_SIZE | ES_URL_KIND, .size_bytes = 1460 * 3 + 1};
	es_url_table_set_scan(table, scan);
	with("");
	assert_int_equal(ask("GET /big?x"), ES_RULES_PASS);
	assert_int_equal(request.size_bytes, 4381);
	assert_int_equal(request.cost, 4);
	assert_int_equal(request.is_dynamic, 0);
	assert_int_equal(request.url_key, 0); /* known for sure: nothing to be measured */
	assert_int_equal(ask("GET /app?1"), ES_RULES_PASS);
	assert_int_not_equal(request.url_key, 0);
	assert_int_equal(es_url_observe_key(table, request.url_key, 14600),
			 0); /* as another node hears of it */
	assert_int_equal(ask("GET /app?2"), ES_RULES_PASS);
	assert_int_not_equal(request.url_key, 0);
	assert_int_equal(request.cost, 10);
	assert_int_equal(request.is_dynamic, 1);
	assert_int_equal(ask("GET /none"), ES_RULES_PASS);
	assert_int_equal(request.cost, 1);
	assert_int_equal(request.size_bytes, 0);
	with("rule r { suffix = g type = dynamic cost = 40 }");
	assert_int_equal(ask("GET /big"), ES_RULES_PASS);
	assert_int_equal(request.cost, 40);
	assert_int_equal(request.size_bytes, 4381);
	assert_int_equal(request.is_dynamic, 1);
}

static void test_placement(void **state)
{
	(void)state;
	with("location /any/ { nodes = {n1, n2} }\nlocation /only/ { nodes = {n1, n2} otherwise = reject }");
	assert_int_equal(ask("GET /"), ES_RULES_PASS);
	assert_false(request.has_allowed);
	node[1].is_target = 0;
	assert_int_equal(ask("GET /only/"), ES_RULES_PASS);
	assert_true(request.has_allowed);
	assert_int_equal(request.allowed.bits[0], 6);
	node[2].is_target = 0;
	assert_int_equal(ask("GET /any/"), ES_RULES_PASS);
	assert_false(request.has_allowed);
	assert_string_equal(explain.step[1], "none of the nodes is a target: otherwise any");
	assert_int_equal(ask("GET /only/"), ES_RULES_REJECT);
	assert_int_equal(refusal.status, 503);
	assert_int_equal(refusal.retry_after_s, 7);
	assert_int_equal(refusal.by, ES_RULES_BY_LOCATION);
	assert_string_equal(explain.step[1], "none of the nodes is a target: otherwise reject");
	/* One that drains is better than none, and so is one that is not on the ring. */
	node[2].is_draining = 1;
	assert_int_equal(ask("GET /only/"), 2);
	assert_string_equal(explain.step[1], "none of the nodes is a target: #2, which drains");
	node[2].weight = 0;
	assert_int_equal(ask("GET /only/"), 2);
	assert_string_equal(explain.step[1], "none of the nodes is a target: #2, which has weight 0");
	node[2].weight = 100;
	node[1].is_target = 1;
	node[1].weight = 0;
	assert_int_equal(ask("GET /only/"), 2);
	node[1].weight = 1;
	assert_int_equal(ask("GET /only/"), ES_RULES_PASS);
}

/* Who comes second is asked before `otherwise`; refused is with the service's page. */
static void test_backup(void **state)
{
	(void)state;
	with("location /any/ { nodes = n1 backup = {n2, n3} }\n"
	     "location /only/ { nodes = n1 backup = n2 otherwise = reject }");
	assert_int_equal(ask("GET /any/"), ES_RULES_PASS);
	assert_int_equal(request.allowed.bits[0], 2);
	assert_string_equal(explain.step[0], "URL table: nodes #1, backup #2 #3, otherwise any");
	node[1].is_target = 0;
	assert_int_equal(ask("GET /any/"), ES_RULES_PASS);
	assert_true(request.has_allowed);
	assert_int_equal(request.allowed.bits[0], 12);
	assert_string_equal(explain.step[1], "none of the nodes is a target: its backup #2 #3");
	assert_int_equal(ask("GET /only/"), ES_RULES_PASS);
	assert_int_equal(request.allowed.bits[0], 4);
	node[2].is_target = 0;
	assert_int_equal(ask("GET /only/"), ES_RULES_REJECT);
	assert_int_equal(refusal.status, 503);
	assert_null(refusal.body);
	node[3].is_target = 0;
	assert_int_equal(ask("GET /any/"), ES_RULES_PASS);
	assert_false(request.has_allowed);
	/* One that drains: of the first choice first. */
	node[2].is_draining = 1;
	assert_int_equal(ask("GET /only/"), 2);
	node[1].is_draining = 1;
	assert_int_equal(ask("GET /only/"), 1);
}

/* A refusal names the rule that said which nodes, by its number in the file, locations counted. */
static void test_who_refuses(void **state)
{
	(void)state;
	with("location /x/ { nodes = n1 }\nrule cheap { path = /o/ cost = 1 }\n"
	     "rule only { path = /o/ nodes = {n1, n2} otherwise = reject }\n"
	     "rule late { path = /o/ nodes = {n3} otherwise = any }");
	node[1].is_target = node[2].is_target = 0;
	assert_int_equal(ask("GET /o/"), ES_RULES_REJECT);
	assert_int_equal(refusal.by, ES_RULES_BY_RULE + 2);
}

/* The first rule that says `deny` has its way, before nodes, admission and affinity. */
static void test_deny(void **state)
{
	const char *kept;

	(void)state;
	with("rule friends { path = /admin/ client = 192.0.2.0/24 deny = no }\n"
	     "rule admin { path = /admin/ deny = yes }\n"
	     "rule gone { path = {/admin/, /old/} nodes = n1 deny = yes status = 410 body = \"It is gone.\" "
	     "}\n"
	     "rule stick { cookie = S affinity = yes }");
	assert_int_equal(ask("GET /admin/x"), ES_RULES_REJECT);
	assert_int_equal(refusal.status, 403);
	assert_int_equal(refusal.retry_after_s, 0);
	assert_int_equal(refusal.by, ES_RULES_BY_RULE + 1);
	assert_null(refusal.body);
	assert_string_equal(explain.step[explain.count - 1], "rule admin: denied, with status 403");
	assert_int_equal(ask_of(0, "GET /admin/x", "", "192.0.2.7"), ES_RULES_PASS);
	assert_string_equal(explain.step[1], "rule friends: not denied");
	assert_int_equal(ask_of(0, "GET /old/x", "Cookie: S=1\r\n", NULL), ES_RULES_REJECT);
	assert_int_equal(refusal.status, 410);
	assert_int_equal(refusal.by, ES_RULES_BY_RULE + 2);
	assert_string_equal(refusal.body, "It is gone.");
	kept = refusal.body;
	assert_int_equal(ask("GET /other"), ES_RULES_PASS);
	/* A path that servers read differently meets no condition: rules are no access control. */
	assert_int_equal(ask("GET /admin%2fx"), ES_RULES_PASS);
	/* An answer that is sent again is the same after a reload, and the same text is kept once. */
	with("rule other { path = /old/ deny = yes body = \"Moved.\" }");
	assert_string_equal(kept, "It is gone.");
	with("rule gone { path = /old/ deny = yes body = \"It is gone.\" }");
	assert_int_equal(ask("GET /old/x"), ES_RULES_REJECT);
	assert_ptr_equal(refusal.body, kept);
}

static void test_admission(void **state)
{
	(void)state;
	with("rule h { path = /h priority = high }\nrule l { path = /l priority = low }");
	for (unsigned int i = 0; i < NODES; i++)
		node[i].active = 9;
	assert_int_equal(ask("GET /l"), ES_RULES_PASS);
	assert_string_equal(explain.step[1], "priority low: the nodes have 9.0 requests in hand on average, "
					     "admit_low of 10: admitted");
	/* The mean counts: 9, 9, 9, 13. */
	node[3].active = 13;
	assert_int_equal(ask("GET /l"), ES_RULES_REJECT);
	assert_int_equal(refusal.status, 503);
	assert_int_equal(refusal.retry_after_s, 7);
	assert_int_equal(refusal.by, ES_RULES_BY_ADMIT_LOW);
	assert_string_equal(explain.step[1], "priority low: the nodes have 10.0 requests in hand on average, "
					     "admit_low of 10: rejected");
	assert_int_equal(ask("GET /n"), ES_RULES_PASS);
	assert_int_equal(ask("GET /h"), ES_RULES_PASS);
	/* A node of weight 200 counts as two; one that is no target does not count. */
	node[0].weight = 200;
	assert_int_equal(ask("GET /l"), ES_RULES_PASS);
	node[1].is_target = 0;
	node[1].active = 1000;
	assert_int_equal(ask("GET /l"), ES_RULES_PASS);
	for (unsigned int i = 0; i < NODES; i++)
		node[i].active = 1000;
	assert_int_equal(ask("GET /n"), ES_RULES_REJECT);
	assert_int_equal(ask("GET /h"), ES_RULES_PASS);
	/* The other service has no bounds. */
	assert_int_equal(ask_of(1, "GET /l", "", NULL), ES_RULES_PASS);
	/* Nobody there: that is not for admission to say. */
	for (unsigned int i = 0; i < NODES; i++)
		node[i].is_target = 0;
	assert_int_equal(ask("GET /l"), ES_RULES_PASS);
}

/* A connection on which nothing goes on is no request in hand. */
static void test_admission_idle(void **state)
{
	(void)state;
	with("rule l { path = /l priority = low }");
	for (unsigned int i = 0; i < NODES; i++) {
		node[i].active = 500;
		node[i].idle = 491;
	}
	assert_int_equal(ask("GET /l"), ES_RULES_PASS);
	assert_string_equal(explain.step[1], "priority low: the nodes have 9.0 requests in hand on average, "
					     "admit_low of 10: admitted");
	node[2].active = 505;
	assert_int_equal(ask("GET /l"), ES_RULES_REJECT);
	node[1].active = 400; /* it was told later than the other */
	assert_int_equal(ask("GET /l"), ES_RULES_PASS);
	for (unsigned int i = 0; i < NODES; i++)
		node[i].active = node[i].idle = 0;
}

/* Nodes that begin slowly have little of the requests, and all of what they serve them with. */
static void test_admission_begins_slowly(void **state)
{
	(void)state;
	with("rule l { path = /l priority = low }");
	for (unsigned int i = 0; i < NODES; i++)
		node[i] = (struct es_node_view){.weight = 5, .withheld = 0.95, .is_target = 1, .active = 9};
	assert_int_equal(ask("GET /l"), ES_RULES_PASS);
	assert_string_equal(explain.step[1], "priority low: the nodes have 9.0 requests in hand on average, "
					     "admit_low of 10: admitted");
	node[0].weight = 100;
	node[0].withheld = 0;
	assert_int_equal(ask("GET /l"), ES_RULES_PASS);
	node[3].active = 14;
	assert_int_equal(ask("GET /l"), ES_RULES_REJECT);
	for (unsigned int i = 0; i < NODES; i++)
		node[i] = (struct es_node_view){.weight = 100, .is_target = 1};
}

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
	/* What names none leaves it to the rules behind it, and at last to the policy. */
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
	/* Of several paths' cookies, the first that names a node; the first rule wins. */
	assert_int_equal(ask_of(0, "GET /", "Cookie: sid=A; sid=B.n2; sid=C.n3\r\n", NULL), 2);
	assert_int_equal(ask_of(0, "GET /", "Cookie: sid=A\r\nCookie: sid=B.n2\r\nX-Node: n1\r\n", NULL), 2);
	assert_int_equal(with_value("1; sid=2; sid=3; sid=4; sid=5; sid=6; sid=7; sid=8.n1"), 1);
	assert_int_equal(with_value("1; sid=2; sid=3; sid=4; sid=5; sid=6; sid=7; sid=8; sid=9.n1"),
			 ES_RULES_PASS);
	/* One that cannot have the request: the policy decides, and the session comes back to it. */
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

/* A rule of another kind behind it says where such a session goes while its node is away. */
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

/* The simulator has no head. */
static void test_without_head(void **state)
{
	struct es_cluster_view view = {.count = NODES, .node = node, .ring = ring};
	static const char uri[] = "/a/b";

	(void)state;
	with("rule a { method = GET cost = 2 }\nrule b { host = h cost = 3 }\nrule c { header = h cost = 4 "
	     "}\n"
	     "rule d { cookie = c affinity = yes }\nrule e { path = /a/ cost = 5 }\n"
	     "rule f { cookie = c affinity = route }\nrule g { header = h affinity = route }");
	request = (struct es_request_view){.current = -1, .cost = 1, .uri = uri, .uri_len = 4};
	assert_int_equal(es_rules_apply(rules, 0, NULL, &request, &view, &refusal), ES_RULES_PASS);
	assert_int_equal(request.cost, 5);
	request = (struct es_request_view){.current = -1, .cost = 1};
	assert_int_equal(es_rules_apply(rules, 0, NULL, &request, &view, &refusal), ES_RULES_PASS);
	assert_int_equal(request.cost, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(wait),	      TEST(conditions),	  TEST(clients),
		TEST(first_wins),     TEST(table),	  TEST(placement),
		TEST(who_refuses),    TEST(deny),	  TEST(admission),
		TEST(affinity),	      TEST(without_head), TEST(admission_begins_slowly),
		TEST(admission_idle), TEST(route),	  TEST(route_then_value),
		TEST(route_names),    TEST(backup),	  TEST(route_drained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
