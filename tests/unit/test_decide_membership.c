// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The decision while a node may not act: its lease is over, or the ring changes.
 */
#include "cmocka_all.h"
#include "decide_view.h"

/* The lease is over: this node takes nothing new, and what another may have been asked for stands still. */
static void test_silent(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	v.silent = 1;
	for (int mine = 0; mine < 2; mine++) {
		v.mine = (__u8)mine;
		for (unsigned int flags = 0; flags < 256; flags++) {
			v.seg.flags = (__u8)flags;
			v.seg.len = 0;
			EXPECT(&cfg, &v, ES_DROP, drop_silent);
			v.seg.len = 100;
			EXPECT(&cfg, &v, ES_DROP, drop_silent);
		}
	}
	/* No RST either: the client may have been answered by another node meanwhile. */
	v = request(&cfg, 0, SLOT - 3);
	v.silent = 1;
	EXPECT(&cfg, &v, ES_DROP, drop_silent);
	/* A probe that would be answered. */
	v = request(&cfg, 0, SLOT);
	v.silent = 1;
	v.seg.seq = ISN;
	v.seg.len = 0;
	v.seg.flags = ES_TCP_ACK;
	EXPECT(&cfg, &v, ES_DROP, drop_silent);
	/* Whatever the service and its inspector. */
	v = request(&cfg, 0, SLOT);
	v.silent = 1;
	v.inspect = ES_INSPECT_NEVER;
	EXPECT(&cfg, &v, ES_DROP, drop_silent);
	v.inspect = ES_INSPECT_FIRST;
	v.inspector_alive = 0;
	EXPECT(&cfg, &v, ES_DROP, drop_silent);
}

static void test_silent_with_a_socket(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	v.silent = 1;
	v.socket = ES_SOCKET_ESTABLISHED;
	EXPECT(&cfg, &v, ES_DELIVER, deliver_established);
	v.track = ES_TRACK_QUEUE_FIRST;
	EXPECT(&cfg, &v, ES_QUEUE_FIRST, owned_queued);
	v.track = ES_TRACK_QUEUE_LATER;
	EXPECT(&cfg, &v, ES_QUEUE_LATER, owned_later_queued);
	v.unproven = 1;
	for (unsigned int flags = 0; flags < 256; flags++) {
		v.seg.flags = (__u8)flags;
		v.track = flags & 3;
		EXPECT(&cfg, &v, ES_DROP, drop_silent);
	}
	/* Not sure of one's membership: only then does it matter. */
	v.silent = 0;
	v.track = ES_TRACK_DELIVER;
	v.seg.flags = ES_TCP_ACK;
	EXPECT(&cfg, &v, ES_DELIVER, deliver_established);
	/* The end of an old connection, which another node cannot have. */
	v = request(&cfg, 0, SLOT);
	v.silent = 1;
	v.socket = ES_SOCKET_FIN_WAIT2;
	EXPECT(&cfg, &v, ES_DELIVER, deliver_established);
	v.socket = ES_SOCKET_TIME_WAIT;
	v.old_rcv_nxt = 5000;
	v.seg.seq = 4999;
	v.seg.flags = ES_TCP_FIN | ES_TCP_ACK;
	EXPECT(&cfg, &v, ES_DELIVER, deliver_time_wait);
	v.seg.flags = ES_TCP_ACK;
	EXPECT(&cfg, &v, ES_DROP, drop_silent);
}

/* The old connection dies, and another node answers the SYN. */
static void test_silent_time_wait_syn(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	v.silent = 1;
	v.seg.flags = ES_TCP_SYN;
	v.seg.len = 0;
	v.socket = ES_SOCKET_TIME_WAIT;
	EXPECT(&cfg, &v, ES_END_OLD, syn_time_wait);
	v.socket = ES_SOCKET_FIN_WAIT2;
	EXPECT(&cfg, &v, ES_END_OLD, syn_time_wait);
	v.mine = 0;
	EXPECT(&cfg, &v, ES_END_OLD, syn_time_wait);
}

