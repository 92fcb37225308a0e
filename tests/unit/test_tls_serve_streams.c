// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * HTTP/2 in earshot-tls: which requests the server behind gets, what the client gets of its responses, and
 * how much is in memory meanwhile; where a connection moves, and what ends it.
 */
#include "cmocka_all.h"
#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>

#define MUST(what) assert_true(what)
#include "tests/unit/streams_world.h"

#define STREAMS 2048

/* struct got - what the client has of a stream */
struct got {
	int is_closed;
	uint32_t error;
	unsigned int status;
	char fields[512];
	struct es_buffer body;
};

/**
 * struct user - the client
 * @got: of each stream's number / 2; @lazy: the stream whose body it does not read
 * @last: of GOAWAY, -1: none has come; @last_error
 */
struct user {
	struct streams_world w;
	nghttp2_session *session;
	struct es_buffer in;
	struct es_buffer text;
	struct got got[STREAMS];
	int32_t lazy;
	int32_t last;
	uint32_t last_error;
	unsigned int goaways;
	unsigned int settings;
};

static struct user u;

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags, void *ctx)
{
	struct got *got = &u.got[frame->hd.stream_id / 2];

	(void)session;
	(void)flags;
	(void)ctx;
	if (name_len == 7 && !memcmp(name, ":status", 7))
		got->status = (unsigned int)strtoul((const char *)value, NULL, 10);
	snprintf(got->fields + strlen(got->fields), sizeof(got->fields) - strlen(got->fields), "%.*s=%.*s|",
		 (int)name_len, name, (int)value_len, value);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes, size_t len,
		   void *ctx)
{
	(void)flags;
	(void)ctx;
	assert_int_equal(es_buffer_add(&u.got[id / 2].body, bytes, len), 0);
	nghttp2_session_consume_connection(session, len);
	if (id != u.lazy)
		nghttp2_session_consume_stream(session, id, len);
	return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *ctx)
{
	(void)session;
	(void)ctx;
	u.got[id / 2].is_closed = 1;
	u.got[id / 2].error = error;
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
	(void)session;
	(void)ctx;
	if (frame->hd.type == NGHTTP2_GOAWAY) {
		u.goaways++;
		u.last = frame->goaway.last_stream_id;
		u.last_error = frame->goaway.error_code;
	}
	u.settings += frame->hd.type == NGHTTP2_SETTINGS && !(frame->hd.flags & NGHTTP2_FLAG_ACK);
	return 0;
}

static void user_new(void)
{
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;

	nghttp2_session_callbacks_new(&callbacks);
	nghttp2_option_new(&option);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_option_set_no_http_messaging(option, 1); /* it may send anything */
	nghttp2_option_set_max_send_header_block_length(option, 1 << 17);
	nghttp2_session_client_new2(&u.session, callbacks, NULL, option);
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	nghttp2_submit_settings(u.session, NGHTTP2_FLAG_NONE, NULL, 0);
	nghttp2_session_set_local_window_size(u.session, NGHTTP2_FLAG_NONE, 0, 1 << 24);
	u.last = -1;
}

static void begin(enum es_inspect inspect)
{
	memset(&u, 0, sizeof(u));
	streams_set_up(&u.w, inspect);
	streams_connect(&u.w, 0);
	user_new();
}

static void finish(void)
{
	nghttp2_session_del(u.session);
	streams_disconnect(&u.w);
	streams_tear_down(&u.w);
	es_buffer_fini(&u.in);
	es_buffer_fini(&u.text);
	for (int i = 0; i < STREAMS; i++)
		es_buffer_fini(&u.got[i].body);
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *bytes, size_t len, uint32_t *flags,
			 nghttp2_data_source *source, void *ctx)
{
	size_t *left = source->ptr;

	(void)session;
	(void)id;
	(void)ctx;
	len = len < *left ? len : *left;
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)((*left - i) * 7);
	*left -= len;
	if (!*left)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)len;
}

