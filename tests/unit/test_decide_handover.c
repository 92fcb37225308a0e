// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The decision about a handover message at its target, and what must hold for any view whatever.
 */
#include "cmocka_all.h"
#include "kmod/core/decide.h"

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
	v.kind = ES_HANDOVER_END;
	EXPECT_HANDOVER(&v, ES_KEEP, end_refused);
	v.may_leave = 1;
	EXPECT_HANDOVER(&v, ES_LEAVE, end_done);
	v.socket = ES_SOCKET_NONE;
	EXPECT_HANDOVER(&v, ES_KEEP, end_refused);
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
	v.rebuilt = 0;
	v.listening = 0;
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
	v.rebuilt = 1;
	EXPECT_HANDOVER(&v, ES_DROP, handover_old);
	/* The socket is newer than this late duplicate: nothing may happen to it. */
	v.rebuilt = 0;
	v.first_seq = ISN + 40000000;
	v.rcv_nxt = v.first_seq + 100;
	EXPECT_HANDOVER(&v, ES_DROP, handover_old);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stay_and_end),
		cmocka_unit_test(test_handover),
		cmocka_unit_test(test_handover_meets_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