/* While the ring changes here: handshakes go on, requests are left to their retransmission. */
static void test_waits(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	v.waits = 1;
	for (unsigned int inspect = 0; inspect <= ES_INSPECT_EVERY; inspect++) {
		for (unsigned int alive = 0; alive < 2; alive++) {
			v.inspect = (__u8)inspect;
			v.inspector_alive = (__u8)alive;
			EXPECT(&cfg, &v, ES_DROP, drop_ring_change);
		}
	}
	v.seg.seq += 1400; /* a later segment */
	EXPECT(&cfg, &v, ES_DROP, drop_ring_change);
	/* No RST: whether there was a request is for its new node to say. */
	v = request(&cfg, 0, SLOT);
	v.waits = 1;
	v.seg.len = 0;
	v.seg.flags = ES_TCP_ACK | ES_TCP_FIN;
	v.inspector_alive = 0;
	EXPECT(&cfg, &v, ES_DROP, drop_ring_change);
	v = request(&cfg, 0, SLOT - 3);
	v.waits = 1;
	EXPECT(&cfg, &v, ES_DROP, drop_ring_change);
	/* Segments that any node may answer. */
	v = request(&cfg, 0, SLOT);
	v.waits = 1;
	v.seg.len = 0;
	v.seg.flags = ES_TCP_SYN;
	EXPECT(&cfg, &v, ES_SYNACK, syn_answered);
	v.seg.flags = ES_TCP_ACK;
	EXPECT(&cfg, &v, ES_DROP, drop_handshake_ack);
	v.seg.seq = ISN;
	EXPECT(&cfg, &v, ES_ANSWER_ACK, keepalive_answered);
	v.socket = ES_SOCKET_TIME_WAIT;
	v.seg.flags = ES_TCP_SYN;
	EXPECT(&cfg, &v, ES_END_OLD_AND_SYNACK, syn_time_wait);
	/* Conditions that take precedence over the wait. */
	v = request(&cfg, 0, SLOT);
	v.waits = 1;
	v.socket = ES_SOCKET_ESTABLISHED;
	EXPECT(&cfg, &v, ES_DELIVER, deliver_established);
	v.socket = ES_SOCKET_NONE;
	v.silent = 1;
	EXPECT(&cfg, &v, ES_DROP, drop_silent);
	v.silent = 0;
	v.mine = 0;
	EXPECT(&cfg, &v, ES_DROP, drop_not_mine);
	v.decision = es_decision_value(ISN, 3, NOW_MS) | ES_DECISION_MOVED;
	EXPECT(&cfg, &v, ES_QUEUE_FIRST, moved_queued);
}

/* With membership there is no service without the inspector; without, there is no outage. */
static void test_leased_without_inspector(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	cfg.leased = 1;
	for (unsigned int inspect = 0; inspect <= ES_INSPECT_EVERY; inspect++) {
		v.inspect = (__u8)inspect;
		v.inspector_alive = 1;
		if (inspect == ES_INSPECT_NEVER)
			EXPECT(&cfg, &v, ES_REBUILD, request_blind);
		else
			EXPECT(&cfg, &v, ES_QUEUE_FIRST, request_queued);
		v.inspector_alive = 0;
		EXPECT(&cfg, &v, ES_DROP, drop_silent);
		v.decision = es_decision_value(ISN, SELF, NOW_MS);
		EXPECT(&cfg, &v, ES_DROP, drop_silent);
		v.decision = 0;
		cfg.leased = 0;
		if (inspect == ES_INSPECT_NEVER)
			EXPECT(&cfg, &v, ES_REBUILD, request_blind);
		else
			EXPECT(&cfg, &v, ES_REBUILD, request_fallback);
		cfg.leased = 1;
	}
	/* The rest of the lease is the node's all the same. */
	v.seg.flags = ES_TCP_SYN;
	v.seg.len = 0;
	EXPECT(&cfg, &v, ES_SYNACK, syn_answered);
	v.seg.flags = ES_TCP_ACK | ES_TCP_FIN;
	EXPECT(&cfg, &v, ES_DROP, drop_silent);
	v = request(&cfg, 0, SLOT - 3);
	v.inspector_alive = 0;
	EXPECT(&cfg, &v, ES_ANSWER_RST, cookie_expired);
	v.socket = ES_SOCKET_ESTABLISHED;
	EXPECT(&cfg, &v, ES_DELIVER, deliver_established);
}

/*
 * A connection that moved away is this node's business, whatever the others think of it: no other knows of
 * it.
 */
