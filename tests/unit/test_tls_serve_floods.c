// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Clients of HTTP/2 that make work and ask nothing: little of it is in memory, and their connection ends.
 */
#include "tests/unit/streams_user.h"

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

/* --- frames that no client library sends */

static const uint8_t post[] = {0x83, 0x87, 0x84, 0x41, 1, 'a'}; /* POST https://a/ */

static void put_frame(uint8_t type, uint8_t flags, int32_t id, const void *payload, size_t len)
{
	uint8_t frame[9 + 16384] = {
		(uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len,       type,	   flags,
		(uint8_t)(id >> 24),  (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id};

	if (len)
		memcpy(frame + 9, payload, len);
	streams_write(&u.w, frame, 9 + len);
}

/* Bytes of the connection that wait in memory. */
static size_t in_memory(void)
{
	return es_buffer_len(&u.w.client.in) + es_buffer_len(&u.w.client.text) +
	       es_buffer_len(&u.w.client.out);
}

#define MEMORY_MAX (512u << 10)
#define FRAMES	   20000

/* A turn of a client that does not look at what it is sent. */
static void blind_turn(void)
{
	for (int i = 0; i < 20; i++) {
		streams_flush(&u.w);
		ev_run(u.w.serve.loop, EVRUN_NOWAIT);
		streams_read(&u.w, &u.in, &u.text);
		es_buffer_fini(&u.text);
	}
}

/* Returns how many frames were sent before the connection ended; all that while little was in memory. */
static int flood(uint8_t type, uint8_t flags, int32_t id, const void *payload, size_t len)
{
	int sent = 0;

	for (; !u.w.has_ended && sent < FRAMES; sent++) {
		put_frame(type, flags, id, payload, len);
		if (sent % 20 == 0)
			blind_turn();
		assert_true(in_memory() < MEMORY_MAX);
		assert_true(es_buffer_len(&u.w.unsent) < MEMORY_MAX);
	}
	return sent;
}

static void begin_raw(void)
{
	begin(ES_INSPECT_NEVER);
	turn();
}

/* CVE-2024-28182: a head that never ends, of frames that are empty, or full. */
static void test_continuations(void **state)
{
	static const uint8_t fields[16384] = {0x00, 1,
					      'x'}; /* and then a value that is long, and empty ones */
	static const size_t lengths[] = {0, 1, 16384};

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		begin_raw();
		put_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, 1, post, sizeof(post));
		assert_in_range(flood(NGHTTP2_CONTINUATION, 0, 1, fields, lengths[i]), 1, 200);
		assert_int_equal(u.w.result, ES_STREAMS_OVER);
		assert_int_equal(
			u.w.counters.count[ES_SERVE_http2_bad] + u.w.counters.count[ES_SERVE_http2_calm], 1);
		assert_int_equal(accept_one(), -1);
		finish();
	}
}

static void test_settings(void **state)
{
	static const uint8_t window[] = {0, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0, 0, 255, 255};

	(void)state;
	for (int i = 0; i < 2; i++) {
		begin_raw();
		assert_in_range(flood(NGHTTP2_SETTINGS, 0, 0, window, i ? sizeof(window) : 0), 1,
				ES_STREAMS_IDLES + 200);
		expect_calm();
		finish();
	}
}

static void test_priorities(void **state)
{
	static const uint8_t priority[] = {0, 0, 0, 0, 16};

	(void)state;
	begin_raw();
	assert_in_range(flood(NGHTTP2_PRIORITY, 0, 5, priority, sizeof(priority)), 1, ES_STREAMS_IDLES + 200);
	expect_calm();
	finish();
}

static void test_empty_data(void **state)
{
	(void)state;
	begin_raw();
	put_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, post, sizeof(post));
	assert_in_range(flood(NGHTTP2_DATA, 0, 1, NULL, 0), 1, ES_STREAMS_IDLES + 200);
	expect_calm();
	close(server());
	finish();
}

/* Padding is no body either. */
static void test_padding(void **state)
{
	static const uint8_t padded[1 + 100] = {100};

	(void)state;
	begin_raw();
	put_frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, post, sizeof(post));
	assert_in_range(flood(NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, 1, padded, sizeof(padded)), 1,
			ES_STREAMS_IDLES + 200);
	expect_calm();
	close(server());
	finish();
}

/*
 * Frames of a type that nobody knows are ignored (RFC 9113, 4.1): nothing of them stays, and the time goes
 * on.
 */
static void test_unknown(void **state)
{
	(void)state;
	begin_raw();
	assert_int_equal(flood(0xbe, 0, 0, "nothing", 7), FRAMES);
	assert_int_equal(u.w.result, ES_STREAMS_GO_ON);
	streams_expired(&u.w);
	assert_int_equal(u.w.result, ES_STREAMS_OVER);
	finish();
}

/* More streams than there are places: the first ones are served, the others may come again. */
static void test_no_places(void **state)
{
	int32_t id[6];
	int fds = 0;

	(void)state;
	begin(ES_INSPECT_NEVER);
	u.w.service.places.most = 3;
	turn();
	for (int i = 0; i < 6; i++)
		id[i] = ask("/");
	turn();
	for (int i = 0; i < 6; i++) {
		assert_int_equal(got_of(id[i])->is_closed, i >= 3);
		assert_int_equal(got_of(id[i])->error, i >= 3 ? NGHTTP2_REFUSED_STREAM : 0);
	}
	assert_int_equal(u.w.counters.count[ES_SERVE_streams_refused], 3);
	for (int fd; (fd = accept_one()) >= 0; fds++) {
		say(fd, "HTTP/1.1 204 No\r\nConnection: close\r\n\r\n");
		close(fd);
	}
	assert_int_equal(fds, 3);
	id[0] = ask("/");
	close(server());
	turn();
	assert_int_equal(got_of(id[0])->status, 502);
	assert_int_equal(u.last, -1);
	finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resets),	      cmocka_unit_test(test_made_resets),
		cmocka_unit_test(test_pings),	      cmocka_unit_test(test_no_http2),
		cmocka_unit_test(test_continuations), cmocka_unit_test(test_settings),
		cmocka_unit_test(test_priorities),    cmocka_unit_test(test_empty_data),
		cmocka_unit_test(test_padding),	      cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_no_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
