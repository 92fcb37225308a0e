// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests that a process reads, and about which it asks: where they go, what is counted, what is shown, and
 * what such a process may say to a worker.
 */
#include "cmocka_all.h"
#include <errno.h>
#include <poll.h>
#include "inspector/ask/port.h"
#include "inspector/ask/wire.h"
#include "inspector/cluster/content_sync.h"
#include "inspector/inspect/poison.h"
#include "tests/unit/inspect_world.h"

#define OTHER ((SELF + 1) % NODES)
#define POST  "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
#define TWICE "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc"
#define HALF  "GET / HTTP/1.1\r\nHost: x\r\n"

static struct es_asked asked;
static char answer[ES_ASKED_ANSWER_MAX + 1];

/* The service is earshot-tls's from now on. */
static void is_tls(enum es_inspect inspect)
{
	struct es_conf_service *service = &conf->services[0];
	struct es_flow flow = flow_of(1);

	service->inspect = ES_INSPECT_NEVER;
	service->tls.line = 1;
	service->tls.inspect = inspect;
	service->port = 80;
	if (clients_are_v6)
		service->address6 = flow.service;
	else
		service->address = flow.service;
}

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

/* --- the socket */

static struct es_ask_port *port;
static int process = -1;

static void connect_process(void)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	assert_int_equal(es_ask_port_add(port, fds[1]), 0);
	process = fds[0];
}

static void open_port(void)
{
	is_tls(ES_INSPECT_EVERY);
	snprintf(conf->services[0].name, sizeof(conf->services[0].name), "web");
	snprintf(conf->nodes[OTHER].name, sizeof(conf->nodes[OTHER].name), "there");
	port = calloc(1, sizeof(*port));
	assert_non_null(port);
	assert_int_equal(es_ask_port_init(port), 0);
	connect_process();
}

static void close_port(void)
{
	close(process);
	es_ask_port_fini(port);
	free(port);
}

static void say(enum es_ask_kind kind, uint64_t id, const char *text)
{
	struct {
		struct es_ask ask;
		char text[512];
	} message = {.ask = {.magic = ES_ASK_MAGIC,
			     .version = ES_ASK_VERSION,
			     .kind = (uint16_t)kind,
			     .id = id,
			     .flow = flow_of(1),
			     .status = 200,
			     .bytes = 300,
			     .duration_us = 7}};

	snprintf(message.text, sizeof(message.text), "%s", text);
	assert_true(send(process, &message, sizeof(message.ask) + strlen(text), MSG_NOSIGNAL) > 0);
	es_ask_port_serve(&in, port);
}

static void expect_answer(enum es_ask_word word, uint64_t id, const char *node)
{
	struct es_ask_answer got;

	assert_int_equal(recv(process, &got, sizeof(got), 0), sizeof(got));
	assert_int_equal(got.magic, ES_ASK_MAGIC);
	assert_int_equal(got.word, word);
	assert_true(got.id == id);
	assert_string_equal(got.node, node);
}

static unsigned int in_hand(void)
{
	unsigned long long cost = 0;
	unsigned int active = 0;

	es_ask_port_load(port, es_content_sync_tag("web"), &active, &cost);
	assert_int_equal(cost, active);
	return active;
}

static int is_closed(void)
{
	struct es_ask_answer got;

	return recv(process, &got, sizeof(got), 0) == 0;
}

static void test_in_hand(void **state)
{
	struct es_response_entry entry;

	(void)state;
	open_port();
	only(SELF);
	say(ES_ASK_REQUEST, 7, POST);
	expect_answer(ES_ASK_STAY, 7, "");
	say(ES_ASK_TAKEN, 8, POST);
	assert_int_equal(in_hand(), 2);
	only(OTHER);
	say(ES_ASK_REQUEST, 9, POST);
	expect_answer(ES_ASK_MOVE, 9, "there");
	say(ES_ASK_REQUEST, 10, POST);
	expect_answer(ES_ASK_MOVE, 10, "there");
	assert_int_equal(in_hand(), 4);
	say(ES_ASK_MOVED, 9, "");
	assert_int_equal(in_hand(), 3);
	assert_int_equal(COUNT(ask_moved), 1);
	say(ES_ASK_STAYED, 10, "");
	assert_int_equal(in_hand(), 3);
	assert_int_equal(es_ask_port_response(port, &entry), 0);
	say(ES_ASK_DONE, 10, "");
	say(ES_ASK_DONE, 10, ""); /* of which nothing is known any more */
	assert_int_equal(in_hand(), 2);
	assert_int_equal(es_ask_port_response(port, &entry), 1);
	assert_int_equal(entry.status, 200);
	assert_int_equal(entry.bytes, 300);
	assert_int_equal(entry.took_ns, 7000);
	assert_int_equal(es_ask_port_response(port, &entry), 0);
	/* An id that is in use again is of another request. */
	only(SELF);
	say(ES_ASK_REQUEST, 7, POST);
	expect_answer(ES_ASK_STAY, 7, "");
	assert_int_equal(in_hand(), 2);
	/* With its process, all that it had in hand is over. */
	assert_int_equal(es_ask_port_count(port), 1);
	shutdown(process, SHUT_RDWR);
	es_ask_port_serve(&in, port);
	assert_int_equal(in_hand(), 0);
	assert_int_equal(es_ask_port_count(port), 0);
	close_port();
}

