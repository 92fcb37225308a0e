// SPDX-License-Identifier: GPL-2.0-or-later
/* The decision about connections that nobody reads. */
#include "cmocka_all.h"
#include "decide_view.h"
#include "kmod/core/serving.h"

/*
 * Nobody reads it: the inspector says who gets it where this node does not serve, and whatever was said of it
 * before.
 */
static void test_layer4(void **state)
{
	static const struct {
		__u8 flags;
		__u32 len;
		__u32 counter;
	} firsts[] = {{ES_TCP_ACK, 0, ES_COUNT_handshake_blind},
		      {ES_TCP_ACK | ES_TCP_PSH, 100, ES_COUNT_request_blind},
		      {ES_TCP_ACK | ES_TCP_FIN, 0, ES_COUNT_fin_before_request}};
	struct es_config cfg = config();
	struct es_verdict verdict;

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct es_view v = request(&cfg, 0, SLOT);

		v.seg.len = firsts[i].len;
		v.seg.flags = firsts[i].flags;
		v.inspect = ES_INSPECT_NEVER;
		v.heard = v.heard_all = 1;
		v.may_give = 1;
		verdict = decide(&cfg, &v);
		assert_int_equal(verdict.action, ES_REBUILD);
		assert_int_equal(verdict.counter, firsts[i].counter);
		v.decision = es_decision_value(ISN, SELF, NOW_MS); /* which was said to be this node's */
		assert_int_equal(decide(&cfg, &v).action, ES_REBUILD);
		v.decision = es_decision_value(ISN, SELF + 1, NOW_MS);
		EXPECT(&cfg, &v, ES_QUEUE_FIRST, layer4_queued);
		v.decision = 0;
		for (v.gives = ES_GIVES; v.gives <= ES_GIVES_UNSERVED; v.gives++) {
			EXPECT(&cfg, &v, ES_QUEUE_FIRST, layer4_queued);
			v.waits = 1;
			EXPECT(&cfg, &v, ES_DROP, drop_ring_change);
			v.waits = 0;
			v.inspector_alive = 0; /* nobody to ask */
			assert_int_equal(decide(&cfg, &v).action, ES_REBUILD);
			v.inspector_alive = 1;
			v.may_give = 0; /* a client of one link alone */
			assert_int_equal(decide(&cfg, &v).action, ES_REBUILD);
			v.may_give = 1;
		}
	}
}

/* A later segment of such a connection is the inspector's only where the first one is, too. */
static void test_layer4_later(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	v.inspect = ES_INSPECT_NEVER;
	v.heard = v.heard_all = 1;
	v.may_give = 1;
	v.seg.seq += 100;
	EXPECT(&cfg, &v, ES_DROP, drop_no_flow);
	v.decision = es_decision_value(ISN, SELF + 1, NOW_MS);
	EXPECT(&cfg, &v, ES_QUEUE_LATER, request_later_queued);
	v.inspector_alive = 0;
	EXPECT(&cfg, &v, ES_DROP, drop_no_flow);
	v.inspector_alive = 1;
	v.decision = 0;
	v.gives = ES_GIVES_UNSERVED;
	EXPECT(&cfg, &v, ES_QUEUE_LATER, request_later_queued);
}