/* "name: value|name: value" */
static int32_t ask_with(const char *method, const char *path, const char *more, size_t *body)
{
	nghttp2_data_provider provider = {.source = {.ptr = body}, .read_callback = read_body};
	char *copy = strdup(more), *rest = copy, *each;
	nghttp2_nv nv[32];
	size_t count = 0;
	int32_t id;

#define NV(key, what)                                                                                        \
	nv[count++] = (nghttp2_nv){.name = (uint8_t *)(uintptr_t)(key),                                      \
				   .value = (uint8_t *)(uintptr_t)(what),                                    \
				   .namelen = strlen(key),                                                   \
				   .valuelen = strlen(what)}
	NV(":method", method);
	if (strcmp(method, "CONNECT") != 0) {
		NV(":scheme", "https");
		NV(":path", path);
	}
	NV(":authority", "a.example");
	while ((each = strsep(&rest, "|")) && *each) {
		char *value = strstr(each, ": ");

		assert_non_null(value);
		*value = '\0';
		NV(each, value + 2);
	}
#undef NV
	id = nghttp2_submit_request(u.session, NULL, nv, count, body ? &provider : NULL, NULL);
	assert_true(id > 0);
	free(copy);
	return id;
}

static int32_t ask(const char *path)
{
	return ask_with("GET", path, "", NULL);
}

static void on_goaway(const uint8_t *frame)
{
	assert_int_equal(frame[3], NGHTTP2_GOAWAY);
	u.goaways++;
	u.last = frame[9] << 24 | frame[10] << 16 | frame[11] << 8 | frame[12];
	u.last_error = frame[16];
}

/* Some turns of everything but the server and the daemon. */
static void turn(void)
{
	for (int i = 0; i < 20; i++) {
		const uint8_t *bytes;
		ssize_t len;

		while (streams_flush(&u.w) && (len = nghttp2_session_mem_send(u.session, &bytes)) > 0)
			streams_write(&u.w, bytes, (size_t)len);
		ev_run(u.w.serve.loop, EVRUN_NOWAIT);
		streams_read(&u.w, &u.in, &u.text);
		/* After a GOAWAY, and the last stream, nghttp2 reads no more. */
		if (!nghttp2_session_want_read(u.session) && es_buffer_len(&u.text) == 17)
			on_goaway(es_buffer_front(&u.text));
		len = nghttp2_session_mem_recv(u.session, es_buffer_front(&u.text), es_buffer_len(&u.text));
		assert_int_equal(len, es_buffer_len(&u.text));
		es_buffer_fini(&u.text);
	}
}

static struct got *got_of(int32_t id)
{
	return &u.got[id / 2];
}

/* --- the server */

/* Accept the next connection of those that are waiting; -1: there is none. */
static int accept_one(void)
{
	return accept4(u.w.server, NULL, NULL, SOCK_NONBLOCK);
}

static int server(void)
{
	int fd;

	turn();
	fd = accept_one();
	assert_true(fd >= 0);
	return fd;
}

/* All that the server has been sent. */
static const char *heard(int fd)
{
	static char text[1 << 17];
	ssize_t len;

	turn();
	len = recv(fd, text, sizeof(text) - 1, 0);
	assert_true(len >= 0);
	text[len] = '\0';
	return text;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	turn();
}

static void expect_body(const struct got *got, const char *text)
{
	assert_int_equal(es_buffer_len(&got->body), strlen(text));
	if (*text)
		assert_memory_equal(es_buffer_front(&got->body), text, strlen(text));
}

/* --- tests */

