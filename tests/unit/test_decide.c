// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The decision function, row by row of its table, and what must hold for any view whatever.
 * test_decide_cookie.c has what a cookie proves to it, test_decide_layer4.c has what becomes of a connection
 * that nobody reads.
 */
#include "cmocka_all.h"
#include "decide_view.h"

static void test_established(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	v.socket = ES_SOCKET_ESTABLISHED;
	EXPECT(&cfg, &v, ES_DELIVER, deliver_established);
	v.mine = 0;
	EXPECT(&cfg, &v, ES_DELIVER, deliver_established);
	v.seg.flags = ES_TCP_RST;
	EXPECT(&cfg, &v, ES_DELIVER, deliver_established);
	v.seg.flags = ES_TCP_SYN;
	EXPECT(&cfg, &v, ES_DELIVER, deliver_syn_established);
}

static void test_time_wait(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	v.socket = ES_SOCKET_TIME_WAIT;
	v.old_rcv_nxt = 5000;
	v.seg.flags = ES_TCP_SYN;
	v.seg.len = 0;
	EXPECT(&cfg, &v, ES_END_OLD_AND_SYNACK, syn_time_wait);
	v.mine = 0;
	EXPECT(&cfg, &v, ES_END_OLD, syn_time_wait);
	v.seg.flags = ES_TCP_FIN | ES_TCP_ACK;
	v.seg.seq = 4999; /* the FIN that was acknowledged already */
	EXPECT(&cfg, &v, ES_DELIVER, deliver_time_wait);
	v.seg.flags = ES_TCP_ACK;
	EXPECT(&cfg, &v, ES_DROP, drop_not_mine);
	v = request(&cfg, 0, SLOT);
	v.socket = ES_SOCKET_TIME_WAIT;
	v.old_rcv_nxt = 5000;
	EXPECT(&cfg, &v, ES_QUEUE_FIRST, request_queued);
	v.socket = ES_SOCKET_FIN_WAIT2;
	EXPECT(&cfg, &v, ES_DELIVER, deliver_established);
	v.seg.flags = ES_TCP_SYN;
	EXPECT(&cfg, &v, ES_END_OLD_AND_SYNACK, syn_time_wait);
}

static void test_not_mine(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	v.mine = 0;
	for (unsigned int flags = 0; flags < 256; flags++) {
		v.seg.flags = (__u8)flags;
		EXPECT(&cfg, &v, ES_DROP, drop_not_mine);
	}
}

static void test_syn(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);
	struct es_verdict verdict;

	(void)state;
	v.seg = (struct es_segment){.seq = ISN,
				    .flags = ES_TCP_SYN | ES_TCP_ECE | ES_TCP_CWR,
				    .mss = 1460,
				    .has_wscale = 1,
				    .wscale = 9,
				    .sack_permitted = 1,
				    .has_ts = 1};
	verdict = decide(&cfg, &v);
	assert_int_equal(verdict.action, ES_SYNACK);
	assert_int_equal(verdict.counter, ES_COUNT_syn_answered);
	assert_true(verdict.options.wscale_ok && verdict.options.snd_wscale == 9 &&
		    verdict.options.rcv_wscale == 10);
	assert_true(verdict.options.sack_ok && verdict.options.tstamp_ok && verdict.options.ecn_ok);
	assert_int_equal(es_cookie_check(&cfg.cookie_key[0], FLOW, SLOT, verdict.cookie, ISN, &verdict.tsval),
			 ES_COOKIE_VALID);
	/* Nothing is promised that a sysctl forbids, or that the client did not offer. */
	cfg.offer_wscale = cfg.offer_sack = cfg.offer_ts = cfg.offer_ecn = 0;
	verdict = decide(&cfg, &v);
	assert_false(verdict.options.wscale_ok || verdict.options.sack_ok || verdict.options.tstamp_ok ||
		     verdict.options.ecn_ok);
	cfg = config();
	v.seg = (struct es_segment){.seq = ISN, .flags = ES_TCP_SYN};
	verdict = decide(&cfg, &v);
	assert_int_equal(verdict.options.mss, 536);
	assert_false(verdict.options.wscale_ok || verdict.options.sack_ok || verdict.options.tstamp_ok ||
		     verdict.options.ecn_ok);
}

