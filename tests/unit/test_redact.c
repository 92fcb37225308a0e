// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A configuration as strangers may read it: what is shown of files that are right, and of those that no
 * daemon takes.
 */
#include "tests/unit/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/config/config.h"

static char hidden[1024];

static void note_hidden(void *ctx, const char *text, size_t len)
{
	size_t used = strlen(hidden);

	(void)ctx;
	snprintf(hidden + used, sizeof(hidden) - used, "%.*s|", (int)len, text);
}

static void check(const char *text, const char *expected, const char *expected_hidden)
{
	char *shown = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&shown, &len);

	assert_non_null(out);
	hidden[0] = 0;
	es_conf_redact(text, strlen(text), out, note_hidden, NULL);
	fclose(out);
	assert_string_equal(shown, expected);
	assert_string_equal(hidden, expected_hidden);
	free(shown);
}

static void test_shown(void **state)
{
	(void)state;
	check("node n1 { address = 10.0.0.1  weight = 50 }\n",
	      "node n1 { address = 10.0.0.1  weight = 50 }\n", "");
	check("service \"web\" {\n\taddress = 10.0.0.1, fd00::1\n}\n",
	      "service \"web\" {\n\taddress = 10.0.0.1, fd00::1\n}\n", "");
	check("location \"/a b\" { nodes = { n1, \"n2\" } cost = 2 }",
	      "location \"/a b\" { nodes = { n1, \"n2\" } cost = 2 }", "");
	check("tls { certificate = /a.pem key = { '/a b.key', /b.key } server = \"unix:/s\" ciphers = A:B }",
	      "tls { certificate = /a.pem key = { '/a b.key', /b.key } server = \"unix:/s\" ciphers = A:B }",
	      "");
	check("service web { check { path = '/up' } plugin lua { file = x.so } }",
	      "service web { check { path = '/up' } plugin lua { file = x.so } }", "");
}

static void test_left_out(void **state)
{
	(void)state;
	check("plugin lua { config = \"token=abc\" budget_us = 5 }",
	      "plugin lua { config = \"(left out)\" budget_us = 5 }", "token=abc|");
	check("plugin lua { config = 'it\"s' }", "plugin lua { config = \"(left out)\" }", "it\"s|");
	check("rule a { header = \"X-Key: hunter2\" cookie = sid }",
	      "rule a { header = \"X-Key:(left out)\" cookie = sid }", "hunter2|");
	check("rule a { header = X-Key }", "rule a { header = X-Key }", "");
	check("cluster { key = abc }", "cluster { key = \"(left out)\" }", "abc|");
	check("tls { key = { \"-----BEGIN\", /a.key } }", "tls { key = { \"(left out)\", /a.key } }",
	      "-----BEGIN|");
	check("check { path = \"/up?token=1\" }", "check { path = \"/up?(left out)\" }", "token=1|");
	check("# secret\nnode n1 { // secret\n/* secret\n secret */ weight = 1 # secret\n}",
	      "\nnode n1 { \n\n weight = 1 \n}", "");
}

/* Files that no daemon takes, and that an operator sends because of that. */
static void test_wrong(void **state)
{
	(void)state;
	check("plugin lua { confg = \"secret\" }", "plugin lua { \"(left out)\" = \"(left out)\" }",
	      "confg|secret|");
	check("plugin lua { config = \"secret\n file = x }",
	      "plugin lua { config = \"(left out)\"\n file = x }", "secret|");
	check("plugin lua { config \"secret\" }", "plugin lua { \"(left out)\" \"(left out)\" }",
	      "config|\"secret\"|");
	check("plugin lua { config = my secret }", "plugin lua { config = \"(left out)\" \"(left out)\" }",
	      "my|secret|");
	check("plugin lua { config = { \"a secret\", b } weight = 1",
	      "plugin lua { config = { \"(left out)\", \"(left out)\" } weight = 1", "a secret|b|");
	check("plugin lua { config = secret, secret }",
	      "plugin lua { config = \"(left out)\", \"(left out)\" }", "secret|secret|");
	check("secret", "\"(left out)\"", "secret|");
	check("weight = 'secret", "weight = \"(left out)\"", "secret|");
	check("/* secret", "", "");
	check("\"", "\"(left out)\"", "\"|");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shown),
		cmocka_unit_test(test_left_out),
		cmocka_unit_test(test_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
