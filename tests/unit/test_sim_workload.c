// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Generated traces: the size mix of HyLARD section 4.3, popularity, hot files, dynamic requests.
 */
#include "cmocka_all.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "sim/workload.h"

static struct es_synthetic g_base = {
	.seed = 1,
	.requests = 200000,
	.files = 5000,
	.exponent = 1.16,
	.mean_bytes = 13000,
	.sigma = 1.2,
};

static void test_worldcup98_mix(void **state)
{
	(void)state;
	for (__u64 seed = 1; seed <= 5; seed++) {
		struct es_synthetic s = g_base;
		struct es_workload w;
		double bytes = 0, large_bytes = 0;
		unsigned int large = 0, large_requests = 0;

		s.seed = seed;
		assert_int_equal(es_synthetic_worldcup98(&s, &w), 0);
		assert_int_equal(w.file_count, 10562);
		for (__u32 i = 0; i < w.file_count; i++) {
			bytes += (double)w.size[i];
			if (w.size[i] < 500 * 1024)
				continue;
			large++;
			large_bytes += (double)w.size[i];
		}
		/* "16% of total web files", "83.02% of total web files size" */
		assert_true(fabs(large / 10562.0 - 0.16) < 0.001);
		assert_true(fabs(large_bytes / bytes - 0.8302) < 0.002);
		for (__u32 i = 0; i < w.request_count; i++)
			large_requests += w.size[w.request[i]] >= 500 * 1024;
		/* Asked for, but less often than their number would say. */
		assert_true(large_requests > 0.002 * w.request_count);
		assert_true(large_requests < 0.05 * w.request_count);
		es_workload_fini(&w);
	}
}

/* How often each file is asked for. */
static unsigned int *count_requests(const struct es_workload *w)
{
	unsigned int *count = calloc(w->file_count, sizeof(*count));

	assert_non_null(count);
	for (__u32 i = 0; i < w->request_count; i++)
		count[w->request[i]]++;
	return count;
}

static int compare_down(const void *a, const void *b)
{
	unsigned int x = *(const unsigned int *)a, y = *(const unsigned int *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

static void test_zipf(void **state)
{
	struct es_synthetic s = g_base;
	struct es_workload w;
	unsigned int *count;
	double bytes = 0;

	(void)state;
	s.exponent = 0.8;
	assert_int_equal(es_synthetic_zipf(&s, &w), 0);
	assert_int_equal(w.file_count, 5000);
	for (__u32 i = 0; i < w.file_count; i++)
		bytes += (double)w.size[i];
	assert_true(fabs(bytes / 5000 - 13000) < 130);
	count = count_requests(&w);
	qsort(count, w.file_count, sizeof(*count), compare_down);
	/* count(rank) ~ rank^-0.8 */
	for (unsigned int rank = 1; rank <= 100; rank *= 10)
		assert_true(fabs(log((double)count[rank - 1] / count[rank * 10 - 1]) / log(10) - 0.8) < 0.08);
	free(count);
	es_workload_fini(&w);
}

static void test_hot(void **state)
{
	struct es_synthetic s = g_base;
	struct es_workload w;
	unsigned int *count, hot = 0;

	(void)state;
	s.hot_share = 0.1;
	s.hot_rate = 0.8;
	assert_int_equal(es_synthetic_zipf(&s, &w), 0);
	count = count_requests(&w);
	qsort(count, w.file_count, sizeof(*count), compare_down);
	for (unsigned int i = 0; i < 500; i++)
		hot += count[i];
	assert_true(fabs(hot / 200000.0 - 0.8) < 0.01);
	assert_true(count[0] < 2 * count[499]); /* alike among themselves */
	free(count);
	es_workload_fini(&w);
}

static void test_dynamic(void **state)
{
	struct es_synthetic s = g_base;
	struct es_workload w;
	unsigned int dynamic = 0;

	(void)state;
	s.dynamic_share = 0.3;
	assert_int_equal(es_synthetic_zipf(&s, &w), 0);
	for (__u32 i = 0; i < w.request_count; i++)
		dynamic += w.file[w.request[i]].is_dynamic;
	assert_true(fabs(dynamic / 200000.0 - 0.3) < 0.01);
	es_workload_price(&w, 1, 40);
	for (__u32 i = 0; i < w.file_count; i++) {
		assert_int_equal(w.file[i].cost, w.file[i].is_dynamic ? 40 : (w.size[i] + 1459) / 1460);
		assert_true(w.file[i].content == es_content_hash(w.file[i].uri, strlen(w.file[i].uri)));
	}
	es_workload_fini(&w);
}

static void test_seed(void **state)
{
	struct es_synthetic s = g_base;
	struct es_workload a, b, c;
	size_t len = s.requests * sizeof(*a.request);

	(void)state;
	assert_int_equal(es_synthetic_worldcup98(&s, &a), 0);
	assert_int_equal(es_synthetic_worldcup98(&s, &b), 0);
	s.seed = 2;
	assert_int_equal(es_synthetic_worldcup98(&s, &c), 0);
	assert_memory_equal(a.request, b.request, len);
	assert_memory_equal(a.size, b.size, a.file_count * sizeof(*a.size));
	assert_memory_not_equal(a.request, c.request, len);
	es_workload_fini(&a);
	es_workload_fini(&b);
	es_workload_fini(&c);
}

static void test_cut(void **state)
{
	struct es_synthetic s = g_base;
	struct es_workload w;

	(void)state;
	s.requests = 1001;
	assert_int_equal(es_synthetic_zipf(&s, &w), 0);
	assert_int_equal(es_workload_cut(&w, 10), 0);
	assert_int_equal(w.connection_count, 101);
	assert_int_equal(w.first[0], 0);
	assert_int_equal(w.first[1], 10);
	assert_int_equal(w.first[100], 1000);
	assert_int_equal(w.first[101], 1001);
	es_workload_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_worldcup98_mix),
		cmocka_unit_test(test_zipf),
		cmocka_unit_test(test_hot),
		cmocka_unit_test(test_dynamic),
		cmocka_unit_test(test_seed),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
