// SPDX-License-Identifier: GPL-2.0-or-later
/* Correct configuration files: defaults, each key, the shipped examples; and files that cannot be read. */
#include "tests/unit/config_text.h"

#include <arpa/inet.h>
#include <glob.h>

static void test_defaults(void **state)
{
	static const unsigned char mac[] = {0x03, 0xbf, 10, 77, 0, 100};
	struct es_conf *conf = parse_ok(MINIMAL);

	(void)state;
	assert_string_equal(conf->path, "t.conf");
	assert_string_equal(conf->cluster.name, "earshot");
	assert_string_equal(conf->cluster.key_file, "/etc/earshot/cluster.key");
	assert_int_equal(conf->cluster.membership, ES_CONF_MEMBERSHIP_STATIC);
	assert_int_equal(conf->cluster.handover_port, 7350);
	assert_int_equal(conf->status.port, 7351);
	assert_int_equal(conf->status.allow.count, 0);
	assert_int_equal(conf->status.names.count, 0);
	assert_int_equal(conf->cluster.virtual_nodes, 63);
	assert_int_equal(conf->cluster.ring_hash, ES_CONF_RING_SIPHASH);
	assert_int_equal(conf->cluster.catch_up, 1);
	assert_int_equal(conf->datapath.type, ES_CONF_DATAPATH_AUTO);
	assert_string_equal(conf->datapath.interface, "eth0");
	assert_string_equal(conf->datapath.cluster_interface, "eth1");
	assert_int_equal(conf->datapath.mac_mode, ES_CONF_MAC_MULTICAST);
	assert_memory_equal(conf->datapath.cluster_mac, mac, 6);
	assert_int_equal(conf->datapath.receive_window_scale, 10);
	assert_int_equal(conf->datapath.mtu, 0);
	assert_int_equal(conf->datapath.cookie_lifetime_s, 384);
	assert_int_equal(conf->datapath.fallback_after_ms, 1000);
	assert_int_equal(conf->datapath.conntrack_zone, 0);
	assert_int_equal(conf->inspector.workers, 0);
	assert_int_equal(conf->inspector.gather_timeout_ms, 200);
	assert_int_equal(conf->inspector.gather_bytes, 65536);
	assert_int_equal(conf->inspector.gather_flows, 4096);
	assert_int_equal(conf->inspector.decision_entries, 0);
	assert_int_equal(conf->inspector.connection_rate, 500);
	assert_int_equal(es_conf_decision_entries(conf), 192000);
	assert_int_equal(conf->inspector.race_window_ms, 50);
	assert_int_equal(conf->node_count, 1);
	assert_string_equal(conf->nodes[0].name, "n1");
	assert_int_equal(conf->nodes[0].weight, 100);
	assert_int_equal(conf->service_count, 1);
	assert_string_equal(conf->services[0].name, "web");
	assert_int_equal(conf->services[0].address.w[3], inet_addr("10.77.0.100"));
	assert_true(es_addr_is_v4(&conf->services[0].address));
	assert_int_equal(conf->services[0].port, 80);
	assert_string_equal(conf->services[0].policy, "uri-hash");
	assert_int_equal(conf->services[0].inspect, ES_INSPECT_FIRST);
	assert_int_equal(conf->services[0].load_bound, 125);
	assert_int_equal(conf->services[0].content_on_disk, 1);
	es_conf_free(&conf);
	assert_null(conf);
	es_conf_free(&conf);
}

/* Addresses of each family, in any order; what the file says of them is kept. */
static void test_families(void **state)
{
	static const uint8_t v6[16] = {0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10};
	static const char *const both[] = {"192.0.2.10, 2001:db8::10", "2001:db8::10,192.0.2.10",
					   "192.0.2.10\t , 2001:DB8::10", "'192.0.2.10, 2001:db8::10'"};
	struct es_conf *conf;
	char text[512], addresses[ES_CONF_ADDRESSES_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++) {
		snprintf(text, sizeof(text), DATAPATH NODE "service web {\n address = %s\n port = 80 }",
			 both[i]);
		conf = parse_ok(text);
		assert_int_equal(conf->services[0].address.w[3], inet_addr("192.0.2.10"));
		assert_memory_equal(&conf->services[0].address6, v6, 16);
		assert_true(es_conf_service_has(&conf->services[0], &conf->services[0].address6));
		assert_string_equal(es_conf_service_text(&conf->services[0], addresses),
				    "192.0.2.10, 2001:db8::10");
		es_conf_free(&conf);
	}
	conf = parse_ok(DATAPATH "node n1 {\n address = 2001:db8::10 }\n" SERVICE);
	assert_memory_equal(&conf->nodes[0].address, v6, 16);
	assert_false(es_addr_is_set(&conf->services[0].address6));
	es_conf_free(&conf);
	conf = parse_ok(DATAPATH NODE "service web { address = 2001:db8::10 port = 80 }");
	assert_false(es_addr_is_set(&conf->services[0].address));
	assert_memory_equal(es_conf_service_address(&conf->services[0]), v6, 16);
	assert_null(es_conf_service_of(&conf->services[0], 0));
	assert_string_equal(es_conf_service_text(&conf->services[0], addresses), "2001:db8::10");
	es_conf_free(&conf);
	conf = parse_ok(MINIMAL);
	assert_string_equal(es_conf_service_text(&conf->services[0], addresses), "10.77.0.100");
	es_conf_free(&conf);
}

