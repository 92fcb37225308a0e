// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Settings by hand: their file, also one of a version before, their words, and how long they go on after a
 * restart.
 */
#include "tests/unit/cmocka_all.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "inspector/self/by_hand.h"

#define SET_MS 1764060000000ULL

static char directory[] = "/tmp/earshot-by-hand-XXXXXX";
static char path[64];

static struct es_wire_by_hand drain_of(uint32_t for_s)
{
	return (struct es_wire_by_hand){.what = ES_WIRE_CHANGE_STATE,
					.value = ES_NODE_DRAINING,
					.for_s = for_s,
					.set_ms = SET_MS,
					.until_ms = for_s ? SET_MS + for_s * 1000ULL : 0,
					.who = "alice@n1",
					.why = "new disk, \"big\""};
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/below/n1.drained", directory);
	return 0;
}

static int teardown(void **state)
{
	char below[64];

	(void)state;
	snprintf(below, sizeof(below), "%s/below", directory);
	unlink(path);
	rmdir(below);
	return rmdir(directory);
}

static void test_file(void **state)
{
	struct es_wire_by_hand drain = drain_of(7200), back;
	struct es_wire_by_hand weight = {
		.what = ES_WIRE_CHANGE_WEIGHT, .value = 50, .set_ms = 1, .who = "bob@n2"};

	(void)state;
	assert_int_equal(es_by_hand_read(path, ES_WIRE_CHANGE_STATE, &back), -ENOENT);
	assert_int_equal(es_by_hand_write(path, NULL), 0);
	assert_int_equal(es_by_hand_write(path, &drain), 0);
	assert_int_equal(es_by_hand_read(path, ES_WIRE_CHANGE_STATE, &back), 0);
	assert_true(back.what == drain.what && back.value == drain.value && back.for_s == 7200 &&
		    back.set_ms == SET_MS && back.until_ms == drain.until_ms);
	assert_string_equal(back.who, "alice@n1");
	assert_string_equal(back.why, drain.why);
	assert_int_equal(es_by_hand_write(path, &weight), 0);
	assert_int_equal(es_by_hand_read(path, ES_WIRE_CHANGE_WEIGHT, &back), 0);
	assert_true(back.value == 50 && back.until_ms == 0);
	assert_int_equal(es_by_hand_write(path, NULL), 0);
	assert_int_equal(access(path, F_OK), -1);
}

static void put(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* The version before made an empty file. A file that is not ours is refused. */
static void test_other_files(void **state)
{
	struct es_wire_by_hand back;

	(void)state;
	put("");
	assert_int_equal(es_by_hand_read(path, ES_WIRE_CHANGE_STATE, &back), 0);
	assert_true(back.value == ES_NODE_DRAINING && !back.who[0] && !back.until_ms);
	assert_int_equal(es_by_hand_read(path, ES_WIRE_CHANGE_WEIGHT, &back), -EBADMSG);
	put("{\"by\":7}");
	assert_int_equal(es_by_hand_read(path, ES_WIRE_CHANGE_WEIGHT, &back), -EBADMSG);
	put("[half");
	assert_int_equal(es_by_hand_read(path, ES_WIRE_CHANGE_WEIGHT, &back), -EBADMSG);
}

static void test_text(void **state)
{
	struct es_wire_by_hand drain = drain_of(0);
	char text[ES_BY_HAND_TEXT_SIZE];

	(void)state;
	setenv("TZ", "UTC", 1);
	assert_string_equal(es_by_hand_text(&drain, text, sizeof(text)), " by alice@n1: new disk, \"big\"");
	drain.until_restart = 1;
	drain.why[0] = 0;
	assert_string_equal(es_by_hand_text(&drain, text, sizeof(text)),
			    " by alice@n1, until its daemon starts anew");
	drain = drain_of(7200);
	assert_string_equal(es_by_hand_text(&drain, text, sizeof(text)),
			    " by alice@n1, until 2025-11-25 10:40:00: new disk, \"big\"");
	drain = (struct es_wire_by_hand){};
	assert_string_equal(es_by_hand_text(&drain, text, sizeof(text)), "");
}

/*
 * The wall clock bounds it after a restart; one that was put back does not prolong it beyond what was asked
 * for.
 */
static void test_left(void **state)
{
	struct es_wire_by_hand drain = drain_of(3600);

	(void)state;
	assert_int_equal(es_by_hand_left_ms(&drain, SET_MS), 3600000);
	assert_int_equal(es_by_hand_left_ms(&drain, SET_MS + 3000000), 600000);
	assert_int_equal(es_by_hand_left_ms(&drain, SET_MS + 3600000), 0);
	assert_int_equal(es_by_hand_left_ms(&drain, SET_MS + 360000000), 0);
	assert_int_equal(es_by_hand_left_ms(&drain, SET_MS - 86400000), 3600000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_other_files),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_left),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
