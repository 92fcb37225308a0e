// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests that a process reads, and about which it asks: where they go, what is counted, what is shown.
 * test_ask_port.c has the socket by which it asks.
 */
#include "cmocka_all.h"
#include "inspector/inspect/asked.h"
#include "inspector/inspect/poison.h"
#include "tests/unit/inspect_world.h"

#define OTHER ((SELF + 1) % NODES)
#define POST  "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
#define TWICE "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc"
#define HALF  "GET / HTTP/1.1\r\nHost: x\r\n"

static struct es_asked asked;
static char answer[ES_ASKED_ANSWER_MAX + 1];

static struct es_question question_of(const char *text, int is_first, unsigned int moves)
{
	return (struct es_question){
		.flow = flow_of(1),
		.text = text,
		.len = strlen(text),
		.is_first = is_first,
		.moves = (uint16_t)moves,
	};
}

static enum es_asked_word ask(const char *text, int is_first)
{
	struct es_question question = question_of(text, is_first, 0);
	size_t len = es_inspect_asked(&in, &question, &asked, answer);

	assert_true(len <= ES_ASKED_ANSWER_MAX);
	answer[len] = 0;
	return asked.word;
}

static void rule_put(const struct es_conf_rule *rule)
{
	conf->rule_count = 1;
	conf->rules = calloc(1, sizeof(*conf->rules));
	assert_non_null(conf->rules);
	conf->rules[0] = *rule;
	conf->rules[0].service = -1;
	snprintf(conf->rules[0].name, sizeof(conf->rules[0].name), "mine");
	es_router_fini(&in.router);
	assert_int_equal(es_router_init(&in.router, cluster, &health, NULL), 0);
}

/* The datapath gives connections by the ring, and the service's policy decides all the same. */
static void test_stays(void **state)
{
	(void)state;
	is_tls(ES_INSPECT_EVERY);
	assert_true(es_route_is_layer4(cluster, 0));
	only(SELF);
	assert_int_equal(ask(REQUEST, 1), ES_ASKED_STAY);
	assert_int_equal(REQUESTS(SELF, first), 1);
	assert_int_equal(ask(POST, 0), ES_ASKED_STAY);
	assert_int_equal(REQUESTS(SELF, stay), 1);
	assert_int_equal(COUNT(asked), 2);
	assert_int_equal(COUNT(ask_stayed), 2);
	assert_int_equal(COUNT(stayed), 1);
}

static void test_moves(void **state)
{
	(void)state;
	is_tls(ES_INSPECT_EVERY);
	only(OTHER);
	assert_int_equal(ask(POST, 1), ES_ASKED_MOVE);
	assert_int_equal(asked.node, OTHER);
	assert_int_equal(REQUESTS(OTHER, first), 0); /* not before it has moved */
	es_inspect_asked_moved(&in, &asked);
	assert_int_equal(REQUESTS(OTHER, first), 1);
	assert_int_equal(HANDOVERS(OTHER, sent), 1);
	assert_int_equal(COUNT(moved), 0); /* which are later requests */
	assert_int_equal(ask(POST, 0), ES_ASKED_MOVE);
	es_inspect_asked_moved(&in, &asked);
	assert_int_equal(REQUESTS(OTHER, move), 1);
	assert_int_equal(COUNT(moved), 1);
	assert_int_equal(COUNT(ask_moved), 2);
	assert_int_equal(asked.order.moves, 1);
}

/* The check of this node's server, which is down: it is about this one, whatever becomes of others' requests.
 */
static void test_own_client(void **state)
{
	struct es_question question = question_of(REQUEST, 1, 0);

	(void)state;
	is_tls(ES_INSPECT_EVERY);
	question.flow.client = question.flow.service;
	only(OTHER);
	assert_int_equal(ask(REQUEST, 1), ES_ASKED_MOVE);
	assert_int_equal(es_inspect_asked(&in, &question, &asked, answer), 0);
	assert_int_equal(asked.word, ES_ASKED_STAY);
	question.flow.client = conf->nodes[SELF].address;
	assert_int_equal(es_inspect_asked(&in, &question, &asked, answer), 0);
	assert_int_equal(asked.word, ES_ASKED_STAY);
	/* Clients are told that nobody can serve them; the check must find out when this node can. */
	es_health_set_state(&health, OTHER, ES_NODE_DOWN);
	conf->services[0].when_all_down = ES_CONF_ALL_DOWN_REJECT;
	assert_int_equal(ask(REQUEST, 1), ES_ASKED_REJECT);
	question.flow.client = question.flow.service;
	assert_int_equal(es_inspect_asked(&in, &question, &asked, answer), 0);
	assert_int_equal(asked.word, ES_ASKED_STAY);
	assert_int_equal(REQUESTS(SELF, first), 3);
}