static void test_request(void **state)
{
	int32_t id, second;
	int fd;

	(void)state;
	begin(ES_INSPECT_NEVER);
	id = ask_with("GET", "/a?b", "cookie: x=1|x-forwarded-for: 6.6.6.6|cookie: y=2|accept: */*", NULL);
	fd = server();
	assert_string_equal(heard(fd), "GET /a?b HTTP/1.1\r\nHost: a.example\r\naccept: */*\r\n"
				       "Cookie: x=1; y=2\r\nX-Forwarded-For: ::\r\n"
				       "X-Forwarded-Proto: https\r\nX-Forwarded-Port: 512\r\n\r\n");
	say(fd, "HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
		"Connection: x-own\r\nX-Own: 1\r\nX-Other: 2\r\n\r\n3\r\nabc\r\n");
	assert_string_equal(got_of(id)->fields, ":status=103|link=x|:status=200|x-other=2|");
	expect_body(got_of(id), "abc");
	assert_false(got_of(id)->is_closed);
	say(fd, "2\r\nde\r\n0\r\nX-Trailer: yes\r\nContent-Length: 9\r\n\r\n");
	expect_body(got_of(id), "abcde");
	assert_true(got_of(id)->is_closed && !got_of(id)->error);
	assert_non_null(strstr(got_of(id)->fields, "x-trailer=yes|"));
	assert_null(strstr(got_of(id)->fields, "content-length"));
	/* The connection to the server is used again. */
	second = ask_with("HEAD", "/", "", NULL);
	assert_non_null(strstr(heard(fd), "HEAD / HTTP/1.1\r\n"));
	say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n");
	assert_true(got_of(second)->is_closed && !got_of(second)->error);
	assert_string_equal(got_of(second)->fields, ":status=200|content-length=5|");
	expect_body(got_of(second), "");
	assert_string_equal(heard(fd), ""); /* and then it is closed */
	close(fd);
	finish();
}

/* Whatever ends at the close of the server's connection, too early or not, and what is no response. */
static void test_ends(void **state)
{
	static const struct {
		const char *said;
		unsigned int status;
		uint32_t error;
		const char *body;
	} cases[] = {
		{"HTTP/1.1 200 OK\r\n\r\nto the end", 200, 0, "to the end"},
		{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nto", 200, NGHTTP2_INTERNAL_ERROR, "to"},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nto\r\n", 200,
		 NGHTTP2_INTERNAL_ERROR, "to"},
		{"HTTP/1.1 200 OK\r\nX: ", 502, 0, "Bad Gateway\n"},
		{"hello\n", 502, 0, "Bad Gateway\n"},
		{"HTTP/1.1 200 OK\r\na b: c\r\nContent-Length: 0\r\n\r\n", 502, 0, "Bad Gateway\n"},
		{"HTTP/1.1 101 Switching\r\n\r\n", 502, 0, "Bad Gateway\n"},
		{"", 502, 0, "Bad Gateway\n"},
	};

	(void)state;
	begin(ES_INSPECT_NEVER);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int32_t id = ask("/");
		int fd = server();

		heard(fd);
		say(fd, cases[i].said);
		shutdown(fd, SHUT_WR);
		turn();
		assert_int_equal(got_of(id)->status, cases[i].status);
		assert_true(got_of(id)->is_closed);
		assert_int_equal(got_of(id)->error, cases[i].error);
		expect_body(got_of(id), cases[i].body);
		close(fd);
	}
	finish();
}

/* Refused without a word to the server, and the connection goes on. */
static void test_refused(void **state)
{
	static const struct {
		const char *method, *path, *fields;
		unsigned int status; /* 0: reset */
	} cases[] = {
		{"CONNECT", "", "", 405},
		{"GET", "/ HTTP/1.1\r\nX: y", "", 0},
		{"GET", "http://b.example/", "", 0},
		{"GET", "/", "x: 1\r\nTransfer-Encoding: chunked", 400},
		{"GET", "/", "x: 1\ny: 2", 400},
		{"GET", "/", "transfer-encoding: chunked", 0},
		{"GET", "/", "connection: close", 0},
		{"GET", "/", "host: b.example", 400},
		{"GET", "/", "content-length: 5", 0}, /* and no body */
		{"GET", "/", "content-length: 5|content-length: 5", 0},
	};

	(void)state;
	begin(ES_INSPECT_NEVER);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int32_t id = ask_with(cases[i].method, cases[i].path, cases[i].fields, NULL);

		turn();
		if (!got_of(id)->is_closed)
			fail_msg("case %zu: open", i);
		if (got_of(id)->status != cases[i].status && !(got_of(id)->status == 400 && !cases[i].status))
			fail_msg("case %zu: %u", i, got_of(id)->status);
		assert_int_equal(accept_one(), -1);
	}
	assert_int_equal(u.last, -1);
	finish();
}

