// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Heads that pause where a rule may refuse their request: they are waited for as long as the client can send
 * more, within bounds; others are not.
 */
#include "cmocka_all.h"
#include "tests/unit/inspect_world.h"

#define CUT  "GET /sec"
#define REST "ret/x HTTP/1.1\r\nHost: x\r\n\r\n"
#define LINE "GET /y HTTP/1.1\r\n"

static struct es_conf_list list_of(const char *text)
{
	return (struct es_conf_list){
		.count = 1, .used = (unsigned int)strlen(text) + 1, .text = strdup(text)};
}

/* Adds a rule that denies /secret/, or with @host that host. */
static void rule_add(const char *host)
{
	conf->rules = calloc(1, sizeof(*conf->rules));
	conf->rule_count = 1;
	conf->rules[0] = (struct es_conf_rule){.name = "r", .service = -1, .deny = ES_CONF_DENY_YES};
	if (host)
		conf->rules[0].hosts = list_of(host);
	else
		conf->rules[0].paths = list_of("/secret/");
	es_router_fini(&in.router);
	assert_int_equal(es_router_init(&in.router, cluster, &health, NULL), 0);
}

static void pass_ms(unsigned int ms)
{
	in.now_ns += ms * 1000000ULL;
	es_inspect_deadlines(&in);
	es_handover_flush(in.sender);
}

static unsigned int given(void)
{
	struct message m;
	unsigned int count = 0;

	while (sent_to(&m) >= 0)
		count++;
	return count;
}

static void test_denied_after_a_pause(void **state)
{
	unsigned int number = flow_find(1, 1);

	(void)state;
	rule_add(NULL);
	inspect(number, ES_FLOW_NEW, 0, CUT);
	pass_ms(250);
	inspect(number, ES_FLOW_NEW, 0, CUT); /* the client's probe */
	pass_ms(9000);
	assert_int_equal(given(), 0);
	assert_int_equal(COUNT(gather_waited), 1);
	inspect(number, ES_FLOW_NEW, sizeof(CUT) - 1, REST);
	assert_int_equal(given(), 0);
	assert_int_equal(COUNT(rejected), 1);
	assert_int_equal(COUNT(gather_timeout), 0);
	assert_int_equal(es_gather_count(in.gathers), 0);
}

/* The client has taken its first segment for lost, and sends nothing more before that is acknowledged. */
static void test_a_client_that_waits(void **state)
{
	unsigned int number = flow_find(1, 1);

	(void)state;
	rule_add(NULL);
	inspect(number, ES_FLOW_NEW, 0, CUT);
	inspect(number, ES_FLOW_NEW, 0, CUT);
	assert_int_equal(COUNT(gather_acked), 0);
	inspect(number, ES_FLOW_NEW, 0, CUT);
	inspect(number, ES_FLOW_NEW, 0, CUT); /* it has not heard that */
	assert_int_equal(COUNT(gather_acked), 2);
	assert_int_equal(COUNT(send_failed), 2);
	assert_int_equal(given(), 0);
	inspect(number, ES_FLOW_NEW, sizeof(CUT) - 1, REST);
	assert_int_equal(COUNT(rejected), 1);
	assert_int_equal(given(), 0);
	assert_int_equal(COUNT(gather_timeout) + COUNT(gather_refused), 0);
}

/*
 * Bytes that the client does not send again, since they were acknowledged, go in one message; and that goes
 * again, to whoever has the request by then.
 */
