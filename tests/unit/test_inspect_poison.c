// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests like one that has ended a daemon: nobody is asked about them, whatever they look like, and they
 * are served, or refused, all the same. The rule that would be asked refuses everything, so that what it does
 * not see is known by its being served.
 */
#include "cmocka_all.h"
#include <earshot/plugin.h>
#include <stdio.h>
#include "inspector/inspect/poison.h"
#include "tests/unit/inspect_world.h"

static struct es_poisons poisons;
static struct es_mark mark;

static void begin(void)
{
	struct es_conf_error err = {};

	memset(&poisons, 0, sizeof(poisons));
	memset(&mark, 0, sizeof(mark));
	params.poisons = &poisons;
	params.mark = &mark;
	conf->plugins = calloc(1, sizeof(*conf->plugins));
	assert_non_null(conf->plugins);
	conf->plugin_count = 1;
	snprintf(conf->plugins->name, sizeof(conf->plugins->name), "d");
	snprintf(conf->plugins->file, sizeof(conf->plugins->file), "%s/debug.so", EARSHOT_PLUGINS);
	snprintf(conf->plugins->config, sizeof(conf->plugins->config), "answer reject 403");
	if (es_plugins_new(conf, ES_PLUGINS_MISSING_FAILS, &plugins, &err))
		fail_msg("%s", err.text);
	cluster->plugins = plugins;
	es_router_fini(&in.router);
	assert_int_equal(es_router_init(&in.router, cluster, &health, NULL), 0);
}

static unsigned long long asked(void)
{
	static struct es_plugin_report report;

	es_plugins_describe(plugins, 0, &report);
	return report.calls;
}

/* A request of flow @number with this @text ended a daemon. */
static void poison(unsigned int number, const char *text)
{
	uint8_t bytes[1500];
	struct es_record record = segment(number, 0, text, bytes);
	struct es_poison p = {
		.flow_hash = hash_of(number),
		.request = es_poison_request(&in.keys.ring, bytes, record.len),
	};

	assert_int_equal(es_poison_note(&poisons, &p, NOW_NS), 1);
}

/* One message, with the whole request, went to a node: returns which. */
static int expect_served(enum es_handover_kind kind)
{
	struct message m;
	int node = sent_to(&m);

	assert_true(node >= 0);
	assert_int_equal(m.h.kind, kind);
	assert_int_equal(m.h.pin, ES_PIN_unknown);
	assert_int_equal(sent_to(&m), -1);
	return node;
}

static void expect_nothing(void)
{
	struct message m;

	assert_int_equal(sent_to(&m), -1);
}

/* A request that is no poison is inspected, and marked while it is. */
static void test_others_are_inspected(void **state)
{
	unsigned int number = flow_find(1, 1), other = flow_find(number + 1, 1);

	(void)state;
	begin();
	poison(number, REQUEST);
	inspect(other, ES_FLOW_NEW, 0, "GET /other HTTP/1.1\r\nHost: x\r\n\r\n");
	expect_nothing();
	assert_int_equal(asked(), 1);
	assert_int_equal(COUNT(rejected), 1);
	assert_int_equal(COUNT(poisoned), 0);
	assert_int_equal(mark.busy, 0);
	assert_int_equal(mark.count, 1);
	assert_int_equal(mark.flow_hash, hash_of(other));
}

static void test_served_uninspected(void **state)
{
	unsigned int number = flow_find(1, 1), other = flow_find(number + 1, 1);
	int node;

	(void)state;
	begin();
	poison(number, REQUEST);
	inspect(number, ES_FLOW_NEW, 0, REQUEST);
	node = expect_served(ES_HANDOVER_REQUEST);
	/* Again, when its client repeats it: to the same node. */
	inspect(number, ES_FLOW_NEW, 0, REQUEST);
	assert_int_equal(expect_served(ES_HANDOVER_REQUEST), node);
	assert_int_equal(COUNT(repeated), 1);
	/* The same bytes on another connection. */
	inspect(other, ES_FLOW_NEW, 0, REQUEST);
	expect_served(ES_HANDOVER_REQUEST);
	assert_int_equal(COUNT(requests), 2);
	assert_int_equal(COUNT(poisoned), 3);
	assert_int_equal(asked(), 0);
}

/* The decision was made before the daemon died: at most one socket from one request. */
static void test_decided_before(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct es_proof proof = {.flow_hash = hash_of(number), .cookie = COOKIE, .first_seq = ISN + 1};

	(void)state;
	begin();
	poison(number, REQUEST);
	for (proof.node = 0; proof.node < NODES; proof.node++) {
		es_inspector_learn(&in, &proof, 1);
		inspect(number, ES_FLOW_NEW, 0, REQUEST);
		assert_int_equal(expect_served(ES_HANDOVER_REQUEST), proof.node);
	}
	/* Unless that node died with it. */
	es_health_set_state(&health, NODES - 1, ES_NODE_ABSENT);
	inspect(number, ES_FLOW_NEW, 0, REQUEST);
	assert_int_not_equal(expect_served(ES_HANDOVER_REQUEST), NODES - 1);
	assert_int_equal(asked(), 0);
}