static void test_moved_while_membership_changes(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	cfg.leased = 1;
	v.inspect = ES_INSPECT_EVERY;
	v.decision = es_decision_value(ISN, 3, NOW_MS - 10) | ES_DECISION_MOVED;
	for (unsigned int bits = 0; bits < 8; bits++) {
		v.silent = bits & 1;
		v.waits = bits >> 1 & 1;
		v.mine = bits >> 2 & 1;
		EXPECT(&cfg, &v, ES_QUEUE_FIRST, moved_queued);
		v.inspector_alive = 0;
		EXPECT(&cfg, &v, ES_DROP, drop_moved);
		v.inspector_alive = 1;
	}
	/* The FIN after the request goes along; and after a while the request has its socket. */
	v.silent = 1;
	v.seg.seq += 100;
	v.seg.len = 0;
	v.seg.flags = ES_TCP_ACK | ES_TCP_FIN;
	EXPECT(&cfg, &v, ES_QUEUE_LATER, moved_queued);
	v.decision = es_decision_value(ISN, 3, NOW_MS - cfg.race_window_ms - 1) | ES_DECISION_MOVED;
	EXPECT(&cfg, &v, ES_DROP, drop_moved);
	v.decision = es_decision_value(v.seg.seq - 1, 3, NOW_MS) | ES_DECISION_MOVED;
	EXPECT(&cfg, &v, ES_DROP, drop_moved); /* no FIN after that request */
	v.seg.flags = ES_TCP_ACK;
	EXPECT(&cfg, &v, ES_DROP, drop_silent);
	v.seg.len = 100;
	v.seg.flags = ES_TCP_ACK | ES_TCP_RST;
	EXPECT(&cfg, &v, ES_DROP, drop_silent);
}

/* A lost node may have had it: the inspector is told, and what it does not read is not executed again. */
static void test_doubtful(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	cfg.leased = 1;
	for (unsigned int unsafe = ES_UNSAFE_ONCE; unsafe <= ES_UNSAFE_ALL; unsafe++)
		for (int doubtful = 0; doubtful < 2; doubtful++) {
			v.unsafe = (__u8)unsafe;
			v.doubtful = (__u8)doubtful;
			v.inspect = ES_INSPECT_FIRST;
			if (doubtful)
				EXPECT(&cfg, &v, ES_QUEUE_FIRST, request_doubtful);
			else
				EXPECT(&cfg, &v, ES_QUEUE_FIRST, request_queued);
			v.inspect = ES_INSPECT_NEVER;
			if (doubtful && unsafe == ES_UNSAFE_ALL)
				EXPECT(&cfg, &v, ES_ANSWER_RST, reset_doubtful);
			else
				EXPECT(&cfg, &v, ES_REBUILD, request_blind);
			/* Where it was given is known; there it is, or nothing was lost. */
			v.decision = es_decision_value(ISN, SELF + 1, NOW_MS);
			EXPECT(&cfg, &v, ES_DROP, drop_decided);
			v.decision = 0;
		}
}

/* The conditions under which a view is doubtful. */
static void test_view_doubtful(void **state)
{
	struct es_config cfg = config();

	(void)state;
	for (unsigned int bits = 0; bits < 16; bits++) {
		struct es_view v = request(&cfg, 0, SLOT);
		int was_overheard = bits >> 2 & 1;

		v.has_doubts = bits & 1;
		v.heard = bits >> 1 & 1;
		v.seg.len = bits & 8 ? 100 : 0;
		assert_int_equal(es_view_is_doubtful(&v, was_overheard),
				 v.has_doubts && v.seg.len && (!v.heard || was_overheard));
		v.seg.has_ts = 1;
		assert_int_equal(es_view_needs_heard(&v),
				 v.has_doubts && (v.seg.len || v.inspect == ES_INSPECT_NEVER));
	}
	assert_false(es_first_has_doubts(0, 5));
	assert_true(es_first_has_doubts(6, 5));
	assert_false(es_first_has_doubts(5, 5));
}

static void test_view_overheard(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	assert_false(es_view_is_overheard(&v));
	v.waits = 1;
	assert_true(es_view_is_overheard(&v));
	v.waits = 0;
	v.silent = 1;
	assert_true(es_view_is_overheard(&v));
	v.silent = 0;
	v.mine = 0;
	assert_true(es_view_is_overheard(&v));
	v.socket = ES_SOCKET_TIME_WAIT; /* an older connection's */
	assert_true(es_view_is_overheard(&v));
	v.socket = ES_SOCKET_ESTABLISHED;
	assert_false(es_view_is_overheard(&v));
	v.socket = ES_SOCKET_NONE;
	v.seg.len = 0;
	assert_false(es_view_is_overheard(&v));
	v.seg.len = 1;
	v.seg.flags = ES_TCP_SYN;
	assert_false(es_view_is_overheard(&v));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_silent),
		cmocka_unit_test(test_silent_with_a_socket),
		cmocka_unit_test(test_silent_time_wait_syn),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_leased_without_inspector),
		cmocka_unit_test(test_moved_while_membership_changes),
		cmocka_unit_test(test_doubtful),
		cmocka_unit_test(test_view_doubtful),
		cmocka_unit_test(test_view_overheard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
