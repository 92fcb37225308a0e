// SPDX-License-Identifier: GPL-2.0-or-later
/* Cookies: what they keep, for how long, and what a forger's odds are. */
#include "cmocka_all.h"
#include <string.h>
#include "kmod/core/cookie.h"

static const struct es_sipkey key = {.k0 = 1, .k1 = 2};
static const struct es_sipkey other_key = {.k0 = 1, .k1 = 3};

#define FLOW 0x123456789abcdef0ULL

static struct es_tcp_options options(unsigned int mss, int wscale, int sack, int ecn)
{
	struct es_tcp_options o = {
		.mss = (__u16)mss,
		.wscale_ok = wscale >= 0,
		.snd_wscale = wscale >= 0 ? (__u8)wscale : 0,
		.sack_ok = (__u8)sack,
		.ecn_ok = (__u8)ecn,
	};

	return o;
}

static void test_options_survive(void **state)
{
	static const struct {
		unsigned int mss, kept;
	} mss[] = {{536, 536},	 {1299, 536},  {1300, 1300}, {1439, 1300},
		   {1440, 1440}, {1459, 1440}, {1460, 1460}, {8960, 1460}};
	__u32 tsval;

	(void)state;
	for (size_t m = 0; m < sizeof(mss) / sizeof(mss[0]); m++) {
		for (int wscale = -1; wscale <= 14; wscale++) {
			for (int bits = 0; bits < 4; bits++) {
				struct es_tcp_options in = options(mss[m].mss, wscale, bits & 1, bits >> 1),
						      out = {};
				__u32 cookie = es_cookie_make_packed(&key, FLOW, 1000, 77,
								     es_cookie_options_pack(&in), &tsval);

				es_cookie_options_unpack(cookie, &out);
				assert_int_equal(out.mss, mss[m].kept);
				assert_int_equal(out.wscale_ok, wscale >= 0);
				assert_int_equal(out.snd_wscale, wscale >= 0 ? wscale : 0);
				assert_int_equal(out.sack_ok, bits & 1);
				assert_int_equal(out.ecn_ok, bits >> 1);
				assert_int_equal(es_cookie_check(&key, FLOW, 1000, cookie, 77, &tsval),
						 ES_COOKIE_VALID);
			}
		}
	}
}

static void test_mss_of_ipv6(void **state)
{
	static const struct {
		unsigned int mss, kept;
	} mss[] = {{536, 1220},	 {1220, 1220}, {1359, 1220}, {1360, 1360}, {1419, 1360},
		   {1420, 1420}, {1439, 1420}, {1440, 1440}, {8940, 1440}};
	__u32 tsval, cookie;

	(void)state;
	for (size_t m = 0; m < sizeof(mss) / sizeof(mss[0]); m++) {
		struct es_tcp_options in = options(mss[m].mss, 7, 1, 0), out = {};

		cookie = es_cookie_make_packed(&key, FLOW, 1000, 77, es_cookie_options_pack6(&in), &tsval);
		es_cookie_options_unpack6(cookie, &out);
		assert_int_equal(out.mss, mss[m].kept);
		assert_int_equal(out.snd_wscale, 7);
		assert_int_equal(out.sack_ok, 1);
		assert_int_equal(es_cookie_check(&key, FLOW, 1000, cookie, 77, &tsval), ES_COOKIE_VALID);
	}
}

static void test_golden(void **state)
{
	struct es_tcp_options o = options(1460, 7, 1, 0);
	__u32 tsval = 0, again = 0;
	__u32 cookie =
		es_cookie_make_packed(&key, FLOW, 13631488, 0xdeadbeef, es_cookie_options_pack(&o), &tsval);

	(void)state;
	/* As tests/lib/packets/model.py computes it too: a change here breaks a mixed cluster. */
	assert_int_equal(cookie >> 29, 13631488 & 7);
	assert_int_equal(ES_COOKIE_OPTIONS(cookie), 3 | 7 << 2 | 1 << 6);
	assert_int_equal(
		es_cookie_make_packed(&key, FLOW, 13631488, 0xdeadbeef, es_cookie_options_pack(&o), &again),
		cookie);
	assert_int_equal(tsval, again);
	assert_int_equal(cookie, 0x1c417f31);
	assert_int_equal(tsval, 0x9b5bebb8);
}