static void test_everything_set(void **state)
{
	static const unsigned char mac[] = {0x02, 0xbf, 0x0a, 0x4d, 0x00, 0xfE};
	struct es_conf *conf = parse_ok(
		"/* a\n * comment */\n"
		"service a { port = 443 address = '10.77.0.101' policy = ring inspect = never load_bound = 0 "
		"}\n"
		"cluster {\n name = \"the lab, nr. 1\"  key_file = /tmp/k # here\n membership = static\n"
		" handover_port = 1\n virtual_nodes = 1024\n ring_hash = jhash catch_up = no\n}\n"
		"datapath { type = bpf  interface = \"wan.10\"  cluster_interface = br-lan  mac_mode = "
		"unicast\r\n"
		" cluster_mac = \"02:bf:0a:4D:00:fE\" receive_window_scale = 14  mtu = 9000\n"
		" cookie_lifetime_s = 120 fallback_after_ms = 60000 conntrack_zone = 7 }\n"
		"inspector { workers = 8 gather_timeout_ms = 1 gather_bytes = 1460 gather_flows = 1\n"
		" decision_entries = 1024 race_window_ms = 0 program_group = www-data } // end\n"
		"node n-1.a_B { weight = 0 address = 10.78.0.1 }\nnode 2 { address = \"10.78.0.2\" weight = "
		"1000 }\n"
		"service b { port = 443 address = 10.77.0.102 policy = 'lard' load_bound = 100 "
		"content_on_disk = no }\n"
		"service c { port = 80 address = 10.77.0.102 inspect = never server_port = 80 }\n"
		"service d { port = 81 address = 10.77.0.102 server_port = 82 server_address = 10.77.0.102 "
		"}\n"
		"service e { port = 80 address = 10.77.0.103, 2001:db8::3 server_port = 81\n"
		" server_address = ::1, 10.77.0.1 }\n"
		"service f { port = 80 address = 2001:db8::4 server_port = 80 server_address = 2001:db8::5 "
		"}");
	static const struct es_addr loopback = {.b = {[15] = 1}};

	(void)state;
	assert_string_equal(conf->inspector.program_group, "www-data");
	assert_int_equal(conf->services[1].server_port, 0);
	assert_int_equal(conf->services[2].server_port, 80);
	assert_int_equal(conf->services[2].server_address.w[3], inet_addr("127.0.0.1"));
	assert_true(es_addr_equal(&conf->services[2].server_address6, &loopback));
	assert_ptr_equal(es_conf_server_of(&conf->services[2], 0), &conf->services[2].server_address);
	assert_null(es_conf_server_of(&conf->services[2], 1)); /* it has no connections of IPv6 */
	assert_null(es_conf_server_of(&conf->services[1], 0)); /* no port */
	assert_int_equal(conf->services[4].server_address.w[3], inet_addr("10.77.0.1"));
	assert_ptr_equal(es_conf_server_of(&conf->services[4], 1), &conf->services[4].server_address6);
	assert_true(es_addr_equal(&conf->services[4].server_address6, &loopback));
	assert_false(es_addr_is_set(&conf->services[5].server_address));
	assert_ptr_equal(es_conf_server_of(&conf->services[5], 1), &conf->services[5].server_address6);
	assert_int_equal(conf->services[3].server_port, 82);
	assert_int_equal(conf->services[3].server_address.w[3], inet_addr("10.77.0.102"));
	assert_string_equal(conf->cluster.name, "the lab, nr. 1");
	assert_string_equal(conf->cluster.key_file, "/tmp/k");
	assert_int_equal(conf->cluster.handover_port, 1);
	assert_int_equal(conf->cluster.virtual_nodes, 1024);
	assert_int_equal(conf->cluster.ring_hash, ES_CONF_RING_JHASH);
	assert_int_equal(conf->cluster.catch_up, 0);
	assert_int_equal(conf->datapath.type, ES_CONF_DATAPATH_BPF);
	assert_string_equal(conf->datapath.interface, "wan.10");
	assert_string_equal(conf->datapath.cluster_interface, "br-lan");
	assert_int_equal(conf->datapath.mac_mode, ES_CONF_MAC_UNICAST);
	assert_memory_equal(conf->datapath.cluster_mac, mac, 6);
	assert_int_equal(conf->datapath.receive_window_scale, 14);
	assert_int_equal(conf->datapath.mtu, 9000);
	assert_int_equal(conf->datapath.cookie_lifetime_s, 120);
	assert_int_equal(conf->datapath.fallback_after_ms, 60000);
	assert_int_equal(conf->datapath.conntrack_zone, 7);
	assert_int_equal(conf->inspector.workers, 8);
	assert_int_equal(conf->inspector.gather_timeout_ms, 1);
	assert_int_equal(conf->inspector.gather_bytes, 1460);
	assert_int_equal(conf->inspector.gather_flows, 1);
	assert_int_equal(conf->inspector.decision_entries, 1024);
	assert_int_equal(es_conf_decision_entries(conf), 1024);
	assert_int_equal(conf->inspector.race_window_ms, 0);
	assert_int_equal(conf->node_count, 2);
	assert_string_equal(conf->nodes[0].name, "n-1.a_B");
	assert_int_equal(conf->nodes[0].weight, 0);
	assert_string_equal(conf->nodes[1].name, "2");
	assert_int_equal(conf->nodes[1].weight, 1000);
	assert_int_equal(conf->service_count, 6);
	assert_string_equal(conf->services[0].policy, "ring");
	assert_int_equal(conf->services[0].inspect, ES_INSPECT_NEVER);
	assert_int_equal(conf->services[0].load_bound, 0);
	assert_string_equal(conf->services[1].policy, "lard");
	assert_int_equal(conf->services[1].load_bound, 100);
	assert_int_equal(conf->services[0].content_on_disk, 1);
	assert_int_equal(conf->services[1].content_on_disk, 0);
	assert_string_equal(conf->services[2].policy, "ring");
	es_conf_free(&conf);
}

