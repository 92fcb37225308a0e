// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The workers' counters for the metrics: each is its own, those of another configuration go on under the same
 * names, and what has no place in the table is not counted.
 */
#include "tests/unit/config_text.h"
#include "inspector/inspect/tally.h"
#include "inspector/rules/rules.h"

#define CLUSTER DATAPATH "node n1 { address = 10.78.0.1 }\nnode n2 { address = 10.78.0.2 }\n"
#define WEB	"service web { address = 10.77.0.100  port = 80 }\n"
#define API	"service api { address = 10.77.0.100  port = 81 }\n"
#define DEAR	"rule dear { path = \"/dear/\"  nodes = n1  otherwise = reject }\n"
#define PLACE	"location \"/here/\" { nodes = n1 }\n"

/* A number for each counter that there is. */
static unsigned int fill(struct es_tally *t)
{
	unsigned int n = 0, total = 0;

	for (unsigned int s = 0; s < t->services; s++) {
		for (unsigned int node = 0; node < t->nodes; node++) {
			for (int k = 0; k < ES_TALLY_DECISION_COUNT; k++)
				for (unsigned int i = ++n; i; i--, total++)
					es_tally_decided(t, s, node, (enum es_tally_decision)k);
			for (int k = 0; k < ES_TALLY_RESULT_COUNT; k++)
				for (unsigned int i = ++n; i; i--, total++)
					es_tally_handed(t, s, node, (enum es_tally_result)k);
		}
		for (unsigned int r = 0; r < t->rules; r++)
			for (unsigned int i = ++n; i; i--, total++)
				es_tally_rejected(t, s, r);
	}
	return total;
}

static void test_each_is_its_own(void **state)
{
	struct es_conf *conf = parse_ok(CLUSTER WEB API DEAR PLACE);
	struct es_tally *t;
	unsigned int n = 0;

	(void)state;
	assert_int_equal(es_tally_new(conf, NULL, NULL, &t), 0);
	fill(t);
	for (unsigned int s = 0; s < 2; s++) {
		for (unsigned int node = 0; node < 2; node++) {
			for (int k = 0; k < ES_TALLY_DECISION_COUNT; k++)
				assert_int_equal(es_tally_request(t, s, node, (enum es_tally_decision)k),
						 ++n);
			for (int k = 0; k < ES_TALLY_RESULT_COUNT; k++)
				assert_int_equal(es_tally_handover(t, s, node, (enum es_tally_result)k), ++n);
		}
		for (unsigned int r = 0; r < ES_RULES_BY_RULE + 2; r++)
			assert_int_equal(es_tally_rejection(t, s, r), ++n);
		assert_int_equal(es_tally_hit(t, s), 0);
	}
	es_tally_free(&t);
	es_conf_free(&conf);
}

static void test_no_place(void **state)
{
	struct es_conf *conf = parse_ok(CLUSTER WEB);
	struct es_tally *t;

	(void)state;
	assert_int_equal(es_tally_new(conf, NULL, NULL, &t), 0);
	es_tally_decided(t, 1, 0, ES_TALLY_first);
	es_tally_decided(t, 0, 2, ES_TALLY_first);
	es_tally_handed(t, 0, 2, ES_TALLY_sent);
	es_tally_rejected(t, 0, ES_RULES_BY_RULE);
	es_tally_content(t, 0, 7, 2);
	es_tally_decided(NULL, 0, 0, ES_TALLY_first);
	es_tally_content(NULL, 0, 7, 0);
	es_tally_took(NULL, 1);
	es_tally_pending(NULL, 1);
	es_tally_sent(NULL);
	for (int k = 0; k < ES_TALLY_DECISION_COUNT; k++)
		assert_int_equal(es_tally_request(t, 0, 0, (enum es_tally_decision)k) +
					 es_tally_request(t, 0, 1, (enum es_tally_decision)k),
				 0);
	es_tally_free(&t);
	es_conf_free(&conf);
}

