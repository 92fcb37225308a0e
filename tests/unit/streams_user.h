/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_STREAMS_USER_H
#define ES_STREAMS_USER_H

/*
 * A user of the connection in streams_world.h: nghttp2 is its client, and it remembers what it has got. There
 * is one at a time, and the server is in the test's hands.
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

static inline int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
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

static inline int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
			  size_t len, void *ctx)
{
	(void)flags;
	(void)ctx;
	assert_int_equal(es_buffer_add(&u.got[id / 2].body, bytes, len), 0);
	nghttp2_session_consume_connection(session, len);
	if (id != u.lazy)
		nghttp2_session_consume_stream(session, id, len);
	return 0;
}

static inline int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *ctx)
{
	(void)session;
	(void)ctx;
	u.got[id / 2].is_closed = 1;
	u.got[id / 2].error = error;
	return 0;
}

static inline int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
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

static inline void user_new(void)
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

static inline void begin(enum es_inspect inspect)
{
	memset(&u, 0, sizeof(u));
	streams_set_up(&u.w, inspect);
	streams_connect(&u.w, 0);
	user_new();
}

static inline void finish(void)
{
	nghttp2_session_del(u.session);
	streams_disconnect(&u.w);
	streams_tear_down(&u.w);
	es_buffer_fini(&u.in);
	es_buffer_fini(&u.text);
	for (int i = 0; i < STREAMS; i++)
		es_buffer_fini(&u.got[i].body);
}

static inline ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *bytes, size_t len,
				uint32_t *flags, nghttp2_data_source *source, void *ctx)
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
static inline int32_t ask_with(const char *method, const char *path, const char *more, size_t *body)
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

static inline int32_t ask(const char *path)
{
	return ask_with("GET", path, "", NULL);
}

static inline void on_goaway(const uint8_t *frame)
{
	assert_int_equal(frame[3], NGHTTP2_GOAWAY);
	u.goaways++;
	u.last = frame[9] << 24 | frame[10] << 16 | frame[11] << 8 | frame[12];
	u.last_error = frame[16];
}

/* Some turns of everything but the server and the daemon. */
static inline void turn(void)
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

static inline struct got *got_of(int32_t id)
{
	return &u.got[id / 2];
}

/* --- the server */

/* Accept the next connection of those that are waiting; -1: there is none. */
static inline int accept_one(void)
{
	return accept4(u.w.server, NULL, NULL, SOCK_NONBLOCK);
}

static inline int server(void)
{
	int fd;

	turn();
	fd = accept_one();
	assert_true(fd >= 0);
	return fd;
}

/* All that the server has been sent. */
static inline const char *heard(int fd)
{
	static char text[1 << 17];
	ssize_t len;

	turn();
	len = recv(fd, text, sizeof(text) - 1, 0);
	assert_true(len >= 0);
	text[len] = '\0';
	return text;
}

static inline void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	turn();
}

static inline void expect_body(const struct got *got, const char *text)
{
	assert_int_equal(es_buffer_len(&got->body), strlen(text));
	if (*text)
		assert_memory_equal(es_buffer_front(&got->body), text, strlen(text));
}

#endif
