// SPDX-License-Identifier: GPL-2.0-or-later
/* Times as they are written and shown: what each means, and what is none. */
#include "cmocka_all.h"
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include "inspector/base/when.h"

#define NOW_MS 1795771800500ULL /* 2026-11-27 10:30:00.5 in Berlin, an hour less in UTC */

static void test_since(void **state)
{
	static const struct {
		const char *text;
		unsigned long long ms;
	} tests[] = {
		{"2026-11-25 09:30", 1795595400000},
		{"2026-11-25 09:30:12", 1795595412000},
		{"2026-11-25 09:30:12.481", 1795595412481},
		{"2026-11-25 09:30:12.5", 1795595412500},
		{"2026-11-25 09:30:12.481999", 1795595412481},
		{"2026-11-25T09:30", 1795595400000},
		{"2026-11-25T09:30:12", 1795595412000},
		{"2026-11-25T09:30:12.481+0100", 1795595412481},
		{"2026-11-25T08:30:12Z", 1795595412000},
		{"2026-11-25T03:30:12.481-05:00", 1795595412481},
		{"2026-11-25", 1795561200000},
		{"2026-07-01 12:00", 1782900000000}, /* in summer */
		{"2028-02-29", 1835391600000},
		{"10:30", 1795771800000},
		{"09:30", 1795768200000},
		{"9:30:01.25", 1795768201250},
		{"10:31", 1795771860000 - 86400000}, /* of yesterday */
		{"90s", NOW_MS - 90000},
		{"1h30m", NOW_MS - 5400000},
		{"1d2h3m4s", NOW_MS - 93784000},
		{"1.5h", NOW_MS - 5400000},
		{"0s", NOW_MS},
	};
	unsigned long long ms;

	(void)state;
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (es_when_since(tests[i].text, NOW_MS, &ms) || ms != tests[i].ms)
			fail_msg("%s: %llu, not %llu", tests[i].text, ms, tests[i].ms);
}

static void test_no_times(void **state)
{
	static const char *const tests[] = {
		"",
		"soon",
		"2026-02-31 10:00",
		"2026-02-29",
		"2026-13-01 10:00",
		"2026-00-01",
		"2026-01-00",
		"2026-11-25 24:00",
		"2026-11-25 09:60",
		"2026-11-25 09",
		"2026-11-25 9:5",
		"2026-11-25 09:30:61",
		"2026-11-25 09:30:12.",
		"2026-11-25 ",
		"2026-11-25x",
		"2026-11-25  09:30",
		"2026-11-25 09:30x",
		"2026-11-25 09:30+1",
		"2026-11-25 09:30+0160",
		"26-11-25",
		"1026-11-25",
		"12:00x",
		"25:00",
		"-5m",
		"5",
		"5m1h",
		"1h1h",
		"h",
		"1x",
		"1h30",
		"1e3s",
		" 5m",
		"infs",
		"nand",
		"0x10s",
		"1..5h",
		"9999999999999d",
	};
	unsigned long long ms = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (es_when_since(tests[i], NOW_MS, &ms) != -EINVAL || ms != 7)
			fail_msg("\"%s\" is taken", tests[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_since),
		cmocka_unit_test(test_no_times),
	};

	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
