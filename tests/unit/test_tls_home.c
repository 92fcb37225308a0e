// SPDX-License-Identifier: GPL-2.0-or-later
/* inspector/http/tls_home.h: who has the key finds the home, and nobody else makes one or sees one. */
#include "tests/unit/cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "inspector/http/tls_home.h"

#define FRONT (ES_TLS_TICKET_NAME + ES_TLS_TICKET_IV)

static const struct es_sipkey key = {0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL}, other = {1, 2};

static void fill(uint8_t front[FRONT])
{
	for (int i = 0; i < FRONT; i++)
		front[i] = (uint8_t)random();
}

/* Made with another implementation of SipHash: nodes of all versions must agree. */
static void test_golden(void **state)
{
	static const uint8_t hidden[] = {0x60, 0xa6, 0xb9, 0xe5, 0xb5};
	uint8_t front[FRONT];

	(void)state;
	for (int i = 0; i < FRONT; i++)
		front[i] = (uint8_t)(i < ES_TLS_TICKET_NAME ? i : 100 + i - ES_TLS_TICKET_NAME);
	es_tls_home_put(&key, front, 7, front + ES_TLS_TICKET_NAME);
	assert_memory_equal(front + FRONT - sizeof(hidden), hidden, sizeof(hidden));
	assert_int_equal(front[FRONT - sizeof(hidden) - 1], 110);
	assert_int_equal(es_tls_home_get(&key, front), 7);
}

static void test_all(void **state)
{
	uint8_t front[FRONT];

	(void)state;
	for (int home = 0; home < 256; home++) {
		fill(front);
		es_tls_home_put(&key, front, (uint8_t)home, front + ES_TLS_TICKET_NAME);
		assert_int_equal(es_tls_home_get(&key, front), home);
		assert_int_equal(es_tls_home_get(&other, front), -1);
		/* Where a bit is another, it is another home at most, and that only in the home itself. */
		for (int bit = 0; bit < 8 * FRONT; bit++) {
			int is_home = bit / 8 == ES_TLS_TICKET_NAME + ES_TLS_TICKET_RANDOM;

			front[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_int_equal(es_tls_home_get(&key, front), is_home ? home ^ 1 << bit % 8 : -1);
			front[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
}

/* Tickets of nodes that put no home in, and such that somebody makes up. */
static void test_none(void **state)
{
	uint8_t front[FRONT];

	(void)state;
	for (int i = 0; i < 200000; i++) {
		fill(front);
		assert_int_equal(es_tls_home_get(&key, front), -1);
	}
}

/* Each bit is set in half of one node's tickets. */
static void test_hidden(void **state)
{
	unsigned int set[8 * ES_TLS_TICKET_IV] = {};
	uint8_t front[FRONT] = {};

	(void)state;
	for (int i = 0; i < 10000; i++) {
		for (int j = 0; j < ES_TLS_TICKET_RANDOM; j++)
			front[ES_TLS_TICKET_NAME + j] = (uint8_t)random();
		es_tls_home_put(&key, front, 3, front + ES_TLS_TICKET_NAME);
		for (int bit = 0; bit < 8 * ES_TLS_TICKET_IV; bit++)
			set[bit] += front[ES_TLS_TICKET_NAME + bit / 8] >> bit % 8 & 1;
	}
	for (int bit = 0; bit < 8 * ES_TLS_TICKET_IV; bit++)
		assert_in_range(set[bit], 4700, 5300);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_hidden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
