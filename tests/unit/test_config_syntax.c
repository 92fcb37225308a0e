// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Texts that are no configuration, whatever their values: for each the exact message, as for wrong values
 * (test_config_errors.c).
 */
#include "tests/unit/config_text.h"

static const struct wrong_text errors[] = {
	/* structure */
	{"cluster {\n\n colour = red\n}",
	 "t.conf:3: cluster: unknown key \"colour\": expected name | key_file | "
	 "membership | handover_port | virtual_nodes | ring_hash | catch_up"},
	{"service web { adress = 10.77.0.100 }",
	 "t.conf:1: service web: unknown key \"adress\": expected address | "
	 "port | policy | inspect | unsafe | survive | resume | server_address | server_port | load_bound | "
	 "handover_cost | "
	 "content_host | content_on_disk | "
	 "parameters | "
	 "document_root | admit_low | "
	 "admit_normal | retry_after_s | when_all_down | nodes | backup | plugin NAME { | check { | outlier "
	 "{ | "
	 "otherwise { | tls {"},
	{"\nservices { }", "t.conf:2: unknown section \"services\": expected cluster | datapath | inspector "
			   "| status | log | node | service | rule | location"},
	{"port = 80",
	 "t.conf:1: unknown section \"port\": expected cluster | datapath | inspector | status | log | "
	 "node | service | rule | location"},
	{"cluster {\n name = a\n name = a\n}",
	 "t.conf:3: cluster: name = a: first set on line 2: expected it once"},
	{"cluster {\n name = a\n}\ncluster {\n name = b\n}",
	 "t.conf:4: cluster: first defined on line 1: expected one cluster section"},
	{"cluster {\n}\ncluster {\n}",
	 "t.conf:4: cluster: first defined on line 2: expected one cluster section"},
	{NODE NODE, "t.conf:2: node n1: first defined on line 1: expected another name"},
	{NODE "node n2 { address = 10.78.0.2 }\nnode n1 { }",
	 "t.conf:3: node n1: first defined on line 1: expected another name"},
	{SERVICE SERVICE, "t.conf:2: service web: first defined on line 1: expected another name"},
	{"node n1 {\n weight = 1\n}", "t.conf:1: node n1: address is missing: expected address = VALUE"},
	{"service web {\n address = 10.77.0.100\n}",
	 "t.conf:1: service web: port is missing: expected port = VALUE"},
	{"service web {\n}", "t.conf:2: service web: address is missing: expected address = VALUE"},
	{"node { address = 10.78.0.1 }", "t.conf:1: node: name is missing: expected one before \"{\""},
	{"node a b { }", "t.conf:1: node: expected \"{\""},
	{"node 'a b' { weight = 1 }",
	 "t.conf:1: node a b: bad name: expected 1..63 letters, digits, '.', '_' or '-', "
	 "starting with a letter or digit"},
	{"node -a { weight = 1 }",
	 "t.conf:1: node -a: bad name: expected 1..63 letters, digits, '.', '_' or '-', "
	 "starting with a letter or digit"},
	{"cluster x { }", "t.conf:1: cluster: expected \"{\""},
	{"cluster { name lab }", "t.conf:1: cluster: name: expected \"=\" and a value"},
	{"cluster { name = }", "t.conf:1: cluster: unexpected \"}\": expected KEY = VALUE"},
	{"cluster { name = = a }", "t.conf:1: cluster: unexpected \"=\": expected KEY = VALUE"},
	/* comments count as many lines as they have, wherever they stand */
	{"# a\n# b\nservices { }",
	 "t.conf:3: unknown section \"services\": expected cluster | datapath | inspector | "
	 "status | log | node | service | rule | location"},
	{"/* a\n b */\ncluster /* c */ { // d\n handover_port = # e\n /**/ 0 /***/ }",
	 "t.conf:5: cluster: handover_port = 0: expected 1..65535"},
	{"cluster { name = /*a\n\xc3\xa4*/ c\n x = y }",
	 "t.conf:3: cluster: unknown key \"x\": expected name | key_file | membership | handover_port | "
	 "virtual_nodes | ring_hash | catch_up"},
	{"cluster { handover_port = 1/*2*/ }",
	 "t.conf:1: unexpected \"*\": expected a word, \"=\", \"{\", \"}\" or quotes"},
	{"/*/ cluster { }", "t.conf:1: comment without its end: expected */"},
	{"cluster { = a }", "t.conf:1: cluster: unexpected \"=\": expected KEY = VALUE"},
	{"node", "t.conf:1: premature end of file: expected SECTION { KEY = VALUE }"},
	{"'' = x", "t.conf:1: syntax error: expected SECTION { KEY = VALUE }"},
	{"cluster { '' = x }", "t.conf:1: syntax error: expected SECTION { KEY = VALUE }"},

	/* what libconfuse would have let pass */
	{"cluster {\n name = a\n", "t.conf:1: \"{\" without \"}\": expected it before the end of the file"},
	{"cluster {\n name = a\n node n1 {\n}",
	 "t.conf:3: \"{\" inside the section opened at line 1: expected \"}\" first"},
	{"\n}", "t.conf:2: \"}\" without \"{\": expected a section or the end"},
	{"\ncluster { name = \"lab }\n}",
	 "t.conf:2: string without its closing \": expected it on the same line"},
	{"cluster { name = 'lab", "t.conf:1: string without its closing ': expected it on the same line"},
	{MINIMAL "/* forgotten", "t.conf:4: comment without its end: expected */"},
	{"cluster { name = \"a\\\" }", "t.conf:1: \"\\\"\" in a string: expected no escapes: a backslash is "
				       "itself, and a text with \" stands in "
				       "single quotes"},
	{"cluster { name = 'a\\' }", "t.conf:1: \"\\'\" in a string: expected no escapes: a backslash is "
				     "itself, and a text with ' stands in "
				     "double quotes"},
	{"cluster { name = \\x41 }",
	 "t.conf:1: unexpected \"\\\": expected a word, \"=\", \"{\", \"}\" or quotes"},
	{"cluster { name = \"${HOME}\" }",
	 "t.conf:1: \"${\" in a string: expected no variables, the file is the same on all nodes"},
	{"cluster { name = ${HOME} }",
	 "t.conf:1: unexpected \"$\": expected a word, \"=\", \"{\", \"}\" or quotes"},
	{"cluster { handover_port = *80 }",
	 "t.conf:1: unexpected \"*\": expected a word, \"=\", \"{\", \"}\" or quotes"},
	{"cluster { name += b }",
	 "t.conf:1: unexpected \"+\": expected a word, \"=\", \"{\", \"}\" or quotes"},
	{"include(\"x\")", "t.conf:1: unexpected \"(\": expected a word, \"=\", \"{\", \"}\" or quotes"},
	{"cluster { name = \"a\tb\" }", "t.conf:1: control character 0x09: expected text"},
	{"cluster { name = \"a\x7f\" }", "t.conf:1: control character 0x7f: expected text"},
	{"cluster { }\n# bell \a\n", "t.conf:2: control character 0x07: expected text"},
	{"a\rb", "t.conf:1: control character 0x0d: expected text"},
	{"cluster { name = \xc3\xa4 }",
	 "t.conf:1: unexpected byte 0xc3: expected ASCII outside quotes and comments"},
	{"cluster {\n name = \"caf\xe9\" }",
	 "t.conf:2: byte 0xe9 in a string is not UTF-8: expected UTF-8, or %E9 in a path"},
	{"cluster { name = \"\xc3\" }",
	 "t.conf:1: byte 0xc3 in a string is not UTF-8: expected UTF-8, or %C3 in a path"},
	{"cluster { name = \"\xed\xa0\x80\" }",
	 "t.conf:1: byte 0xed in a string is not UTF-8: expected UTF-8, or %ED in a path"},
	{"cluster { name = \"\xc0\xaf\" }",
	 "t.conf:1: byte 0xc0 in a string is not UTF-8: expected UTF-8, or %C0 in a path"},
	{"\xef\xbb\xbf\xef\xbb\xbf",
	 "t.conf:1: unexpected byte 0xef: expected ASCII outside quotes and comments"},
	{"\xff\xfe#", "t.conf: UTF-16: expected UTF-8, as iconv -f UTF-16 -t UTF-8 makes it"},
	{"\xef\xbb\xbf", "t.conf: datapath: interface is missing: expected interface = VALUE"},
};

static void test_errors(void **state)
{
	(void)state;
	check_errors(errors, sizeof(errors) / sizeof(errors[0]));
}

static void test_nul(void **state)
{
	static const char text[] = "cluster { name = \"a\0b\" }";

	(void)state;
	check_error(text, sizeof(text) - 1, "t.conf:1: control character 0x00: expected text");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_nul),
	};

	return cmocka_run_group_tests_name("config_syntax", tests, NULL, NULL);
}
