// SPDX-License-Identifier: GPL-2.0-or-later
/* A connection of HTTP/2, and the daemon: where it moves, what stays, and when it is told to leave. */
#include "tests/unit/streams_user.h"

static int daemon_fd = -1;

static struct es_ask daemon_hears(const char **ret_text)
{
	static struct {
		struct es_ask ask;
		char text[1000];
	} message;
	ssize_t len;

	turn();
	if (daemon_fd < 0)
		daemon_fd = accept4(u.w.daemon, NULL, NULL, SOCK_NONBLOCK);
	memset(&message, 0, sizeof(message));
	/* Those that need no answer wait a little for one that does. */
	for (int tries = 0; (len = recv(daemon_fd, &message, sizeof(message) - 1, 0)) < 0 && tries < 1000;
	     tries++) {
		usleep(1000);
		turn();
	}
	assert_true(len >= (ssize_t)sizeof(message.ask));
	if (ret_text)
		*ret_text = message.text;
	return message.ask;
}

static void daemon_says(uint64_t id, enum es_ask_word word, const char *node, const char *text)
{
	struct {
		struct es_ask_answer answer;
		char text[500];
	} message = {
		.answer = {
			.magic = ES_ASK_MAGIC, .version = ES_ASK_VERSION, .word = (uint16_t)word, .id = id}};

	snprintf(message.answer.node, sizeof(message.answer.node), "%s", node);
	snprintf(message.text, sizeof(message.text), "%s", text);
	assert_true(send(daemon_fd, &message, sizeof(message.answer) + strlen(text), MSG_NOSIGNAL) > 0);
	turn();
}

static void daemon_goes(void)
{
	close(daemon_fd);
	daemon_fd = -1;
}

/* Until its first request is decided, the client is sent nothing; it moves with all that it has sent. */
static void test_moves(void **state)
{
	uint8_t pack[ES_CLIENT_PACK_MAX];
	const uint8_t *kept;
	const char *text;
	struct es_ask asked;

	(void)state;
	begin(ES_INSPECT_EVERY);
	ask_with("GET", "/first", "x: y", NULL);
	ask("/second");
	asked = daemon_hears(&text);
	assert_int_equal(asked.kind, ES_ASK_REQUEST);
	assert_int_equal(asked.first, 1);
	assert_string_equal(text, "GET /first HTTP/1.1\r\nHost: a.example\r\nx: y\r\n\r\n");
	assert_int_equal(recv(daemon_fd, pack, sizeof(pack), 0), -1); /* nothing of the second */
	assert_int_equal(recv(u.w.far, pack, sizeof(pack), 0), -1);
	daemon_says(asked.id, ES_ASK_MOVE, "n2", "");
	assert_int_equal(u.w.result, ES_STREAMS_MOVE);
	assert_string_equal(es_streams_node(u.w.streams), "n2");
	assert_int_equal(recv(u.w.far, pack, sizeof(pack), 0), -1);
	assert_true(es_client_pack(&u.w.client, "n2", pack) > 0);
	assert_true(es_client_kept(&u.w.client, &kept) > 60);
	es_streams_moved(u.w.streams);
	asked = daemon_hears(NULL);
	assert_int_equal(asked.kind, ES_ASK_MOVED);
	assert_int_equal(accept_one(), -1);
	daemon_goes();
	finish();
}

/* Where it has come to, it is served without a question; the next ones are asked about. */
static void test_arrives(void **state)
{
	struct es_ask asked;
	const char *text;
	int32_t id;
	int fd;

	(void)state;
	memset(&u, 0, sizeof(u));
	streams_set_up(&u.w, ES_INSPECT_EVERY);
	streams_connect(&u.w, 1);
	user_new();
	id = ask("/first");
	asked = daemon_hears(&text);
	assert_int_equal(asked.kind, ES_ASK_TAKEN);
	assert_non_null(strstr(text, "GET /first "));
	fd = server();
	heard(fd);
	say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
	close(fd);
	assert_int_equal(got_of(id)->status, 200);
	asked = daemon_hears(NULL);
	assert_int_equal(asked.kind, ES_ASK_DONE);
	assert_int_equal(asked.status, 200);
	ask("/second");
	asked = daemon_hears(&text);
	assert_int_equal(asked.kind, ES_ASK_REQUEST);
	assert_int_equal(asked.first, 0);
	assert_int_equal(asked.moves, 1);
	daemon_goes();
	finish();
}

/* Served here although it should have moved: the handover was refused. */
static void test_stays(void **state)
{
	struct es_ask asked;
	int32_t id;
	int fd;

	(void)state;
	begin(ES_INSPECT_FIRST);
	id = ask("/");
	asked = daemon_hears(NULL);
	daemon_says(asked.id, ES_ASK_MOVE, "n2", "");
	es_streams_stay(u.w.streams);
	u.w.result = ES_STREAMS_GO_ON;
	streams_changed(&u.w);
	assert_int_equal(daemon_hears(NULL).kind, ES_ASK_STAYED);
	fd = server();
	say(fd, "HTTP/1.1 204 No\r\nConnection: close\r\n\r\n");
	close(fd);
	assert_int_equal(got_of(id)->status, 204);
	asked = daemon_hears(NULL);
	assert_int_equal(asked.kind, ES_ASK_DONE);
	assert_int_equal(asked.status, 204);
	/* Later ones are not asked about, if first ones are. */
	ask("/");
	close(server());
	daemon_goes();
	finish();
}