static void test_first_request(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	EXPECT(&cfg, &v, ES_QUEUE_FIRST, request_queued);
	v.seg.flags |= ES_TCP_FIN;
	EXPECT(&cfg, &v, ES_QUEUE_FIRST, request_queued);
	v.inspect = ES_INSPECT_NEVER;
	EXPECT(&cfg, &v, ES_REBUILD, request_blind);
	v.inspect = ES_INSPECT_FIRST;
	v.inspector_alive = 0;
	EXPECT(&cfg, &v, ES_REBUILD, request_fallback);
	v.decision = es_decision_value(ISN, SELF, NOW_MS);
	EXPECT(&cfg, &v, ES_REBUILD, request_fallback);
	v.decision = es_decision_value(ISN, SELF + 1, NOW_MS);
	EXPECT(&cfg, &v, ES_DROP, drop_fallback_elsewhere);
	v.inspector_alive = 1;
	EXPECT(&cfg, &v, ES_QUEUE_FIRST, request_queued);
	v = request(&cfg, 0, SLOT - 3);
	EXPECT(&cfg, &v, ES_ANSWER_RST, cookie_expired);
	v.seg.ack ^= 1;
	EXPECT(&cfg, &v, ES_DROP, cookie_invalid);
}

static void test_later_segment(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	v.seg.seq += 1400;
	EXPECT(&cfg, &v, ES_QUEUE_LATER, request_later_queued);
	v.decision = es_decision_value(ISN, 1, NOW_MS - 40);
	EXPECT(&cfg, &v, ES_QUEUE_LATER, request_later_queued);
	v.decision = es_decision_value(ISN, 1, NOW_MS + 3); /* the coarse clock lies behind */
	EXPECT(&cfg, &v, ES_QUEUE_LATER, request_later_queued);
	v.decision = es_decision_value(ISN, 1, NOW_MS - 60);
	EXPECT(&cfg, &v, ES_DROP, drop_decided);
	v.decision = 0;
	v.inspector_alive = 0;
	EXPECT(&cfg, &v, ES_DROP, drop_no_flow);
}

/*
 * The client has heard the request's socket, so the socket hears what the client has sent since, and the
 * inspector need not send it there.
 */
static void test_later_segment_of_a_client_that_has_heard(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT), syn = v;
	struct es_verdict answer;

	(void)state;
	/* By its sequence number: no window that it was told before is so wide. */
	v.decision = es_decision_value(ISN, 1, NOW_MS - 40);
	v.seg.seq = ISN + 1 + 65535 - 100;
	EXPECT(&cfg, &v, ES_QUEUE_LATER, request_later_queued);
	v.seg.seq++;
	EXPECT(&cfg, &v, ES_DROP, drop_decided);
	v.decision = 0; /* nobody has it */
	EXPECT(&cfg, &v, ES_QUEUE_LATER, request_later_queued);
	/* By the timestamp that it echoes: until then it is that of the SYN-ACK. */
	syn.seg = (struct es_segment){.seq = ISN, .flags = ES_TCP_SYN, .has_ts = 1};
	answer = decide(&cfg, &syn);
	v.seg = (struct es_segment){.seq = ISN + 1 + 1400,
				    .ack = answer.cookie + 1,
				    .len = 100,
				    .flags = ES_TCP_ACK,
				    .has_ts = 1,
				    .tsecr = answer.tsval};
	v.decision = es_decision_value(ISN, 1, NOW_MS - 40);
	EXPECT(&cfg, &v, ES_QUEUE_LATER, request_later_queued);
	v.seg.tsecr += ES_REBUILD_CLOCK_AHEAD_MS;
	EXPECT(&cfg, &v, ES_DROP, drop_decided);
	v.decision = 0;
	EXPECT(&cfg, &v, ES_QUEUE_LATER, request_later_queued);
	/* A segment that is repeated for long belongs to a connection that perhaps nobody has. */
	v.decision = es_decision_value(ISN, 1, NOW_MS - 40);
	v.again_ms = ES_STRAY_AGAIN_MS;
	EXPECT(&cfg, &v, ES_QUEUE_STRAY, stray_queued);
	/* The cookie was made under the key before. */
	v.again_ms = 0;
	cfg.cookie_key[1] = cfg.cookie_key[0];
	cfg.cookie_key[0] = (struct es_sipkey){5, 6};
	cfg.key_count = 2;
	EXPECT(&cfg, &v, ES_DROP, drop_decided);
	v.seg.tsecr = answer.tsval;
	EXPECT(&cfg, &v, ES_QUEUE_LATER, request_later_queued);
}