static void test_cannot_move(void **state)
{
	(void)state;
	is_tls(ES_INSPECT_EVERY);
	only(OTHER);
	assert_int_equal(ask(REQUEST, 0), ES_ASKED_MOVE);
	es_inspect_asked_stayed(&in, &asked);
	assert_int_equal(REQUESTS(OTHER, move), 0);
	assert_int_equal(REQUESTS(SELF, stay), 1);
	assert_int_equal(HANDOVERS(OTHER, stayed), 1);
	assert_int_equal(COUNT(ask_refused), 1);
	assert_int_equal(COUNT(ask_stayed), 1);
}

/* A connection does not leave with a request that servers may read differently. */
static void test_ambiguous(void **state)
{
	(void)state;
	is_tls(ES_INSPECT_EVERY);
	only(OTHER);
	assert_int_equal(ask(TWICE, 0), ES_ASKED_STAY);
	assert_int_equal(COUNT(ambiguous), 1);
}

static void test_unread(void **state)
{
	(void)state;
	is_tls(ES_INSPECT_EVERY);
	only(OTHER);
	assert_int_equal(ask(HALF, 1), ES_ASKED_STAY);
	assert_int_equal(COUNT(ask_unread), 1);
	assert_int_equal(ask("\x16\x03\x01", 1), ES_ASKED_STAY);
	assert_int_equal(COUNT(tls), 1);
}

static void test_other_service(void **state)
{
	(void)state;
	is_tls(ES_INSPECT_NEVER);
	only(OTHER);
	assert_int_equal(ask(REQUEST, 1), ES_ASKED_STAY);
	assert_int_equal(asked.service, -1);
	is_tls(ES_INSPECT_FIRST);
	conf->services[0].port = 81;
	assert_int_equal(ask(REQUEST, 1), ES_ASKED_STAY);
	assert_int_equal(asked.service, -1);
	assert_int_equal(REQUESTS(SELF, first), 0);
	conf->services[0].port = 80;
	assert_int_equal(ask(REQUEST, 1), ES_ASKED_MOVE);
	es_asked_forget(&asked);
}

static void test_rejects(void **state)
{
	const struct es_conf_rule deny = {.deny = ES_CONF_DENY_YES, .status = 403};

	(void)state;
	is_tls(ES_INSPECT_EVERY);
	rule_put(&deny);
	only(SELF);
	assert_int_equal(ask(POST, 1), ES_ASKED_REJECT);
	assert_memory_equal(answer, "HTTP/1.1 403 Forbidden\r\nDate: ", 30);
	assert_non_null(strstr(answer, "Connection: close\r\n\r\n403 Forbidden\n"));
	assert_int_equal(ask("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n", 0), ES_ASKED_REJECT);
	assert_non_null(strstr(answer, "Connection: close\r\n\r\n"));
	assert_null(strstr(answer, "\r\n\r\n403"));
	assert_int_equal(COUNT(rejected), 2);
}

/* A first request that no node can serve: as one that a packet brings. A later one is served where it is. */
static void test_no_node(void **state)
{
	(void)state;
	is_tls(ES_INSPECT_EVERY);
	only(NODES);
	assert_int_equal(ask(REQUEST, 0), ES_ASKED_STAY);
	assert_int_equal(ask(REQUEST, 1), ES_ASKED_RESET);
	assert_int_equal(COUNT(no_target), 1);
	conf->services[0].when_all_down = ES_CONF_ALL_DOWN_REJECT;
	assert_int_equal(ask(REQUEST, 1), ES_ASKED_REJECT);
	assert_memory_equal(answer, "HTTP/1.1 503 ", 13);
	/* Membership is changing: others will soon have the place of those that do not know. */
	es_health_set_unsure(&health, NOW_NS + 1);
	assert_int_equal(ask(REQUEST, 1), ES_ASKED_STAY);
	/* A node that was not reached a moment ago is better than none. */
	es_health_set_unsure(&health, 0);
	es_health_set_state(&health, OTHER, ES_NODE_UP);
	es_health_suspend(&health, OTHER, NOW_NS + 1);
	assert_int_equal(ask(REQUEST, 1), ES_ASKED_MOVE);
	assert_int_equal(asked.node, OTHER);
}