static void test_what_was_acknowledged(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m, first;
	int to, next;

	(void)state;
	rule_add(NULL);
	inspect(number, ES_FLOW_NEW, 0, "GE");
	for (int i = 0; i < 2; i++)
		inspect(number, ES_FLOW_NEW, 0, "GE");
	inspect(number, ES_FLOW_NEW, 2, "T /s");
	inspect(number, ES_FLOW_NEW, 2, "T /s");
	assert_int_equal(COUNT(gather_acked), 2);
	inspect(number, ES_FLOW_NEW, 4, "/s"); /* a part of it, late */
	inspect(number, ES_FLOW_NEW, 6, "ure HTTP/1.1\r\n");
	assert_int_equal(given(), 0);
	pass_ms(201); /* no rule is open, and the rest of the head does not arrive */
	to = sent_to(&m);
	assert_true(to >= 0);
	assert_int_equal(m.h.kind, ES_HANDOVER_REQUEST);
	assert_memory_equal(m.packet + text_at(), "GET /s", 6);
	assert_int_equal(m.len, text_at() + 6);
	assert_int_equal(given(), 1); /* what follows it */
	first = m;
	nack(&first, ES_NACK_NO_LISTENER);
	next = sent_to(&m);
	assert_true(next >= 0 && next != to && !(m.h.flags & ES_HANDOVER_F_REPEAT));
	for (int i = 0; i < 3; i++) {
		pass_ms(201);
		assert_int_equal(sent_to(&m), next);
		assert_true(m.h.flags & ES_HANDOVER_F_REPEAT && m.h.attempt == 1);
		assert_memory_equal(m.packet + text_at(), "GET /s", 6);
	}
	pass_ms(201);
	assert_int_equal(given(), 0);
	assert_int_equal(es_gather_count(in.gathers), 0);
}

/* Nobody knows then whether a rule refuses it. */
static void test_no_longer_than_that(void **state)
{
	unsigned int number = flow_find(1, 1);

	(void)state;
	rule_add(NULL);
	inspect(number, ES_FLOW_NEW, 0, CUT);
	pass_ms(201);
	pass_ms(9998);
	assert_int_equal(COUNT(rejected), 0);
	pass_ms(3);
	assert_int_equal(given(), 0);
	assert_int_equal(COUNT(gather_refused), 1);
	assert_int_equal(COUNT(rejected), 1);
	assert_int_equal(es_tally_rejection(in.tally, 0, ES_RULES_BY_UNFINISHED), 1);
	assert_int_equal(es_gather_count(in.gathers), 0);
}

/* Nor of one that is longer than what is kept. */
static void test_too_long(void **state)
{
	unsigned int number = flow_find(1, 1), at = sizeof(LINE) - 1;
	char text[1000];

	(void)state;
	rule_add("b");
	inspect(number, ES_FLOW_NEW, 0, LINE);
	memset(text, 'a', sizeof(text));
	memcpy(text, "A: ", 3);
	text[sizeof(text) - 1] = 0;
	for (int i = 0; i < 5 && !COUNT(rejected); i++, at += sizeof(text) - 1)
		inspect(number, ES_FLOW_NEW, at, text);
	assert_int_equal(COUNT(gather_refused), 1);
	assert_int_equal(given(), 0);
}

/* The path is there, and nothing else is asked for; or there is no rule. */
static void test_nothing_to_wait_for(void **state)
{
	unsigned int number = flow_find(1, 1);

	(void)state;
	inspect(number, ES_FLOW_NEW, 0, CUT);
	pass_ms(201);
	assert_int_equal(given(), 1);
	rule_add(NULL);
	number = flow_find(number + 1, 1);
	inspect(number, ES_FLOW_NEW, 0, LINE);
	pass_ms(201);
	assert_int_equal(given(), 1);
	number = flow_find(number + 1, 1);
	inspect(number, ES_FLOW_NEW, 0, LINE);
	inspect(number, ES_FLOW_NEW, 0, LINE);
	assert_int_equal(given(), 1);
	assert_int_equal(COUNT(gather_waited), 0);
}

/* The Host line answers what was open, and the rest of the head matters no more than without the rule. */
static void test_host(void **state)
{
	unsigned int number = flow_find(1, 1), at = sizeof(LINE) - 1;

	(void)state;
	rule_add("b");
	inspect(number, ES_FLOW_NEW, 0, LINE);
	pass_ms(1000);
	assert_int_equal(given(), 0);
	inspect(number, ES_FLOW_NEW, at, "Host: a\r\n");
	assert_int_equal(given(), 0);
	pass_ms(199);
	assert_int_equal(given(), 0);
	pass_ms(2);
	assert_int_equal(given(), 2);
	number = flow_find(number + 1, 1);
	inspect(number, ES_FLOW_NEW, 0, LINE);
	pass_ms(1000);
	inspect(number, ES_FLOW_NEW, at, "Host: b\r\n");
	pass_ms(201);
	assert_int_equal(given(), 0);
	assert_int_equal(COUNT(rejected), 1);
}