/* A request that nobody can serve, or is refused, is in no one's hand. */
static void test_not_in_hand(void **state)
{
	struct es_ask_answer got;

	(void)state;
	open_port();
	only(NODES);
	for (uint64_t i = 0; i < 2; i++) {
		struct {
			struct es_ask ask;
			char text[sizeof(REQUEST) - 1];
		} message = {.ask = {.magic = ES_ASK_MAGIC,
				     .version = ES_ASK_VERSION,
				     .flow = flow_of(1),
				     .first = 1,
				     .id = i}};

		memcpy(message.text, REQUEST, sizeof(message.text));
		assert_true(send(process, &message, sizeof(message.ask) + sizeof(message.text), 0) > 0);
		es_ask_port_serve(&in, port);
		assert_true(recv(process, &got, sizeof(got), 0) > 0);
		assert_int_equal(got.word, i ? ES_ASK_REJECT : ES_ASK_RESET);
		assert_int_equal(in_hand(), 0);
		conf->services[0].when_all_down = ES_CONF_ALL_DOWN_REJECT;
	}
	close_port();
}

static void test_malformed(void **state)
{
	static const struct {
		struct es_ask ask;
		size_t len;
	} cases[] = {
		{{.magic = ES_ASK_MAGIC, .version = ES_ASK_VERSION}, sizeof(struct es_ask) - 1},
		{{.magic = ES_ASK_MAGIC, .version = ES_ASK_VERSION}, sizeof(struct es_ask)},
		{{.magic = 1, .version = ES_ASK_VERSION}, sizeof(struct es_ask) + 1},
		{{.magic = ES_ASK_MAGIC, .version = 2}, sizeof(struct es_ask) + 1},
		{{.magic = ES_ASK_MAGIC, .version = ES_ASK_VERSION, .kind = 5}, sizeof(struct es_ask)},
		{{.magic = ES_ASK_MAGIC, .version = ES_ASK_VERSION, .kind = ES_ASK_DONE},
		 sizeof(struct es_ask) + 1},
		{{.magic = ES_ASK_MAGIC, .version = ES_ASK_VERSION},
		 sizeof(struct es_ask) + ES_ASK_TEXT_MAX + ES_ASK_BODY_MAX + 1},
	};
	uint8_t *bytes = calloc(1, sizeof(struct es_ask) + ES_ASK_TEXT_MAX + ES_ASK_BODY_MAX + 1);

	(void)state;
	assert_non_null(bytes);
	open_port();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(bytes, &cases[i].ask, sizeof(cases[i].ask));
		assert_int_equal(send(process, bytes, cases[i].len, 0), cases[i].len);
		es_ask_port_serve(&in, port);
		assert_true(is_closed());
		assert_int_equal(COUNT(ask_bad), i + 1);
		close(process);
		connect_process();
	}
	free(bytes);
	close_port();
}

/* A process that does not take its answers is not waited for. */
static void test_slow(void **state)
{
	(void)state;
	open_port();
	only(SELF);
	for (uint64_t id = 0; es_ask_port_count(port); id++) {
		assert_true(id < 100000);
		say(ES_ASK_REQUEST, id, POST);
	}
	assert_int_equal(COUNT(ask_slow), 1);
	assert_int_equal(in_hand(), 0);
	close_port();
}

