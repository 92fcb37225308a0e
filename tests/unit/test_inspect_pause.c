// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Heads that pause where a rule may refuse their request: they are waited for as long as the client can send more, within
 * bounds; others are not.
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

/* One that denies /secret/, or with @host that host. */
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

/* It has taken its first segment for lost, and sends nothing more that is not acknowledged. */
static void test_a_client_that_waits(void **state)
{
	unsigned int number = flow_find(1, 1);

	(void)state;
	rule_add(NULL);
	inspect(number, ES_FLOW_NEW, 0, CUT);
	inspect(number, ES_FLOW_NEW, 0, CUT);
	assert_int_equal(given(), 0);
	inspect(number, ES_FLOW_NEW, 0, CUT);
	assert_int_equal(given(), 1);
	assert_int_equal(COUNT(gather_timeout), 1);
}

static void test_no_longer_than_that(void **state)
{
	unsigned int number = flow_find(1, 1);

	(void)state;
	rule_add(NULL);
	inspect(number, ES_FLOW_NEW, 0, CUT);
	pass_ms(201);
	pass_ms(9998);
	assert_int_equal(given(), 0);
	pass_ms(3);
	assert_int_equal(given(), 1);
	assert_int_equal(es_gather_count(in.gathers), 0);
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

/* What was open is answered, and the rest of the head matters no more than without the rule. */
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

/* Who pauses takes no place from others, and all are forgotten where the datapath may have served them. */
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
	assert_int_equal(es_gather_count(in.gathers), 16);
	assert_null(es_gather_lookup(in.gathers, hash_of(first), COOKIE));
	assert_int_equal(COUNT(gather_forgotten), 1);
	es_inspect_forget(&in);
	assert_int_equal(es_gather_count(in.gathers), 0);
	assert_int_equal(given(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_denied_after_a_pause),
		TEST(test_a_client_that_waits),
		TEST(test_no_longer_than_that),
		TEST(test_nothing_to_wait_for),
		TEST(test_host),
		TEST(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
