// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which node of the configuration this machine is: by name, by address, and what is said if that is not
 * clear.
 */
#include "tests/unit/config_text.h"

#include <arpa/inet.h>

static void test_find_self_by_name(void **state)
{
	struct es_conf *conf = parse_ok(MINIMAL "node n2 { address = 10.78.0.2 }");
	struct es_conf_error err;
	unsigned int index = 77;

	(void)state;
	assert_int_equal(es_conf_find_self(conf, "n3", &index, &err), -ENOENT);
	assert_string_equal(err.text,
			    "t.conf: no node named \"n3\": expected n1 (10.78.0.1), n2 (10.78.0.2)");
	assert_int_equal(index, 77);
	assert_int_equal(es_conf_find_self(conf, "n2", &index, &err), 0);
	assert_int_equal(index, 1);
	es_conf_free(&conf);
}

static void test_find_self_by_address(void **state)
{
	struct es_conf *conf =
		parse_ok(MINIMAL "node n2 { address = 10.78.0.2 }\nnode n3 { address = 10.78.0.3 }\n");
	struct es_conf_error err;
	unsigned int i, index = 77;

	(void)state;
	/* addresses that no machine has, later one that every machine has; a file may hold neither */
	for (i = 0; i < 3; i++)
		conf->nodes[i].address.w[3] = htonl(0xf0000001 + i);
	assert_int_equal(es_conf_find_self(conf, NULL, &index, &err), -ENOENT);
	assert_string_equal(err.text,
			    "t.conf: this machine has no node's address: expected one of n1 (240.0.0.1), n2 "
			    "(240.0.0.2), n3 (240.0.0.3) on an interface, or --node NAME");
	conf->nodes[1].address.w[3] = inet_addr("127.0.0.1");
	assert_int_equal(es_conf_find_self(conf, NULL, &index, &err), 0);
	assert_int_equal(index, 1);
	conf->nodes[2].address.w[3] = inet_addr("127.0.0.1");
	index = 77;
	assert_int_equal(es_conf_find_self(conf, NULL, &index, &err), -EEXIST);
	assert_string_equal(err.text,
			    "t.conf: this machine has the addresses of 2 nodes: expected --node NAME of n1 "
			    "(240.0.0.1), n2 (127.0.0.1), n3 (127.0.0.1)");
	assert_int_equal(index, 77);
	es_conf_free(&conf);
}

/* A node that was removed is no machine's, whoever has its address now. */
static void test_removed(void **state)
{
	struct es_conf *conf = parse_ok(MINIMAL "node n2 { address = 10.78.0.2  removed = yes }\n"
						"node n3 { address = 10.78.0.2 }\n");
	struct es_conf_error err;
	unsigned int index = 77;

	(void)state;
	conf->nodes[1].address.w[3] = conf->nodes[2].address.w[3] = inet_addr("127.0.0.1");
	assert_int_equal(conf->nodes[1].weight, 0);
	assert_int_equal(es_conf_nodes_present(conf), 2);
	assert_int_equal(es_conf_find_self(conf, NULL, &index, &err), 0);
	assert_int_equal(index, 2);
	assert_int_equal(es_conf_find_self(conf, "n2", &index, &err), -ENOENT);
	assert_string_equal(err.text, "t.conf: node n2: removed = yes: expected no daemon on it any more");
	assert_int_equal(es_conf_find_self(conf, "n9", &index, &err), -ENOENT);
	assert_null(strstr(err.text, "n2"));
	es_conf_free(&conf);
}

/* Nodes whose interfaces have other names. */
static void test_use_node(void **state)
{
	struct es_conf *conf = parse_ok(MINIMAL "node n2 { address = 10.78.0.2  interface = enp1s0 }\n"
						"node n3 { address = 10.78.0.3  cluster_interface = "
						"\"a-name-of-more-than-fifteen-characters\" }\n");
	const struct es_conf before = *conf;

	(void)state;
	es_conf_use_node(conf, 0);
	assert_memory_equal(&conf->datapath, &before.datapath, sizeof(conf->datapath));
	es_conf_use_node(conf, 1);
	assert_string_equal(conf->datapath.interface, "enp1s0");
	assert_string_equal(conf->datapath.cluster_interface, before.datapath.cluster_interface);
	conf->datapath = before.datapath;
	es_conf_use_node(conf, 2);
	assert_string_equal(conf->datapath.interface, before.datapath.interface);
	assert_string_equal(conf->datapath.cluster_interface, "a-name-of-more-than-fifteen-characters");
	es_conf_free(&conf);
}

static void test_find_self_long_list(void **state)
{
	char *text = many(DATAPATH SERVICE, 127, "node n%u { address = 192.0.2.%u }\n");
	struct es_conf *conf = parse_ok(text);
	struct es_conf_error err;
	unsigned int index;

	(void)state;
	assert_int_equal(es_conf_find_self(conf, "x", &index, &err), -ENOENT);
	assert_non_null(strstr(err.text, "n14 (192.0.2.14), ..."));
	es_conf_free(&conf);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find_self_by_name),
		cmocka_unit_test(test_find_self_by_address),
		cmocka_unit_test(test_find_self_long_list),
		cmocka_unit_test(test_removed),
		cmocka_unit_test(test_use_node),
	};

	return cmocka_run_group_tests_name("config_self", tests, NULL, NULL);
}
