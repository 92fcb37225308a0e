// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kmod/core/track.h: when a segment may begin a request, where responses end, how a track begins.
 */
#include "cmocka_all.h"
#include <string.h>
#include "kmod/core/load.h"
#include "kmod/core/track.h"
#include "track_view.h"

static void expect(struct es_track t, struct es_segment seg, __u32 rcv_nxt, int alive,
		   enum es_track_verdict verdict, enum es_pin pin)
{
	const struct es_track_socket s = socket_of(rcv_nxt);
	__u8 got = ES_PIN_none;

	assert_int_equal(es_track_inbound(&t, &seg, &s, alive, &got), verdict);
	assert_int_equal(got, pin);
	assert_int_equal(t.state == ES_TRACK_QUEUED,
			 verdict == ES_TRACK_QUEUE_FIRST || verdict == ES_TRACK_QUEUE_LATER);
}

static void test_request(void **state)
{
	struct es_track t = track();
	struct es_segment seg = segment();

	(void)state;
	expect(t, seg, NEXT, 1, ES_TRACK_QUEUE_FIRST, ES_PIN_none);
	expect(t, seg, NEXT, 0, ES_TRACK_PIN, ES_PIN_uninspected);
	seg.seq += 1400; /* overtaken by a part of the same request */
	expect(t, seg, NEXT, 1, ES_TRACK_QUEUE_LATER, ES_PIN_none);
	seg = segment();
	seg.len = 0;
	expect(t, seg, NEXT, 1, ES_TRACK_DELIVER, ES_PIN_none);
	seg = segment();
	seg.flags |= ES_TCP_FIN;
	expect(t, seg, NEXT, 1, ES_TRACK_PIN, ES_PIN_half_closed);
	t.pin = ES_PIN_upgrade;
	expect(t, segment(), NEXT, 1, ES_TRACK_DELIVER, ES_PIN_none);
}

/* Urgent data may be any byte after the segment's first: the next request's, too. */
static void test_urgent(void **state)
{
	struct es_segment seg = segment();

	(void)state;
	seg.flags |= ES_TCP_URG;
	expect(track(), seg, NEXT, 1, ES_TRACK_PIN, ES_PIN_ambiguous);
	seg.len = 0;
	expect(track(), seg, NEXT, 1, ES_TRACK_PIN, ES_PIN_ambiguous);
	seg.seq = NEXT - 100;
	seg.len = 50; /* in the body before it */
	expect(track(), seg, NEXT - 100, 1, ES_TRACK_PIN, ES_PIN_ambiguous);
	seg.flags |= ES_TCP_RST;
	expect(track(), seg, NEXT - 100, 1, ES_TRACK_DELIVER, ES_PIN_none);
}

/* The client closes its side: with a request, between two, and after one that the inspector has. */
static void test_half_close(void **state)
{
	const struct es_track_socket s = socket_of(NEXT);
	struct es_segment seg = segment();
	struct es_track t = track();
	__u8 pin = ES_PIN_none;

	(void)state;
	seg.len = 0;
	seg.flags = ES_TCP_ACK | ES_TCP_FIN;
	expect(t, seg, NEXT, 1, ES_TRACK_DELIVER, ES_PIN_none);
	t.state = ES_TRACK_QUEUED;
	seg.seq += 100;
	expect(t, seg, NEXT, 1, ES_TRACK_QUEUE_LATER, ES_PIN_none);
	seg.len = 20; /* with the end of that request's head */
	expect(t, seg, NEXT, 1, ES_TRACK_QUEUE_LATER, ES_PIN_none);
	assert_int_equal(es_track_inbound(&t, &seg, &s, 0, &pin), ES_TRACK_PIN); /* nobody to take it there */
	t.pin = ES_PIN_upgrade;
	assert_int_equal(es_track_inbound(&t, &seg, &s, 1, &pin), ES_TRACK_DELIVER);
	t.pin = ES_PIN_none;
	seg.flags = ES_TCP_ACK;
	seg.len = 0;
	assert_int_equal(es_track_inbound(&t, &seg, &s, 1, &pin), ES_TRACK_DELIVER);
}

