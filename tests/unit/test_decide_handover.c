// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The decision about a handover message at its target, and what must hold for any view whatever.
 */
#include <stdlib.h>

#include "cmocka_all.h"
#include "kmod/core/target.h"

#define ISN 1000u

static struct es_verdict decide_handover(const struct es_handover_view *v)
{
	struct es_verdict verdict = {.action = 99, .counter = ES_COUNTER_COUNT};

	es_decide_handover(v, &verdict);
	return verdict;
}

#define EXPECT_HANDOVER(v, a, c)                                                                             \
	do {                                                                                                 \
		struct es_verdict got = decide_handover(v);                                                  \
		assert_int_equal(got.action, a);                                                             \
		assert_int_equal(got.counter, ES_COUNT_##c);                                                 \
	} while (0)

static void test_stay_and_end(void **state)
{
	struct es_handover_view v = {
		.kind = ES_HANDOVER_STAY,
		.listening = 1,
		.seg = {.seq = ISN + 1, .len = 100},
	};

	(void)state;
	EXPECT_HANDOVER(&v, ES_DROP, stay_lost); /* and never a second socket */
	v.socket = ES_SOCKET_TIME_WAIT;
	EXPECT_HANDOVER(&v, ES_DROP, stay_lost);
	v.socket = ES_SOCKET_ESTABLISHED;
	EXPECT_HANDOVER(&v, ES_DELIVER, stay_delivered);
	v.ceded = 1; /* the lease ended after the request had come: another node may be given it */
	EXPECT_HANDOVER(&v, ES_DROP, drop_silent);
	v.ceded = 0;
	v.kind = ES_HANDOVER_END;
	EXPECT_HANDOVER(&v, ES_KEEP, end_refused);
	v.may_leave = 1;
	EXPECT_HANDOVER(&v, ES_LEAVE, end_done);
	v.socket = ES_SOCKET_NONE;
	EXPECT_HANDOVER(&v, ES_KEEP, end_refused);
	/* Asked twice, on two CPUs perhaps: one answer. */
	v.socket = ES_SOCKET_ESTABLISHED;
	v.may_leave = 0;
	v.leaving = 1;
	EXPECT_HANDOVER(&v, ES_DROP, end_again);
}

/* A connection has ended only when it is seen to be gone. */
static void test_gone(void **state)
{
	struct es_handover_view v = {
		.kind = ES_HANDOVER_GONE,
		.socket = ES_SOCKET_ESTABLISHED,
		.listening = 1,
		.seg = {.seq = ISN + 1},
		.silent = 1,
	};

	(void)state;
	EXPECT_HANDOVER(&v, ES_DROP, end_refused); /* of a younger connection, which nobody wants to end */
	v.leaving = 1;
	EXPECT_HANDOVER(&v, ES_LEAVE_AGAIN, end_again);
	v.leaving = 0;
	v.socket = ES_SOCKET_TIME_WAIT;
	EXPECT_HANDOVER(&v, ES_LEAVE_AGAIN, end_again);
	v.socket = ES_SOCKET_FIN_WAIT2;
	EXPECT_HANDOVER(&v, ES_LEAVE_AGAIN, end_again);
	v.socket = ES_SOCKET_NONE;
	EXPECT_HANDOVER(&v, ES_GONE, end_seen);
	assert_int_equal(es_leave_record(ES_GONE), ES_RECORD_ENDED);
	assert_int_equal(es_leave_record(ES_LEAVE), ES_RECORD_ENDING);
	assert_int_equal(es_leave_record(ES_KEEP), ES_RECORD_KEPT);
}

static void test_handover(void **state)
{
	struct es_handover_view v = {
		.kind = ES_HANDOVER_REQUEST,
		.listening = 1,
		.seg = {.seq = ISN + 1, .len = 100},
	};

	(void)state;
	EXPECT_HANDOVER(&v, ES_REBUILD, handover_rebuilt);
	v.accept_full = 1;
	EXPECT_HANDOVER(&v, ES_DROP, handover_accept_full);
	v.accept_full = 0;
	v.rebuilt = 1;
	EXPECT_HANDOVER(&v, ES_DROP, handover_old);
	/* Nothing was heard of its socket: as soon as there will be none, another node may have it. */
	v.vanished = 1;
	EXPECT_HANDOVER(&v, ES_DROP, handover_vanished);
	v.rebuilt = 0;
	EXPECT_HANDOVER(&v, ES_NACK, handover_vanished);
	assert_int_equal(es_handover_nack_reason(&v), ES_NACK_VANISHED);
	v.socket = ES_SOCKET_ESTABLISHED;
	v.first_seq = ISN + 1;
	v.rcv_nxt = ISN + 101;
	EXPECT_HANDOVER(&v, ES_DELIVER, handover_duplicate);
	v.socket = ES_SOCKET_NONE;
	v.vanished = 0;
	/* A request that was refused stays refused, for whatever reason there is now. */
	v.refused = 1;
	EXPECT_HANDOVER(&v, ES_NACK, handover_refused);
	assert_int_equal(es_handover_nack_reason(&v), ES_NACK_RETRY);
	v.accept_full = 1;
	EXPECT_HANDOVER(&v, ES_NACK, handover_refused);
	v.accept_full = 0;
	v.silent = 1;
	EXPECT_HANDOVER(&v, ES_NACK, handover_silent);
	assert_int_equal(es_handover_nack_reason(&v), ES_NACK_SILENT);
	/* Before anything by which another node would get it. */
	v.doubtful = 1;
	for (v.refused = 0; v.refused < 2; v.refused++) {
		EXPECT_HANDOVER(&v, ES_DOUBT, handover_doubtful);
		assert_int_equal(es_handover_nack_reason(&v), ES_NACK_DOUBTFUL);
	}
	v.socket = ES_SOCKET_TIME_WAIT;
	EXPECT_HANDOVER(&v, ES_DOUBT, handover_doubtful);
	v.socket = ES_SOCKET_ESTABLISHED; /* of that very attempt */
	EXPECT_HANDOVER(&v, ES_DELIVER, handover_duplicate);
	v.socket = ES_SOCKET_NONE;
	v.doubtful = 0;
	v.refused = 1;
	v.silent = 0;
	v.listening = 0;
	EXPECT_HANDOVER(&v, ES_NACK, handover_nacked);
	assert_int_equal(es_handover_nack_reason(&v), ES_NACK_NO_LISTENER);
	v.refused = 0;
	EXPECT_HANDOVER(&v, ES_NACK, handover_nacked);
	v.socket = ES_SOCKET_TIME_WAIT;
	EXPECT_HANDOVER(&v, ES_END_OLD, handover_time_wait);
	v.kind = ES_HANDOVER_FOLLOW;
	EXPECT_HANDOVER(&v, ES_DROP, handover_follow_lost);
	v.socket = ES_SOCKET_NONE;
	v.listening = 1;
	EXPECT_HANDOVER(&v, ES_DROP, handover_follow_lost);
	v.socket = ES_SOCKET_ESTABLISHED;
	EXPECT_HANDOVER(&v, ES_DELIVER, handover_follow);
}

/* Bytes that the socket has heard itself meanwhile are not given to it a second time. */
static void test_follow_that_was_heard(void **state)
{
	struct es_handover_view v = {
		.kind = ES_HANDOVER_FOLLOW,
		.socket = ES_SOCKET_ESTABLISHED,
		.seg = {.seq = ISN + 101, .len = 100, .flags = ES_TCP_ACK},
		.first_seq = ISN + 1,
	};

	(void)state;
	EXPECT_HANDOVER(&v, ES_DELIVER, handover_follow);
	es_handover_view_received(&v, ISN + 101);
	EXPECT_HANDOVER(&v, ES_DELIVER, handover_follow);
	es_handover_view_received(&v, ISN + 200);
	EXPECT_HANDOVER(&v, ES_DELIVER, handover_follow);
	es_handover_view_received(&v, ISN + 201);
	EXPECT_HANDOVER(&v, ES_DROP, handover_follow_heard);
	es_handover_view_received(&v, ISN + 5000);
	EXPECT_HANDOVER(&v, ES_DROP, handover_follow_heard);
	/* The FIN counts, too. */
	v.seg.flags |= ES_TCP_FIN;
	es_handover_view_received(&v, ISN + 201);
	EXPECT_HANDOVER(&v, ES_DELIVER, handover_follow);
	es_handover_view_received(&v, ISN + 202);
	EXPECT_HANDOVER(&v, ES_DROP, handover_follow_heard);
	/*
	 * The stack acknowledges again a segment that the client itself repeats: the first acknowledgement
	 * may be lost.
	 */
	v.kind = ES_HANDOVER_REQUEST;
	v.seg.seq = ISN + 1;
	EXPECT_HANDOVER(&v, ES_DELIVER, handover_duplicate);
	v.kind = ES_HANDOVER_STAY;
	EXPECT_HANDOVER(&v, ES_DELIVER, stay_delivered);
	v.kind = ES_HANDOVER_FOLLOW;
	v.socket = ES_SOCKET_NONE;
	EXPECT_HANDOVER(&v, ES_DROP, handover_follow_lost);
}

/* For what the socket would drop, its sender waits; one of a version before cannot. */
static void test_follow_beyond_the_window(void **state)
{
	struct es_handover_view v = {
		.kind = ES_HANDOVER_FOLLOW,
		.socket = ES_SOCKET_ESTABLISHED,
		.seg = {.seq = ISN + 60001, .len = 1000, .flags = ES_TCP_ACK},
		.first_seq = ISN + 1,
	};
	struct es_handover h = {.request_flags = ES_FOLLOW_F_BACK};

	(void)state;
	es_handover_view_received(&v, ISN + 101);
	es_handover_view_window(&v, &h, ISN + 61001);
	EXPECT_HANDOVER(&v, ES_DELIVER, handover_follow);
	es_handover_view_window(&v, &h, ISN + 61000);
	EXPECT_HANDOVER(&v, ES_NACK, handover_follow_beyond);
	assert_int_equal(es_handover_nack_reason(&v), ES_NACK_BEYOND);
	assert_int_equal(es_handover_step(v.kind, ES_NACK), ES_SETTLED_LOOK);
	h.request_flags = 0;
	es_handover_view_window(&v, &h, ISN + 61000);
	EXPECT_HANDOVER(&v, ES_DELIVER, handover_follow);
}

/* The connection that a request meets: its own, an older one, a newer one. */
static void test_handover_meets_socket(void **state)
{
	struct es_handover_view v = {
		.kind = ES_HANDOVER_REQUEST,
		.socket = ES_SOCKET_ESTABLISHED,
		.seg = {.seq = ISN + 1, .len = 100},
		.first_seq = ISN + 1,
		.rcv_nxt = ISN + 101,
	};

	(void)state;
	EXPECT_HANDOVER(&v, ES_DELIVER, handover_duplicate);
	v.first_seq = ISN; /* as it looks when a FIN was counted */
	EXPECT_HANDOVER(&v, ES_DELIVER, handover_duplicate);
	/* Its ports were used before: the socket is of a connection whose end got lost. */
	v.first_seq = ISN - 40000000;
	v.rcv_nxt = v.first_seq + 100;
	EXPECT_HANDOVER(&v, ES_END_OLD, handover_time_wait);
	for (v.challenged = ES_CHALLENGE_DUE; v.challenged <= ES_CHALLENGE_AGAIN; v.challenged++)
		EXPECT_HANDOVER(&v, ES_ASK, handover_asked);
	assert_int_equal(es_handover_step(v.kind, ES_ASK),
			 ES_SETTLED_LOOK); /* it is refused only when the old one ends */
	v.challenged = ES_CHALLENGE_WAITS;
	EXPECT_HANDOVER(&v, ES_DROP, handover_waits);
	v.challenged = ES_CHALLENGE_ALIVE;
	EXPECT_HANDOVER(&v, ES_DROP, handover_alive);
	v.challenged = ES_CHALLENGE_SILENT;
	EXPECT_HANDOVER(&v, ES_END_OLD, handover_time_wait);
	v.challenged = ES_CHALLENGE_DUE;
	v.rebuilt = 1;
	EXPECT_HANDOVER(&v, ES_DROP, handover_old);
	/* The socket is newer than this late duplicate: nothing may happen to it. */
	v.rebuilt = 0;
	v.first_seq = ISN + 40000000;
	v.rcv_nxt = v.first_seq + 100;
	EXPECT_HANDOVER(&v, ES_DROP, handover_old);
}

/* A client that is asked for its connection; clocks go round. */
static void test_challenge(void **state)
{
	const __u32 mark = 0xfffffff0, at_ms = 0xffffff00, again_ms = at_ms + ES_CHALLENGE_WAIT_MS;
	struct es_challenge slot = {};

	(void)state;
	assert_int_equal(es_challenge_look(&slot, 7, mark - 5, at_ms), ES_CHALLENGE_DUE);
	es_challenge_note(&slot, 7, ES_CHALLENGE_DUE, mark, at_ms);
	assert_int_equal(es_challenge_look(&slot, 7, mark - 5, at_ms), ES_CHALLENGE_WAITS);
	assert_int_equal(es_challenge_look(&slot, 7, mark - 5, again_ms - 1), ES_CHALLENGE_WAITS);
	assert_int_equal(es_challenge_look(&slot, 7, mark - 1, again_ms), ES_CHALLENGE_AGAIN);
	es_challenge_note(&slot, 7, ES_CHALLENGE_AGAIN, mark + 50, again_ms);
	assert_int_equal(es_challenge_look(&slot, 7, mark - 1, again_ms), ES_CHALLENGE_WAITS);
	assert_int_equal(es_challenge_look(&slot, 7, mark - 1, again_ms + ES_CHALLENGE_WAIT_MS),
			 ES_CHALLENGE_SILENT);
	/* Idle for so long that its clock has gone round half way. */
	assert_int_equal(es_challenge_look(&slot, 7, mark + (1U << 31), again_ms + ES_CHALLENGE_WAIT_MS),
			 ES_CHALLENGE_SILENT);
	for (__u32 later = 0; later < 100; later += 33) { /* also before the second question */
		assert_int_equal(es_challenge_look(&slot, 7, mark + later, again_ms + 200),
				 ES_CHALLENGE_ALIVE);
		/* It has answered once; whether it still would, is another question. */
		assert_int_equal(es_challenge_look(&slot, 7, mark + later, again_ms + ES_CHALLENGE_WAIT_MS),
				 ES_CHALLENGE_DUE);
	}
	assert_int_equal(es_challenge_look(&slot, 7, mark - 1, again_ms + ES_CHALLENGE_HOLD_MS),
			 ES_CHALLENGE_DUE);
	assert_int_equal(es_challenge_look(&slot, 8, mark - 1, again_ms + ES_CHALLENGE_WAIT_MS),
			 ES_CHALLENGE_DUE);
	es_challenge_note(&slot, 7, ES_CHALLENGE_DUE, mark + 700, again_ms);
	assert_int_equal(es_challenge_look(&slot, 7, mark + 699, again_ms + ES_CHALLENGE_WAIT_MS),
			 ES_CHALLENGE_AGAIN);
	es_challenge_forget(&slot);
	assert_int_equal(es_challenge_look(&slot, 7, mark - 1, again_ms + ES_CHALLENGE_WAIT_MS),
			 ES_CHALLENGE_DUE);
	/* Another flow has taken its place between look and note. */
	es_challenge_note(&slot, 8, ES_CHALLENGE_DUE, mark, at_ms);
	es_challenge_note(&slot, 7, ES_CHALLENGE_AGAIN, mark + 900, at_ms);
	assert_int_equal(es_challenge_look(&slot, 7, mark + 899, at_ms + ES_CHALLENGE_WAIT_MS),
			 ES_CHALLENGE_AGAIN);
}

/* A node that is not sure of its membership makes no socket, but says so: the sender has time for another. */
static void test_silent(void **state)
{
	struct es_handover_view v = {
		.kind = ES_HANDOVER_REQUEST,
		.listening = 1,
		.silent = 1,
		.seg = {.seq = ISN + 1, .len = 100},
		.first_seq = ISN + 1,
		.rcv_nxt = ISN + 101,
	};

	(void)state;
	EXPECT_HANDOVER(&v, ES_NACK, handover_silent);
	v.accept_full = 1;
	EXPECT_HANDOVER(&v, ES_NACK, handover_silent);
	v.listening = 0;
	EXPECT_HANDOVER(&v, ES_NACK, handover_silent);
	v.socket = ES_SOCKET_TIME_WAIT;
	EXPECT_HANDOVER(&v, ES_NACK, handover_silent);
	v.socket = ES_SOCKET_FIN_WAIT2;
	EXPECT_HANDOVER(&v, ES_NACK, handover_silent);
	/* It was here: a NACK would have it made once more elsewhere. */
	v.rebuilt = 1;
	EXPECT_HANDOVER(&v, ES_DROP, handover_old);
	v.rebuilt = 0;
	v.socket = ES_SOCKET_ESTABLISHED;
	EXPECT_HANDOVER(&v, ES_DELIVER, handover_duplicate);
	v.kind = ES_HANDOVER_FOLLOW;
	EXPECT_HANDOVER(&v, ES_DELIVER, handover_follow);
	v.socket = ES_SOCKET_NONE;
	EXPECT_HANDOVER(&v, ES_DROP, handover_follow_lost);
	/* A connection that is here goes on. */
	v.kind = ES_HANDOVER_STAY;
	v.socket = ES_SOCKET_ESTABLISHED;
	EXPECT_HANDOVER(&v, ES_DELIVER, stay_delivered);
	v.kind = ES_HANDOVER_END;
	v.may_leave = 1;
	EXPECT_HANDOVER(&v, ES_LEAVE, end_done);
}

/* A stale message must have no effect at all: its answer would be as wrong as its socket. */
static void test_stale(void **state)
{
	struct es_handover_view v = {
		.kind = ES_HANDOVER_REQUEST,
		.listening = 1,
		.stale = 1,
		.seg = {.seq = ISN + 1, .len = 100},
		.first_seq = ISN + 1,
		.rcv_nxt = ISN + 101,
	};

	(void)state;
	for (unsigned int socket = ES_SOCKET_NONE; socket <= ES_SOCKET_FIN_WAIT2; socket++) {
		for (unsigned int bits = 0; bits < 16; bits++) {
			v.socket = (__u8)socket;
			v.silent = bits & 1;
			v.rebuilt = bits >> 1 & 1;
			v.listening = bits >> 2 & 1;
			v.accept_full = bits >> 3 & 1;
			EXPECT_HANDOVER(&v, ES_DROP, handover_stale);
		}
	}
}

#define EXPECT_STRAY(v, c, reason)                                                                           \
	do {                                                                                                 \
		EXPECT_HANDOVER(v, ES_NACK, c);                                                              \
		assert_int_equal(es_handover_nack_reason(v), reason);                                        \
	} while (0)

/* A question about a segment that nobody takes: "not here" only where that is certain. */
static void test_stray(void **state)
{
	struct es_handover_view v = {
		.kind = ES_HANDOVER_STRAY,
		.listening = 1,
		.seg = {.seq = ISN + 1, .len = 1, .flags = ES_TCP_ACK},
	};

	(void)state;
	EXPECT_STRAY(&v, stray_not_here, ES_NACK_NOT_HERE);
	v.stale = 1; /* whoever asks */
	v.listening = 0;
	v.accept_full = 1;
	v.silent = 1; /* of itself it knows */
	EXPECT_STRAY(&v, stray_not_here, ES_NACK_NOT_HERE);
	v.socket = ES_SOCKET_ESTABLISHED;
	EXPECT_STRAY(&v, stray_here, ES_NACK_HERE);
	v.ceded = 1;
	EXPECT_STRAY(&v, stray_not_here, ES_NACK_NOT_HERE);
	v.on_its_way = 1;
	EXPECT_STRAY(&v, stray_here, ES_NACK_HERE);
	v.on_its_way = v.ceded = 0;
	v.socket = ES_SOCKET_FIN_WAIT2;
	EXPECT_STRAY(&v, stray_here, ES_NACK_HERE);
	v.socket = ES_SOCKET_TIME_WAIT;
	EXPECT_STRAY(&v, stray_not_here, ES_NACK_NOT_HERE);
	v.seg.flags |= ES_TCP_FIN;
	EXPECT_STRAY(&v, stray_here, ES_NACK_HERE);
	v.socket = ES_SOCKET_NONE;
	EXPECT_STRAY(&v, stray_not_here, ES_NACK_NOT_HERE);
	v.on_its_way = 1;
	EXPECT_STRAY(&v, stray_here, ES_NACK_HERE);
	v.on_its_way = 0;
	v.rebuilt = 1;
	EXPECT_STRAY(&v, stray_here, ES_NACK_HERE);
}

/* Whatever the message and the state: what never may happen does not. */
static void test_properties(void **state)
{
	static const __u8 kinds[] = {ES_HANDOVER_REQUEST, ES_HANDOVER_FOLLOW, ES_HANDOVER_STAY,
				     ES_HANDOVER_END, ES_HANDOVER_STRAY};
	uint64_t seed = 6;

	(void)state;
	for (int i = 0; i < 1000000; i++) {
		__u64 r = es_test_random(&seed);
		struct es_handover_view v = {
			.kind = kinds[(r >> 56) % 5],
			.socket = r >> 2 & 3,
			.listening = r >> 4 & 1,
			.accept_full = r >> 5 & 1,
			.rebuilt = r >> 6 & 1,
			.may_leave = r >> 7 & 1,
			.stale = r >> 8 & 1,
			.silent = r >> 9 & 1,
			.on_its_way = r >> 13 & 1,
			.refused = r >> 14 & 1,
			.doubtful = r >> 15 & 1,
			.seg = {.seq = ISN + 1 + (r >> 10 & 1), .len = 100},
			.first_seq = r >> 11 & 1 ? ISN + 1 : (__u32)(r >> 32),
			.rcv_nxt = r >> 12 & 1 ? ISN + 101 : (__u32)(r >> 16),
		};
		int is_request = v.kind == ES_HANDOVER_REQUEST || v.kind == ES_HANDOVER_FOLLOW;
		struct es_verdict got = decide_handover(&v);

		assert_true(got.action <= ES_DOUBT && got.counter < ES_COUNTER_COUNT);
		if (v.stale && is_request)
			assert_int_equal(got.counter, ES_COUNT_handover_stale);
		if (got.action == ES_REBUILD)
			assert_true(v.kind == ES_HANDOVER_REQUEST && v.socket == ES_SOCKET_NONE &&
				    v.listening && !v.accept_full && !v.rebuilt && !v.refused &&
				    !v.doubtful && !v.silent && !v.stale);
		/*
		 * A connection whose message is sent back is made elsewhere: it must not have been made here.
		 */
		if (v.kind == ES_HANDOVER_STRAY) {
			assert_int_equal(got.action, ES_NACK);
			if (got.counter == ES_COUNT_stray_not_here)
				assert_true(v.socket != ES_SOCKET_ESTABLISHED && !v.rebuilt && !v.on_its_way);
			continue;
		}
		if (got.action == ES_NACK)
			assert_true(v.kind == ES_HANDOVER_REQUEST && !v.rebuilt && !v.doubtful && !v.stale &&
				    v.socket != ES_SOCKET_ESTABLISHED &&
				    (v.silent || !v.listening || v.refused));
		if (got.action == ES_DOUBT)
			assert_true(v.kind == ES_HANDOVER_REQUEST && v.doubtful &&
				    v.socket != ES_SOCKET_ESTABLISHED);
		if (got.action == ES_DELIVER)
			assert_int_equal(v.socket, ES_SOCKET_ESTABLISHED);
		if (got.action == ES_END_OLD)
			assert_true(v.kind == ES_HANDOVER_REQUEST && v.socket != ES_SOCKET_NONE &&
				    !v.rebuilt && !v.stale);
		if (got.action == ES_LEAVE)
			assert_true(v.kind == ES_HANDOVER_END && v.may_leave &&
				    v.socket == ES_SOCKET_ESTABLISHED);
	}
}

/*
 * A node may be asked by two nodes at once: a message is stale if it is of another ring, and not from the
 * node that this ring names.
 */
static void test_is_stale(void **state)
{
	struct es_ring_table *table = calloc(1, sizeof(*table));
	struct es_handover h = {.kind = ES_HANDOVER_REQUEST, .source = 3, .epoch = es_htonl(8)};
	struct es_config cfg = {.leased = 1, .epoch = 9};
	const __u64 hash = 7ULL << 48;

	(void)state;
	assert_non_null(table);
	table->node[7] = 4;
	assert_true(es_handover_is_stale(&cfg, table, &h, hash));
	assert_true(es_handover_is_stale(&cfg, table, &h, hash + 0xffffffffffff));
	table->node[7] = 3 | ES_RING_WAIT;
	assert_false(es_handover_is_stale(&cfg, table, &h, hash));
	assert_true(es_handover_is_stale(&cfg, table, &h, hash + (1ULL << 48)));
	table->node[7] = 4;
	h.flags = ES_HANDOVER_F_MOVED;
	assert_false(es_handover_is_stale(&cfg, table, &h, hash));
	h.flags = 0;
	h.kind = ES_HANDOVER_FOLLOW;
	assert_false(es_handover_is_stale(&cfg, table, &h, hash));
	h.kind = ES_HANDOVER_REQUEST;
	h.epoch = es_htonl(9);
	assert_false(es_handover_is_stale(&cfg, table, &h, hash));
	h.epoch = es_htonl(8);
	cfg.leased = 0; /* without membership there is one ring */
	assert_false(es_handover_is_stale(&cfg, table, &h, hash));
	free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stay_and_end),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_handover),
		cmocka_unit_test(test_follow_that_was_heard),
		cmocka_unit_test(test_follow_beyond_the_window),
		cmocka_unit_test(test_handover_meets_socket),
		cmocka_unit_test(test_silent),
		cmocka_unit_test(test_stale),
		cmocka_unit_test(test_stray),
		cmocka_unit_test(test_properties),
		cmocka_unit_test(test_is_stale),
		cmocka_unit_test(test_challenge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
