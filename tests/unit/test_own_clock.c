// SPDX-License-Identifier: GPL-2.0-or-later
/* A node's reaction when its own clock is set. */
#include "cmocka_all.h"
#include "inspector/peers/own_clock.h"

#define S      1000000000LL
#define WALL   (1700000000ULL * (__u64)S)
#define NOW    (5000ULL * (__u64)S)
#define HOLD   (512ULL * (__u64)S)
#define AFTER  (1ULL * (__u64)S)
#define HOUR_S 3600LL

static struct es_own_clock begun(void)
{
	struct es_own_clock clock;

	es_own_clock_begin(&clock, 0, 0, WALL);
	assert_int_equal(es_own_clock_look(&clock, WALL, NOW, HOLD), 0);
	assert_true(clock.wall_ns == WALL && clock.told_ns == WALL && clock.number_ns == WALL);
	assert_true(clock.before_until_ns == 0);
	return clock;
}

/* NTP's corrections: followed at once; numbers go on one by one. */
static void test_kept_right(void **state)
{
	struct es_own_clock clock = begun();
	__u64 wall = WALL;

	(void)state;
	for (int i = 0; i < 200; i++) {
		wall += (i & 1) ? 40000000 : -30000000;
		assert_int_equal(es_own_clock_look(&clock, wall, NOW + (__u64)i * S, HOLD), 0);
		assert_true(clock.wall_ns == wall && clock.told_ns == wall && !clock.before_until_ns);
		assert_true(clock.number_ns + (__u64)S / 2 >= wall);
	}
	/* By leaps of half a second at least. */
	assert_true(clock.number_ns > WALL && clock.number_ns <= wall);
}

static void test_set_forward(void **state)
{
	struct es_own_clock clock = begun();

	(void)state;
	assert_int_equal(es_own_clock_look(&clock, WALL + HOUR_S * S, NOW, HOLD), 1);
	assert_true(clock.step_ns == HOUR_S * S);
	assert_true(clock.wall_ns == WALL + HOUR_S * S && clock.told_ns == clock.wall_ns);
	assert_true(clock.before_ns == WALL && clock.before_until_ns == NOW + HOLD);
	assert_true(clock.number_ns == clock.wall_ns);
	assert_int_equal(es_own_clock_look(&clock, WALL + HOUR_S * S, NOW + AFTER, HOLD), 0);
	assert_true(clock.step_ns == 0 && clock.before_until_ns == NOW + HOLD);
}

/* Told first, gone by at the next look; numbers never go back. */
static void test_set_back(void **state)
{
	struct es_own_clock clock = begun();
	__u64 back = WALL - (__u64)(60 * S);

	(void)state;
	assert_int_equal(es_own_clock_look(&clock, back, NOW, HOLD), 1);
	assert_true(clock.step_ns == -60 * S && clock.told_ns == back && clock.wall_ns == WALL);
	assert_true(!clock.before_until_ns);
	assert_int_equal(es_own_clock_look(&clock, back, NOW + AFTER, HOLD), 0);
	assert_true(clock.wall_ns == back && clock.told_ns == back);
	assert_true(clock.before_ns == WALL && clock.before_until_ns == NOW + AFTER + HOLD);
	assert_true(clock.number_ns == WALL);
}

/* Twice in two seconds: each clock that was gone by counts, in its turn. */
static void test_set_twice(void **state)
{
	struct es_own_clock clock = begun();
	__u64 back = WALL - (__u64)(60 * S);

	(void)state;
	es_own_clock_look(&clock, back, NOW, HOLD);
	assert_int_equal(es_own_clock_look(&clock, WALL, NOW + AFTER, HOLD), 1);
	assert_true(clock.wall_ns == WALL && clock.told_ns == WALL && clock.before_ns == back);
	clock = begun();
	es_own_clock_look(&clock, back, NOW, HOLD);
	assert_int_equal(es_own_clock_look(&clock, back - (__u64)(60 * S), NOW + AFTER, HOLD), 1);
	assert_true(clock.wall_ns == back && clock.told_ns == back - (__u64)(60 * S));
	assert_true(clock.before_ns == WALL);
}

/* A daemon goes on from what the one before went by. */
static void test_next_life(void **state)
{
	struct es_own_clock clock;
	__u64 back = WALL - (__u64)(HOUR_S * S);

	(void)state;
	es_own_clock_begin(&clock, WALL, WALL + (__u64)S, back);
	assert_int_equal(es_own_clock_look(&clock, back, NOW, HOLD), 1);
	assert_true(clock.wall_ns == WALL && clock.told_ns == back && clock.number_ns == WALL + (__u64)S);
}

static void test_outrun(void **state)
{
	struct es_own_clock clock = begun();

	(void)state;
	assert_int_equal(es_own_clock_outrun(&clock, WALL + NOW - 1, NOW), 0);
	assert_int_equal(es_own_clock_outrun(&clock, 7, NOW), 0);
	assert_true(clock.number_ns == WALL);
	assert_int_equal(es_own_clock_outrun(&clock, WALL + NOW + (__u64)(60 * S), NOW), 1);
	assert_true(clock.number_ns > WALL + (__u64)(60 * S) && clock.wall_ns == WALL);
	/* Only once: then the heard number is behind this life's numbers. */
	assert_int_equal(es_own_clock_outrun(&clock, WALL + NOW + (__u64)(60 * S), NOW), 0);
	es_own_clock_look(&clock, WALL, NOW, HOLD);
	assert_true(clock.number_ns > WALL + (__u64)(60 * S));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept_right), cmocka_unit_test(test_set_forward),
		cmocka_unit_test(test_set_back),   cmocka_unit_test(test_set_twice),
		cmocka_unit_test(test_next_life),  cmocka_unit_test(test_outrun),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
