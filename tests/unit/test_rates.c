// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How many requests clients may send: of one node exactly, of several that tell each other a moment later
 * within a bound; what becomes of a table that is full, and what the others' words look like.
 */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/config/address.h"
#include "inspector/config/rule.h"
#include "inspector/peers/rate_words.h"

#define MS  1000000ULL
#define S   (1000 * MS)
#define NOW (1000 * S)

static const struct es_sipkey key = {.k0 = 1, .k1 = 2};
static const struct es_rate_limit limit = {.rule = 7, .increment_ns = S / 20, .burst = 40};

static struct es_rates *rates_of(void)
{
	struct es_rates *rates;

	assert_int_equal(es_rates_new(&key, &rates), 0);
	return rates;
}

static struct es_addr address(const char *text)
{
	struct es_addr client;

	assert_int_equal(es_conf_addr_parse(text, &client), 0);
	return client;
}

static int is_over(struct es_rates *rates, const struct es_addr *client, unsigned long long now_ns)
{
	unsigned int after_s = 0, peeked_s = 0;
	int peeked = es_rates_is_over(rates, &limit, client, now_ns, &peeked_s);
	int over = es_rates_take(rates, &limit, client, now_ns, &after_s);

	assert_int_equal(peeked, over);
	assert_int_equal(peeked_s, after_s);
	assert_int_equal(over, after_s > 0);
	return over;
}

/* A burst, then the rate; a refused request costs nothing; who pauses has a burst again. */
static void test_one_node(void **state)
{
	struct es_addr client = address("198.51.100.7"), other = address("198.51.100.8");
	struct es_rates *rates = rates_of();
	unsigned int admitted = 0;

	(void)state;
	for (unsigned int i = 0; i < 1000; i++) /* in 10 s */
		admitted += !is_over(rates, &client, NOW + i * 10 * MS);
	assert_in_range(admitted, 40 + 200 - 1, 40 + 200);
	for (unsigned int i = 0; i < 40; i++)
		assert_false(is_over(rates, &other, NOW));
	assert_true(is_over(rates, &other, NOW));
	assert_false(is_over(rates, &other, NOW + S / 20));
	for (unsigned int i = 0; i < 40; i++)
		assert_false(is_over(rates, &client, NOW + 100 * S));
	assert_true(is_over(rates, &client, NOW + 100 * S));
	es_rates_free(&rates);
}

/* An IPv6 /64 is one client; rules count apart. */
static void test_who_is_one(void **state)
{
	struct es_addr client = address("2001:db8:1:2::7"), same = address("2001:db8:1:2:ffff::8"),
		       other = address("2001:db8:1:3::7");
	struct es_rate_limit rule = {.rule = 8, .increment_ns = S, .burst = 1};
	struct es_rates *rates = rates_of();
	unsigned int after_s;

	(void)state;
	for (unsigned int i = 0; i < 40; i++)
		assert_false(is_over(rates, i % 2 ? &client : &same, NOW));
	assert_true(is_over(rates, &client, NOW));
	assert_true(is_over(rates, &same, NOW));
	assert_false(is_over(rates, &other, NOW));
	assert_false(es_rates_take(rates, &rule, &client, NOW, &after_s));
	assert_true(es_rates_take(rates, &rule, &same, NOW + MS, &after_s));
	assert_int_equal(after_s, 1);
	es_rates_free(&rates);
}

#define NODES 3

/* All that nodes have admitted is told to the others. */
static void exchange(struct es_rates **rates, unsigned long long now_ns)
{
	struct es_rate_word words[NODES][ES_RATES_WORDS_MAX];
	unsigned int counts[NODES];

	for (unsigned int n = 0; n < NODES; n++)
		counts[n] = es_rates_said(rates[n], words[n], ES_RATES_WORDS_MAX);
	for (unsigned int n = 0; n < NODES; n++)
		for (unsigned int other = 0; other < NODES; other++)
			for (unsigned int i = 0; other != n && i < counts[other]; i++)
				es_rates_heard(rates[n], &words[other][i], now_ns);
}

/*
 * A client of @per_s requests a second, to nodes at random, which tell each other every 20 ms. Returns what
 * is admitted in 60 s.
 */
static unsigned int admitted_of(unsigned int per_s)
{
	struct es_addr client = address("198.51.100.7");
	struct es_rates *rates[NODES] = {rates_of(), rates_of(), rates_of()};
	unsigned long long step_ns = S / per_s, told_ns = NOW;
	unsigned int admitted = 0, random = 1;

	for (unsigned long long now_ns = NOW; now_ns < NOW + 60 * S; now_ns += step_ns) {
		while (told_ns + 20 * MS <= now_ns) {
			told_ns += 20 * MS;
			exchange(rates, told_ns);
		}
		random = random * 1664525U + 1013904223U;
		admitted += !is_over(rates[(random >> 16) % NODES], &client, now_ns);
	}
	for (unsigned int n = 0; n < NODES; n++)
		es_rates_free(&rates[n]);
	return admitted;
}