static void test_before_any_request(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);
	struct es_verdict syn;

	(void)state;
	v.seg.len = 0;
	v.seg.flags = ES_TCP_ACK;
	EXPECT(&cfg, &v, ES_DROP, drop_handshake_ack);
	v.seg.seq = ISN;
	EXPECT(&cfg, &v, ES_ANSWER_ACK, keepalive_answered);
	/* Without timestamps a byte could be the client's own: it must not be acknowledged. */
	v.seg.len = 1;
	EXPECT(&cfg, &v, ES_QUEUE_LATER, request_later_queued);
	/* And a FIN could be one after a request: the worker knows. */
	v.seg.seq = ISN + 1;
	v.seg.len = 0;
	v.seg.flags = ES_TCP_ACK | ES_TCP_FIN;
	EXPECT(&cfg, &v, ES_QUEUE_FIRST, request_later_queued);
	v.inspector_alive = 0;
	EXPECT(&cfg, &v, ES_REBUILD, fin_before_request);
	v.inspector_alive = 1;
	/* Timestamps prove it: the server says what becomes of it. */
	v.seg = (struct es_segment){.seq = ISN, .flags = ES_TCP_SYN, .has_ts = 1};
	syn = decide(&cfg, &v);
	v.seg = (struct es_segment){.seq = ISN + 1,
				    .ack = syn.cookie + 1,
				    .flags = ES_TCP_ACK | ES_TCP_FIN,
				    .has_ts = 1,
				    .tsecr = syn.tsval};
	EXPECT(&cfg, &v, ES_REBUILD, fin_before_request);
	v.decision = es_decision_value(ISN, 3, NOW_MS); /* a program has handed the connection over */
	EXPECT(&cfg, &v, ES_DROP, drop_decided);
	v.decision = 0;
	v.seg.flags = ES_TCP_ACK;
	v.seg.seq = ISN;
	v.seg.len = 1;
	EXPECT(&cfg, &v, ES_ANSWER_ACK, keepalive_answered);
	v.seg.flags = ES_TCP_ACK | ES_TCP_RST;
	v.seg.seq = ISN + 1;
	v.seg.len = 0;
	EXPECT(&cfg, &v, ES_DROP, drop_no_flow);
	/* Behind a part of a request: the inspector has that. */
	v.seg.seq = ISN + 100;
	EXPECT(&cfg, &v, ES_QUEUE_LATER, request_later_queued);
	v.waits = 1;
	EXPECT(&cfg, &v, ES_DROP, drop_ring_change);
	v.waits = 0;
	v.inspector_alive = 0;
	EXPECT(&cfg, &v, ES_DROP, drop_no_flow);
	v.inspector_alive = 1;
	v.seg.ack++;
	EXPECT(&cfg, &v, ES_DROP, drop_no_flow);
	v.seg.ack--;
	v.seg.flags = ES_TCP_RST;
	EXPECT(&cfg, &v, ES_DROP, drop_no_flow);
	v.seg.flags = ES_TCP_SYN | ES_TCP_ACK;
	EXPECT(&cfg, &v, ES_DROP, drop_bad_flags);
	v.seg.flags = 0;
	EXPECT(&cfg, &v, ES_DROP, drop_bad_flags);
}