/*
 * A client that pauses takes no place from others, and all are forgotten where the datapath may have served
 * them.
 */
static void test_bounds(void **state)
{
	unsigned int number = 0, first = flow_find(1, 1);

	(void)state;
	rule_add(NULL);
	for (int i = 0; i < 15; i++) {
		number = flow_find(number + 1, 1);
		inspect(number, ES_FLOW_NEW, 0, CUT);
	}
	pass_ms(201);
	number = flow_find(number + 1, 1);
	inspect(number, ES_FLOW_NEW, 0, CUT); /* the usual wait */
	number = flow_find(number + 1, 1);
	inspect(number, ES_FLOW_NEW, 0, CUT);
	assert_int_equal(COUNT(send_failed), 0);
	assert_int_equal(es_gather_count(in.gathers), 16);
	assert_null(es_gather_lookup(in.gathers, hash_of(first), COOKIE));
	assert_int_equal(COUNT(gather_forgotten), 1);
	/* One that was acknowledged would not send it again: it is told. */
	for (int i = 0; i < 2; i++)
		inspect(number, ES_FLOW_NEW, 0, CUT);
	assert_int_equal(COUNT(gather_acked), 1);
	assert_int_equal(COUNT(send_failed), 1);
	es_inspect_forget(&in);
	assert_int_equal(COUNT(send_failed), 2);
	assert_int_equal(es_gather_count(in.gathers), 0);
	assert_int_equal(given(), 0);
}

/*
 * A request that was given to a node is kept, to be given again, and is the only one that the table has room
 * for. Its node is lost, and its client sends it again in parts: what is kept makes room for what arrives.
 */
static void test_in_its_own_place(void **state)
{
	unsigned int number = flow_find(1, 1);
	struct message m;
	int to, next;

	(void)state;
	rule_add(NULL);
	es_gather_table_free(&in.gathers);
	assert_int_equal(es_gather_table_new(1, 4096, &in.gathers), 0);
	for (int i = 0; i < 3; i++)
		inspect(number, ES_FLOW_NEW, 0, CUT);
	assert_int_equal(COUNT(gather_acked), 1);
	only(2);
	inspect(number, ES_FLOW_NEW, sizeof(CUT) - 1, "ond HTTP/1.1\r\n\r\n");
	to = sent_to(&m);
	assert_int_equal(to, 2);
	assert_int_equal(given(), 1);
	assert_int_equal(es_gather_count(in.gathers), 1);
	memset(&health, 0, sizeof(health));
	es_health_set_state(&health, 2, ES_NODE_ABSENT);
	inspect(number, ES_FLOW_NEW, 0, CUT);
	assert_int_equal(given(), 0);
	assert_int_equal(COUNT(gather_forgotten), 1);
	assert_int_equal(es_gather_count(in.gathers), 1);
	inspect(number, ES_FLOW_NEW, sizeof(CUT) - 1, "ond HTTP/1.1\r\n\r\n");
	next = sent_to(&m);
	assert_true(next >= 0 && next != to);
	assert_int_equal(m.h.attempt, 1);
	assert_memory_equal(m.packet + text_at(), CUT, sizeof(CUT) - 1);
	assert_int_equal(given(), 1);
	assert_int_equal(es_gather_count(in.gathers), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_denied_after_a_pause),
		TEST(test_a_client_that_waits),
		TEST(test_what_was_acknowledged),
		TEST(test_no_longer_than_that),
		TEST(test_too_long),
		TEST(test_nothing_to_wait_for),
		TEST(test_host),
		TEST(test_bounds),
		TEST(test_in_its_own_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