/* With that number and acknowledgment: nothing becomes of it, whatever it is, or @takes, and a pin may. */
static void expect_window(const struct es_track_socket *s, __u32 seq, __u32 ack, int takes)
{
	static const __u8 flags[] = {ES_TCP_ACK, ES_TCP_ACK | ES_TCP_URG, ES_TCP_ACK | ES_TCP_URG,
				     ES_TCP_ACK | ES_TCP_FIN};
	static const __u32 lens[] = {10, 0, 10, 10};

	for (unsigned int i = 0; i < 2 * sizeof(flags); i++) {
		const struct es_segment seg = {
			.seq = seq, .ack = ack, .len = lens[i / 2], .flags = flags[i / 2]};
		struct es_track t = track();
		enum es_track_verdict verdict;
		__u8 pin = ES_PIN_none;

		t.state = i % 2 ? ES_TRACK_QUEUED : ES_TRACK_SERVED;
		verdict = es_track_inbound(&t, &seg, s, 1, &pin);
		if (!takes)
			assert_int_equal(verdict, ES_TRACK_DELIVER);
		else if (seg.flags & ES_TCP_URG)
			assert_int_equal(verdict, ES_TRACK_PIN);
		assert_int_equal(pin != ES_PIN_none, verdict == ES_TRACK_PIN);
		if (!takes)
			assert_int_equal(t.state, i % 2 ? ES_TRACK_QUEUED : ES_TRACK_SERVED);
	}
}

/* A segment that TCP drops pins nothing, and is none of the inspector's. */
static void test_window(void **state)
{
	struct es_track_socket s = socket_of(NEXT);

	(void)state;
	s.write_seq = ACK + 500;
	expect_window(&s, NEXT, ACK, 1);
	expect_window(&s, NEXT + WND, ACK, 1);
	expect_window(&s, NEXT + WND + 1, ACK, 0);
	expect_window(&s, NEXT - WND, ACK, 1);
	expect_window(&s, NEXT - WND - 11, ACK, 0);
	expect_window(&s, NEXT, ACK + 500, 1);
	expect_window(&s, NEXT, ACK + 501, 0);
	expect_window(&s, NEXT, ACK - WND, 1);
	expect_window(&s, NEXT, ACK - WND - 1, 0);
	for (__u32 quarter = 0; quarter < 4; quarter++) {
		expect_window(&s, NEXT + (quarter << 30) + (1U << 29), ACK, 0);
		expect_window(&s, NEXT, ACK + (quarter << 30) + (1U << 29), 0);
	}
	s.rcv_wnd = 0; /* it is asked whether it has opened again */
	expect_window(&s, NEXT, ACK, 1);
	expect_window(&s, NEXT + 1, ACK, 0);
}

/* The time of a request, over the end of the 32 bits, too; an interim response is not its end. */
static void test_took(void **state)
{
	static const __u64 began_ns[] = {1, 5000000000, ((__u64)0xffffffff << ES_TRACK_TICK_SHIFT) - 7,
					 (__u64)1 << (32 + ES_TRACK_TICK_SHIFT)};
	static const __u64 took_ns[] = {0, 100000, 8000000, 68000000000000};
	const char *const interim = "HTTP/1.1 103 Early Hints\r\n\r\n";
	const struct es_handover h = {};

	(void)state;
	for (size_t i = 0; i < sizeof(began_ns) / sizeof(began_ns[0]); i++)
		for (size_t k = 0; k < sizeof(took_ns) / sizeof(took_ns[0]); k++) {
			struct es_track t = {};
			__u64 took;

			assert_int_equal(es_track_took_ns(&t, began_ns[i]), 0); /* not known */
			es_track_serve(&t, ACK, &h, began_ns[i]);
			for (const char *at = interim; *at; at++)
				es_response_byte(&t.response, (__u8)*at);
			took = es_track_took_ns(&t, began_ns[i] + took_ns[k]);
			if (!took || took > took_ns[k] + 2 * 16384 || took + 2 * 16384 < took_ns[k])
				fail_msg("%zu: expected about %llu ns, got %llu", i,
					 (unsigned long long)took_ns[k], (unsigned long long)took);
		}
}