/* Whatever the packet and the state: what never may happen does not. */
static void test_properties(void **state)
{
	struct es_config cfg = config();
	uint64_t seed = 5;

	(void)state;
	for (int i = 0; i < 1000000; i++) {
		__u64 r = es_test_random(&seed), q = es_test_random(&seed);
		struct es_view v = request(&cfg, 0, SLOT - (r & 7));
		struct es_verdict got;
		int is_cookie = r >> 3 & 1, is_moved;

		v.socket = r >> 4 & 3;
		v.mine = r >> 6 & 1;
		v.inspect = (r >> 7 & 3) % 3;
		v.inspector_alive = r >> 9 & 1;
		v.seg.flags = (__u8)(r >> 10);
		v.seg.len = (r >> 18 & 3) * 700;
		v.seg.seq += (r >> 20 & 3) * 1400 - (r >> 22 & 1);
		v.old_rcv_nxt = (__u32)q;
		v.decision = r >> 23 & 1 ? q : 0;
		v.track = r >> 24 & 3;
		v.silent = r >> 26 & 1;
		v.unproven = r >> 27 & 1;
		v.waits = r >> 28 & 1;
		cfg.leased = r >> 29 & 1;
		v.ended = (q & 15) == 3;
		v.again_ms = (q >> 4 & 3) * 400;
		is_moved = v.seg.len &&
			   (v.seg.flags & (ES_TCP_SYN | ES_TCP_RST | ES_TCP_ACK)) == ES_TCP_ACK &&
			   es_decision_is_moved(v.decision);
		if (!is_cookie)
			v.seg.ack = (__u32)(q >> 32);
		got = decide(&cfg, &v);
		assert_true(got.action <= ES_NACK && got.counter < ES_COUNTER_COUNT);
		/* A datapath that drops without es_decide() does what es_decide() says. */
		if (es_is_anothers(&v))
			assert_true(got.action == ES_DROP && got.counter == ES_COUNT_drop_not_mine);
		if (got.counter == ES_COUNT_drop_silent)
			assert_true(v.silent || (cfg.leased && !v.inspector_alive));
		if (got.action == ES_QUEUE_STRAY) {
			assert_true(v.mine && !v.silent && !v.waits && v.inspector_alive && v.seg.len != 1 &&
				    v.again_ms >= ES_STRAY_AGAIN_MS && v.socket != ES_SOCKET_ESTABLISHED);
			continue;
		}
		if (v.socket == ES_SOCKET_ESTABLISHED) {
			if (v.silent && v.unproven)
				assert_int_equal(got.counter, ES_COUNT_drop_silent);
			else if (v.track == ES_TRACK_DELIVER || v.track == ES_TRACK_PIN)
				assert_int_equal(got.action, ES_DELIVER);
			continue;
		}
		if (is_moved && v.socket == ES_SOCKET_NONE) {
			/* None but the inspector that moved it knows what to do. */
			assert_true(got.action == ES_DROP ||
				    (v.inspector_alive &&
				     (got.action == ES_QUEUE_FIRST || got.action == ES_QUEUE_LATER)));
			continue;
		}
		if (got.counter == ES_COUNT_reset_repeated) {
			assert_true(v.ended && v.socket == ES_SOCKET_NONE && !v.silent);
			assert_true((v.seg.flags & (ES_TCP_SYN | ES_TCP_RST | ES_TCP_ACK)) == ES_TCP_ACK);
			continue;
		}
		if (got.counter == ES_COUNT_reset_after_reject || got.counter == ES_COUNT_reject_dropped) {
			assert_true(!v.silent && es_decision_node(v.decision) == ES_NODE_REJECT);
			continue;
		}
		if ((!v.mine || v.silent) && !is_moved)
			assert_true(got.action == ES_DROP || got.action == ES_DELIVER ||
				    got.action == ES_END_OLD);
		if (v.socket == ES_SOCKET_NONE)
			assert_int_not_equal(got.action, ES_DELIVER);
		if (!is_moved && (got.action == ES_REBUILD || got.action == ES_QUEUE_FIRST)) {
			assert_true((r & 7) <= 2);
			assert_true(
				v.seg.len > 0 || (v.seg.flags & ES_TCP_FIN) ||
				(got.counter == ES_COUNT_handshake_blind && v.inspect == ES_INSPECT_NEVER));
			assert_int_equal(es_cookie_check(&cfg.cookie_key[0], FLOW, SLOT, v.seg.ack - 1,
							 v.seg.seq - 1, NULL),
					 ES_COOKIE_VALID);
		}
		if (got.action == ES_REBUILD) {
			assert_true(v.inspect == ES_INSPECT_NEVER || !v.inspector_alive || !v.seg.len);
			assert_true(!cfg.leased || v.inspector_alive);
		}
		if (v.waits && !is_moved && (v.seg.len || (v.seg.flags & ES_TCP_FIN)))
			assert_true(got.action == ES_DROP || got.action == ES_DELIVER ||
				    (v.seg.flags & ES_TCP_SYN));
	}
}

