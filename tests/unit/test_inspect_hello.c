// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ClientHellos to a service with tls { }: the node that a ticket names has the connection, if it takes any;
 * without such a ticket the ring's has it, and nobody waits.
 */
#include "cmocka_all.h"
#include "inspector/http/tls_home.h"
#include "tests/hello.h"
#include "tests/unit/inspect_world.h"

#define TICKET 200

static const struct es_sipkey homes = {1, 2}, older = {3, 4}, others = {5, 6};
static unsigned int client;

/* Begins with another client, whose connections the ring gives to this node. */
static void begin(void)
{
	conf->services[0].tls.line = 1;
	strcpy(conf->services[0].policy, "uri-hash");
	in.keys.count = 2;
	in.keys.key[0].home = homes;
	in.keys.key[1].home = older;
	client = flow_find(client + 1, 1);
}

static void make_ticket(const struct es_sipkey *key, uint8_t home, uint8_t ticket[TICKET])
{
	for (size_t i = 0; i < TICKET; i++)
		ticket[i] = (uint8_t)(client * 37 + i * 11);
	if (key)
		es_tls_home_put(key, ticket, home, ticket + ES_TLS_TICKET_NAME);
}

static void put_ticket(struct hello *e, unsigned int version, const struct es_sipkey *key, uint8_t home)
{
	uint8_t ticket[TICKET];

	make_ticket(key, home, ticket);
	if (version == 2)
		hello_extension(e, 35, ticket, TICKET);
	else
		hello_psk(e, ticket, TICKET);
}

/* A ClientHello; @share: bytes of its key share. */
static struct hello hello_of(unsigned int version, size_t share, const struct es_sipkey *key, uint8_t home)
{
	static const uint8_t zeros[2000];
	struct hello e = {.len = 0}, whole;

	hello_sni(&e, "www.example.org");
	hello_extension(&e, 51, zeros, share);
	put_ticket(&e, version, key, home);
	hello_finish(&e, 16384, &whole);
	return whole;
}

static void expect(int node, unsigned int segments)
{
	struct message m;

	assert_int_equal(sent_to(&m), node);
	assert_int_equal(m.h.kind, ES_HANDOVER_REQUEST);
	while (--segments) {
		assert_int_equal(sent_to(&m), node);
		assert_int_equal(m.h.kind, ES_HANDOVER_FOLLOW);
	}
	assert_int_equal(sent_to(&m), -1);
	assert_int_equal(es_gather_count(in.gathers), 0);
}

static void say(const struct hello *h)
{
	inspect_bytes(client, ES_FLOW_NEW, 0, h->bytes, h->len);
}

static void test_home(void **state)
{
	(void)state;
	for (unsigned int version = 2; version <= 3; version++)
		for (int node = 0; node < NODES; node++)
			for (int is_older = 0; is_older < 2; is_older++) {
				struct hello h;

				begin();
				h = hello_of(version, 32, is_older ? &older : &homes, (uint8_t)node);
				say(&h);
				expect(node, 1);
			}
	assert_int_equal(COUNT(home_taken), 12);
	assert_int_equal(COUNT(tls), 12);
	assert_int_equal(REQUESTS(1, first), 0); /* the requests behind it are counted, and not itself */
	assert_int_equal(HANDOVERS(1, sent), 4);
}

/* Nobody makes a home up, and a node of before does not name any. */
static void test_no_home(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		static const struct es_sipkey *const keys[] = {NULL, &others, &homes};
		struct hello h;

		begin();
		h = hello_of(i == 2 ? 2 : 3, 32, keys[i], NODES + 5); /* the last one was a node once */
		say(&h);
		expect(SELF, 1);
	}
	assert_int_equal(COUNT(home_taken), 0);
	assert_int_equal(COUNT(home_left), 1);
}