static void test_several_nodes(void **state)
{
	const unsigned int exact = 40 + 60 * 20;

	(void)state;
	assert_int_equal(admitted_of(20), 60 * 20); /* who keeps to it is never refused */
	/* Requests that arrive within 20 ms are admitted, too, by as many nodes as do not hear of them. */
	assert_in_range(admitted_of(100), exact - 3, exact + 100 * 20 / 1000 + NODES);
	assert_in_range(admitted_of(1000), exact - 3, exact + 1000 * 20 / 1000 + NODES);
	/* At most a burst of each. */
	assert_in_range(admitted_of(50000), exact - 3, exact + (NODES - 1) * 40 + NODES);
}

/* A crowd drives out who has used little, and not who is at its limit. */
static void test_full(void **state)
{
	struct es_addr client = address("198.51.100.7"), crowd = {.w = {0, 0, 0, 0}};
	struct es_rates *rates = rates_of();
	unsigned long long forgotten;
	struct es_rate_word words[64];

	(void)state;
	for (unsigned int i = 0; i < 40; i++)
		assert_false(is_over(rates, &client, NOW));
	while (es_rates_said(rates, words, 64))
		;
	for (unsigned int i = 1; i <= 4 * ES_RATES_ENTRIES; i++) {
		crowd.w[0] = es_htonl(0x20010000 | i >> 16);
		crowd.w[1] = es_htonl(i << 16);
		is_over(rates, &crowd, NOW + MS);
		while (es_rates_said(rates, words, 64))
			;
	}
	assert_true(es_rates_used(rates, NOW + 2 * MS, &forgotten) <= ES_RATES_ENTRIES);
	assert_true(forgotten > ES_RATES_ENTRIES);
	assert_true(is_over(rates, &client, NOW + 2 * MS));
	/* Nobody is told what one has not admitted: words that were not fetched stay. */
	assert_false(is_over(rates, &crowd, NOW + 2 * MS));
	assert_int_equal(es_rates_said(rates, words, 64), 1);
	assert_int_equal(words[0].count, 1);
	es_rates_free(&rates);
}

static void test_words(void **state)
{
	const struct es_rate_word words[] = {{.key = 5, .increment_ns = S, .count = 3},
					     {.key = 6, .increment_ns = 1}};
	struct es_rate_word read[ES_RATES_WORDS_MAX];
	struct es_keys keys = {.count = 1};
	struct es_rates_message message;
	__u64 heard[4] = {};
	size_t len = es_rates_message_make(&message, 1, 100, words, 2, &keys.key[0].handover);

	(void)state;
	assert_int_equal(es_rates_message_read(&message, len, 0, 3, &keys, heard, read), 2);
	assert_int_equal(read[0].key, 5);
	assert_int_equal(read[0].increment_ns, S);
	assert_int_equal(read[0].count, 3);
	/* Again; of oneself; of nobody; cut; changed. */
	assert_int_equal(es_rates_message_read(&message, len, 0, 3, &keys, heard, read), -EBADMSG);
	heard[1] = 0;
	assert_int_equal(es_rates_message_read(&message, len, 1, 3, &keys, heard, read), -EBADMSG);
	assert_int_equal(es_rates_message_read(&message, len, 0, 1, &keys, heard, read), -EBADMSG);
	for (size_t cut = 0; cut < len; cut++)
		assert_int_equal(es_rates_message_read(&message, cut, 0, 3, &keys, heard, read), -EBADMSG);
	for (size_t at = 0; at < len; at++) {
		((unsigned char *)&message)[at] ^= 1;
		assert_int_equal(es_rates_message_read(&message, len, 0, 3, &keys, heard, read), -EBADMSG);
		((unsigned char *)&message)[at] ^= 1;
	}
	assert_int_equal(es_rates_message_read(&message, len, 0, 3, &keys, heard, read), 2);
}

/* Messages without sense from another node move nothing far, and do not hang. */
static void test_nonsense(void **state)
{
	static const struct es_rate_word words[] = {
		{.key = 0, .increment_ns = S, .count = 1}, {.key = 1, .increment_ns = S, .count = 1},
		{.key = 9, .increment_ns = 0, .count = 1}, {.key = 9, .increment_ns = ~0ULL, .count = ~0U},
		{.key = 9, .increment_ns = S, .count = 0},
	};
	struct es_rates *rates = rates_of();
	unsigned long long forgotten;

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		es_rates_heard(rates, &words[i], NOW);
	assert_int_equal(es_rates_used(rates, NOW, &forgotten), 0);
	es_rates_free(&rates);
}

static void test_text(void **state)
{
	static const char *const bad[] = {"",	   "20",       "/s",   "0/s",	"20/d",
					  "20/ss", "100001/s", "-1/s", "20 /s", "1e3/s"};
	unsigned int count, per_s;

	(void)state;
	assert_int_equal(es_conf_rate_parse("20/s", &count, &per_s), 0);
	assert_int_equal(count, 20);
	assert_int_equal(per_s, 1);
	assert_int_equal(es_conf_rate_parse("100000/h", &count, &per_s), 0);
	assert_int_equal(per_s, 3600);
	assert_int_equal(es_conf_rate_parse("1/m", &count, &per_s), 0);
	assert_int_equal(per_s, 60);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(es_conf_rate_parse(bad[i], &count, &per_s), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_node),      cmocka_unit_test(test_who_is_one),
		cmocka_unit_test(test_several_nodes), cmocka_unit_test(test_full),
		cmocka_unit_test(test_words),	      cmocka_unit_test(test_nonsense),
		cmocka_unit_test(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