static void test_lifetime(void **state)
{
	struct es_tcp_options o = options(1460, 7, 1, 0);

	(void)state;
	for (__u32 slot = 100; slot < 120; slot++) {
		__u32 tsval;
		__u32 cookie =
			es_cookie_make_packed(&key, FLOW, slot, 77, es_cookie_options_pack(&o), &tsval);

		/* A clock that is a slot behind, this slot and the two after it; then it is known, but too
		 * old. */
		for (int age = -1; age <= 2; age++)
			assert_int_equal(es_cookie_check(&key, FLOW, slot + (__u32)age, cookie, 77, NULL),
					 ES_COOKIE_VALID);
		for (__u32 age = 3; age <= 6; age++)
			assert_int_equal(es_cookie_check(&key, FLOW, slot + age, cookie, 77, NULL),
					 ES_COOKIE_EXPIRED);
		for (__u32 age = 8; age < 40; age++)
			assert_int_not_equal(es_cookie_check(&key, FLOW, slot + age, cookie, 77, NULL),
					     ES_COOKIE_VALID);
	}
}

static void test_what_is_bound(void **state)
{
	struct es_tcp_options o = options(1460, 7, 1, 0);
	__u32 tsval, wrong;
	__u32 cookie = es_cookie_make_packed(&key, FLOW, 1000, 77, es_cookie_options_pack(&o), &tsval);

	(void)state;
	wrong = tsval + 1;
	assert_int_equal(es_cookie_check(&key, FLOW, 1000, cookie, 78, &tsval), ES_COOKIE_FLOW);
	assert_int_equal(es_cookie_check(&key, FLOW, 1000, cookie, 77, &wrong), ES_COOKIE_FLOW);
	assert_int_equal(es_cookie_check(&key, FLOW + 1, 1000, cookie, 77, &tsval), ES_COOKIE_INVALID);
	assert_int_equal(es_cookie_check(&other_key, FLOW, 1000, cookie, 77, &tsval), ES_COOKIE_INVALID);
	/* Options are bound too: a client cannot talk us into a window scale that it did not offer. */
	assert_int_not_equal(es_cookie_check(&key, FLOW, 1000, cookie ^ 1 << 12, 77, &tsval),
			     ES_COOKIE_VALID);
}

/* An acknowledgment that moved on with the response is no cookie any more, but for the tag's odds of 1 in
 * 1,024. */
static void test_moved_acknowledgment(void **state)
{
	struct es_tcp_options o = options(1460, 7, 1, 0);
	unsigned int taken = 0, valid = 0;
	uint64_t seed = 2;

	(void)state;
	for (int i = 0; i < 200; i++) {
		__u64 flow = es_test_random(&seed);
		__u32 tsval;
		__u32 cookie =
			es_cookie_make_packed(&key, flow, 1000, 77, es_cookie_options_pack(&o), &tsval);

		for (__u32 sent = 1; sent <= 2000; sent++) {
			enum es_cookie_state got = es_cookie_check(&key, flow, 1000, cookie + sent, 77, NULL);

			taken += got == ES_COOKIE_FLOW;
			valid += got == ES_COOKIE_VALID;
		}
	}
	assert_in_range(taken, 250, 550); /* of 400,000; 390 expected */
	assert_in_range(valid, 0, 3);
}

static void test_forgery(void **state)
{
	unsigned int flow_only = 0, valid = 0, expired = 0;
	uint64_t seed = 3;

	(void)state;
	for (int i = 0; i < 4000000; i++) {
		__u64 r = es_test_random(&seed);
		enum es_cookie_state got =
			es_cookie_check(&key, FLOW, 1000, (__u32)r, (__u32)(r >> 32), NULL);

		flow_only += got == ES_COOKIE_FLOW;
		valid += got == ES_COOKIE_VALID;
		expired += got == ES_COOKIE_EXPIRED;
	}
	assert_in_range(flow_only, 1500, 2500); /* half of 2^-10 */
	assert_in_range(valid, 0, 8);		/* half of 2^-21: one expected */
	assert_in_range(expired, 0, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_options_survive), cmocka_unit_test(test_mss_of_ipv6),
		cmocka_unit_test(test_golden),		cmocka_unit_test(test_lifetime),
		cmocka_unit_test(test_what_is_bound),	cmocka_unit_test(test_moved_acknowledgment),
		cmocka_unit_test(test_forgery),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