static void test_another_configuration(void **state)
{
	struct es_conf *old = parse_ok(CLUSTER WEB API DEAR);
	struct es_conf *new =
		parse_ok(DATAPATH "node n3 { address = 10.78.0.3 }\nnode n2 { address = 10.78.0.2 }\n"
				  "rule other { path = \"/o/\"  nodes = n2 }\n" API
				  "rule dear { path = \"/d/\"  nodes = n2  otherwise = reject }\n");
	struct es_tally *before, *t;

	(void)state;
	assert_int_equal(es_tally_new(old, NULL, NULL, &before), 0);
	fill(before);
	es_tally_content(before, 1, 0x12345600, 1);
	es_tally_content(before, 1, 0x12345600, 1);
	es_tally_took(before, 1);
	assert_int_equal(es_tally_new(new, before, old, &t), 0);
	/* api is the first service now, n2 still the second node, n3 a new one; dear is the second rule. */
	assert_int_equal(es_tally_request(t, 0, 1, ES_TALLY_move),
			 es_tally_request(before, 1, 1, ES_TALLY_move));
	assert_int_equal(es_tally_handover(t, 0, 1, ES_TALLY_sent),
			 es_tally_handover(before, 1, 1, ES_TALLY_sent));
	assert_int_equal(es_tally_request(t, 0, 0, ES_TALLY_move), 0);
	assert_int_equal(es_tally_rejection(t, 0, ES_RULES_BY_ADMIT_LOW),
			 es_tally_rejection(before, 1, ES_RULES_BY_ADMIT_LOW));
	assert_int_equal(es_tally_rejection(t, 0, ES_RULES_BY_RULE), 0);
	assert_int_equal(es_tally_rejection(t, 0, ES_RULES_BY_RULE + 1),
			 es_tally_rejection(before, 1, ES_RULES_BY_RULE));
	assert_int_equal(es_tally_hit(t, 0), 1);
	assert_int_equal(t->decision.bucket[0], 1);
	es_tally_free(&before);
	es_tally_free(&t);
	es_conf_free(&old);
	es_conf_free(&new);
}

static void test_locality(void **state)
{
	const __u64 one = 0xabcdef0000000100ULL, other = one + ((__u64)ES_TALLY_CONTENTS << 8);
	struct es_conf *conf = parse_ok(CLUSTER WEB);
	struct es_tally *t;

	(void)state;
	assert_int_equal(es_tally_new(conf, NULL, NULL, &t), 0);
	es_tally_content(t, 0, one, 0);
	assert_int_equal(es_tally_hit(t, 0), 0);
	es_tally_content(t, 0, one, 0);
	assert_int_equal(es_tally_hit(t, 0), 1);
	es_tally_content(t, 0, one, 1); /* another node */
	assert_int_equal(es_tally_hit(t, 0), 1);
	es_tally_content(t, 0, other, 1); /* another content, at the same place */
	es_tally_content(t, 0, one, 1);
	assert_int_equal(es_tally_hit(t, 0), 1);
	es_tally_free(&t);
	es_conf_free(&conf);
}

static void test_histograms(void **state)
{
	unsigned long long bucket[ES_HISTOGRAM_BOUNDS + 1] = {}, sum_ns = 0, count = 0;
	struct es_conf *conf = parse_ok(CLUSTER WEB);
	struct es_tally *t;

	(void)state;
	assert_int_equal(es_tally_new(conf, NULL, NULL, &t), 0);
	es_tally_took(t, 0);
	es_tally_took(t, es_histogram_bound_ns[0]);
	es_tally_took(t, es_histogram_bound_ns[0] + 1);
	es_tally_took(t, es_histogram_bound_ns[ES_HISTOGRAM_BOUNDS - 1] + 1);
	es_histogram_read(&t->decision, bucket, &sum_ns);
	assert_int_equal(bucket[0], 2);
	assert_int_equal(bucket[1], 1);
	assert_int_equal(bucket[ES_HISTOGRAM_BOUNDS], 1);
	assert_int_equal(sum_ns,
			 2 * es_histogram_bound_ns[0] + es_histogram_bound_ns[ES_HISTOGRAM_BOUNDS - 1] + 2);
	/* More handovers than are kept until they are sent. */
	for (int i = 0; i < ES_TALLY_PENDING + 10; i++)
		es_tally_pending(t, 1);
	es_tally_sent(t);
	es_tally_sent(t);
	memset(bucket, 0, sizeof(bucket));
	es_histogram_read(&t->handover, bucket, &sum_ns);
	for (int i = 0; i <= ES_HISTOGRAM_BOUNDS; i++)
		count += bucket[i];
	assert_int_equal(count, ES_TALLY_PENDING + 10);
	es_tally_free(&t);
	es_conf_free(&conf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_is_its_own),
		cmocka_unit_test(test_no_place),
		cmocka_unit_test(test_another_configuration),
		cmocka_unit_test(test_locality),
		cmocka_unit_test(test_histograms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
