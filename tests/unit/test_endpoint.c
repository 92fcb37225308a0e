// SPDX-License-Identifier: GPL-2.0-or-later
/* Addresses and ports as people write them. */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include "inspector/base/endpoint.h"

static void test_split(void **state)
{
	static const struct {
		const char *text, *address;
		int port;
	} right[] = {
		{"192.0.2.1", "192.0.2.1", -1},
		{"192.0.2.1:0", "192.0.2.1", 0},
		{"192.0.2.1:65535", "192.0.2.1", 65535},
		{"2001:db8::9", "2001:db8::9", -1},
		{"2001:db8::9:77", "2001:db8::9:77", -1},
		{"::", "::", -1},
		{"::1", "::1", -1},
		{"[2001:db8::9]", "2001:db8::9", -1},
		{"[2001:db8::9]:77", "2001:db8::9", 77},
		{"[::]:1", "::", 1},
		{"[192.0.2.1]:80", "192.0.2.1", 80},
		{"::ffff:192.0.2.1", "::ffff:192.0.2.1", -1},
		{"nobody", "nobody", -1},
		{"", "", -1},
	};
	char address[INET6_ADDRSTRLEN];
	int port;

	(void)state;
	for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) {
		assert_int_equal(es_endpoint_split(right[i].text, address, &port), 0);
		assert_string_equal(address, right[i].address);
		assert_int_equal(port, right[i].port);
	}
}

static void test_wrong(void **state)
{
	static const char *const wrong[] = {
		"192.0.2.1:",
		"192.0.2.1:x",
		"192.0.2.1:80x",
		"192.0.2.1:-1",
		"192.0.2.1:65536",
		"192.0.2.1: 80",
		"[2001:db8::9",
		"[2001:db8::9]80",
		"[2001:db8::9]:",
		"[2001:db8::9]:+1",
		"[2001:db8::9]:65536",
		"2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff:1111:2222",
		"[",
	};
	char address[INET6_ADDRSTRLEN] = "as it was";
	int port = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(es_endpoint_split(wrong[i], address, &port), -EINVAL);
	assert_string_equal(address, "as it was");
	assert_int_equal(port, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