static void test_unicast_default_mac(void **state)
{
	static const unsigned char mac[] = {0x02, 0xbf, 10, 77, 0, 100};
	struct es_conf *conf = parse_ok(
		"datapath { interface = a cluster_interface = a mac_mode = unicast }\n" NODE SERVICE);

	(void)state;
	assert_memory_equal(conf->datapath.cluster_mac, mac, 6);
	es_conf_free(&conf);
}

static void test_load(void **state)
{
	struct es_conf *conf = NULL;
	struct es_conf_error err;

	(void)state;
	assert_int_equal(es_conf_read("/nonexistent/earshot.conf", &conf, &err), -ENOENT);
	assert_string_equal(err.text,
			    "/nonexistent/earshot.conf: cannot be opened: No such file or directory");
	assert_int_equal(es_conf_read("/", &conf, &err), -EISDIR);
	assert_string_equal(err.text, "/: cannot be read: Is a directory");
	assert_int_equal(es_conf_read("/dev/zero", &conf, &err), -EFBIG);
	assert_string_equal(err.text, "/dev/zero: too long: expected at most 16777216 bytes");
	assert_null(conf);
}

/* Each example must be right as it stands, with the policies of this version. */
static void test_examples(void **state)
{
	struct es_conf_error err;
	struct es_conf *conf;
	glob_t found;
	size_t i;

	(void)state;
	assert_int_equal(glob(EARSHOT_SOURCE "/conf/*.conf.example", 0, NULL, &found), 0);
	for (i = 0; i < found.gl_pathc; i++) {
		if (!strstr(found.gl_pathv[i], "earshot"))
			continue;
		conf = NULL;
		if (es_conf_read(found.gl_pathv[i], &conf, &err))
			fail_msg("%s", err.text);
		es_conf_free(&conf);
	}
	globfree(&found);
}

/*
 * Keys that the example shows commented out must have the default, so uncommenting all of them changes
 * nothing.
 */
static void test_example_defaults(void **state)
{
	struct es_conf *plain = NULL, *all = NULL;
	char line[512], *text = NULL;
	struct es_conf_error err;
	size_t size = 0, keys = 0;
	FILE *in, *out;

	(void)state;
	assert_int_equal(es_conf_read(EARSHOT_SOURCE "/conf/earshot.conf.example", &plain, &err), 0);
	in = fopen(plain->path, "r");
	out = open_memstream(&text, &size);
	assert_non_null(in);
	assert_non_null(out);
	while (fgets(line, sizeof(line), in)) {
		char *hash = strchr(line, '#');

		if (hash && hash[1] != ' ' && strchr(line, '=')) {
			*hash = ' ';
			keys++;
		}
		fputs(line, out);
	}
	fclose(in);
	fclose(out);
	assert_true(keys >= 15);
	if (es_conf_parse(text, size, plain->path, &all, &err))
		fail_msg("%s", err.text);
	/* The rules are behind a pointer. */
	assert_int_equal(plain->rule_count, all->rule_count);
	assert_true(plain->rule_count > 0);
	for (unsigned int i = 0; i < plain->rule_count; i++)
		assert_int_equal(es_conf_rule_digest(&plain->rules[i]), es_conf_rule_digest(&all->rules[i]));
	/* The texts differ; what they say does not. */
	assert_true(plain->digest != all->digest);
	all->digest = plain->digest;
	assert_memory_equal(plain, all, offsetof(struct es_conf, rules));
	es_conf_free(&plain);
	es_conf_free(&all);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_families),
		cmocka_unit_test(test_everything_set),
		cmocka_unit_test(test_unicast_default_mac),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_examples),
		cmocka_unit_test(test_example_defaults),
	};

	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