/* Where nobody reads, the ACK of the handshake makes the socket; nothing that is less certain does. */
static void test_server_speaks_first(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT), good;
	struct es_verdict syn, made;

	(void)state;
	v.seg.len = 0;
	v.seg.flags = ES_TCP_ACK;
	v.inspect = ES_INSPECT_NEVER;
	v.heard = v.heard_all = 1;
	good = v;
	EXPECT(&cfg, &v, ES_REBUILD, handshake_blind);
	v.inspector_alive = 0; /* as ever without membership */
	EXPECT(&cfg, &v, ES_REBUILD, handshake_blind);
	cfg.leased = 1;
	EXPECT(&cfg, &v, ES_DROP, drop_silent);
	v.inspector_alive = 1;
	EXPECT(&cfg, &v, ES_REBUILD, handshake_blind);
	v.silent = 1;
	EXPECT(&cfg, &v, ES_DROP, drop_silent);
	v = good;
	v.mine = 0;
	EXPECT(&cfg, &v, ES_DROP, drop_not_mine);
	v = good;
	v.waits = 1;
	EXPECT(&cfg, &v, ES_DROP, drop_ring_change);
	v = good;
	v.ended = 1;
	EXPECT(&cfg, &v, ES_ANSWER_RST, reset_repeated);
	v = good;
	v.socket = ES_SOCKET_ESTABLISHED;
	EXPECT(&cfg, &v, ES_DELIVER, deliver_established);
	v = good;
	v.decision = es_decision_value(ISN, SELF + 1, NOW_MS); /* a program has handed it over */
	EXPECT(&cfg, &v, ES_DROP, drop_decided);
	for (unsigned int inspect = ES_INSPECT_FIRST; inspect <= ES_INSPECT_EVERY; inspect++) {
		v = good;
		v.inspect = (__u8)inspect;
		EXPECT(&cfg, &v, ES_DROP, drop_handshake_ack);
	}
	/* A keep-alive probe, of a client that has not sent anything. */
	v = good;
	v.seg.seq = ISN;
	v.heard = 0;
	v.heard_all = 0;
	EXPECT(&cfg, &v, ES_ANSWER_ACK, keepalive_answered);
	/* Too few bits, and the SYN was not heard. */
	v = good;
	v.heard = 0;
	EXPECT(&cfg, &v, ES_DROP, drop_handshake_ack);
	v.heard_all = 0;
	EXPECT(&cfg, &v, ES_DROP, request_unheard);
	v.many_guesses = 1;
	EXPECT(&cfg, &v, ES_DROP, request_unheard);
	v.heard = 1;
	EXPECT(&cfg, &v, ES_REBUILD, handshake_blind);
	/* No cookie at all is a guess. */
	v = good;
	v.seg.ack ^= 1;
	made = decide(&cfg, &v);
	assert_int_equal(made.counter, ES_COUNT_drop_no_flow);
	assert_true(made.guess);
	v.socket = ES_SOCKET_TIME_WAIT; /* the last ACK of a connection that was here */
	assert_false(decide(&cfg, &v).guess);
	v.socket = ES_SOCKET_NONE;
	v.inspect = ES_INSPECT_FIRST;
	assert_false(decide(&cfg, &v).guess);
	/* The connection is from before a node was lost. */
	v = good;
	v.has_doubts = 1;
	v.unsafe = ES_UNSAFE_ALL;
	v.heard_all = 0;
	EXPECT(&cfg, &v, ES_REBUILD, handshake_blind);
	v.heard = 0;
	EXPECT(&cfg, &v, ES_DROP, request_unheard);
	/* With timestamps, and what was agreed on. */
	v = good;
	v.seg = (struct es_segment){
		.seq = ISN, .flags = ES_TCP_SYN, .has_ts = 1, .mss = 1460, .sack_permitted = 1};
	syn = decide(&cfg, &v);
	v.seg = (struct es_segment){
		.seq = ISN + 1, .ack = syn.cookie + 1, .flags = ES_TCP_ACK, .has_ts = 1, .tsecr = syn.tsval};
	v.heard = v.heard_all = 0;
	made = decide(&cfg, &v);
	assert_int_equal(made.counter, ES_COUNT_handshake_blind);
	assert_int_equal(made.options.mss, 1460);
	assert_true(made.options.sack_ok && made.options.tstamp_ok);
	v.has_doubts = 1;
	v.unsafe = ES_UNSAFE_ALL;
	EXPECT(&cfg, &v, ES_DROP, drop_handshake_ack);
	v.unsafe = ES_UNSAFE_ONCE;
	EXPECT(&cfg, &v, ES_REBUILD, handshake_blind);
	v.seg.tsecr++;
	EXPECT(&cfg, &v, ES_DROP, drop_handshake_ack);
	v.seg.tsecr--;
	v.slot += ES_COOKIE_SLOTS_VALID;
	EXPECT(&cfg, &v, ES_DROP, drop_no_flow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layer4),
		cmocka_unit_test(test_layer4_later),
		cmocka_unit_test(test_server_speaks_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