/* Rules hold for each stream; nothing moves but by the first one. */
static void test_later(void **state)
{
	struct es_ask asked;
	int32_t id;
	int fd;

	(void)state;
	begin(ES_INSPECT_EVERY);
	id = ask("/");
	asked = daemon_hears(NULL);
	daemon_says(asked.id, ES_ASK_STAY, "", "");
	fd = server();
	/* While that one is served: */
	daemon_says((ask("/deny"), daemon_hears(NULL).id), ES_ASK_REJECT, "",
		    "HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\nConnection: close\r\n\r\nno!\n");
	assert_int_equal(got_of(id + 2)->status, 403);
	expect_body(got_of(id + 2), "no!\n");
	assert_true(got_of(id + 2)->is_closed && !got_of(id + 2)->error);
	daemon_says((ask("/none"), daemon_hears(NULL).id), ES_ASK_RESET, "", "");
	assert_int_equal(got_of(id + 4)->error, NGHTTP2_REFUSED_STREAM);
	assert_int_equal(accept_one(), -1);
	daemon_says((ask("/other"), daemon_hears(NULL).id), ES_ASK_MOVE, "n2", "");
	assert_int_equal(daemon_hears(NULL).kind, ES_ASK_STAYED);
	assert_int_equal(u.w.counters.count[ES_SERVE_stayed_pinned], 1);
	close(server());
	turn();
	assert_int_equal(got_of(id + 6)->status, 502);
	say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	expect_body(got_of(id), "ok");
	close(fd);
	daemon_goes();
	finish();
}

static void wait_ms(int ms)
{
	unsigned long long until_ns = es_clock_now_ns() + (unsigned long long)ms * 1000000;

	while (es_clock_now_ns() < until_ns) {
		poll(NULL, 0, 5);
		turn();
	}
}

/* A client that waits for the server's SETTINGS gets them, and then it does not move. */
static void test_waits(void **state)
{
	struct es_ask asked;

	(void)state;
	begin(ES_INSPECT_EVERY);
	turn();
	assert_int_equal(u.settings, 0);
	wait_ms(150);
	assert_int_equal(u.settings, 1);
	ask("/");
	asked = daemon_hears(NULL);
	assert_int_equal(asked.first, 1);
	daemon_says(asked.id, ES_ASK_MOVE, "n2", "");
	assert_int_equal(u.w.counters.count[ES_SERVE_stayed_waited], 1);
	close(server());
	daemon_goes();
	finish();
}

/* Without a daemon, and with one that ends with questions of one connection in its hands. */
static void test_no_daemon(void **state)
{
	(void)state;
	begin(ES_INSPECT_EVERY);
	ask("/");
	daemon_says(daemon_hears(NULL).id, ES_ASK_STAY, "", "");
	for (int i = 0; i < 10; i++)
		ask("/");
	turn();
	daemon_goes();
	turn();
	for (int i = 0; i < 11; i++)
		close(server());
	assert_int_equal(u.w.counters.count[ES_SERVE_asked_in_vain], 10);
	finish();
}

/* A client that is to leave is told first, and is served what it has asked before it could know. */
static void test_leaves(void **state)
{
	int32_t id;
	int fd;

	(void)state;
	begin(ES_INSPECT_NEVER);
	id = ask("/");
	fd = server();
	u.w.service.is_drained = 1;
	streams_changed(&u.w);
	turn();
	assert_int_equal(u.last, INT32_MAX);
	wait_ms(600);
	assert_int_equal(u.w.result, ES_STREAMS_GO_ON); /* a stream is open */
	say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
	expect_body(got_of(id), "ok");
	turn();
	assert_int_equal(u.w.result, ES_STREAMS_OVER);
	es_client_flush(&u.w.client);
	turn();
	assert_int_equal(u.goaways, 2);
	assert_int_equal(u.last, id);
	assert_int_equal(u.last_error, 0);
	close(fd);
	finish();
	/* Without a stream it waits all the same: a request may be on its way. */
	begin(ES_INSPECT_NEVER);
	turn();
	u.w.serve.is_ending = 1;
	streams_changed(&u.w);
	turn();
	assert_int_equal(u.last, INT32_MAX);
	assert_int_equal(u.w.result, ES_STREAMS_GO_ON);
	wait_ms(700);
	assert_int_equal(u.w.result, ES_STREAMS_OVER);
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moves),  cmocka_unit_test(test_arrives),
		cmocka_unit_test(test_stays),  cmocka_unit_test(test_later),
		cmocka_unit_test(test_waits),  cmocka_unit_test(test_no_daemon),
		cmocka_unit_test(test_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
