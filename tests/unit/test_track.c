// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kmod/core/track.h: when a segment may begin a request, and when a connection may leave its socket.
 */
#include "cmocka_all.h"
#include <string.h>
#include "kmod/core/load.h"
#include "kmod/core/track.h"

#define NEXT 5000u /* where the next request starts */
#define ACK  9000u /* behind the last byte of the response */

/* A connection on which one request is answered. */
static struct es_track track(void)
{
	struct es_track t = {.requests = 1, .next_request_seq = NEXT, .response_seq = ACK};

	t.response.phase = ES_RESPONSE_DONE;
	return t;
}

static struct es_segment segment(void)
{
	struct es_segment seg = {.seq = NEXT, .ack = ACK, .len = 100, .flags = ES_TCP_ACK | ES_TCP_PSH};

	return seg;
}

static void expect(struct es_track t, struct es_segment seg, __u32 rcv_nxt, int alive,
		   enum es_track_verdict verdict, enum es_pin pin)
{
	__u8 got = ES_PIN_none;

	assert_int_equal(es_track_inbound(&t, &seg, rcv_nxt, alive, &got), verdict);
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
	es_track_serve(&t, ACK, &h);
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

/* What went out unread is counted if it is of a body, and else waited for. */
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
		{ES_TCP_STATE_FIN_WAIT1, ES_RESPONSE_BODY, 1, 7}, /* written, and closed behind it */
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

/* One thing that is not as it must be at a time. */
static void test_may_leave(void **state)
{
	const struct es_track_socket good = {
		.rcv_nxt = NEXT, .copied_seq = NEXT, .snd_una = ACK, .write_seq = ACK, .is_established = 1};
	struct es_segment seg = segment();
	struct es_track_socket s = good;
	struct es_track t = track();

	(void)state;
	assert_false(es_track_may_leave(&t, &seg, &good)); /* not with the inspector */
	t.state = ES_TRACK_QUEUED;
	assert_true(es_track_may_leave(&t, &seg, &good));
	s.snd_una = ACK - 50; /* this segment acknowledges the rest */
	assert_true(es_track_may_leave(&t, &seg, &s));
	s = good;
	s.rcv_nxt++;
	assert_false(es_track_may_leave(&t, &seg, &s)); /* the stack has this request */
	s = good;
	s.copied_seq--;
	assert_false(es_track_may_leave(&t, &seg, &s)); /* the server has not read all of the last one */
	s = good;
	s.write_seq++;
	assert_false(es_track_may_leave(&t, &seg, &s)); /* the server has more to say */
	s = good;
	s.is_established = 0;
	assert_false(es_track_may_leave(&t, &seg, &s));
	t.pin = ES_PIN_pipelined;
	assert_false(es_track_may_leave(&t, &seg, &good));
	t.pin = ES_PIN_none;
	t.response.phase = ES_RESPONSE_BODY;
	assert_false(es_track_may_leave(&t, &seg, &good));
	t.response.phase = ES_RESPONSE_DONE;
	seg.ack--;
	assert_false(es_track_may_leave(&t, &seg, &good));
	seg = segment();
	seg.seq++;
	assert_false(es_track_may_leave(&t, &seg, &good));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request),	  cmocka_unit_test(test_body),
		cmocka_unit_test(test_response),  cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_serve),	  cmocka_unit_test(test_answered),
		cmocka_unit_test(test_skip),	  cmocka_unit_test(test_load),
		cmocka_unit_test(test_may_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
