// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The simulator's page cache, by hand and against a slow one that keeps a time for each file.
 */
#include "cmocka_all.h"
#include "sim/lru.h"

#define FILES 40

static void test_oldest_goes(void **state)
{
	static const __u64 size[] = {40, 30, 20, 10};
	struct es_lru lru;

	(void)state;
	assert_int_equal(es_lru_init(&lru, 4, 100), 0);
	for (__u32 i = 0; i < 4; i++) {
		assert_int_equal(es_lru_use(&lru, i), 0);
		es_lru_put(&lru, i, size);
	}
	assert_int_equal(lru.bytes, 100); /* exactly full */
	assert_int_equal(lru.evicted, 0);
	assert_int_equal(es_lru_use(&lru, 0), 1); /* 1 is the oldest now */
	es_lru_put(&lru, 0, size);		  /* there already */
	assert_int_equal(lru.bytes, 100);
	es_lru_fini(&lru);
}

static void test_as_many_as_needed(void **state)
{
	static const __u64 size[] = {40, 30, 20, 60, 0};
	struct es_lru lru;

	(void)state;
	assert_int_equal(es_lru_init(&lru, 5, 100), 0);
	es_lru_put(&lru, 0, size);
	es_lru_put(&lru, 1, size);
	es_lru_put(&lru, 2, size);
	assert_int_equal(es_lru_use(&lru, 0), 1);
	es_lru_put(&lru, 3, size); /* 90 + 60: 1 and 2 go, the oldest two */
	assert_int_equal(es_lru_use(&lru, 1), 0);
	assert_int_equal(es_lru_use(&lru, 2), 0);
	assert_int_equal(es_lru_use(&lru, 0), 1);
	assert_int_equal(es_lru_use(&lru, 3), 1);
	assert_int_equal(lru.bytes, 100);
	assert_int_equal(lru.entries, 2);
	assert_int_equal(lru.evicted, 2);
	es_lru_put(&lru, 4, size); /* an empty file fits always */
	assert_int_equal(es_lru_use(&lru, 4), 1);
	assert_int_equal(lru.evicted, 2);
	es_lru_fini(&lru);
}

static void test_too_large(void **state)
{
	static const __u64 size[] = {100, 101, 1};
	struct es_lru lru;

	(void)state;
	assert_int_equal(es_lru_init(&lru, 3, 100), 0);
	es_lru_put(&lru, 2, size);
	es_lru_put(&lru, 1, size); /* streamed: it takes nobody's place */
	assert_int_equal(es_lru_use(&lru, 1), 0);
	assert_int_equal(es_lru_use(&lru, 2), 1);
	es_lru_put(&lru, 0, size);
	assert_int_equal(es_lru_use(&lru, 0), 1);
	assert_int_equal(es_lru_use(&lru, 2), 0);
	es_lru_fini(&lru);

	assert_int_equal(es_lru_init(&lru, 3, 0), 0);
	es_lru_put(&lru, 2, size);
	assert_int_equal(es_lru_use(&lru, 2), 0);
	es_lru_fini(&lru);
}

/* When each file was used last; 0: it is not in. */
struct slow {
	__u64 used[FILES];
	__u64 bytes;
};

static void slow_put(struct slow *slow, unsigned int file, const __u64 *size, __u64 max, __u64 now)
{
	if (slow->used[file] || size[file] > max)
		return;
	while (slow->bytes + size[file] > max) {
		unsigned int oldest = FILES;

		for (unsigned int i = 0; i < FILES; i++)
			if (slow->used[i] && (oldest == FILES || slow->used[i] < slow->used[oldest]))
				oldest = i;
		slow->bytes -= size[oldest];
		slow->used[oldest] = 0;
	}
	slow->used[file] = now;
	slow->bytes += size[file];
}

static void test_against_slow(void **state)
{
	struct slow slow = {};
	struct es_lru lru;
	__u64 size[FILES];
	uint64_t seed = 11;

	(void)state;
	for (unsigned int i = 0; i < FILES; i++)
		size[i] = es_test_random(&seed) % 120;
	assert_int_equal(es_lru_init(&lru, FILES, 400), 0);
	for (__u64 now = 1; now < 50000; now++) {
		unsigned int file = (unsigned int)(es_test_random(&seed) % FILES);
		int is_in = slow.used[file] != 0;

		assert_int_equal(es_lru_use(&lru, file), is_in);
		if (is_in)
			slow.used[file] = now;
		es_lru_put(&lru, file, size);
		slow_put(&slow, file, size, 400, now);
		assert_int_equal(lru.bytes, slow.bytes);
	}
	assert_true(lru.evicted > 1000);
	es_lru_fini(&lru);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_oldest_goes),
		cmocka_unit_test(test_as_many_as_needed),
		cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_against_slow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
