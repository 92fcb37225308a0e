// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The decision about what a client sends again and again, and nobody takes.
 */
#include "cmocka_all.h"
#include "decide_view.h"

/* A repeated segment of a connection that is not here: perhaps nobody has the connection. */
static void test_stray(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	v.seg.ack = 777777; /* no cookie */
	v.again_ms = ES_STRAY_AGAIN_MS - 1;
	EXPECT(&cfg, &v, ES_DROP, cookie_invalid);
	v.again_ms = ES_STRAY_AGAIN_MS;
	for (v.inspect = ES_INSPECT_NEVER; v.inspect <= ES_INSPECT_EVERY; v.inspect++)
		EXPECT(&cfg, &v, ES_QUEUE_STRAY, stray_queued);
	v.inspect = ES_INSPECT_FIRST;
	v.inspector_alive = 0;
	EXPECT(&cfg, &v, ES_DROP, cookie_invalid);
	v.inspector_alive = 1;
	v.socket = ES_SOCKET_TIME_WAIT; /* of a connection before this one, or of this one's */
	EXPECT(&cfg, &v, ES_QUEUE_STRAY, stray_queued);
	v.socket = ES_SOCKET_NONE;
	v.waits = 1;
	EXPECT(&cfg, &v, ES_DROP, drop_ring_change);
	v.waits = 0;
	v.silent = 1;
	EXPECT(&cfg, &v, ES_DROP, drop_silent);
	v.silent = 0;
	v.mine = 0;
	EXPECT(&cfg, &v, ES_DROP, drop_not_mine);
	v.mine = 1;
	v.seg.len = 1; /* a probe of a closed window, or a keep-alive */
	EXPECT(&cfg, &v, ES_DROP, cookie_invalid);
	v.seg.len = 0;
	v.seg.flags = ES_TCP_ACK | ES_TCP_FIN;
	EXPECT(&cfg, &v, ES_QUEUE_STRAY, stray_queued);
	v.seg.flags = ES_TCP_ACK;
	EXPECT(&cfg, &v, ES_DROP, drop_no_flow);
}

/* A client that has a cookie of the flow, or was decided about here, has not invented its connection. */
static void test_proven(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);
	struct es_verdict verdict = {};

	(void)state;
	v.again_ms = 60000;
	v.seg.seq += 100000;
	es_decide(&cfg, &v, &verdict);
	assert_int_equal(verdict.action, ES_QUEUE_STRAY);
	assert_int_equal(verdict.proven, 1);
	v.seg.ack = 777777; /* no cookie */
	verdict = (struct es_verdict){};
	es_decide(&cfg, &v, &verdict);
	assert_int_equal(verdict.action, ES_QUEUE_STRAY);
	assert_int_equal(verdict.proven, 0);
	v.decision = es_decision_value(ISN, SELF + 1, NOW_MS - 70000);
	es_decide(&cfg, &v, &verdict);
	assert_int_equal(verdict.action, ES_QUEUE_STRAY);
	assert_int_equal(verdict.proven, 1);
}

/* The same after a first request, of a long upload: its node has crashed. */
static void test_stray_behind_request(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	v.again_ms = 60000;
	EXPECT(&cfg, &v, ES_QUEUE_FIRST, request_queued); /* the request itself */
	v.seg.seq += 100000;
	v.decision = es_decision_value(ISN, SELF + 1, NOW_MS - 70000);
	EXPECT(&cfg, &v, ES_QUEUE_STRAY, stray_queued);
	v.again_ms = ES_STRAY_AGAIN_MS - 1;
	EXPECT(&cfg, &v, ES_DROP, drop_decided);
	/* The request may have been lost, and this be a tail loss probe. */
	v.decision = 0;
	v.again_ms = ES_STRAY_AGAIN_LATER_MS - 1;
	EXPECT(&cfg, &v, ES_QUEUE_LATER, request_later_queued);
	v.inspect = ES_INSPECT_NEVER;
	EXPECT(&cfg, &v, ES_DROP, drop_no_flow);
	v.again_ms++;
	EXPECT(&cfg, &v, ES_QUEUE_STRAY, stray_queued);
	v.inspect = ES_INSPECT_FIRST;
	EXPECT(&cfg, &v, ES_QUEUE_STRAY, stray_queued);
	v.inspector_alive = 0;
	EXPECT(&cfg, &v, ES_DROP, drop_no_flow);
}

/* And after a request that moved its connection away from here. */
static void test_stray_behind_moved(void **state)
{
	struct es_config cfg = config();
	struct es_view v = request(&cfg, 0, SLOT);

	(void)state;
	v.inspect = ES_INSPECT_EVERY;
	v.seg.ack = 777777;
	v.again_ms = 60000;
	v.decision = es_decision_value(v.seg.seq - 1, 3, NOW_MS - 70000) | ES_DECISION_MOVED;
	EXPECT(&cfg, &v, ES_QUEUE_FIRST, moved_queued);
	v.seg.seq += 100000;
	EXPECT(&cfg, &v, ES_QUEUE_STRAY, stray_queued);
	v.again_ms = ES_STRAY_AGAIN_MS - 1;
	EXPECT(&cfg, &v, ES_DROP, drop_moved);
	v.again_ms = 60000;
	v.waits = 1;
	EXPECT(&cfg, &v, ES_DROP, drop_moved);
	v.waits = 0;
	v.silent = 1;
	EXPECT(&cfg, &v, ES_DROP, drop_moved);
	v.silent = 0;
	v.mine = 0; /* its inspecting node asks */
	EXPECT(&cfg, &v, ES_DROP, drop_moved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stray),
		cmocka_unit_test(test_proven),
		cmocka_unit_test(test_stray_behind_request),
		cmocka_unit_test(test_stray_behind_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