/* A request stays: what the server has said meanwhile is not the beginning of its answer. */
static void test_stay(void **state)
{
	const struct es_handover h = {.next_request_seq = es_htonl(NEXT + 100), .pin = ES_PIN_connect};
	const struct es_segment seg = segment();
	struct es_track t = track();

	(void)state;
	t.state = ES_TRACK_QUEUED;
	assert_true(es_track_has_queued(&t, NEXT));
	assert_false(es_track_has_queued(&t, NEXT + 1));
	t.response_seq = ACK + 10;
	assert_int_equal(es_track_stay(&t, &seg, &h, 9000000), ES_PIN_response_unclear);
	t.response_seq = ACK;
	t.response.phase = ES_RESPONSE_UNCLEAR;
	assert_int_equal(es_track_stay(&t, &seg, &h, 9000000), ES_PIN_response_unclear);
	t.response.phase = ES_RESPONSE_DONE;
	assert_int_equal(es_track_stay(&t, &seg, &h, 9000000), ES_PIN_connect);
	assert_int_equal(t.next_request_seq, NEXT + 100);
	assert_int_equal(t.response.began, es_track_tick(9000000));
	assert_false(es_track_has_queued(&t, NEXT + 100));
}

static void test_body(void **state)
{
	struct es_track t = track();
	struct es_segment seg = segment();

	(void)state;
	t.response.phase = ES_RESPONSE_STATUS;
	seg.seq = NEXT - 100;
	expect(t, seg, NEXT - 100, 1, ES_TRACK_DELIVER, ES_PIN_none);
	seg.len = 101;
	expect(t, seg, NEXT - 100, 1, ES_TRACK_PIN, ES_PIN_overlap);
	seg = segment();
	seg.seq = NEXT - 1; /* a keep-alive probe with a byte of garbage */
	seg.len = 1;
	expect(track(), seg, NEXT, 1, ES_TRACK_DELIVER, ES_PIN_none);
}

/* The response before must be complete, and all of it acknowledged by this very segment. */
static void test_response(void **state)
{
	static const struct {
		enum es_response_phase phase;
		enum es_pin pin;
	} phases[] = {
		{ES_RESPONSE_STATUS, ES_PIN_pipelined},	       {ES_RESPONSE_LENGTH, ES_PIN_pipelined},
		{ES_RESPONSE_BODY, ES_PIN_pipelined},	       {ES_RESPONSE_CHUNK, ES_PIN_pipelined},
		{ES_RESPONSE_CHUNK_SIZE, ES_PIN_pipelined},    {ES_RESPONSE_UPGRADED, ES_PIN_upgrade},
		{ES_RESPONSE_UNTIL_CLOSE, ES_PIN_until_close}, {ES_RESPONSE_UNCLEAR, ES_PIN_response_unclear},
	};
	struct es_segment seg = segment();

	(void)state;
	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		struct es_track t = track();

		t.response.phase = (__u8)phases[i].phase;
		expect(t, segment(), NEXT, 1, ES_TRACK_PIN, phases[i].pin);
	}
	seg.ack--;
	expect(track(), seg, NEXT, 1, ES_TRACK_PIN, ES_PIN_pipelined);
	expect(track(), segment(), NEXT - 10, 1, ES_TRACK_PIN, ES_PIN_pipelined); /* body bytes are missing */
}

static void test_wrap(void **state)
{
	struct es_track t = track();
	struct es_segment seg = segment();

	(void)state;
	t.next_request_seq = 10;
	seg.seq = 10;
	expect(t, seg, 10, 1, ES_TRACK_QUEUE_FIRST, ES_PIN_none);
	seg.seq = 0xfffffff0; /* a retransmission from before the wrap */
	seg.len = 26;
	expect(t, seg, 10, 1, ES_TRACK_DELIVER, ES_PIN_none);
}

static void test_serve(void **state)
{
	const struct es_handover h = {.next_request_seq = es_htonl(NEXT + 100),
				      .request_flags = ES_REQUEST_F_HEAD};
	struct es_track t = track();

	(void)state;
	t.state = ES_TRACK_QUEUED;
	t.response_bytes = 99;
	es_track_serve(&t, ACK, &h, 0);
	assert_int_equal(t.response_bytes, 0);
	assert_int_equal(t.state, ES_TRACK_SERVED);
	assert_int_equal(t.requests, 2);
	assert_int_equal(t.response_seq, ACK);
	assert_int_equal(t.next_request_seq, NEXT + 100);
	assert_int_equal(t.response.phase, ES_RESPONSE_STATUS);
	assert_true(t.response.flags & ES_RESPONSE_F_HEAD);
}

