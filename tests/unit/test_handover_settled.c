// SPDX-License-Identifier: GPL-2.0-or-later
/* The fate of a request (settled.h), as a handover message's target reads it, changes it and tells it. */
#include "cmocka_all.h"
#include "kmod/core/target.h"

static void test_view_settled(void **state)
{
	struct es_handover h = {.kind = ES_HANDOVER_REQUEST, .attempt = 2};
	struct es_settled_answer s = {.as = ES_SETTLED_NOT, .has_vanished = 1};
	struct es_handover_view v = {.rebuilt = 1, .refused = 1};
	struct es_packet pkt = {.is_v6 = 1, .headers_len = 40};

	(void)state;
	es_handover_view_settled(&v, &h, &pkt, &s);
	assert_true(!v.rebuilt && v.vanished && !v.refused);
	s.as = ES_SETTLED_MADE;
	es_handover_view_settled(&v, &h, &pkt, &s);
	assert_true(v.rebuilt && v.vanished && !v.refused);
	/* The stack may have dropped it for its options. */
	pkt.headers_len = 48;
	es_handover_view_settled(&v, &h, &pkt, &s);
	assert_true(v.rebuilt && !v.vanished && !v.refused);
	pkt = (struct es_packet){};
	es_handover_view_settled(&v, &h, &pkt, &s);
	assert_true(v.rebuilt && v.vanished && !v.refused);
	s.as = ES_SETTLED_BUILT;
	s.has_vanished = 0;
	es_handover_view_settled(&v, &h, &pkt, &s);
	assert_true(v.rebuilt && !v.vanished && !v.refused);
	/* A refusal is of an attempt and those before it. */
	s.as = ES_SETTLED_REFUSED;
	for (s.attempt = 1; s.attempt <= 3; s.attempt++) {
		es_handover_view_settled(&v, &h, &pkt, &s);
		assert_true(!v.rebuilt && v.refused == (s.attempt >= 2));
	}
	/*
	 * It may have been executed: what may be executed twice, or whose sender does not say, is made anew.
	 */
	s.as = ES_SETTLED_ENDED;
	for (int is_unsafe = 0; is_unsafe < 2; is_unsafe++) {
		h.flags = is_unsafe ? ES_HANDOVER_F_UNSAFE : ES_HANDOVER_F_REPEAT;
		es_handover_view_settled(&v, &h, &pkt, &s);
		assert_true(!v.rebuilt && !v.refused && v.doubtful == is_unsafe);
	}
}

/* Only of a request something is noted: that it is made, or that it will not be. */
static void test_step(void **state)
{
	(void)state;
	for (__u32 action = ES_DROP; action <= ES_DOUBT; action++) {
		enum es_settled_step step = action == ES_REBUILD			? ES_SETTLED_MAKE
					    : action == ES_NACK || action == ES_END_OLD ? ES_SETTLED_REFUSE
											: ES_SETTLED_LOOK;

		assert_int_equal(es_handover_step(ES_HANDOVER_REQUEST, action), step);
		assert_int_equal(es_handover_step(ES_HANDOVER_STRAY, action), ES_SETTLED_LOOK);
		assert_int_equal(es_handover_step(ES_HANDOVER_END, action), ES_SETTLED_LOOK);
	}
}

/* A step is not carried out if another CPU has settled the request otherwise meanwhile. */
static void test_settled(void **state)
{
	(void)state;
	for (__u32 step = ES_SETTLED_LOOK; step <= ES_SETTLED_REFUSE; step++) {
		for (__u32 bits = 0; bits < 8; bits++) {
			int as = (int)(bits >> 1), makes_again = bits & 1;
			struct es_settled_answer s = {.as = (__u8)as, .attempt = 5};
			struct es_handover h = {.kind = ES_HANDOVER_REQUEST, .attempt = 2};
			int goes_on = step == ES_SETTLED_LOOK ||
				      (step == ES_SETTLED_REFUSE && as == ES_SETTLED_REFUSED) ||
				      (step == ES_SETTLED_MAKE && as == ES_SETTLED_NOT) ||
				      (step == ES_SETTLED_MAKE && as == ES_SETTLED_MADE && makes_again);

			assert_int_equal(es_handover_is_settled(step, &s, makes_again, &h), goes_on);
			assert_int_equal(h.attempt, goes_on && step == ES_SETTLED_REFUSE ? 5 : 2);
		}
	}
}

/*
 * A refusal, or an attempt of less than a second, says nothing; nor does a request with options that has come
 * to nothing.
 */
static void test_fate(void **state)
{
	struct es_packet plain = {.is_v6 = 1, .headers_len = 40}, optional = {.is_v6 = 1, .headers_len = 48};
	struct es_settled_answer s = {};

	(void)state;
	for (int as = ES_SETTLED_NOT; as <= ES_SETTLED_REFUSED; as++) {
		for (int signs = 0; signs < 4; signs++) {
			int vanished = signs & 1, swallowed = signs >> 1, is_heard = as == ES_SETTLED_BUILT;

			s.as = (__u8)as;
			s.has_vanished = (__u8)vanished;
			assert_int_equal(es_fate_reason(&s, &plain, swallowed), is_heard ? ES_NACK_HEARD
										: signs	 ? ES_NACK_UNHEARD
											 : ES_NACK_UNKNOWN);
			assert_int_equal(es_fate_reason(&s, &optional, swallowed),
					 is_heard ? ES_NACK_HEARD : ES_NACK_UNKNOWN);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_view_settled),
		cmocka_unit_test(test_step),
		cmocka_unit_test(test_settled),
		cmocka_unit_test(test_fate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
