// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kmod/core/track.h: when a connection may leave its socket for another node, and what becomes of the
 * client's segments meanwhile, whatever the order in which CPUs see them.
 */
#include "cmocka_all.h"
#include "track_view.h"

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
	assert_false(es_track_may_leave(&t, &seg, &good)); /* the server may still be heard */
	t.state = ES_TRACK_LEAVING;
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

/* The socket is being ended: nothing new gets into it, and nothing new out of it. */
static void test_leaving(void **state)
{
	const struct es_track_socket s = socket_of(NEXT);
	struct es_segment seg = segment();
	struct es_track t = track();
	__u8 pin = ES_PIN_none;

	(void)state;
	for (int i = 0; i < 8; i++) {
		int alive = i & 1;

		t.state = i & 2 ? ES_TRACK_ENDING : ES_TRACK_LEAVING;
		t.pin = i & 4 ? ES_PIN_ambiguous : ES_PIN_none; /* too late */
		assert_int_equal(es_track_inbound(&t, &seg, &s, alive, &pin), ES_TRACK_QUEUE_FIRST);
		seg.seq += 100;
		assert_int_equal(es_track_inbound(&t, &seg, &s, alive, &pin), ES_TRACK_QUEUE_LATER);
		seg.len = 0;
		seg.flags |= ES_TCP_FIN;
		assert_int_equal(es_track_inbound(&t, &seg, &s, alive, &pin), ES_TRACK_QUEUE_LATER);
		seg = segment();
		seg.seq -= 100; /* a retransmission of the last request */
		assert_int_equal(es_track_inbound(&t, &seg, &s, alive, &pin), ES_TRACK_DELIVER);
		seg.flags |= ES_TCP_FIN; /* which it cannot have been */
		assert_int_equal(es_track_inbound(&t, &seg, &s, alive, &pin), ES_TRACK_QUEUE_LATER);
		seg = segment();
		seg.flags |= ES_TCP_RST;
		assert_int_equal(es_track_inbound(&t, &seg, &s, alive, &pin), ES_TRACK_DELIVER);
		seg = segment();
		assert_int_equal(t.state, i & 2 ? ES_TRACK_ENDING : ES_TRACK_LEAVING);
	}
	assert_int_equal(pin, ES_PIN_none);

	t.state = ES_TRACK_LEAVING;
	seg = segment();
	assert_true(es_track_holds(&t, &seg));
	seg.len = 0;
	assert_false(es_track_holds(&t, &seg)); /* an acknowledgement says nothing new */
	for (unsigned int i = 0; i < 2; i++) {
		seg.flags = i ? ES_TCP_RST : ES_TCP_FIN | ES_TCP_ACK;
		assert_true(es_track_holds(&t, &seg));
		t.state = ES_TRACK_QUEUED;
		assert_false(es_track_holds(&t, &seg));
		t.state = ES_TRACK_LEAVING;
	}
}

/*
 * Two CPUs, each with its steps, in every order: one carries a client's segment to the socket, the other
 * takes the connection away from it. A new segment never gets into a socket that ends for another node.
 */
struct race {
	struct es_track t;
	struct es_segment seg;
	enum es_track_verdict verdict;
	__u8 pin;
	__u8 begun, may_leave, is_gone;
	__u32 rcv_nxt;
};

static void look(struct race *r)
{
	const struct es_track_socket s = socket_of(NEXT);

	r->verdict = es_track_inbound(&r->t, &r->seg, &s, 1, &r->pin);
}

static void store(struct race *r)
{
	if (r->verdict == ES_TRACK_PIN && !r->t.pin)
		r->t.pin = r->pin;
}

static void check(struct race *r)
{
	if (r->verdict == ES_TRACK_PIN)
		r->verdict = es_track_pinned(&r->t, &r->seg);
}

static void deliver(struct race *r)
{
	__u32 end = r->seg.seq + r->seg.len + !!(r->seg.flags & ES_TCP_FIN);

	if (r->verdict == ES_TRACK_DELIVER && !r->is_gone && es_seq_before(r->rcv_nxt, end))
		r->rcv_nxt = end;
}

static void begin(struct race *r)
{
	r->begun = (__u8)es_track_step(&r->t, ES_TRACK_QUEUED, ES_TRACK_LEAVING);
}

static void judge(struct race *r)
{
	const struct es_track_socket s = {
		.is_established = 1,
		.rcv_nxt = r->rcv_nxt,
		.copied_seq = NEXT,
		.snd_una = ACK,
		.write_seq = ACK,
	};
	const struct es_segment request = segment();

	r->may_leave = r->begun && es_track_may_leave(&r->t, &request, &s);
}

static void settle(struct race *r)
{
	if (r->begun)
		r->t.state = r->may_leave ? ES_TRACK_ENDING : ES_TRACK_QUEUED;
}

/* A socket takes a RST that names the very byte that it expects. */
static void end(struct race *r)
{
	r->is_gone = r->may_leave && r->rcv_nxt == NEXT;
}

static void play(struct es_segment seg, unsigned int *left, unsigned int *stayed)
{
	void (*const client[])(struct race *) = {look, store, check, deliver};
	void (*const leaver[])(struct race *) = {begin, judge, settle, end};

	for (unsigned int order = 0; order < 256; order++) {
		struct race r = {.t = track(), .seg = seg, .rcv_nxt = NEXT};
		unsigned int c = 0, l = 0;

		if (__builtin_popcount(order) != 4)
			continue;
		r.t.state = ES_TRACK_QUEUED;
		for (unsigned int i = 0; i < 8; i++)
			order >> i & 1 ? client[c++](&r) : leaver[l++](&r);
		assert_int_equal(r.is_gone, r.may_leave);
		assert_int_equal(r.t.state, r.may_leave ? ES_TRACK_ENDING : ES_TRACK_QUEUED);
		*left += r.is_gone;
		*stayed += r.rcv_nxt != NEXT;
	}
}

static void test_leaving_races(void **state)
{
	unsigned int left = 0, stayed = 0;
	struct es_segment seg = segment();

	(void)state;
	seg.flags |= ES_TCP_URG; /* pins, and is delivered */
	play(seg, &left, &stayed);
	assert_true(left && stayed);
	seg = segment();
	seg.seq -= 10; /* likewise: some of it is old */
	play(seg, &left, &stayed);
	seg = segment(); /* repeated: for the inspector */
	stayed = 0;
	play(seg, &left, &stayed);
	seg.len = 0;
	seg.flags = ES_TCP_ACK;
	play(seg, &left, &stayed);
	assert_int_equal(stayed, 0);
}

/* Another CPU has seen a request first, and its connection is leaving by now. */
static void test_leaving_is_not_undone(void **state)
{
	struct es_track t = track();

	(void)state;
	assert_true(es_track_step(&t, ES_TRACK_SERVED, ES_TRACK_QUEUED));
	assert_true(es_track_step(&t, ES_TRACK_QUEUED, ES_TRACK_LEAVING));
	assert_false(es_track_step(&t, ES_TRACK_SERVED, ES_TRACK_QUEUED));
	assert_int_equal(t.state, ES_TRACK_LEAVING);
	t = track();
	t.pin = ES_PIN_upgrade;
	assert_false(es_track_step(&t, ES_TRACK_SERVED, ES_TRACK_QUEUED));
	t = track();
	t.moves = 7;
	assert_true(es_track_step(&t, ES_TRACK_SERVED, ES_TRACK_QUEUED));
	assert_int_equal(t.moves, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_may_leave),
		cmocka_unit_test(test_leaving),
		cmocka_unit_test(test_leaving_races),
		cmocka_unit_test(test_leaving_is_not_undone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
