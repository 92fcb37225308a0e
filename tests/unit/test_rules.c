// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rules at work: each condition, which of several rules wins, what the URL table adds, placement without its
 * nodes, admission, and what explain says. Sessions are in test_rules_affinity.c.
 */
#include "rules_world.h"

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
	assert_true(waits("GET /b", NULL)); /* more of the path may follow, as in /b/../a/ */
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
	/* Requests that the nodes of a rule or a location alone may serve. */
	with("rule r { host = x  nodes = n1  otherwise = reject }");
	assert_true(waits("GET /a HTTP/1.1\r\n", NULL));
	with("location \"/b/\" { nodes = n1  otherwise = reject }");
	assert_true(waits("GET /a", NULL));
	assert_false(waits("GET /a HTTP/1.1\r\n", NULL));
	with("location \"/b/\" { service = api  nodes = n1  otherwise = reject }");
	assert_false(waits("GET /a", NULL));
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

/* The backup is asked before `otherwise`; a refused request gets the service's page. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(wait),
		TEST(conditions),
		TEST(clients),
		TEST(first_wins),
		TEST(table),
		TEST(placement),
		TEST(who_refuses),
		TEST(deny),
		TEST(admission),
		TEST(without_head),
		TEST(admission_begins_slowly),
		TEST(admission_idle),
		TEST(backup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