/* The request has ended a daemon before: nobody reads it again. */
static void test_poison(void **state)
{
	static struct es_poisons poisons;
	struct es_poison poison = {.flow_hash = hash_of(1)};

	(void)state;
	is_tls(ES_INSPECT_EVERY);
	only(OTHER);
	assert_int_equal(es_poison_note(&poisons, &poison, NOW_NS), 1);
	params.poisons = &poisons;
	assert_int_equal(ask(REQUEST, 1), ES_ASKED_STAY);
	assert_int_equal(COUNT(poisoned), 1);
}

/* Its mark is that of a packet with the request, by which others know it again. */
static void test_mark(void **state)
{
	static struct es_mark mark;
	struct es_poison poison = {};

	(void)state;
	is_tls(ES_INSPECT_EVERY);
	only(SELF);
	memset(&mark, 0, sizeof(mark));
	params.mark = &mark;
	assert_int_equal(ask(REQUEST, 1), ES_ASKED_STAY);
	assert_int_equal(mark.busy, 0);
	assert_int_equal(mark.count, 1);
	mark.busy = 1;
	assert_int_equal(es_poison_of_mark(&mark, &in.keys.ring, &poison), 0);
	assert_true(poison.flow_hash == hash_of(1));
	assert_true(poison.request);
}

/* A request that another node has decided costs what it costs there; nothing is decided, or counted twice. */
static void test_taken(void **state)
{
	const struct es_conf_rule dear = {.cost = 40};
	struct es_question question = question_of(REQUEST, 0, 1);

	(void)state;
	is_tls(ES_INSPECT_EVERY);
	rule_put(&dear);
	only(OTHER);
	es_inspect_taken(&in, &question, &asked);
	assert_int_equal(asked.word, ES_ASKED_STAY);
	assert_int_equal(asked.order.cost, 40);
	assert_int_equal(COUNT(ask_taken), 1);
	assert_int_equal(COUNT(asked) + COUNT(stayed) + COUNT(owned), 0);
	assert_int_equal(REQUESTS(SELF, stay), 0);
}

/* A decision is shown when it is known what became of it. */
static void test_trace(void **state)
{
	static struct es_trace_ring ring;
	struct es_trace_entry entry;

	(void)state;
	is_tls(ES_INSPECT_EVERY);
	snprintf(conf->nodes[SELF].name, sizeof(conf->nodes[SELF].name), "here");
	snprintf(conf->nodes[OTHER].name, sizeof(conf->nodes[OTHER].name), "there");
	in.traces = &ring;
	only(OTHER);
	assert_int_equal(ask(POST, 0), ES_ASKED_MOVE);
	assert_int_equal(es_trace_take(&ring, &entry), 0);
	es_inspect_asked_moved(&in, &asked);
	assert_int_equal(es_trace_take(&ring, &entry), 1);
	assert_string_equal(entry.node, "there");
	assert_string_equal(es_trace_decision_name(entry.decision), "move");
	assert_memory_equal(entry.text, "POST /a", 7);
	assert_int_equal(entry.client_port, 40000);
	assert_int_equal(ask(POST, 0), ES_ASKED_MOVE);
	es_inspect_asked_stayed(&in, &asked);
	assert_int_equal(es_trace_take(&ring, &entry), 1);
	assert_string_equal(entry.node, "here");
	assert_string_equal(es_trace_decision_name(entry.decision), "stay");
	assert_int_equal(ask(POST, 0), ES_ASKED_MOVE);
	es_asked_forget(&asked); /* nothing was heard of it */
	assert_int_equal(es_trace_take(&ring, &entry), 0);
}

/* Another configuration has other numbers: what was decided by those before is not counted by them. */
static void test_reload(void **state)
{
	(void)state;
	is_tls(ES_INSPECT_EVERY);
	only(OTHER);
	assert_int_equal(ask(POST, 0), ES_ASKED_MOVE);
	in.conf_version++;
	es_inspect_asked_moved(&in, &asked);
	assert_int_equal(REQUESTS(OTHER, move), 0);
	assert_int_equal(COUNT(ask_moved), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_stays),     TEST(test_moves),	 TEST(test_own_client),	   TEST(test_cannot_move),
		TEST(test_ambiguous), TEST(test_unread), TEST(test_other_service), TEST(test_rejects),
		TEST(test_no_node),   TEST(test_poison), TEST(test_mark),	   TEST(test_taken),
		TEST(test_trace),     TEST(test_reload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
