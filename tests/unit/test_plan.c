// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kmod/core/plan.h: the steps that follow each verdict, about a handover message and about a client's packet,
 * in their order, for each way in which a datapath carries them out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "kmod/core/plan.h"

#define ISN 1000u

/* The steps in the order in which they are taken, as their names. */
static const char *public_steps_of(__u32 steps, char *ret, size_t len)
{
	size_t used = 0;

	ret[0] = '\0';
#define NAME(name, ways)                                                                                     \
	if (steps & ES_PUBLIC_STEP(name))                                                                    \
		used += (size_t)snprintf(ret + used, len - used, "%s" #name, used ? " " : "");
	ES_PUBLIC_STEPS(NAME)
#undef NAME
	return ret;
}

static const char *steps_of(__u32 steps, char *ret, size_t len)
{
	size_t used = 0;

	ret[0] = '\0';
#define NAME(name, ways)                                                                                     \
	if (steps & ES_HANDOVER_STEP(name))                                                                  \
		used += (size_t)snprintf(ret + used, len - used, "%s" #name, used ? " " : "");
	ES_HANDOVER_STEPS(NAME)
#undef NAME
	return ret;
}

/*
 * One row for each verdict about a handover message, and kind of message where that says more: what follows
 * if the packet itself makes and ends sockets, also if it comes in again for that (NULL: the same), and by
 * hand.
 */
struct row {
	__u32 action;
	__u8 kind;
	__u32 counter;
	__u8 socket;
	const char *packet;
	const char *again;
	const char *hands;
};

#define NACK	"settle answer"
#define REBUILD "settle first open note deliver"

static const struct row rows[] = {
	{ES_DROP, ES_HANDOVER_REQUEST, ES_COUNT_handover_old, ES_SOCKET_NONE, "", NULL, ""},
	{ES_DROP, ES_HANDOVER_FOLLOW, ES_COUNT_handover_follow_heard, ES_SOCKET_ESTABLISHED, "", NULL, ""},
	{ES_DROP, ES_HANDOVER_FOLLOW, ES_COUNT_handover_follow_lost, ES_SOCKET_NONE, "", "open deliver", ""},
	{ES_DELIVER, ES_HANDOVER_STAY, ES_COUNT_stay_delivered, ES_SOCKET_ESTABLISHED, "stay open deliver",
	 NULL, "stay deliver"},
	{ES_DELIVER, ES_HANDOVER_FOLLOW, ES_COUNT_handover_follow, ES_SOCKET_ESTABLISHED, "open deliver",
	 NULL, "deliver"},
	{ES_DELIVER, ES_HANDOVER_REQUEST, ES_COUNT_handover_duplicate, ES_SOCKET_ESTABLISHED, "open deliver",
	 NULL, "adopt deliver"},
	{ES_REBUILD, ES_HANDOVER_REQUEST, ES_COUNT_handover_rebuilt, ES_SOCKET_NONE, REBUILD, NULL,
	 "settle sweep first note make"},
	{ES_NACK, ES_HANDOVER_REQUEST, ES_COUNT_handover_nacked, ES_SOCKET_NONE, NACK, NULL, NACK},
	{ES_NACK, ES_HANDOVER_FOLLOW, ES_COUNT_handover_follow_beyond, ES_SOCKET_ESTABLISHED, "answer", NULL,
	 "answer"},
	{ES_DOUBT, ES_HANDOVER_REQUEST, ES_COUNT_handover_doubtful, ES_SOCKET_NONE, "answer", NULL, "answer"},
	{ES_MADE, ES_HANDOVER_REQUEST, ES_COUNT_handover_duplicate, ES_SOCKET_ESTABLISHED, "answer", NULL,
	 "adopt answer"},
	{ES_MADE, ES_HANDOVER_REQUEST, ES_COUNT_handover_old, ES_SOCKET_NONE, "answer", NULL, "answer"},
	{ES_END_OLD, ES_HANDOVER_REQUEST, ES_COUNT_handover_time_wait, ES_SOCKET_ESTABLISHED,
	 "settle retry open end", NULL, "settle clear retry"},
	{ES_LEAVE, ES_HANDOVER_END, ES_COUNT_end_done, ES_SOCKET_ESTABLISHED, "open tell leave end", NULL,
	 "tell leave end"},
	{ES_KEEP, ES_HANDOVER_END, ES_COUNT_end_refused, ES_SOCKET_ESTABLISHED, "open tell", NULL, "tell"},
	{ES_GONE, ES_HANDOVER_GONE, ES_COUNT_end_seen, ES_SOCKET_NONE, "open tell", NULL, "forget tell"},
	{ES_LEAVE_AGAIN, ES_HANDOVER_GONE, ES_COUNT_end_again, ES_SOCKET_ESTABLISHED, "open end", NULL,
	 "end"},
	{ES_ASK, ES_HANDOVER_REQUEST, ES_COUNT_handover_asked, ES_SOCKET_ESTABLISHED, "open probe ask tell",
	 NULL, "ask tell"},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static struct es_handover_plan plan_of(const struct row *row, enum es_plan_way way)
{
	const struct es_handover_view v = {.kind = row->kind, .socket = row->socket};
	const struct es_verdict verdict = {.action = row->action, .counter = row->counter};
	struct es_handover_plan plan;

	memset(&plan, 0xff, sizeof(plan));
	es_plan_handover(&v, &verdict, way, &plan);
	return plan;
}

static void expect_steps(const struct row *row, enum es_plan_way way, const char *steps)
{
	const struct es_handover_plan plan = plan_of(row, way);
	char text[200];

	assert_string_equal(steps_of(plan.steps, text, sizeof(text)), steps);
}

static void test_steps(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		expect_steps(&rows[i], ES_WAY_PACKET, rows[i].packet);
		expect_steps(&rows[i], ES_WAY_AGAIN, rows[i].again ? rows[i].again : rows[i].packet);
		expect_steps(&rows[i], ES_WAY_HANDS, rows[i].hands);
	}
}

/* Is there a row, of that kind where a verdict has several and the kind is none of the target's own? */
static const struct row *row_of(const struct es_verdict *verdict, const struct es_handover_view *v)
{
	const struct row *found = NULL;

	for (size_t i = 0; i < ROWS; i++) {
		if (rows[i].action != verdict->action)
			continue;
		if (!found || (rows[i].kind == v->kind &&
			       (rows[i].counter == verdict->counter || found->kind != v->kind)))
			found = &rows[i];
	}
	return found;
}

static __u8 bit(void)
{
	return rand() & 1;
}

static struct es_handover_view view_of(void)
{
	static const __u8 kinds[] = {ES_HANDOVER_REQUEST, ES_HANDOVER_FOLLOW, ES_HANDOVER_STAY,
				     ES_HANDOVER_END, ES_HANDOVER_GONE};
	struct es_handover_view v = {
		.kind = kinds[(unsigned int)rand() % sizeof(kinds)],
		.socket = (__u8)(rand() % 4),
		.seg = {.seq = ISN + (__u32)(rand() % 3), .len = bit()},
		.first_seq = ISN,
		.rcv_nxt = ISN + (__u32)(rand() % 4),
		.listening = bit(),
		.accept_full = bit(),
		.rebuilt = bit(),
		.built = bit(),
		.refused = bit(),
		.doubtful = bit(),
		.vanished = bit(),
		.may_leave = bit(),
		.leaving = bit(),
		.stale = bit(),
		.silent = bit(),
		.received = bit(),
		.beyond = bit(),
		.challenged = (__u8)(rand() % 6),
	};

	return v;
}

/* Whatever the view: its verdict has a row, and its plan is the one of that row. */
static void test_every_verdict_has_a_row(void **state)
{
	unsigned int seen = 0;

	(void)state;
	for (int i = 0; i < 200000; i++) {
		struct es_handover_view v = view_of();
		struct es_handover_plan plan, wanted;
		struct es_verdict verdict = {.action = 99};
		const struct row *row;

		es_decide_handover(&v, &verdict);
		row = row_of(&verdict, &v);
		assert_non_null(row);
		seen |= 1u << verdict.action;
		for (int way = ES_WAY_PACKET; way <= ES_WAY_HANDS; way++) {
			es_plan_handover(&v, &verdict, (enum es_plan_way)way, &plan);
			wanted = plan_of(row, (enum es_plan_way)way);
			assert_int_equal(plan.steps, wanted.steps);
			assert_int_equal(plan.settle, wanted.settle);
			assert_int_equal(plan.failed, wanted.failed);
			assert_int_equal(plan.record, wanted.record);
		}
	}
	for (size_t i = 0; i < ROWS; i++)
		assert_true(seen & 1u << rows[i].action);
}

/*
 * At most one counter for a message: that of the verdict, or none, where the packet comes in again or hands
 * count.
 */
static void test_counters(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		const struct row *row = &rows[i];
		int is_rebuilt = row->action == ES_REBUILD;
		int follows = row->kind == ES_HANDOVER_FOLLOW &&
			      (row->action == ES_DELIVER || row->counter == ES_COUNT_handover_follow_lost);

		assert_int_equal(plan_of(row, ES_WAY_PACKET).counter, row->counter);
		assert_int_equal(plan_of(row, ES_WAY_HANDS).counter,
				 is_rebuilt ? ES_COUNTER_COUNT : row->counter);
		assert_int_equal(plan_of(row, ES_WAY_AGAIN).counter,
				 is_rebuilt || follows ? ES_COUNTER_COUNT : row->counter);
		assert_int_equal(plan_of(row, ES_WAY_AGAIN).mark, is_rebuilt ? ES_OPENED_MAKE_MARK
								  : follows  ? ES_OPENED_FOLLOW_MARK
								  : row->action == ES_DELIVER
									  ? ES_OPENED_DELIVER_MARK
									  : 0);
		assert_int_equal(plan_of(row, ES_WAY_PACKET).mark, 0);
	}
}

static void test_reasons(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		const struct es_handover_view v = {.kind = rows[i].kind, .socket = rows[i].socket};

		if (rows[i].action == ES_MADE)
			assert_int_equal(plan_of(&rows[i], ES_WAY_PACKET).reason, ES_NACK_MADE);
		else if (rows[i].action == ES_NACK || rows[i].action == ES_DOUBT)
			assert_int_equal(plan_of(&rows[i], ES_WAY_PACKET).reason,
					 es_handover_nack_reason(&v));
		if (rows[i].action == ES_ASK)
			assert_int_equal(plan_of(&rows[i], ES_WAY_PACKET).record, ES_RECORD_OPEN);
		if (rows[i].action == ES_LEAVE)
			assert_int_equal(plan_of(&rows[i], ES_WAY_PACKET).record, ES_RECORD_ENDING);
	}
}