static void test_long_head(void **state)
{
	char *fields = malloc(80000);
	int32_t id;

	(void)state;
	begin(ES_INSPECT_NEVER);
	snprintf(fields, 80000, "x: %040000d|y: %030000d", 1, 1);
	id = ask_with("GET", "/", fields, NULL);
	turn();
	assert_int_equal(got_of(id)->status, 431);
	assert_int_equal(accept_one(), -1);
	free(fields);
	finish();
}

#define UPLOAD	 1000000
#define DOWNLOAD 5000000

/* All that the server is sent, until nothing more comes. */
static size_t hear_all(int fd, char *text, size_t size)
{
	size_t had = 0;

	for (int quiet = 0; quiet < 3; quiet++) {
		ssize_t len;

		turn();
		while ((len = recv(fd, text + had, size - had - 1, 0)) > 0) {
			had += (size_t)len;
			quiet = 0;
		}
	}
	text[had] = '\0';
	return had;
}

/* The server reads of an upload just that which the client has sent, with a length and without. */
static void upload(size_t total, int is_counted)
{
	static char text[2 * UPLOAD];
	size_t left = total, at = 0;
	char *body, *end, length[40];
	int32_t id;
	int fd;

	begin(ES_INSPECT_NEVER);
	snprintf(length, sizeof(length), "content-length: %zu", total);
	id = ask_with("POST", "/", is_counted ? length : "", &left);
	fd = server();
	end = text + hear_all(fd, text, sizeof(text));
	body = strstr(text, "\r\n\r\n");
	assert_non_null(body);
	assert_int_equal(!strstr(text, "Transfer-Encoding: chunked\r\n"), is_counted);
	body += 4;
	for (;;) {
		size_t len = is_counted ? total - at : strtoul(body, &body, 16);

		body += is_counted ? 0 : 2;
		if (!len)
			break;
		for (size_t i = 0; i < len; i++, at++)
			assert_int_equal((uint8_t)body[i], (uint8_t)((total - at) * 7));
		body += len + (is_counted ? 0 : 2);
	}
	assert_int_equal(at, total);
	assert_int_equal(end - body, is_counted ? 0 : 2);
	say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	expect_body(got_of(id), "ok");
	assert_true(got_of(id)->is_closed && !got_of(id)->error);
	close(fd);
	finish();
}

static void test_upload(void **state)
{
	static const size_t totals[] = {0, 1, 16384, 16385, UPLOAD};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(totals) / sizeof(totals[0]); i++)
		upload(totals[i / 2], i & 1);
}

/* A server that does not read stops the client, and little is in memory. */
static void test_upload_stops(void **state)
{
	size_t left = 100 << 20;
	int32_t id;
	int fd;

	(void)state;
	begin(ES_INSPECT_NEVER);
	id = ask_with("POST", "/", "content-length: 104857600", &left);
	fd = server();
	for (int i = 0; i < 50; i++)
		turn();
	assert_true((100 << 20) - left < (2 << 20));
	/* Too much of it, or too little, never arrives as if it was right. */
	nghttp2_submit_rst_stream(u.session, 0, id, NGHTTP2_CANCEL);
	turn();
	assert_int_equal(u.last, -1);
	while (recv(fd, u.w.serve.scratch, 1000, 0) > 0)
		;
	assert_int_equal(recv(fd, u.w.serve.scratch, 1, 0), 0);
	close(fd);
	finish();
}