static void test_refused(void **state)
{
	unsigned int number = flow_find(1, 1);

	(void)state;
	begin();
	conf->inspector.poison = ES_CONF_POISON_REFUSE;
	poison(number, REQUEST);
	inspect(number, ES_FLOW_NEW, 0, REQUEST);
	expect_nothing();
	assert_int_equal(COUNT(send_failed), 1); /* the RST, for which there is no socket here */
	assert_int_equal(asked(), 0);
}

/* The second segment was the poison: what was gathered before goes, too, and in order. */
static void test_gathered(void **state)
{
	static const char first[] = "GET / HTTP/1.1\r\nHost: x\r\nX: ", second[] = "poison\r\n\r\n";
	unsigned int number = flow_find(1, 1), other = flow_find(number + 1, 1);
	struct message m;
	int node;

	(void)state;
	begin();
	poison(number, second);
	inspect(other, ES_FLOW_NEW, 0, first);
	expect_nothing();
	inspect(other, ES_FLOW_NEW, sizeof(first) - 1, second);
	node = sent_to(&m);
	assert_true(node >= 0);
	assert_int_equal(m.h.kind, ES_HANDOVER_REQUEST);
	assert_int_equal(sent_to(&m), node);
	assert_int_equal(m.h.kind, ES_HANDOVER_FOLLOW);
	assert_int_equal(es_gather_count(in.gathers), 0);
	/* Without the first one it waits for its client to send both again. */
	number = flow_find(other + 1, 1);
	inspect(number, ES_FLOW_NEW, sizeof(first) - 1, second);
	expect_nothing();
	assert_int_equal(es_gather_count(in.gathers), 0);
	assert_int_equal(asked(), 0);
}

/* A node that does not read a poisoned request can still see whether it may be executed twice. */
static void test_doubtful(void **state)
{
	static const struct {
		const char *text;
		int is_safe;
	} cases[] = {
		{REQUEST, 1},
		{"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", 1},
		{"POST / HTTP/1.1\r\nHost: x\r\n\r\n", 0},
		{"GET / HTTP/1.1\r\nHost: x\r\n\r\nPOST / HTTP/1.1\r\n", 0},
		{"GETX / HTTP/1.1\r\n", 0},
		{"\x16\x03\x01", 1}, /* TLS: by its setting */
	};
	unsigned int number = 1;

	(void)state;
	begin();
	conf->services[0].unsafe = ES_UNSAFE_ONCE;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int before = COUNT(doubtful);

		number = flow_find(number + 1, 1);
		memset(&poisons, 0, sizeof(poisons));
		poison(number, cases[i].text);
		inspect(number, ES_FLOW_DOUBTFUL, 0, cases[i].text);
		if (cases[i].is_safe)
			expect_served(ES_HANDOVER_REQUEST);
		else
			expect_nothing();
		assert_int_equal(COUNT(doubtful), before + !cases[i].is_safe);
		number = flow_find(number + 1, 1);
		inspect(number, ES_FLOW_NEW, 0, cases[i].text);
		expect_served(ES_HANDOVER_REQUEST);
	}
	assert_int_equal(asked(), 0);
}

/* A later request on a connection that is here: it stays, and is read no more. */
static void test_later_request(void **state)
{
	unsigned int number = flow_find(1, 1);

	(void)state;
	begin();
	conf->services[0].inspect = ES_INSPECT_EVERY;
	poison(number, REQUEST);
	inspect(number, ES_FLOW_HERE, 0, REQUEST);
	assert_int_equal(expect_served(ES_HANDOVER_STAY), SELF);
	assert_int_equal(asked(), 0);
}

/* A request that came back from a node without a server goes to another node, and nobody is asked. */
static void test_came_back(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;
	int node;

	(void)state;
	begin();
	poison(number, REQUEST);
	inspect(number, ES_FLOW_NEW, 0, REQUEST);
	node = sent_to(&m);
	nack(&m, ES_NACK_NO_LISTENER);
	assert_int_not_equal(expect_served(ES_HANDOVER_REQUEST), node);
	assert_int_equal(asked(), 0);
}

/* So many different poisons in so short a time: the next request is perhaps another. */
static void test_storm(void **state)
{
	unsigned int number = flow_find(100, 1);
	char text[64];

	(void)state;
	begin();
	for (unsigned int i = 0; i < ES_POISON_STORM; i++) {
		snprintf(text, sizeof(text), "GET /%u HTTP/1.1\r\n\r\n", i);
		poison(i + 1, text);
	}
	inspect(number, ES_FLOW_NEW, 0, REQUEST);
	expect_served(ES_HANDOVER_REQUEST);
	assert_int_equal(asked(), 0);
	in.now_ns = NOW_NS + ES_POISON_STORM_NS;
	inspect(flow_find(number + 1, 1), ES_FLOW_NEW, 0, REQUEST);
	expect_nothing();
	assert_int_equal(asked(), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_others_are_inspected),
		TEST(test_served_uninspected),
		TEST(test_decided_before),
		TEST(test_refused),
		TEST(test_gathered),
		TEST(test_doubtful),
		TEST(test_later_request),
		TEST(test_came_back),
		TEST(test_storm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