/* A request that moved its connection away: its node answers for it, whoever the ring names. */
static void test_moved(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	v.mine = 0;
	v.inspect = ES_INSPECT_EVERY;
	v.seg.ack = 777777; /* no cookie */
	EXPECT(&cfg, &v, ES_DROP, drop_not_mine);
	v.decision = es_decision_value(v.seg.seq - 1, 3, NOW_MS - 10);
	EXPECT(&cfg, &v, ES_DROP, drop_not_mine);
	v.decision |= ES_DECISION_MOVED;
	EXPECT(&cfg, &v, ES_QUEUE_FIRST, moved_queued);
	v.mine = 1;
	EXPECT(&cfg, &v, ES_QUEUE_FIRST, moved_queued);
	v.seg.seq += 100;
	EXPECT(&cfg, &v, ES_QUEUE_LATER, moved_queued);
	v.now_ms += cfg.race_window_ms;
	EXPECT(&cfg, &v, ES_DROP, drop_moved);
	v.seg.seq -= 100;
	EXPECT(&cfg, &v, ES_QUEUE_FIRST, moved_queued);
	v.inspector_alive = 0;
	EXPECT(&cfg, &v, ES_DROP, drop_moved);
	v.inspector_alive = 1;
	v.socket = ES_SOCKET_ESTABLISHED; /* it came back */
	EXPECT(&cfg, &v, ES_DELIVER, deliver_established);
	v.track = ES_TRACK_QUEUE_FIRST;
	EXPECT(&cfg, &v, ES_QUEUE_FIRST, owned_queued);
	v.track = ES_TRACK_QUEUE_LATER;
	EXPECT(&cfg, &v, ES_QUEUE_LATER, owned_later_queued);
	v.track = ES_TRACK_PIN;
	EXPECT(&cfg, &v, ES_DELIVER, deliver_established);
}

/* The inspector answered in the server's place and closed; wherever this node stands now,
 * it ends the rest. */
