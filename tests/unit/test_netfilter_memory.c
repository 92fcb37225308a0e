// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The file of the netfilter datapath's tables: the next daemon takes it over, unless it means nothing to it.
 */
#include "cmocka_all.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "netfilter/node/memory.h"

#define SETS 64

static char path[64];

static int setup(void **state)
{
	(void)state;
	strcpy(path, "/tmp/earshot-tables-XXXXXX");
	close(mkstemp(path));
	return unlink(path);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static void test_taken_over(void **state)
{
	struct es_nf_memory t;

	(void)state;
	assert_int_equal(es_nf_memory_open(path, SETS, &t), 0);
	assert_false(t.adopted || t.replaced);
	t.state->number_ns = 5;
	t.decisions[SETS - 1].way[3].key = 6;
	t.settled[SETS / 2 - 1].way[0].request = 7;
	t.replays[ES_NODES_MAX * ES_STREAMS_MAX - 1].last = 8;
	t.counters[ES_COUNTER_COUNT - 1] = 9;
	es_nf_memory_close(&t);
	assert_int_equal(es_nf_memory_open(path, SETS, &t), 0);
	assert_true(t.adopted);
	assert_int_equal(t.state->number_ns, 5);
	assert_int_equal(t.decisions[SETS - 1].way[3].key, 6);
	assert_int_equal(t.settled[SETS / 2 - 1].way[0].request, 7);
	assert_int_equal(t.replays[ES_NODES_MAX * ES_STREAMS_MAX - 1].last, 8);
	assert_int_equal(t.counters[ES_COUNTER_COUNT - 1], 9);
	es_nf_memory_close(&t);
	es_nf_memory_close(&t);
}

/* The file of the version before knows no connections: all else of it goes on. */
static void test_of_the_layout_before(void **state)
{
	struct es_nf_memory t;
	__u32 layout = 2;
	__u64 bytes;
	int fd;

	(void)state;
	assert_int_equal(es_nf_memory_open(path, SETS, &t), 0);
	t.state->number_ns = 5;
	t.counters[ES_COUNTER_COUNT - 1] = 9;
	t.connections[0].way[0].first_seq = 7;
	bytes = (__u64)((char *)t.connections - (char *)t.at);
	es_nf_memory_close(&t);
	fd = open(path, O_RDWR);
	assert_int_equal(pwrite(fd, &layout, sizeof(layout), 4), sizeof(layout));
	assert_int_equal(pwrite(fd, &bytes, sizeof(bytes), 24), sizeof(bytes));
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	close(fd);
	assert_int_equal(es_nf_memory_open(path, SETS, &t), 0);
	assert_true(t.adopted && !t.replaced);
	assert_int_equal(t.state->number_ns, 5);
	assert_int_equal(t.counters[ES_COUNTER_COUNT - 1], 9);
	assert_int_equal(t.connections[0].way[0].first_seq, 0);
	t.connections[ES_NF_CONNECTION_SETS - 1].way[ES_NF_CONNECTION_WAYS - 1].first_seq = 8;
	es_nf_memory_close(&t);
	assert_int_equal(es_nf_memory_open(path, SETS, &t), 0);
	assert_true(t.adopted);
	assert_int_equal(t.connections[ES_NF_CONNECTION_SETS - 1].way[ES_NF_CONNECTION_WAYS - 1].first_seq,
			 8);
	es_nf_memory_close(&t);
}

static void test_of_another_size(void **state)
{
	struct es_nf_memory t;

	(void)state;
	assert_int_equal(es_nf_memory_open(path, SETS, &t), 0);
	t.state->number_ns = 5;
	es_nf_memory_close(&t);
	assert_int_equal(es_nf_memory_open(path, 2 * SETS, &t), 0);
	assert_true(t.replaced && !t.adopted);
	assert_int_equal(t.state->number_ns, 0);
	es_nf_memory_close(&t);
}

/*
 * Another version, or what a crash left: whatever differs in the header, the tables are new. Tables of
 * another boot or another network namespace, and a file that has no tables, have run for nobody here.
 */
static void test_of_another_version(void **state)
{
	struct es_nf_memory t;
	char byte = 1;
	int fd;

	(void)state;
	for (off_t at = 0; at < 80; at += 4) {
		assert_int_equal(es_nf_memory_open(path, SETS, &t), 0);
		t.state->number_ns = 5;
		es_nf_memory_close(&t);
		fd = open(path, O_RDWR);
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 0x40;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		close(fd);
		assert_int_equal(es_nf_memory_open(path, SETS, &t), 0);
		assert_false(t.adopted);
		assert_int_equal(t.replaced, at >= 4 && at < 32);
		assert_int_equal(t.state->number_ns, 0);
		es_nf_memory_close(&t);
	}
}

static void test_one_process_at_a_time(void **state)
{
	struct es_nf_memory t, other;

	(void)state;
	assert_int_equal(es_nf_memory_open(path, SETS, &t), 0);
	assert_int_equal(es_nf_memory_open(path, SETS, &other), -EBUSY);
	es_nf_memory_close(&t);
	assert_int_equal(es_nf_memory_open(path, SETS, &other), 0);
	es_nf_memory_close(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_taken_over, setup, teardown),
		cmocka_unit_test_setup_teardown(test_of_the_layout_before, setup, teardown),
		cmocka_unit_test_setup_teardown(test_of_another_size, setup, teardown),
		cmocka_unit_test_setup_teardown(test_of_another_version, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_process_at_a_time, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