static void test_many_processes(void **state)
{
	int first, fds[2];

	(void)state;
	open_port();
	first = process;
	for (unsigned int i = 1; i < ES_ASK_PROCESSES_MAX; i++) {
		connect_process();
		close(process);
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(es_ask_port_add(port, fds[1]), -EUSERS);
	for (unsigned int i = 0; i < ES_ASK_PROCESSES_MAX; i++)
		es_ask_port_serve(&in, port);
	assert_int_equal(es_ask_port_count(port), 1);
	assert_int_equal(es_ask_port_add(port, fds[1]), 0);
	close(fds[0]);
	process = first;
	close_port();
}

/* News of the service that come within two looks; returns whether there were any. */
static int has_news(enum es_ask_word *ret_word)
{
	struct pollfd fd = {.fd = port->epoll_fd, .events = POLLIN};
	struct es_ask_answer got;

	for (int looks = 0; looks < 2; looks++) {
		assert_int_equal(poll(&fd, 1, 5000), 1);
		es_ask_port_serve(&in, port);
		if (recv(process, &got, sizeof(got), 0) < 0)
			continue;
		assert_int_equal(got.magic, ES_ASK_MAGIC);
		assert_true(got.id == 0);
		assert_string_equal(got.node, "web");
		*ret_word = (enum es_ask_word)got.word;
		return 1;
	}
	return 0;
}

static void expect_news(enum es_ask_word word)
{
	enum es_ask_word got;

	assert_true(has_news(&got));
	assert_int_equal(got, word);
}

/* Processes hear that this node is drained, of a service or of all, once; and that it is not any more. */
static void test_news(void **state)
{
	enum es_ask_word got;

	(void)state;
	open_port();
	only(SELF);
	assert_false(has_news(&got));
	es_health_set_state(&health, SELF, ES_NODE_DRAINING);
	expect_news(ES_ASK_DRAINS);
	assert_false(has_news(&got));
	es_health_set_state(&health, SELF, ES_NODE_UP);
	expect_news(ES_ASK_SERVES);
	atomic_store(&health.drained[SELF], 2); /* of another service */
	assert_false(has_news(&got));
	atomic_store(&health.drained[SELF], 1);
	expect_news(ES_ASK_DRAINS);
	/* Services may have other numbers: all is told anew. */
	in.conf_version++;
	expect_news(ES_ASK_DRAINS);
	/* One that comes later hears it, too. */
	close(process);
	es_ask_port_serve(&in, port);
	connect_process();
	expect_news(ES_ASK_DRAINS);
	atomic_store(&health.drained[SELF], 0);
	expect_news(ES_ASK_SERVES);
	close_port();
}

/* Requests begin and end in any order. */
static void test_table(void **state)
{
	static uint8_t is_there[5000];
	struct es_ask_table table = {};
	unsigned int seed = 1, count = 0;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		uint64_t id = (seed = seed * 1103515245 + 12345) >> 8;
		struct es_ask_note *note;

		id = id % 5000 << (i & 1 ? 32 : 0);
		note = es_ask_table_find(&table, id);
		if (i & 1)
			assert_true(!note == !is_there[id >> 32]);
		if (!(i & 1))
			continue;
		if (note) {
			assert_true(note->id == id);
			es_ask_table_remove(&table, note);
			count--;
		} else {
			assert_non_null(es_ask_table_add(&table, id));
			count++;
		}
		is_there[id >> 32] ^= 1;
		assert_int_equal(table.count, count);
	}
	es_ask_table_fini(&table);
	/* There is a bound, and beyond it nothing is remembered. */
	for (uint64_t id = 0; id < ES_ASK_IN_HAND_MAX / 4 * 3; id++)
		assert_non_null(es_ask_table_add(&table, id));
	assert_null(es_ask_table_add(&table, UINT64_MAX));
	es_ask_table_fini(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_stays),
		TEST(test_moves),
		TEST(test_own_client),
		TEST(test_cannot_move),
		TEST(test_ambiguous),
		TEST(test_unread),
		TEST(test_other_service),
		TEST(test_rejects),
		TEST(test_no_node),
		TEST(test_poison),
		TEST(test_mark),
		TEST(test_taken),
		TEST(test_trace),
		TEST(test_reload),
		TEST(test_in_hand),
		TEST_V4(test_not_in_hand),
		TEST_V4(test_malformed),
		TEST_V4(test_slow),
		TEST_V4(test_many_processes),
		TEST_V4(test_news),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
