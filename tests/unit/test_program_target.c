// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program's handover at its target: each answer, and worlds in which messages arrive late, twice, in any
 * order or never: one socket is made at most, and none after CANCELLED.
 */
#include "cmocka_all.h"
#include <string.h>
#include "kmod/core/program.h"

#define ID 1000u

static struct es_verdict verdict;

static int decide(const struct es_program_view *v)
{
	verdict = (struct es_verdict){.action = 99, .counter = ES_COUNTER_COUNT};
	return es_decide_program(v, &verdict);
}

#define EXPECT(v, a, n)                                                                                      \
	do {                                                                                                 \
		assert_int_equal(decide(v), n);                                                              \
		assert_int_equal(verdict.action, a);                                                         \
		assert_true(verdict.counter < ES_COUNTER_COUNT);                                             \
	} while (0)

static void test_fresh(void **state)
{
	struct es_program_view v = {.id = ID, .source = 1, .kind = ES_HANDOVER_ASK, .listening = 1};

	(void)state;
	EXPECT(&v, ES_NACK, ES_PROGRAM_ANSWER_READY);
	v.kind = ES_HANDOVER_PROGRAM;
	EXPECT(&v, ES_REBUILD, 0);
	v.kind = ES_HANDOVER_CANCEL;
	EXPECT(&v, ES_NACK, ES_PROGRAM_ANSWER_CANCELLED);
}

static void test_refused(void **state)
{
	struct es_program_view v = {.id = ID, .kind = ES_HANDOVER_PROGRAM, .listening = 1};

	(void)state;
	v.accept_full = 1;
	EXPECT(&v, ES_NACK, ES_PROGRAM_ANSWER_FULL);
	v.listening = 0;
	EXPECT(&v, ES_NACK, ES_PROGRAM_ANSWER_NO_LISTENER);
	v.socket = ES_SOCKET_TIME_WAIT;
	EXPECT(&v, ES_NACK, ES_PROGRAM_ANSWER_OCCUPIED);
	v.socket = ES_SOCKET_ESTABLISHED;
	EXPECT(&v, ES_NACK, ES_PROGRAM_ANSWER_OCCUPIED);
	v.stale = 1;
	EXPECT(&v, ES_NACK, ES_PROGRAM_ANSWER_SILENT);
	v.stale = 0;
	v.silent = 1;
	EXPECT(&v, ES_NACK, ES_PROGRAM_ANSWER_SILENT);
	/* A connection that is here is here, and a promise is kept, whatever else holds. */
	v.noted_id = ID;
	EXPECT(&v, ES_NACK, ES_PROGRAM_ANSWER_HERE);
	/* A connection that is on its way to its socket is neither here nor over. */
	v.noted_pending = 1;
	EXPECT(&v, ES_DROP, 0);
	v.noted_cancelled = 1;
	EXPECT(&v, ES_NACK, ES_PROGRAM_ANSWER_CANCELLED);
}

/* A handover to the node itself: its socket is the one that is asked about, and must be gone before. */
static void test_self(void **state)
{
	struct es_program_view v = {
		.id = ID,
		.kind = ES_HANDOVER_ASK,
		.listening = 1,
		.is_self = 1,
		.socket = ES_SOCKET_ESTABLISHED,
	};

	(void)state;
	EXPECT(&v, ES_NACK, ES_PROGRAM_ANSWER_READY);
	v.kind = ES_HANDOVER_PROGRAM;
	EXPECT(&v, ES_NACK, ES_PROGRAM_ANSWER_OCCUPIED);
	v.socket = ES_SOCKET_NONE;
	EXPECT(&v, ES_REBUILD, 0);
}

