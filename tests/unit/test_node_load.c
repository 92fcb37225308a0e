// SPDX-License-Identifier: GPL-2.0-or-later
/* Shares of time from the kernel's text. */
#include "cmocka_all.h"
#include "inspector/peers/node_load.h"

#define SECOND 1000000000ULL

static void test_stall(void **state)
{
	struct es_node_load load = {};

	(void)state;
	assert_int_equal(es_node_load_stall(&load, "", SECOND), -1);
	assert_int_equal(es_node_load_stall(&load, "full avg10=0.08 total=99\n", SECOND), -1);
	assert_int_equal(es_node_load_stall(&load,
					    "some avg10=0.08 avg60=0.20 avg300=0.24 total=60000000\n"
					    "full avg10=0.08 avg60=0.19 avg300=0.20 total=1\n",
					    0),
			 0);
	assert_int_equal(load.disk, 0); /* the first reading says nothing */
	assert_int_equal(es_node_load_stall(&load, "some avg10=0 total=60500000\n", 2 * SECOND), 0);
	assert_int_equal(load.disk, 250);
	assert_int_equal(es_node_load_stall(&load, "some avg10=0 total=99500000\n", SECOND), 0);
	assert_int_equal(load.disk, 1000);
	assert_int_equal(es_node_load_stall(&load, "some avg10=0 total=99500000\n", SECOND), 0);
	assert_int_equal(load.disk, 0);
}

/*
 * The busiest disk counts; a partition is not added to its disk, and one that appears later did nothing yet.
 */
static void test_disks(void **state)
{
	char first[] = "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
		       "   8       0 sda 1 2 3 4 5 6 7 8 0 1000 11 0 0 0 0 0 0\n"
		       "   8       1 sda1 1 2 3 4 5 6 7 8 0 900 11\n";
	char second[] = "   8       0 sda 1 2 3 4 5 6 7 8 0 1300 11 0 0 0 0 0 0\n"
			"   8       1 sda1 1 2 3 4 5 6 7 8 0 1200 11\n"
			"   8      16 sdb 1 2 3 4 5 6 7 8 0 500000 11\n"
			"nonsense\n";
	char third[] = "   8      16 sdb 1 2 3 4 5 6 7 8 0 500700 11\n";
	struct es_node_load load = {};

	(void)state;
	es_node_load_disks(&load, first, 0);
	assert_int_equal(load.disk, 0);
	assert_int_equal(load.disk_count, 2);
	es_node_load_disks(&load, second, SECOND);
	assert_int_equal(load.disk, 300);
	es_node_load_disks(&load, third, SECOND);
	assert_int_equal(load.disk, 700);
}

static void test_read(void **state)
{
	struct es_node_load load = {};

	(void)state;
	es_node_load_read(&load, SECOND);
	assert_int_equal(load.disk, 0);
	es_node_load_read(&load, SECOND + 1); /* too soon */
	assert_true(load.last_ns == SECOND);
	es_node_load_read(&load, 2 * SECOND);
	assert_true(load.last_ns == 2 * SECOND && load.cpu <= 1000 && load.disk <= 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stall),
		cmocka_unit_test(test_disks),
		cmocka_unit_test(test_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