static void test_after_reject(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	v.seg = (struct es_segment){.seq = 5000, .ack = 7000, .flags = ES_TCP_FIN | ES_TCP_ACK};
	EXPECT(&cfg, &v, ES_DROP, cookie_invalid);
	for (int mine = 1; mine >= 0; mine--) {
		v.mine = (__u8)mine;
		v.decision = es_decision_value(4999, ES_NODE_REJECT, NOW_MS - ES_REJECT_LINGER_MS + 1);
		v.seg.flags = ES_TCP_FIN | ES_TCP_ACK;
		v.seg.len = 0;
		EXPECT(&cfg, &v, ES_ANSWER_ACK, reject_dropped);
		assert_int_equal(decide(&cfg, &v).ack, 5001);
		v.seg.len = 1000;
		assert_int_equal(decide(&cfg, &v).ack, 6001);
		v.seg.flags = ES_TCP_ACK; /* more of a body */
		EXPECT(&cfg, &v, ES_ANSWER_ACK, reject_dropped);
		assert_int_equal(decide(&cfg, &v).ack, 6000);
		v.decision = es_decision_value(4999, ES_NODE_REJECT, NOW_MS - ES_REJECT_LINGER_MS);
		EXPECT(&cfg, &v, ES_ANSWER_RST, reset_after_reject);
	}
	v.decision = es_decision_value(4999, 3, NOW_MS);
	EXPECT(&cfg, &v, ES_DROP, drop_not_mine);
	/*
	 * A repeated request that was refused is the worker's, and so are the segments that were sent after
	 * it before the answer arrived.
	 */
	v.decision = es_decision_value(4999, ES_NODE_REJECT, NOW_MS - 5000) | ES_DECISION_MOVED;
	EXPECT(&cfg, &v, ES_QUEUE_FIRST, moved_queued);
	v.seg.seq += 1000;
	EXPECT(&cfg, &v, ES_QUEUE_LATER, moved_queued);
	v.decision =
		es_decision_value(4999, ES_NODE_REJECT, NOW_MS - ES_REJECT_LINGER_MS) | ES_DECISION_MOVED;
	EXPECT(&cfg, &v, ES_DROP, drop_moved);
	v.decision = es_decision_value(4999, ES_NODE_REJECT, NOW_MS);
	v.socket = ES_SOCKET_ESTABLISHED; /* never instead of a socket */
	EXPECT(&cfg, &v, ES_DELIVER, deliver_established);
}

/* A segment of a connection that the stack here has ended gets another RST, whoever inspects the flow. */
static void test_ended(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	for (v.mine = 0; v.mine < 2; v.mine++) {
		v.ended = 1;
		EXPECT(&cfg, &v, ES_ANSWER_RST, reset_repeated);
		v.inspector_alive = !v.inspector_alive; /* the first request too, which made the connection */
		EXPECT(&cfg, &v, ES_ANSWER_RST, reset_repeated);
		v.silent = 1; /* another node may have it by now */
		EXPECT(&cfg, &v, ES_DROP, drop_silent);
		v.silent = 0;
		v.socket = ES_SOCKET_ESTABLISHED;
		EXPECT(&cfg, &v, ES_DELIVER, deliver_established);
		v.socket = ES_SOCKET_NONE;
	}
	v.mine = 1;
	v.seg.len = 0;
	EXPECT(&cfg, &v, ES_ANSWER_RST, reset_repeated);
	v.seg.flags = ES_TCP_ACK | ES_TCP_FIN;
	EXPECT(&cfg, &v, ES_ANSWER_RST, reset_repeated);
	v.seg.flags = ES_TCP_ACK | ES_TCP_RST;
	EXPECT(&cfg, &v, ES_DROP, drop_no_flow);
	v.seg.flags = ES_TCP_SYN;
	EXPECT(&cfg, &v, ES_SYNACK, syn_answered);
	v.seg.flags = 0;
	EXPECT(&cfg, &v, ES_DROP, drop_bad_flags);
	v.mine = 0;
	v.seg.flags = ES_TCP_ACK | ES_TCP_RST;
	EXPECT(&cfg, &v, ES_DROP, drop_not_mine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_established),
		cmocka_unit_test(test_time_wait),
		cmocka_unit_test(test_not_mine),
		cmocka_unit_test(test_syn),
		cmocka_unit_test(test_first_request),
		cmocka_unit_test(test_later_segment),
		cmocka_unit_test(test_later_segment_of_a_client_that_has_heard),
		cmocka_unit_test(test_before_any_request),
		cmocka_unit_test(test_properties),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_after_reject),
		cmocka_unit_test(test_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
