// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A worker's side of a process that asks about requests: what such a process may say, what it has in hand,
 * and which news it hears.
 */
#include "cmocka_all.h"
#include <errno.h>
#include <poll.h>
#include "inspector/ask/port.h"
#include "inspector/ask/wire.h"
#include "inspector/cluster/content_sync.h"
#include "tests/unit/inspect_world.h"

#define OTHER ((SELF + 1) % NODES)
#define POST  "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"

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
		TEST(test_in_hand),	      TEST_V4(test_not_in_hand),    TEST_V4(test_malformed),
		TEST_V4(test_slow),	      TEST_V4(test_many_processes), TEST_V4(test_news),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