static const struct row *row_for(__u32 action, __u8 kind)
{
	for (size_t i = 0; i < ROWS; i++)
		if (rows[i].action == action && rows[i].kind == kind)
			return &rows[i];
	return NULL;
}

#define EXPECT_FAILURE(action, kind, way, step, c, undo)                                                     \
	do {                                                                                                 \
		struct es_handover_plan plan = plan_of(row_for(action, ES_HANDOVER_##kind), way);            \
		assert_true(plan.steps &ES_HANDOVER_STEP(step));                                             \
		assert_int_equal(es_handover_failed(&plan, ES_HANDOVER_STEP(step)), undo);                   \
		assert_int_equal(plan.counter, c);                                                           \
	} while (0)

/* A failed step: what is counted, and what is taken back. */
static void test_failures(void **state)
{
	const __u32 made = ES_HANDOVER_UNDO_MADE;

	(void)state;
	/* Another CPU was first: what is noted is its note. */
	EXPECT_FAILURE(ES_REBUILD, REQUEST, ES_WAY_PACKET, settle, ES_COUNT_handover_old, 0);
	EXPECT_FAILURE(ES_NACK, REQUEST, ES_WAY_AGAIN, settle, ES_COUNT_handover_old, 0);
	EXPECT_FAILURE(ES_REBUILD, REQUEST, ES_WAY_PACKET, open, ES_COUNT_rebuild_refused, made);
	EXPECT_FAILURE(ES_REBUILD, REQUEST, ES_WAY_AGAIN, note, ES_COUNT_rebuild_refused, made);
	EXPECT_FAILURE(ES_REBUILD, REQUEST, ES_WAY_AGAIN, deliver, ES_COUNT_opened_lost, made);
	EXPECT_FAILURE(ES_REBUILD, REQUEST, ES_WAY_HANDS, note, ES_COUNT_rebuild_refused, made);
	EXPECT_FAILURE(ES_DELIVER, STAY, ES_WAY_AGAIN, stay, ES_COUNT_stay_lost, 0);
	EXPECT_FAILURE(ES_DELIVER, STAY, ES_WAY_AGAIN, deliver, ES_COUNT_opened_lost, 0);
	EXPECT_FAILURE(ES_DELIVER, STAY, ES_WAY_HANDS, deliver, ES_COUNT_answer_failed, 0);
	EXPECT_FAILURE(ES_DELIVER, REQUEST, ES_WAY_HANDS, adopt, ES_COUNT_rebuild_refused, 0);
	EXPECT_FAILURE(ES_END_OLD, REQUEST, ES_WAY_HANDS, clear, ES_COUNT_answer_failed, 0);
	EXPECT_FAILURE(ES_END_OLD, REQUEST, ES_WAY_PACKET, retry, ES_COUNTER_COUNT, 0);
	/* A promise not to make a socket stays, whether it was heard or not. */
	EXPECT_FAILURE(ES_END_OLD, REQUEST, ES_WAY_PACKET, open, ES_COUNT_answer_failed, 0);
	EXPECT_FAILURE(ES_LEAVE, END, ES_WAY_PACKET, open, ES_COUNT_drop_queue_full, ES_HANDOVER_UNDO_LEFT);
	EXPECT_FAILURE(ES_LEAVE, END, ES_WAY_HANDS, tell, ES_COUNT_drop_queue_full, ES_HANDOVER_UNDO_LEFT);
	EXPECT_FAILURE(ES_KEEP, END, ES_WAY_HANDS, tell, ES_COUNT_drop_queue_full, 0);
	EXPECT_FAILURE(ES_GONE, GONE, ES_WAY_AGAIN, tell, ES_COUNT_drop_queue_full, 0);
	/* Another flow's client may be in the slot. */
	EXPECT_FAILURE(ES_ASK, REQUEST, ES_WAY_PACKET, probe, ES_COUNT_drop_queue_full, 0);
	EXPECT_FAILURE(ES_ASK, REQUEST, ES_WAY_HANDS, tell, ES_COUNT_drop_queue_full, ES_HANDOVER_UNDO_ASKED);
}

/* With hands, a socket that was begun is noted as there for sure: UNDO would leave that (settled.h). */
static void test_undo(void **state)
{
	static const enum es_plan_way ways[] = {ES_WAY_PACKET, ES_WAY_AGAIN, ES_WAY_HANDS};
	const struct row *row = row_for(ES_REBUILD, ES_HANDOVER_REQUEST);

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct es_settled_set set = {};
		__u64 request = es_settled_request(7, ISN + 1);
		struct es_handover_plan plan = plan_of(row, ways[i]);

		es_settled_step(&set, request, plan.settle, 0, 1000, 100000);
		if (ways[i] == ES_WAY_HANDS)
			es_settled_step(&set, request, ES_SETTLED_SEEN, 0, 1000, 100000);
		es_settled_step(&set, request, plan.undo, 0, 1001, 100000);
		assert_int_equal(es_settled_step(&set, request, ES_SETTLED_LOOK, 0, 1002, 100000).as,
				 ES_SETTLED_NOT);
	}
}

#define GIVE "promise queue"

/* One row for each verdict about a packet of the public interface: what follows with packets, and by hand. */
struct public_row {
	__u32 action;
	int may_give;
	__u32 counter;
	__u32 counted;
	const char *packet;
	const char *hands;
};

static const struct public_row public_rows[] = {
	{ES_DROP, 0, ES_COUNT_drop_no_flow, ES_COUNT_drop_no_flow, "", ""},
	{ES_DELIVER, 0, ES_COUNT_deliver_established, ES_COUNT_deliver_established, "deliver", "deliver"},
	{ES_QUEUE_FIRST, 0, ES_COUNT_request_queued, ES_COUNT_request_queued, "queue", "queue"},
	{ES_QUEUE_FIRST, 1, ES_COUNT_layer4_queued, ES_COUNT_layer4_queued, GIVE, GIVE},
	{ES_QUEUE_FIRST, 1, ES_COUNT_moved_queued, ES_COUNT_layer4_queued, GIVE, GIVE},
	{ES_QUEUE_LATER, 1, ES_COUNT_request_later_queued, ES_COUNT_request_later_queued, "queue", "queue"},
	{ES_QUEUE_STRAY, 1, ES_COUNT_stray_queued, ES_COUNT_stray_queued, "asked queue", "asked queue"},
	{ES_SYNACK, 1, ES_COUNT_syn_answered, ES_COUNT_syn_answered, "answer", "answer"},
	{ES_END_OLD, 0, ES_COUNT_syn_time_wait, ES_COUNT_syn_time_wait, "end", "clear"},
	{ES_END_OLD_AND_SYNACK, 0, ES_COUNT_syn_time_wait, ES_COUNT_syn_time_wait, "answer end",
	 "clear answer"},
	{ES_ANSWER_ACK, 0, ES_COUNT_keepalive_answered, ES_COUNT_keepalive_answered, "answer", "answer"},
	{ES_ANSWER_RST, 0, ES_COUNT_cookie_expired, ES_COUNT_cookie_expired, "answer", "answer"},
	{ES_REBUILD, 1, ES_COUNT_request_blind, ES_COUNT_request_blind, "making", "making"},
};
#define PUBLIC_ROWS (sizeof(public_rows) / sizeof(public_rows[0]))

static void test_public_steps(void **state)
{
	(void)state;
	for (size_t i = 0; i < PUBLIC_ROWS; i++) {
		const struct public_row *row = &public_rows[i];
		const struct es_view v = {.may_give = (__u8)row->may_give};
		const struct es_verdict verdict = {.action = row->action, .counter = row->counter};

		for (int way = ES_WAY_PACKET; way <= ES_WAY_HANDS; way++) {
			struct es_public_plan plan = {.steps = ~0u, .counter = ~0u};
			char text[200];

			es_plan_public(&v, &verdict, (enum es_plan_way)way, &plan);
			assert_string_equal(public_steps_of(plan.steps, text, sizeof(text)),
					    way == ES_WAY_HANDS ? row->hands : row->packet);
			assert_int_equal(plan.counter, row->counted);
		}
	}
}

/* Whatever the view: es_decide()'s verdict has a row, and each row's verdict is one that it gives. */
static void test_every_public_verdict_has_a_row(void **state)
{
	static const struct es_config cfg = {.leased = 1, .race_window_ms = 1000, .self = 1};
	unsigned int seen = 0, listed = 0;

	(void)state;
	for (size_t i = 0; i < PUBLIC_ROWS; i++)
		listed |= 1u << public_rows[i].action;
	for (int i = 0; i < 2000000 && seen != listed; i++) {
		static const __u8 flags[] = {ES_TCP_SYN, ES_TCP_ACK, ES_TCP_ACK | ES_TCP_FIN, ES_TCP_RST};
		struct es_view v = {
			.seg = {.seq = ISN + (__u32)(rand() % 3),
				.ack = (__u32)rand() << 4,
				.len = bit(),
				.has_ts = bit(),
				.flags = flags[rand() % 4]},
			.decision = bit() ? (__u64)rand() << 32 | (__u32)rand() : 0,
			.socket = (__u8)(rand() % 4),
			.mine = bit(),
			.inspect = (__u8)(rand() % 3),
			.inspector_alive = bit(),
			.track = (__u8)(rand() % 4),
			.again_ms = bit() ? 100000 : 0,
			.silent = bit(),
			.ended = bit(),
			.heard = bit(),
			.may_give = bit(),
			.gives = bit(),
		};
		struct es_verdict verdict = {.action = 99};

		/* A request with a cookie of this node's. */
		if (bit()) {
			const struct es_tcp_options o = {.mss = 1460, .tstamp_ok = v.seg.has_ts};

			v.seg.ack = 1 + es_cookie_make_packed(&cfg.cookie_key[0], v.flow_hash, v.slot,
							      v.seg.seq - 1, es_cookie_options_pack(&o),
							      &v.seg.tsecr);
		}
		es_decide(&cfg, &v, &verdict);
		assert_true(verdict.action < 32 && (listed & 1u << verdict.action));
		seen |= 1u << verdict.action;
	}
	assert_int_equal(seen, listed);
}

/* One row for each state in which a socket is to be made; NULL: as with the module's packet. */
struct making_row {
	struct es_plan_server server;
	int may_give;
	__u32 counter;
	const char *packet;
	const char *again;
	const char *hands;
};

#define SETTLED(name)                                                                                        \
	{                                                                                                    \
		.as = ES_SETTLED_##name                                                                      \
	}
#define VANISHED                                                                                             \
	{                                                                                                    \
		.as = ES_SETTLED_NOT, .has_vanished = 1                                                      \
	}
#define MAKE	       "make first pass"
#define SOCKET_IS_MADE ES_COUNT_request_blind

static const struct making_row making_rows[] = {
	{{SETTLED(NOT), 1, 0, 0}, 0, SOCKET_IS_MADE, MAKE, NULL, "clear make"},
	{{SETTLED(NOT), 1, 0, 0}, 1, SOCKET_IS_MADE, MAKE, NULL, "clear make"},
	{{SETTLED(NOT), 1, 1, 0}, 1, ES_COUNT_handover_accept_full, "undo", NULL, "undo"},
	{{SETTLED(NOT), 0, 0, 0}, 0, ES_COUNT_rebuild_no_listener, "undo answer", NULL, "undo answer"},
	{{SETTLED(NOT), 0, 0, 0}, 1, ES_COUNT_layer4_queued, "undo " GIVE, NULL, "undo " GIVE},
	/* Nobody knows whether there is a server: the inspector is not told that there is none. */
	{{SETTLED(NOT), 0, 0, 1}, 1, ES_COUNT_rebuild_no_listener, "undo answer", NULL, "undo answer"},
	/* The inspector may know which node has it; without one, it may be anybody's. */
	{{SETTLED(REFUSED), 1, 0, 0}, 1, ES_COUNT_layer4_queued, GIVE, NULL, GIVE},
	{{SETTLED(REFUSED), 1, 0, 0}, 0, ES_COUNT_handover_old, "", NULL, ""},
	{{SETTLED(BUILT), 1, 0, 0}, 1, ES_COUNT_handover_old, "", NULL, ""},
	/* A rule may have dropped the packet that should have made it. */
	{{SETTLED(MADE), 1, 0, 0}, 1, SOCKET_IS_MADE, MAKE, "", ""},
	{{SETTLED(MADE), 0, 0, 0}, 1, ES_COUNT_rebuild_no_listener, "undo answer", "", ""},
	/* The process may have stood still, and go on with making it. */
	{{VANISHED, 1, 0, 0}, 0, SOCKET_IS_MADE, MAKE, NULL, ""},
};
#define MAKING_ROWS (sizeof(making_rows) / sizeof(making_rows[0]))

static void test_making(void **state)
{
	(void)state;
	for (size_t i = 0; i < MAKING_ROWS; i++) {
		const struct making_row *row = &making_rows[i];
		const struct es_view v = {.may_give = (__u8)row->may_give, .inspector_alive = 1};
		const char *const wanted[] = {
			[ES_WAY_PACKET] = row->packet,
			[ES_WAY_AGAIN] = row->again ? row->again : row->packet,
			[ES_WAY_HANDS] = row->hands,
		};

		for (int way = ES_WAY_PACKET; way <= ES_WAY_HANDS; way++) {
			struct es_public_plan plan = {.counter = SOCKET_IS_MADE};
			const char *steps = wanted[way];
			int makes = strstr(steps, "make") != NULL;
			char text[200];

			es_plan_making(&v, &row->server, (enum es_plan_way)way, 1, &plan);
			assert_string_equal(public_steps_of(plan.steps, text, sizeof(text)), steps);
			assert_int_equal(plan.counter, makes && way == ES_WAY_HANDS ? ES_COUNTER_COUNT
						       : steps[0]		    ? row->counter
						       : row->packet[0]		    ? ES_COUNT_handover_old
										    : row->counter);
			/* Without an inspector, nobody is given the connection. */
			es_plan_making(&(const struct es_view){.may_give = 1}, &row->server,
				       (enum es_plan_way)way, 1, &plan);
			assert_false(plan.steps & ES_PUBLIC_STEP(queue));
		}
	}
}

/* Only where nodes may be lost, a request is noted as heard. */
static void test_first_is_for_leases(void **state)
{
	const struct es_plan_server server = {SETTLED(NOT), 1, 0, 0};
	const struct es_view v = {};
	struct es_public_plan plan;

	(void)state;
	es_plan_making(&v, &server, ES_WAY_PACKET, 0, &plan);
	assert_int_equal(plan.steps, ES_PUBLIC_STEP(make) | ES_PUBLIC_STEP(pass));
}

static void expect_public_failure(const struct es_view *v, __u32 step, __u32 counter, __u32 steps)
{
	struct es_public_plan plan = {.steps = ~0u, .counter = ~0u};

	es_public_failed(v, step, &plan);
	assert_int_equal(plan.counter, counter);
	assert_int_equal(plan.steps, steps);
}

static void test_public_failures(void **state)
{
	const struct es_view v = {}, decided = {.decision = 7};

	(void)state;
	expect_public_failure(&v, ES_PUBLIC_STEP(promise), ES_COUNT_handover_old, 0);
	expect_public_failure(&decided, ES_PUBLIC_STEP(promise), ES_COUNT_drop_decided, 0);
	expect_public_failure(&v, ES_PUBLIC_STEP(queue), ES_COUNT_drop_queue_full, 0);
	expect_public_failure(&v, ES_PUBLIC_STEP(answer), ES_COUNT_answer_failed, 0);
	expect_public_failure(&v, ES_PUBLIC_STEP(end), ES_COUNT_answer_failed, 0);
	expect_public_failure(&v, ES_PUBLIC_STEP(deliver), ES_COUNT_answer_failed, 0);
	expect_public_failure(&v, ES_PUBLIC_STEP(make), ES_COUNT_rebuild_refused, ES_PUBLIC_STEP(undo));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps),		cmocka_unit_test(test_every_verdict_has_a_row),
		cmocka_unit_test(test_counters),	cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_failures),	cmocka_unit_test(test_undo),
		cmocka_unit_test(test_public_steps),	cmocka_unit_test(test_every_public_verdict_has_a_row),
		cmocka_unit_test(test_making),		cmocka_unit_test(test_first_is_for_leases),
		cmocka_unit_test(test_public_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