/* An answer that comes before the upload is over does not stop it; one that ends the connection does. */
static void test_early(void **state)
{
	static char text[2 * UPLOAD];

	(void)state;
	for (int is_cut = 0; is_cut < 2; is_cut++) {
		size_t left = UPLOAD;
		int32_t id;
		int fd;

		begin(ES_INSPECT_NEVER);
		id = ask_with("POST", "/", "content-length: 1000000", &left);
		fd = server();
		say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
		if (is_cut) {
			close(fd);
			turn();
			turn();
		} else {
			assert_true(hear_all(fd, text, sizeof(text)) > UPLOAD);
			close(fd);
		}
		expect_body(got_of(id), "ok");
		assert_true(got_of(id)->is_closed && !got_of(id)->error);
		finish();
	}
}

/* Bytes that a server may send before it has to wait. */
static size_t fill(int fd)
{
	static char text[16384];
	size_t sent = 0;

	for (int quiet = 0; quiet < 3; quiet++) {
		ssize_t len;

		while ((len = send(fd, text, sizeof(text), MSG_NOSIGNAL)) > 0) {
			sent += (size_t)len;
			quiet = 0;
		}
		turn();
	}
	return sent;
}

/* A client that does not read a stream stops its server; others go on. */
static void test_slow_reader(void **state)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n";
	int32_t other;
	int fd, next;

	(void)state;
	begin(ES_INSPECT_NEVER);
	u.lazy = ask("/lazy");
	fd = server();
	say(fd, head);
	assert_true(fill(fd) < 2 << 20);
	assert_int_equal(es_buffer_len(&got_of(u.lazy)->body), 65535);
	for (int i = 0; i < 20; i++) {
		other = ask("/other");
		next = server();
		say(next, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
		expect_body(got_of(other), "hello");
		assert_true(got_of(other)->is_closed);
		close(next);
	}
	assert_true(fill(fd) == 0);
	/* When it reads on, all of it comes. */
	nghttp2_session_consume_stream(u.session, u.lazy, 65535);
	turn();
	assert_true(fill(fd) > 0);
	close(fd);
	finish();
}

/* A long response, to a client that reads now and then. */
static void test_download(void **state)
{
	size_t left = DOWNLOAD, at = 0;
	char text[10000];
	int32_t id;
	int fd;

	(void)state;
	begin(ES_INSPECT_NEVER);
	id = ask("/");
	fd = server();
	say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n");
	for (int turns = 0; turns < 5000 && !got_of(id)->is_closed; turns++) {
		while (left) {
			ssize_t len = (ssize_t)(left < sizeof(text) ? left : sizeof(text));

			for (ssize_t i = 0; i < len; i++)
				text[i] = (char)((DOWNLOAD - left + (size_t)i) * 11);
			len = send(fd, text, (size_t)len, MSG_NOSIGNAL);
			if (len <= 0)
				break;
			left -= (size_t)len;
		}
		/* The client's socket is full until here, and then empty. */
		for (int i = 0; i < 10; i++)
			ev_run(u.w.serve.loop, EVRUN_NOWAIT);
		turn();
	}
	assert_true(got_of(id)->is_closed && !got_of(id)->error);
	assert_int_equal(es_buffer_len(&got_of(id)->body), DOWNLOAD);
	for (; at < DOWNLOAD; at++)
		assert_int_equal((char)es_buffer_front(&got_of(id)->body)[at], (char)(at * 11));
	close(fd);
	finish();
}

