// SPDX-License-Identifier: GPL-2.0-or-later
/* A unit test's program runs one case alone when it is told so (one_case.c): this one, by itself. */
#include "cmocka_all.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void count(const char *environment, int *ret_chosen, int *ret_other)
{
	char command[64], line[256];
	FILE *pipe;

	snprintf(command, sizeof(command), "INNER=1 %s exec /proc/%d/exe 2>&1", environment, (int)getpid());
	pipe = popen(command, "r"); /* NOLINT(cert-env33-c): a name of our own */
	assert_non_null(pipe);
	*ret_chosen = *ret_other = 0;
	while (fgets(line, sizeof(line), pipe)) {
		*ret_chosen += strstr(line, "OK ] test_chosen") != NULL;
		*ret_other += strstr(line, "OK ] test_other") != NULL;
	}
	assert_int_equal(pclose(pipe), 0);
}

static void test_chosen(void **state)
{
	(void)state;
}

static void test_other(void **state)
{
	(void)state;
}

static void test_by_name(void **state)
{
	int chosen, other;

	(void)state;
	assert_null(getenv("INNER")); /* or this would run itself for ever */
	count("EARSHOT_CASE=test_chosen", &chosen, &other);
	assert_int_equal(chosen, 1);
	assert_int_equal(other, 0);
	count("EARSHOT_CASE=test_gone", &chosen, &other);
	assert_int_equal(chosen + other, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chosen),
		cmocka_unit_test(test_other),
		cmocka_unit_test(test_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