static void test_noted(void **state)
{
	struct es_program_view v = {
		.id = ID,
		.source = 1,
		.noted_source = 1,
		.noted_id = ID + 1,
		.kind = ES_HANDOVER_PROGRAM,
		.listening = 1,
	};

	(void)state;
	EXPECT(&v, ES_DROP, 0); /* settled long ago */
	v.noted_source = 2;	/* whose ids say nothing about this source's */
	EXPECT(&v, ES_REBUILD, 0);
	v.noted_source = 1;
	v.noted_id = ID - 1;
	EXPECT(&v, ES_REBUILD, 0);
	v.noted_id = ID;
	EXPECT(&v, ES_NACK, ES_PROGRAM_ANSWER_OVER);
	v.served = 1;
	EXPECT(&v, ES_NACK, ES_PROGRAM_ANSWER_SERVED);
	v.socket = ES_SOCKET_TIME_WAIT; /* the server has closed it */
	EXPECT(&v, ES_NACK, ES_PROGRAM_ANSWER_SERVED);
	v.kind = ES_HANDOVER_CANCEL;
	EXPECT(&v, ES_NACK, ES_PROGRAM_ANSWER_SERVED);
	v.socket = ES_SOCKET_ESTABLISHED;
	EXPECT(&v, ES_NACK, ES_PROGRAM_ANSWER_HERE);
}

/* A target, as kmod/bpf and kmod/module keep it, of one connection. */
struct world {
	struct es_program_view target;
	unsigned int made[4];
	int promised[4];
};

static int deliver(struct world *w, unsigned int attempt, __u8 kind)
{
	int answer;

	w->target.id = ID + attempt;
	w->target.kind = kind;
	answer = decide(&w->target);
	if (verdict.action == ES_REBUILD) {
		w->made[attempt]++;
		w->target.noted_id = w->target.id;
		w->target.noted_cancelled = 0;
		w->target.socket = ES_SOCKET_ESTABLISHED;
	}
	if (answer == ES_PROGRAM_ANSWER_CANCELLED)
		w->promised[attempt] = 1;
	if (es_program_is_new_promise(&w->target, (__u8)answer)) {
		assert_int_equal(verdict.action, ES_NACK);
		w->target.noted_id = w->target.id;
		w->target.noted_cancelled = 1;
	}
	return answer;
}

static void test_worlds(void **state)
{
	static const __u8 kinds[] = {ES_HANDOVER_PROGRAM, ES_HANDOVER_ASK, ES_HANDOVER_CANCEL};
	uint64_t seed = 7;

	(void)state;
	for (int round = 0; round < 200000; round++) {
		struct world w = {.target = {.listening = 1, .source = 1, .noted_source = 1}};
		unsigned int begun = 0;

		for (int step = 0; step < 12; step++) {
			unsigned int attempt = (unsigned int)(es_test_random(&seed) % 4);

			w.target.accept_full = !(es_test_random(&seed) % 8);
			if (!(es_test_random(&seed) % 6))
				w.target.socket = ES_SOCKET_NONE; /* the connection ends */
			/* A sender begins another attempt only when the one before is promised or never
			 * began. */
			if (attempt > begun && !w.promised[begun])
				attempt = begun;
			begun = attempt > begun ? attempt : begun;
			deliver(&w, attempt, kinds[es_test_random(&seed) % 3]);
		}
		for (int i = 0; i < 4; i++) {
			assert_true(w.made[i] <= 1);
			assert_false(w.made[i] && w.promised[i]);
		}
	}
}

/* The server of the connection's own family, and of none that the service does not name. */
static void test_server(void **state)
{
	struct es_service_entry service = {.server6 = {.b = {[15] = 1}}};

	(void)state;
	assert_null(es_program_server_of(&service, 1));
	service.server_port = es_htons(80);
	assert_ptr_equal(es_program_server_of(&service, 1), &service.server6);
	assert_null(es_program_server_of(&service, 0));
	service.server = es_addr_from_v4(es_htonl(0x7f000001));
	assert_ptr_equal(es_program_server_of(&service, 0), &service.server);
	service.server6 = (struct es_addr){};
	assert_null(es_program_server_of(&service, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fresh), cmocka_unit_test(test_refused), cmocka_unit_test(test_self),
		cmocka_unit_test(test_noted), cmocka_unit_test(test_worlds),  cmocka_unit_test(test_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