/* No more at a time than is said. */
static void test_many(void **state)
{
	int32_t id[150];
	int fds = 0;

	(void)state;
	begin(ES_INSPECT_NEVER);
	turn();
	for (int i = 0; i < 150; i++)
		id[i] = ask("/");
	turn();
	for (int fd; (fd = accept_one()) >= 0; fds++) {
		say(fd, "HTTP/1.1 204 No\r\nConnection: close\r\n\r\n");
		close(fd);
	}
	assert_true(fds >= ES_STREAMS_MAX);
	for (int i = 0; i < ES_STREAMS_MAX; i++)
		assert_int_equal(got_of(id[i])->status, 204);
	assert_int_equal(u.w.counters.count[ES_SERVE_upstream_connected], fds);
	finish();
}

/* --- the daemon */

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

/* --- clients that make work */

static void expect_calm(void)
{
	turn();
	assert_int_equal(u.w.result, ES_STREAMS_OVER);
	es_client_flush(&u.w.client);
	turn();
	assert_int_equal(u.last_error, NGHTTP2_ENHANCE_YOUR_CALM);
	assert_int_equal(u.w.counters.count[ES_SERVE_http2_calm], 1);
}

/* CVE-2023-44487 */
static void test_resets(void **state)
{
	int resets = 0;

	(void)state;
	begin(ES_INSPECT_NEVER);
	turn();
	while (!u.w.has_ended && resets < 2000) {
		int32_t id = ask("/");
		const uint8_t *bytes;
		ssize_t len;

		while ((len = nghttp2_session_mem_send(u.session, &bytes)) > 0)
			streams_write(&u.w, bytes, (size_t)len);
		nghttp2_submit_rst_stream(u.session, 0, id, NGHTTP2_CANCEL);
		if (++resets % 50 == 0)
			turn();
		for (int fd; (fd = accept_one()) >= 0;)
			close(fd);
	}
	expect_calm();
	assert_in_range(resets, ES_STREAMS_RESETS, ES_STREAMS_RESETS + 100);
	finish();
}

/* CVE-2025-8671: it makes this side reset them. */
static void test_made_resets(void **state)
{
	int resets = 0;

	(void)state;
	begin(ES_INSPECT_NEVER);
	turn();
	for (; !u.w.has_ended && resets < 2000; resets++) {
		ask_with("GET", "/", "connection: close", NULL);
		turn();
	}
	expect_calm();
	assert_in_range(resets, ES_STREAMS_RESETS, ES_STREAMS_RESETS + 100);
	finish();
}

static void test_pings(void **state)
{
	int pings = 0;

	(void)state;
	begin(ES_INSPECT_NEVER);
	turn();
	for (; !u.w.has_ended && pings < 20000; pings++) {
		nghttp2_submit_ping(u.session, 0, NULL);
		if (pings % 100 == 0)
			turn();
	}
	expect_calm();
	finish();
}

static void test_no_http2(void **state)
{
	static const uint8_t text[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

	(void)state;
	begin(ES_INSPECT_NEVER);
	streams_write(&u.w, text, sizeof(text) - 1);
	ev_run(u.w.serve.loop, EVRUN_NOWAIT);
	assert_int_equal(u.w.result, ES_STREAMS_OVER);
	assert_int_equal(u.w.counters.count[ES_SERVE_http2_bad], 1);
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request),	    cmocka_unit_test(test_ends),
		cmocka_unit_test(test_refused),	    cmocka_unit_test(test_long_head),
		cmocka_unit_test(test_upload),	    cmocka_unit_test(test_upload_stops),
		cmocka_unit_test(test_early),	    cmocka_unit_test(test_slow_reader),
		cmocka_unit_test(test_download),    cmocka_unit_test(test_many),
		cmocka_unit_test(test_moves),	    cmocka_unit_test(test_arrives),
		cmocka_unit_test(test_stays),	    cmocka_unit_test(test_later),
		cmocka_unit_test(test_waits),	    cmocka_unit_test(test_no_daemon),
		cmocka_unit_test(test_leaves),	    cmocka_unit_test(test_resets),
		cmocka_unit_test(test_made_resets), cmocka_unit_test(test_pings),
		cmocka_unit_test(test_no_http2),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