/* A response is reported once, when it is complete, and only if somebody wants to know. */
static void test_answered(void **state)
{
	struct es_track t = track();

	(void)state;
	assert_false(es_track_answered(&t, 100));
	t.request_flags = ES_REQUEST_F_MEASURE | ES_REQUEST_F_HEAD;
	t.response.phase = ES_RESPONSE_BODY;
	assert_false(es_track_answered(&t, 50));
	t.response.phase = ES_RESPONSE_DONE;
	assert_true(es_track_answered(&t, 7));
	assert_int_equal(t.response_bytes, 157);
	assert_int_equal(t.request_flags, ES_REQUEST_F_HEAD);
	assert_false(es_track_answered(&t, 0));
	assert_false(es_track_answered(&t, ~0u - 10)); /* more than 4 GB */
	assert_int_equal(t.response_bytes, ~0u);
	es_track_answered(&t, 1);
	assert_int_equal(t.response_bytes, ~0u);
}

/* Bytes that went out unread are counted if they are of a body, and else waited for. */
static void test_skip(void **state)
{
	struct es_track t = track();

	(void)state;
	t.response.phase = ES_RESPONSE_STATUS;
	assert_false(es_track_skip(&t, ACK + 100));
	assert_int_equal(t.response_seq, ACK);

	t.request_flags = ES_REQUEST_F_MEASURE;
	t.response.phase = ES_RESPONSE_BODY;
	t.response.left = 100;
	assert_false(es_track_skip(&t, ACK - 10)); /* read long ago */
	assert_false(es_track_skip(&t, ACK + 99));
	assert_int_equal(t.response_seq, ACK + 99);
	assert_int_equal(t.response.phase, ES_RESPONSE_BODY);
	assert_true(es_track_skip(&t, ACK + 100));
	assert_int_equal(t.response.phase, ES_RESPONSE_DONE);
	assert_int_equal(t.response_bytes, 100);
	assert_false(es_track_skip(&t, ACK + 100));
	assert_int_equal(t.response.phase, ES_RESPONSE_DONE);
	assert_false(es_track_skip(&t, ACK + 101)); /* a byte too many */
	assert_int_equal(t.response.phase, ES_RESPONSE_UNCLEAR);

	t = track();
	t.response.phase = ES_RESPONSE_CHUNK;
	t.response.left = 50;
	es_track_skip(&t, ACK + 100);
	assert_int_equal(t.response_seq, ACK + 50);
	assert_int_equal(t.response.phase, ES_RESPONSE_CHUNK_END);
}