static void test_no_target(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct hello h;

		begin();
		memset(&health, 0, sizeof(health));
		conf->services[0].nodes = (struct es_node_set){};
		if (i == 0)
			es_health_set_state(&health, 2, ES_NODE_DOWN);
		else if (i == 1)
			es_health_set_state(&health, 2, ES_NODE_DRAINING);
		else if (i == 2)
			es_health_suspend(&health, 2, in.now_ns + 1000000000);
		else
			conf->services[0].nodes = (struct es_node_set){{3}}; /* it is not there */
		h = hello_of(3, 32, &homes, 2);
		say(&h);
		expect(SELF, 1);
	}
	assert_int_equal(COUNT(home_left), 4);
}

/* Bytes of a key share that quantum computers do not break: more than a segment. Cut anywhere. */
static void test_segments(void **state)
{
	(void)state;
	for (size_t cut = 1; cut < 1300; cut += 57) {
		struct hello h;

		begin();
		h = hello_of(3, 1216, &homes, 2);
		inspect_bytes(client, ES_FLOW_NEW, 0, h.bytes, cut);
		assert_int_equal(es_gather_count(in.gathers), 1);
		for (size_t at = cut; at < h.len; at += 1000)
			inspect_bytes(client, ES_FLOW_NEW, (uint32_t)at, h.bytes + at,
				      h.len - at < 1000 ? h.len - at : 1000);
		expect(2, 1 + (unsigned int)((h.len - cut + 999) / 1000));
	}
}

/* The rest does not come: the ring's node has what is there. */
static void test_rest_is_missing(void **state)
{
	struct hello h;

	(void)state;
	begin();
	h = hello_of(3, 1216, &homes, 2);
	inspect_bytes(client, ES_FLOW_NEW, 0, h.bytes, 1000); /* before the ticket */
	in.now_ns += 10000000000ULL;
	es_inspect_deadlines(&in);
	es_handover_flush(in.sender);
	expect(SELF, 1);
}

/* Nobody waits for the rest of what cannot be a hello. */
static void test_no_hello(void **state)
{
	(void)state;
	begin();
	inspect(client, ES_FLOW_NEW, 0, "\x16\x03\x01\x01\x01\x02"); /* a ServerHello */
	expect(SELF, 1);
	begin();
	inspect(client, ES_FLOW_NEW, 0, "\xe5 sealed?");
	expect(SELF, 1);
	begin();
	inspect(client, ES_FLOW_NEW, 0, REQUEST);
	expect(SELF, 1);
	assert_int_equal(COUNT(not_http), 2);
}

/* A home that refuses it: the ring's node has it then. */
static void test_refused(void **state)
{
	struct message m;
	struct hello h;

	(void)state;
	begin();
	h = hello_of(3, 32, &homes, 2);
	say(&h);
	assert_int_equal(sent_to(&m), 2);
	nack(&m, ES_NACK_NO_LISTENER);
	expect(SELF, 1);
}

/* With a rule that names a node for the client's address, that one has it. */
static void test_source(void **state)
{
	struct message m;
	struct hello h;
	int node;

	(void)state;
	begin();
	conf->rule_count = 1;
	conf->rules = calloc(1, sizeof(*conf->rules));
	assert_non_null(conf->rules);
	conf->rules[0].service = 0;
	conf->rules[0].affinity = ES_CONF_AFFINITY_SOURCE;
	es_router_fini(&in.router);
	assert_int_equal(es_router_init(&in.router, cluster, &health, NULL), 0);
	h = hello_of(3, 32, NULL, 0);
	say(&h);
	node = sent_to(&m);
	assert_true(node >= 0);
	for (uint8_t home = 0; home < NODES; home++) {
		in.now_ns += 3600000000000ULL; /* another connection of that client */
		h = hello_of(3, 32, &homes, home);
		memset(in.decisions.sets, 0, SETS * sizeof(*in.decisions.sets));
		say(&h);
		expect(node, 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_home),	TEST(test_no_home),	    TEST(test_no_target),
		TEST_V4(test_segments), TEST(test_rest_is_missing), TEST(test_no_hello),
		TEST(test_refused),	TEST(test_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
