// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kmod/core/view.h: how a view is completed, and what the inspector is told of a packet.
 */
#include "cmocka_all.h"
#include <string.h>
#include "decide_view.h"
#include "kmod/core/view.h"

#define NOW_NS (NOW_MS * 1000000ULL)
#define ACK    ES_TCP_ACK
#define FIN    (ES_TCP_ACK | ES_TCP_FIN)

#define EXPECT_BOOL(what, got, expected)                                                                     \
	do {                                                                                                 \
		if (!!(got) != !!(expected))                                                                 \
			fail_msg("%s: expected %d, got %d", what, !!(expected), !!(got));                    \
	} while (0)

static void test_flow(void **state)
{
	const struct es_config cfg = {.ring_key = {5, 6}};
	const struct es_packet pkt = {.saddr = 1, .daddr = 2, .sport = 3, .dport = 4};
	const struct es_flow flow = {es_addr_from_v4(1), es_addr_from_v4(2), 3, 4};
	struct es_view v = {};

	(void)state;
	es_view_begin(&v, &cfg, &pkt);
	assert_int_equal(v.flow_hash, es_flow_hash(&cfg.ring_key, cfg.ring_seed, &flow));
}

/* Clients whose address holds on their link only are not inspected; all others as their service says. */
static void test_inspect(void **state)
{
	static const struct {
		struct es_addr source;
		__u8 is_v6, is_inspected;
	} rows[] = {
		{{.b = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}}, 1, 1},
		{{.b = {0xfd, [15] = 1}}, 1, 1},
		{{.b = {0xfe, 0x80, [15] = 1}}, 1, 0},
		{{.b = {0xfe, 0xbf, 0xff, [15] = 1}}, 1, 0},
		{{.b = {0xfe, 0xc0, [15] = 1}}, 1, 1},
		{{.b = {0xfe, 0x80, [15] = 1}}, 0, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (unsigned int inspect = ES_INSPECT_NEVER; inspect <= ES_INSPECT_EVERY; inspect++) {
			const struct es_packet pkt = {.source = rows[i].source, .is_v6 = rows[i].is_v6};

			assert_int_equal(es_view_inspect(&pkt, (__u8)inspect),
					 rows[i].is_inspected ? inspect : ES_INSPECT_NEVER);
		}
}

/* Which questions a packet needs: socket, whose, inspect and segment decide. */
static void test_questions(void **state)
{
	static const struct {
		const char *what;
		struct es_view v;
		int opens, concerns, decision, track;
	} rows[] = {
		{"a SYN for another node", {.seg = {.flags = ES_TCP_SYN}}, 1, 0, 0, 0},
		{"a SYN for this one", {.seg = {.flags = ES_TCP_SYN}, .mine = 1}, 1, 1, 0, 0},
		{"a SYN-ACK", {.seg = {.flags = ES_TCP_SYN | ACK}}, 0, 0, 0, 0},
		{"a SYN in a connection",
		 {.seg = {.flags = ES_TCP_SYN}, .socket = ES_SOCKET_ESTABLISHED},
		 0,
		 1,
		 0,
		 0},
		{"a SYN behind one",
		 {.seg = {.flags = ES_TCP_SYN}, .socket = ES_SOCKET_TIME_WAIT},
		 1,
		 0,
		 0,
		 0},
		{"another's request",
		 {.seg = {.flags = ACK, .len = 1}, .inspect = ES_INSPECT_FIRST},
		 0,
		 0,
		 1,
		 0},
		{"another's that may have moved away",
		 {.seg = {.flags = ACK, .len = 1}, .inspect = ES_INSPECT_EVERY},
		 0,
		 1,
		 1,
		 1},
		{"an end likewise", {.seg = {.flags = FIN}, .inspect = ES_INSPECT_EVERY}, 0, 1, 1, 1},
		{"another's acknowledgement",
		 {.seg = {.flags = ACK}, .inspect = ES_INSPECT_EVERY},
		 0,
		 0,
		 0,
		 0},
		{"a request for a socket here",
		 {.seg = {.flags = ACK, .len = 1},
		  .socket = ES_SOCKET_ESTABLISHED,
		  .inspect = ES_INSPECT_EVERY},
		 0,
		 1,
		 0,
		 1},
		{"one that is dropped",
		 {.seg = {.flags = ACK, .len = 1},
		  .socket = ES_SOCKET_ESTABLISHED,
		  .inspect = ES_INSPECT_EVERY,
		  .unproven = 1},
		 0,
		 1,
		 0,
		 0},
		{"one that is not inspected",
		 {.seg = {.flags = ACK, .len = 1},
		  .socket = ES_SOCKET_ESTABLISHED,
		  .inspect = ES_INSPECT_FIRST},
		 0,
		 1,
		 0,
		 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		EXPECT_BOOL(rows[i].what, es_view_opens(&rows[i].v), rows[i].opens);
		EXPECT_BOOL(rows[i].what, es_view_concerns(&rows[i].v), rows[i].concerns);
		EXPECT_BOOL(rows[i].what, es_view_needs_decision(&rows[i].v), rows[i].decision);
		EXPECT_BOOL(rows[i].what, es_view_reads_track(&rows[i].v), rows[i].track);
	}
}

static void test_ended(void **state)
{
	struct es_view v = {.flow_hash = FLOW, .seg = {.ack = 1000, .flags = ACK}};
	struct es_reset slot = {};

	(void)state;
	assert_false(es_view_may_be_ended(&v, 0, NOW_NS));
	assert_true(es_view_may_be_ended(&v, NOW_NS, NOW_NS));
	v.socket = ES_SOCKET_ESTABLISHED;
	assert_false(es_view_may_be_ended(&v, NOW_NS, NOW_NS));
	v.socket = ES_SOCKET_NONE;
	es_reset_note(&slot, FLOW, 1000, 0, NOW_MS);
	es_view_ended(&v, &slot, NOW_NS);
	assert_true(v.ended);
	v.seg.flags = ES_TCP_SYN;
	es_view_ended(&v, &slot, NOW_NS);
	assert_false(v.ended);
	v.seg.flags = ACK; /* the SYN has begun the flow anew */
	es_view_ended(&v, &slot, NOW_NS);
	assert_false(v.ended);
}

static void test_ring(void **state)
{
	static struct es_node_ring ring;
	const __u32 slot = FLOW >> 48;
	struct es_view v = {.flow_hash = FLOW};

	(void)state;
	es_view_ring(&v, &ring, 1);
	assert_false(v.mine || v.waits);
	ring.answered[slot / 64] = 1ULL << (slot % 64);
	es_view_ring(&v, &ring, 1);
	assert_true(v.mine && !v.waits);
	es_view_ring(&v, &ring, 0); /* what is here goes on, nothing new is taken */
	assert_false(v.mine);
	ring.table.node[slot] = ES_RING_WAIT;
	es_view_ring(&v, &ring, 1);
	assert_true(v.mine && v.waits);
}

static void test_time(void **state)
{
	static const struct {
		const char *what;
		__u32 workers, age_ms;
		int alive;
	} rows[] = {
		{"no worker", 0, 0, 0},
		{"one that has just looked", 1, 0, 1},
		{"one whose clock is ahead", 1, (__u32)-4, 1},
		{"one that was late", 1, 999, 1},
		{"one that hangs", 1, 1000, 0},
	};
	struct es_state set = {.wall_offset_ns = 7200ULL * 1000000000};
	struct es_config cfg = config();

	(void)state;
	cfg.fallback_after_ms = 1000;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct es_view v = {.flow_hash = FLOW};

		cfg.workers = rows[i].workers;
		cfg.slot_s = i ? 300 : 0;
		es_view_time(&v, &cfg, &set, NOW_NS - (__s64)(__s32)rows[i].age_ms * 1000000, NOW_NS);
		EXPECT_BOOL(rows[i].what, v.inspector_alive, rows[i].alive);
		assert_int_equal(v.now_ms, NOW_MS);
		assert_int_equal(v.slot, i ? (7200 + NOW_MS / 1000) / 300 : 0);
		assert_int_equal(v.slot_before, v.slot);
	}
	/* The clock was set back by an hour, and what was made before counts for one second more. */
	set.wall_before_ns = set.wall_offset_ns;
	set.wall_offset_ns -= 3600ULL * 1000000000;
	set.wall_before_until_s = es_ns_to_s(NOW_NS) + 1;
	for (__u64 ago = 0; ago < 2; ago++) {
		struct es_view v = {.flow_hash = FLOW};

		es_view_time(&v, &cfg, &set, NOW_NS, NOW_NS + ago * 1000000000);
		assert_int_equal(v.slot, (3600 + NOW_MS / 1000 + ago) / 300);
		assert_int_equal(v.slot_before, ago ? v.slot : (7200 + NOW_MS / 1000) / 300);
	}
	cfg.workers = 3;
	for (__u64 hash = 0; hash < 1ULL << 30; hash += 1ULL << 20) {
		struct es_view v = {.flow_hash = hash};

		assert_int_equal(es_view_worker(&v, &cfg), es_worker_of(hash, 3));
	}
}

static void test_decision(void **state)
{
	struct es_decision_set set = {};
	struct es_stray stray = {};
	struct es_view v = {.flow_hash = FLOW, .seg = {.seq = 50, .ack = 701, .len = 9}, .now_ms = NOW_MS};

	(void)state;
	set.way[2].key = es_decision_key(FLOW, 700);
	set.way[2].value = es_decision_value(ISN, 3, NOW_MS);
	es_view_decision(&v, &set, &stray);
	assert_int_equal(v.decision, set.way[2].value);
	assert_int_equal(stray.flow_hash, 0); /* not this node's */
	v.mine = 1;
	for (unsigned int i = 0; i < 2; i++) {
		es_view_decision(&v, &set, &stray);
		assert_int_equal(v.again_ms, i * 600);
		v.now_ms += 600;
	}
	v.seg.ack++;
	es_view_decision(&v, &set, &stray);
	assert_int_equal(v.decision, 0);
}

/* A SYN is answered with a cookie that was another connection's a moment ago: only if its ISN differs. */
static void test_cookie_is_taken(void **state)
{
	struct es_view v = {.flow_hash = FLOW, .seg = {.seq = ISN}};
	struct es_decision_set set = {};
	struct es_verdict verdict = {.action = ES_SYNACK};

	(void)state;
	assert_false(es_view_cookie_is_taken(&v, &set, 700));
	set.way[0].key = es_decision_key(FLOW, 700);
	set.way[0].value = es_decision_value(ISN, 3, NOW_MS);
	assert_false(es_view_cookie_is_taken(&v, &set, 700));
	v.seg.seq++;
	assert_true(es_view_cookie_is_taken(&v, &set, 700));
	assert_false(es_view_cookie_is_taken(&v, &set, 701));

	assert_true(es_verdict_may_collide(&verdict));
	verdict.action = ES_END_OLD_AND_SYNACK;
	assert_true(es_verdict_may_collide(&verdict));
	verdict.options.tstamp_ok = 1;
	assert_false(es_verdict_may_collide(&verdict));
	verdict = (struct es_verdict){.action = ES_ANSWER_ACK};
	assert_false(es_verdict_may_collide(&verdict));
}

static void test_record(void **state)
{
	static const struct {
		const char *what;
		__u32 action, counter, proven, track;
		int was_heard, needs_flow;
		__u32 kind, flow;
	} rows[] = {
		{"a request", ES_QUEUE_FIRST, ES_COUNT_request_queued, 0, 0, 1, 0, ES_RECORD_FIRST,
		 ES_FLOW_NEW},
		{"more of it", ES_QUEUE_LATER, ES_COUNT_request_later_queued, 1, 0, 1, 0, ES_RECORD_LATER,
		 ES_FLOW_NEW},
		{"one that a lost node may have had", ES_QUEUE_FIRST, ES_COUNT_request_doubtful, 0, 0, 0, 0,
		 ES_RECORD_FIRST, ES_FLOW_DOUBTFUL},
		{"one that has moved away", ES_QUEUE_FIRST, ES_COUNT_moved_queued, 0, 0, 0, 0,
		 ES_RECORD_FIRST, ES_FLOW_MOVED},
		{"nobody's, unheard of", ES_QUEUE_STRAY, ES_COUNT_stray_queued, 0, 0, 0, 1, ES_RECORD_STRAY,
		 ES_FLOW_NEW},
		{"nobody's, heard of", ES_QUEUE_STRAY, ES_COUNT_stray_queued, 0, 0, 1, 1, ES_RECORD_STRAY,
		 ES_FLOW_HEARD},
		{"nobody's, with a cookie", ES_QUEUE_STRAY, ES_COUNT_stray_queued, 1, 0, 0, 0,
		 ES_RECORD_STRAY, ES_FLOW_HEARD},
		{"of another node's idle connection", ES_DROP, ES_COUNT_drop_not_mine, 0, 0, 0, 0,
		 ES_RECORD_HEARD, ES_FLOW_HEARD},
		{"of a socket here", ES_QUEUE_FIRST, ES_COUNT_owned_queued, 0, ES_TRACK_QUEUE_FIRST, 0, 0,
		 ES_RECORD_FIRST, ES_FLOW_HERE},
		{"more, of a socket here", ES_QUEUE_LATER, ES_COUNT_owned_later_queued, 0,
		 ES_TRACK_QUEUE_LATER, 0, 0, ES_RECORD_LATER, ES_FLOW_HERE},
	};
	const struct es_track track = {.requests = 7, .moves = 3, .options = {.mss = 1460}};
	const struct es_packet pkt = {.options_len = 12};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct es_verdict verdict = {
			.action = rows[i].action, .counter = rows[i].counter, .proven = rows[i].proven};
		struct es_view v = {.flow_hash = FLOW, .track = (__u8)rows[i].track, .seg = {.len = 100}};
		struct es_record record = {};

		EXPECT_BOOL(rows[i].what, es_verdict_needs_flow(&verdict), rows[i].needs_flow);
		es_view_record(&v, &verdict, &pkt, 5, rows[i].was_heard, &record);
		if (v.track)
			es_view_record_track(&track, &record);
		if (record.kind != rows[i].kind || record.flow != rows[i].flow)
			fail_msg("%s: expected kind %u and flow %u, got %u and %u", rows[i].what,
				 rows[i].kind, rows[i].flow, record.kind, record.flow);
		assert_int_equal(record.flow_hash, FLOW);
		assert_int_equal(record.len, 152);
		assert_int_equal(record.service, 5);
		assert_int_equal(record.requests, v.track ? 7 : 0);
		assert_int_equal(record.moves, v.track ? 3 : 0);
		assert_int_equal(record.options.mss, v.track ? 1460 : 0);
	}
}

/* The record of an IPv6 packet counts all that lies before the TCP header. */
static void test_record_of_ipv6(void **state)
{
	const struct es_packet pkt = {.is_v6 = 1, .headers_len = 48, .options_len = 12};
	struct es_verdict verdict = {.action = ES_QUEUE_FIRST, .counter = ES_COUNT_request_queued};
	struct es_view v = {.flow_hash = FLOW, .seg = {.len = 100}};
	struct es_record record = {};

	(void)state;
	es_view_record(&v, &verdict, &pkt, 5, 0, &record);
	assert_int_equal(record.len, 180);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flow),	       cmocka_unit_test(test_inspect),
		cmocka_unit_test(test_questions),      cmocka_unit_test(test_ended),
		cmocka_unit_test(test_ring),	       cmocka_unit_test(test_time),
		cmocka_unit_test(test_decision),       cmocka_unit_test(test_record),
		cmocka_unit_test(test_record_of_ipv6), cmocka_unit_test(test_cookie_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