/* Each state of socket and request: is it active, and what does it cost? */
static void test_load(void **state)
{
	static const struct {
		__u8 tcp_state;
		__u8 phase;
		int has_unsent;
		__u32 cost;
	} cases[] = {
		{ES_TCP_STATE_ESTABLISHED, ES_RESPONSE_STATUS, 0, 7},
		{ES_TCP_STATE_ESTABLISHED, ES_RESPONSE_BODY, 1, 7},
		{ES_TCP_STATE_ESTABLISHED, ES_RESPONSE_UNTIL_CLOSE, 0, 7},
		{ES_TCP_STATE_ESTABLISHED, ES_RESPONSE_DONE, 0, 0},
		{ES_TCP_STATE_CLOSE_WAIT, ES_RESPONSE_LINE, 0, 7}, /* the client may want it all the same */
		{ES_TCP_STATE_CLOSE_WAIT, ES_RESPONSE_DONE, 0, 0},
		{ES_TCP_STATE_FIN_WAIT1, ES_RESPONSE_BODY, 1, 7}, /* written, and closed after it */
		{ES_TCP_STATE_FIN_WAIT1, ES_RESPONSE_UNTIL_CLOSE, 1, 7},
		{ES_TCP_STATE_FIN_WAIT1, ES_RESPONSE_UNTIL_CLOSE, 0, 0},
		{ES_TCP_STATE_FIN_WAIT1, ES_RESPONSE_STATUS, 0, 0},
		{ES_TCP_STATE_LAST_ACK, ES_RESPONSE_BODY, 0, 0},
		{ES_TCP_STATE_FIN_WAIT2, ES_RESPONSE_BODY, 0, 0},
		{ES_TCP_STATE_CLOSING, ES_RESPONSE_BODY, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int is_open = cases[i].tcp_state == ES_TCP_STATE_ESTABLISHED ||
			      cases[i].tcp_state == ES_TCP_STATE_CLOSE_WAIT;
		struct es_track t = {.cost = 7, .response.phase = cases[i].phase};

		assert_int_equal(es_load_cost(&t, cases[i].tcp_state, cases[i].has_unsent), cases[i].cost);
		t.cost = 0; /* of a sender that did not know it */
		assert_int_equal(es_load_cost(&t, cases[i].tcp_state, cases[i].has_unsent),
				 cases[i].cost ? 1 : 0);
		/* Where its requests are not known, a connection is what counts. */
		t.pin = ES_PIN_upgrade;
		t.cost = 500;
		assert_int_equal(es_load_cost(&t, cases[i].tcp_state, cases[i].has_unsent), is_open);
		assert_int_equal(es_load_cost(NULL, cases[i].tcp_state, cases[i].has_unsent), is_open);
	}
}

/* A connection that counts as a request has none in hand when the server spoke last, a while ago. */
static void test_load_idle(void **state)
{
	static const struct {
		int pin, phase, has_open, said_last;
		__u64 quiet_us;
		int is_idle;
	} cases[] = {
		{-1, 0, 0, 1, ES_LOAD_IDLE_US, 1},
		{-1, 0, 0, 1, ES_LOAD_IDLE_US - 1, 0},
		{-1, 0, 1, 1, ~0ULL, 0},		 /* not read, not sent, or not acknowledged */
		{-1, 0, 0, 0, ES_LOAD_SILENT_US - 1, 0}, /* the server works on it */
		{-1, 0, 0, 0, ES_LOAD_SILENT_US, 1},
		{ES_PIN_pipelined, ES_RESPONSE_DONE, 0, 1, ES_LOAD_IDLE_US, 1},
		{ES_PIN_pipelined, ES_RESPONSE_DONE, 0, 0, ES_LOAD_IDLE_US, 0},
		{ES_PIN_upgrade, ES_RESPONSE_UPGRADED, 0, 0, ES_LOAD_IDLE_US, 1},
		{ES_PIN_upgrade, ES_RESPONSE_UPGRADED, 1, 0, ES_LOAD_IDLE_US, 0},
		{ES_PIN_upgrade, ES_RESPONSE_UPGRADED, 0, 0, ES_LOAD_IDLE_US - 1, 0},
		{ES_PIN_none, ES_RESPONSE_UPGRADED, 0, 0, ES_LOAD_IDLE_US, 1},
		/* Knowledge about a request counts more than how long nothing happens. */
		{ES_PIN_none, ES_RESPONSE_STATUS, 0, 0, ~0ULL, 0},
		{ES_PIN_none, ES_RESPONSE_BODY, 0, 1, ~0ULL, 0},
		{ES_PIN_none, ES_RESPONSE_UNTIL_CLOSE, 0, 1, ~0ULL, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct es_track t = {.pin = (__u8)cases[i].pin, .response.phase = (__u8)cases[i].phase};

		if (es_load_is_idle(cases[i].pin < 0 ? NULL : &t, cases[i].has_open, cases[i].said_last,
				    cases[i].quiet_us) != cases[i].is_idle)
			fail_msg("case %zu: expected %d", i, cases[i].is_idle);
	}
}

/* The four ways in which a connection with a socket here begins, and by what each is counted. */
static void test_begin(void **state)
{
	static const struct {
		const char *what;
		__be32 next;
		enum es_pin told, pin;
		__u32 counter;
	} rows[] = {
		{"inspected", es_htonl(NEXT), ES_PIN_none, ES_PIN_none, ES_COUNTER_COUNT},
		{"pinned by the inspector", es_htonl(NEXT), ES_PIN_tls, ES_PIN_tls, ES_COUNT_pin_tls},
		{"of a service that inspects first requests", 0, ES_PIN_none, ES_PIN_unknown,
		 ES_COUNT_pin_unknown},
		{"pinned, and its end not known", 0, ES_PIN_connect, ES_PIN_connect, ES_COUNT_pin_connect},
	};
	const struct es_tcp_options options = {.mss = 1300, .snd_wscale = 7, .wscale_ok = 1, .ecn_ok = 1};
	struct es_handover h = {
		.requests = es_htonl(4), .moves = es_htons(2), .service = 6, .cost = es_htons(9)};
	struct es_track t;

	(void)state;
	es_handover_options_put(&h, &options);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		t = (struct es_track){};
		h.next_request_seq = rows[i].next;
		h.pin = (__u8)rows[i].told;
		es_track_begin(&t, ACK, &h, 7000000);
		if (t.pin != rows[i].pin || es_track_counter(&t) != rows[i].counter)
			fail_msg("%s: expected pin %d and counter %u, got %u and %u", rows[i].what,
				 rows[i].pin, rows[i].counter, t.pin, es_track_counter(&t));
		assert_memory_equal(&t.options, &options, sizeof(options));
		assert_int_equal(t.response_seq, ACK);
		assert_int_equal(t.next_request_seq, rows[i].next ? NEXT : 0);
		assert_int_equal(t.requests, 5);
		assert_int_equal(t.moves, 2);
		assert_int_equal(t.service, 6);
		assert_int_equal(t.cost, 9);
		assert_int_equal(t.response.began, es_track_tick(7000000));
	}

	t = (struct es_track){};
	es_track_begin_program(&t, &h);
	assert_memory_equal(&t.options, &options, sizeof(options));
	assert_int_equal(t.requests, 1);
	assert_int_equal(t.service, 6);
	assert_int_equal(es_track_counter(&t), ES_COUNT_pin_program);
	t = (struct es_track){};
	es_track_begin_uninspected(&t, &options);
	assert_memory_equal(&t.options, &options, sizeof(options));
	assert_int_equal(es_track_counter(&t), ES_COUNT_pin_uninspected);
	t = (struct es_track){};
	es_track_begin_unknown(&t);
	assert_int_equal(es_track_counter(&t), ES_COUNT_pin_unknown);
}

/* A pin is counted once, and never changes. */
static void test_set_pin(void **state)
{
	struct es_track t = track();

	(void)state;
	assert_int_equal(es_track_set_pin(&t, ES_PIN_none), ES_COUNTER_COUNT);
	assert_int_equal(es_track_set_pin(&t, ES_PIN_COUNT), ES_COUNTER_COUNT);
	assert_int_equal(t.pin, ES_PIN_none);
	assert_int_equal(es_track_set_pin(&t, ES_PIN_pipelined), ES_COUNT_pin_pipelined);
	assert_int_equal(es_track_set_pin(&t, ES_PIN_tls), ES_COUNTER_COUNT);
	assert_int_equal(t.pin, ES_PIN_pipelined);
	for (__u32 pin = ES_PIN_none + 1; pin < ES_PIN_COUNT; pin++) {
		t.pin = ES_PIN_none;
		assert_int_equal(es_track_set_pin(&t, pin), ES_COUNT_pin_pipelined + pin - 1);
	}
}

/* Another node may go on with a connection until the client has acknowledged something of the answer. */
static void test_ceded(void **state)
{
	struct es_track t = {.requests = 1, .response_seq = 1000, .response_bytes = 300};

	(void)state;
	t.response.phase = ES_RESPONSE_DONE;
	assert_true(es_track_is_idle(&t, 1000) && es_track_is_ceded(&t, 1000));
	assert_true(!es_track_is_idle(&t, 700) && es_track_is_ceded(&t, 700));
	for (__u32 una = 701; una < 1000; una++)
		assert_false(es_track_is_ceded(&t, una));
	/* In the middle of an answer. */
	t.response.phase = ES_RESPONSE_BODY;
	assert_false(es_track_is_ceded(&t, 1000));
	assert_true(es_track_is_ceded(&t, 700));
	t.response_bytes = 0;
	assert_true(es_track_is_ceded(&t, 1000));
	/* Nobody else goes on with one that is pinned; but it may have been just before. */
	for (unsigned int pin = ES_PIN_none + 1; pin < ES_PIN_COUNT; pin++) {
		t.pin = (__u8)pin;
		assert_false(es_track_is_idle(&t, 1000));
		assert_int_equal(es_track_is_ceded(&t, 1000), pin == ES_PIN_uninspected);
		assert_false(es_track_is_ceded(&t, 1001));
	}
	t.pin = ES_PIN_uninspected;
	t.requests = 0; /* it was never read */
	assert_false(es_track_is_ceded(&t, 1000));
	/* Others know of its long response, whatever has come of it since. */
	t.request_flags = ES_REQUEST_F_LONG;
	for (unsigned int pin = ES_PIN_none; pin < ES_PIN_COUNT; pin++) {
		t.pin = (__u8)pin;
		assert_true(es_track_is_ceded(&t, 900));
	}
}

/* It leaves for good only if this node has nothing that the other one lacks. */
static void test_may_cede(void **state)
{
	const struct es_track idle = {.requests = 1,
				      .response_seq = 1000,
				      .next_request_seq = 5000,
				      .response = {.phase = ES_RESPONSE_DONE}};
	const struct es_track_socket socket = {
		.rcv_nxt = 5000, .copied_seq = 5000, .snd_una = 1000, .write_seq = 1000, .is_established = 1};
	struct es_track_socket s = socket;
	struct es_track t = idle;

	(void)state;
	assert_true(es_track_may_cede(&t, &s));
	s.write_seq++; /* the server has spoken, or closed */
	assert_false(es_track_may_cede(&t, &s));
	s = socket;
	s.rcv_nxt++; /* the request is here */
	assert_false(es_track_may_cede(&t, &s));
	s = socket;
	s.copied_seq--;
	assert_false(es_track_may_cede(&t, &s));
	s = socket;
	s.is_established = 0;
	assert_false(es_track_may_cede(&t, &s));
	s = socket;
	for (unsigned int at = ES_TRACK_QUEUED; at <= ES_TRACK_ENDING; at++) {
		t.state = (__u8)at;
		assert_false(es_track_may_cede(&t, &s));
	}
	t = idle;
	t.pin = ES_PIN_upgrade;
	assert_false(es_track_may_cede(&t, &s));
}

/* One that was given up stays so, and one that cannot be is left as it was. */
static void test_cede(void **state)
{
	struct es_track_socket s = {
		.rcv_nxt = 5000, .copied_seq = 5000, .snd_una = 1000, .write_seq = 1000, .is_established = 1};
	struct es_track t = {.requests = 1, .response_seq = 1000, .next_request_seq = 5000};

	(void)state;
	t.response.phase = ES_RESPONSE_DONE;
	s.write_seq++;
	assert_false(es_track_cede(&t, &s));
	assert_int_equal(t.state, ES_TRACK_SERVED);
	s.write_seq--;
	assert_true(es_track_cede(&t, &s));
	assert_int_equal(t.state, ES_TRACK_ENDING);
	s.write_seq++;
	assert_true(es_track_cede(&t, &s));
	t.state = ES_TRACK_LEAVING; /* for another reason, which may come to nothing */
	assert_false(es_track_cede(&t, &s));
	assert_int_equal(t.state, ES_TRACK_LEAVING);
}

/* Its client loses nothing: between two requests, or in a response that others know. */
static void test_goes_on(void **state)
{
	struct es_track t = {.requests = 1, .response_seq = 1000, .response_bytes = 300};

	(void)state;
	t.response.phase = ES_RESPONSE_DONE;
	assert_true(es_track_goes_on(&t, 1000));
	assert_false(es_track_goes_on(&t, 700)); /* it is ceded, and waits for an answer */
	t.response.phase = ES_RESPONSE_BODY;
	assert_false(es_track_goes_on(&t, 1000));
	t.request_flags = ES_REQUEST_F_LONG;
	assert_true(es_track_goes_on(&t, 700));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request),	  cmocka_unit_test(test_urgent),
		cmocka_unit_test(test_body),	  cmocka_unit_test(test_response),
		cmocka_unit_test(test_wrap),	  cmocka_unit_test(test_serve),
		cmocka_unit_test(test_answered),  cmocka_unit_test(test_skip),
		cmocka_unit_test(test_load),	  cmocka_unit_test(test_half_close),
		cmocka_unit_test(test_window),	  cmocka_unit_test(test_took),
		cmocka_unit_test(test_stay),	  cmocka_unit_test(test_begin),
		cmocka_unit_test(test_load_idle), cmocka_unit_test(test_set_pin),
		cmocka_unit_test(test_ceded),	  cmocka_unit_test(test_may_cede),
		cmocka_unit_test(test_cede),	  cmocka_unit_test(test_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
