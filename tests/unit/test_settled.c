// SPDX-License-Identifier: GPL-2.0-or-later
/* The fates of requests: which may follow which, for how long they are remembered, and what makes room. */
#include "cmocka_all.h"
#include <string.h>
#include "kmod/core/settled.h"

#define HOLD_MS es_settled_hold_ms(384)

static struct es_settled_set set;
static __u32 now_ms;

static struct es_settled_answer step(unsigned int number, enum es_settled_step what, unsigned int attempt)
{
	return es_settled_step(&set, es_settled_request(0x123456789abcdefULL, number), what, (__u8)attempt,
			       now_ms, HOLD_MS);
}

#define EXPECT(number, what, attempt_, as_)                                                                  \
	assert_int_equal(step(number, ES_SETTLED_##what, attempt_).as, ES_SETTLED_##as_)

static int setup(void **state)
{
	(void)state;
	memset(&set, 0, sizeof(set));
	now_ms = 0xfffffff0u; /* the clock wraps soon */
	return 0;
}

static void test_made(void **state)
{
	(void)state;
	EXPECT(1, LOOK, 0, NOT);
	EXPECT(1, SEEN, 0, NOT);
	EXPECT(1, MAKE, 0, NOT);
	EXPECT(1, MAKE, 0, MADE);
	EXPECT(1, MAKE, 1, MADE);
	EXPECT(1, REFUSE, 0, MADE); /* that would have it made once more elsewhere */
	/* The kernel made none after all: not seen, so the next copy is taken. */
	assert_false(step(1, ES_SETTLED_LOOK, 0).has_vanished);
	now_ms += ES_SETTLED_VANISHED_MS;
	assert_true(step(1, ES_SETTLED_LOOK, 0).has_vanished);
	EXPECT(1, REFUSE, 0, MADE); /* there may be one yet */
	now_ms += ES_SETTLED_MADE_MS - ES_SETTLED_VANISHED_MS - 1;
	EXPECT(1, MAKE, 0, MADE);
	now_ms++;
	EXPECT(1, LOOK, 0, NOT);
	assert_true(step(1, ES_SETTLED_LOOK, 0).has_vanished);
	EXPECT(1, MAKE, 0, NOT);
	now_ms += ES_SETTLED_MADE_MS;
	EXPECT(1, REFUSE, 2, REFUSED); /* or it is refused */
	assert_false(step(1, ES_SETTLED_LOOK, 0).has_vanished);
	EXPECT(1, MAKE, 2, REFUSED);
	EXPECT(1, MAKE, 3, NOT);
	/* It was seen: as long as anything can ask for it, there is no second one. */
	EXPECT(1, SEEN, 0, BUILT);
	assert_true(step(1, ES_SETTLED_LOOK, 0).is_recent);
	now_ms += ES_SETTLED_MADE_MS;
	assert_false(step(1, ES_SETTLED_LOOK, 0).is_recent);
	assert_false(step(1, ES_SETTLED_LOOK, 0).has_vanished);
	EXPECT(1, MAKE, 0, BUILT);
	EXPECT(1, REFUSE, 9, BUILT);
	EXPECT(1, UNDO, 0, BUILT); /* another CPU, which was to make the same one */
	EXPECT(3, MAKE, 0, NOT);
	EXPECT(3, SEEN, 0, BUILT);
	EXPECT(3, FORGET, 0, NOT);
	EXPECT(3, MAKE, 0, NOT);
	now_ms += HOLD_MS - ES_SETTLED_MADE_MS - 1;
	EXPECT(1, MAKE, 0, BUILT);
	EXPECT(2, LOOK, 0, NOT); /* another request of the flow */
	now_ms++;
	EXPECT(1, LOOK, 0, NOT);
	EXPECT(1, MAKE, 0, NOT);
}

static void test_refused(void **state)
{
	struct es_settled_answer answer;

	(void)state;
	EXPECT(1, REFUSE, 3, REFUSED);
	EXPECT(1, MAKE, 0, REFUSED);
	EXPECT(1, MAKE, 3, REFUSED);
	answer = step(1, ES_SETTLED_REFUSE, 1); /* a late copy */
	assert_int_equal(answer.as, ES_SETTLED_REFUSED);
	assert_int_equal(answer.attempt, 3);
	now_ms += HOLD_MS - 1;
	EXPECT(1, MAKE, 3, REFUSED);
	EXPECT(1, REFUSE, 3, REFUSED); /* said again, so remembered for longer */
	now_ms += HOLD_MS - 1;
	EXPECT(1, MAKE, 3, REFUSED);
	EXPECT(1, UNDO, 0, REFUSED); /* a promise is not taken back */
	EXPECT(1, FORGET, 0, REFUSED);
	EXPECT(1, MAKE, 4, NOT);
	EXPECT(1, REFUSE, 4, MADE);
	/* The kernel would not. */
	EXPECT(1, UNDO, 0, NOT);
	EXPECT(1, MAKE, 0, NOT);
	EXPECT(2, REFUSE, 255, REFUSED);
	EXPECT(2, MAKE, 255, REFUSED);
}

/*
 * The server may have executed the request: whoever asks for another socket is to know that, for as long as
 * anybody can ask.
 */
static void test_ended(void **state)
{
	(void)state;
	EXPECT(1, MAKE, 0, NOT);
	EXPECT(1, SEEN, 0, BUILT);
	EXPECT(1, END, 0, ENDED);
	assert_false(step(1, ES_SETTLED_LOOK, 0).has_vanished);
	EXPECT(1, SEEN, 0, ENDED);
	EXPECT(1, UNDO, 0, ENDED);
	EXPECT(1, FORGET, 0, ENDED);
	now_ms += HOLD_MS - 1;
	EXPECT(1, LOOK, 0, ENDED);
	now_ms++;
	EXPECT(1, LOOK, 0, NOT);
	/*
	 * It is made anew where that may be, or refused for another reason; what was made anew can end like
	 * that, too.
	 */
	EXPECT(1, END, 0, ENDED); /* also one of which nothing is noted any more */
	EXPECT(1, MAKE, 0, NOT);
	EXPECT(1, MAKE, 0, MADE);
	now_ms += ES_SETTLED_MADE_MS; /* in which nothing could be heard of it, without a lease */
	EXPECT(1, END, 0, ENDED);
	assert_false(step(1, ES_SETTLED_LOOK, 0).has_vanished);
	EXPECT(1, REFUSE, 2, REFUSED);
	EXPECT(1, END, 0, REFUSED);
	EXPECT(1, MAKE, 2, REFUSED);
	EXPECT(1, MAKE, 3, NOT);
}

/* Another CPU's clock is a tick behind. */
static void test_clock(void **state)
{
	(void)state;
	EXPECT(1, MAKE, 0, NOT);
	now_ms -= 4;
	EXPECT(1, MAKE, 0, MADE);
	EXPECT(1, SEEN, 0, BUILT);
	EXPECT(1, MAKE, 0, BUILT);
}

static void test_room(void **state)
{
	(void)state;
	for (unsigned int i = 1; i <= ES_SETTLED_WAYS; i++, now_ms += 10) {
		struct es_settled_answer answer = step(i, i & 1 ? ES_SETTLED_MAKE : ES_SETTLED_REFUSE, 0);

		assert_false(answer.forgot);
		step(i, ES_SETTLED_SEEN, 0);
	}
	for (unsigned int i = 1; i <= ES_SETTLED_WAYS; i++)
		assert_int_equal(step(i, ES_SETTLED_LOOK, 0).as,
				 i & 1 ? ES_SETTLED_BUILT : ES_SETTLED_REFUSED);
	assert_true(step(10, ES_SETTLED_MAKE, 0).forgot);
	EXPECT(10, LOOK, 0, MADE);
	EXPECT(1, LOOK, 0, NOT); /* the oldest */
	for (unsigned int i = 2; i <= ES_SETTLED_WAYS; i++)
		assert_int_not_equal(step(i, ES_SETTLED_LOOK, 0).as, ES_SETTLED_NOT);
	/* One that nothing can ask for any more is no loss. */
	now_ms += HOLD_MS;
	assert_false(step(11, ES_SETTLED_MAKE, 0).forgot);
	/* To look, and to find nothing, changes nothing. */
	step(12, ES_SETTLED_LOOK, 0);
	step(12, ES_SETTLED_SEEN, 0);
	step(12, ES_SETTLED_UNDO, 0);
	EXPECT(11, LOOK, 0, MADE);
}

/*
 * Whose request it was is told by its flow alone; what has spoken, was refused or is another flow's is none
 * of these.
 */
static void test_reset(void **state)
{
	const __u64 flow = 0x123456789abcdefULL;

	(void)state;
	for (__u32 i = 0; i < 2000; i++) {
		__u32 seq = i * 2654435761u;
		struct es_settled s = {.request = es_settled_request(flow, seq)};

		assert_true(es_settled_is_of(&s, flow));
		assert_false(es_settled_is_of(&s, flow + 1 + i) && i);
		assert_false(es_settled_is_of(&s, flow ^ 1ULL << (1 + i % 63)));
	}
	assert_false(es_settled_is_of(&(struct es_settled){}, flow));
	EXPECT(1, MAKE, 0, NOT);
	EXPECT(2, MAKE, 0, NOT);
	EXPECT(2, SEEN, 0, BUILT);
	EXPECT(3, REFUSE, 0, REFUSED);
	assert_false(es_settled_reset(&set, flow + 2, now_ms));
	assert_true(es_settled_reset(&set, flow, now_ms));
	EXPECT(1, LOOK, 0, NOT);
	assert_true(step(1, ES_SETTLED_LOOK, 0).has_vanished);
	assert_false(es_settled_reset(&set, flow, now_ms)); /* it says so once */
	EXPECT(2, LOOK, 0, BUILT);
	EXPECT(3, LOOK, 0, REFUSED);
	EXPECT(1, REFUSE, 0, REFUSED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_made, setup),  cmocka_unit_test_setup(test_refused, setup),
		cmocka_unit_test_setup(test_ended, setup), cmocka_unit_test_setup(test_clock, setup),
		cmocka_unit_test_setup(test_room, setup),  cmocka_unit_test_setup(test_reset, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
