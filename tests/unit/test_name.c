// SPDX-License-Identifier: GPL-2.0-or-later
/* The names of content: what is one content to a server has one name, what may be two has two. */
#include "cmocka_all.h"
#include <string.h>
#include "inspector/policy/name.h"

static struct es_name name;

static void expect(const char *host, const char *uri, const char *expected)
{
	es_name_make(&name, host, host ? strlen(host) : 0, uri, strlen(uri));
	if (name.len != strlen(expected) || memcmp(name.text, expected, name.len) != 0)
		fail_msg("%s %s: %.*s, not %s", host ? host : "-", uri, (int)name.len, name.text, expected);
}

static void test_uri(void **state)
{
	static const char *const same[][2] = {
		{"/", "/"},
		{"/~a", "/~a"},
		{"/%7Ea", "/~a"},
		{"/%7ea", "/~a"},
		{"/%41%7a%30%2D%2e%5f?%62", "/Az0-._?b"},
		/* These characters mean something, or are none that may stand there. */
		{"/a%2Fb", "/a%2Fb"},
		{"/a%2fb", "/a%2Fb"},
		{"/caf%c3%a9?%3d%20", "/caf%C3%A9?%3D%20"},
		{"/%25%37%65", "/%257e"},
		{"/%00", "/%00"},
		/* No escapes. */
		{"/%", "/%"},
		{"/%4", "/%4"},
		{"/%g1%4g", "/%g1%4g"},
		{"/%%41", "/%A"},
		/* Left alone: servers differ. */
		{"/a//b/../c", "/a//b/../c"},
		{"/A", "/A"},
		{"/?", "/?"},
		{"/a?b?c", "/a?b?c"},
		/* A URI without a path. */
		{"", "/"},
		{"?a=1", "/?a=1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		expect(NULL, same[i][0], same[i][1]);
}

static void test_host(void **state)
{
	static const char *const same[][2] = {
		{"example.org", "//example.org/a"},
		{"Example.ORG", "//example.org/a"},
		{"example.org:80", "//example.org/a"},
		{"example.org.", "//example.org/a"},
		{"example.org.:8080", "//example.org/a"},
		{"192.0.2.1:80", "//192.0.2.1/a"},
		{"[2001:DB8::1]", "//[2001:db8::1]/a"},
		{"[2001:db8::1]:80", "//[2001:db8::1]/a"},
		{"", "/a"},
		{":80", "/a"},
		{".", "/a"},
		{"[", "//[/a"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		expect(same[i][0], "/a", same[i][1]);
}

/* As long as may be, and longer than any head. */
static void test_long(void **state)
{
	static char uri[ES_NAME_MAX + 10];

	(void)state;
	memset(uri, 'a', sizeof(uri));
	uri[0] = '/';
	es_name_make(&name, NULL, 0, uri, ES_NAME_MAX);
	assert_int_equal(name.len, ES_NAME_MAX);
	assert_memory_equal(name.text, uri, ES_NAME_MAX);
	es_name_make(&name, "host", 4, uri, sizeof(uri));
	assert_int_equal(name.len, ES_NAME_MAX);
	assert_memory_equal(name.text, "//host/aa", 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uri),
		cmocka_unit_test(test_host),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
