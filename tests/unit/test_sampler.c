// SPDX-License-Identifier: GPL-2.0-or-later
/* Which responses are measured: those whose size is not known for sure, each now and then, and never too
 * many. */
#include "cmocka_all.h"
#include "inspector/inspect/sampler.h"

#define NOW 5000000000000ULL

static int wants(struct es_sampler *sampler, __u64 url_key, unsigned long long now_ns)
{
	return es_sampler_wants(sampler, &(struct es_request_view){.url_key = url_key}, now_ns);
}

static void test_again(void **state)
{
	static struct es_sampler sampler;

	(void)state;
	assert_false(wants(&sampler, 0, NOW));
	assert_true(wants(&sampler, 1ULL << 40, NOW));
	assert_false(wants(&sampler, 1ULL << 40, NOW + ES_SAMPLER_AGAIN_NS - 1));
	assert_true(wants(&sampler, 1ULL << 40, NOW + ES_SAMPLER_AGAIN_NS));
	assert_true(wants(&sampler, 1ULL << 41, NOW + ES_SAMPLER_AGAIN_NS));
}

static void test_bound(void **state)
{
	static struct es_sampler sampler;
	unsigned int count = 0;

	(void)state;
	for (__u64 i = 1; i < 100000; i++)
		count += (unsigned int)wants(&sampler, i * 0x9e3779b97f4a7c15ULL, NOW + i);
	assert_int_equal(count, ES_SAMPLER_PER_SECOND);
	assert_true(wants(&sampler, 0x1234567800000000ULL, NOW + 1000000000ULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_again),
		cmocka_unit_test(test_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
