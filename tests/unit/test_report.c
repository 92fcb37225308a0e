// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The replies of the control socket: what report.c builds has the shape that docs/json.md promises, member by
 * member and type by type, and the values of the configuration.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>

#include "earshot_version.h"
#include "inspector/base/event.h"
#include "inspector/plugin/host.h"
#include "inspector/report/report.h"
#include "inspector/inspect/poison.h"
#include "inspector/report/plugins.h"
#include "inspector/report/poison.h"
#include "inspector/report/tls.h"
#include "inspector/report/trace.h"
#include "inspector/report/url_tables.h"
#include "kmod/core/counters.h"
#include "tests/unit/report_world.h"

static void test_reload(void **state)
{
	struct json_object *report = es_report_reload(4);

	(void)state;
	expect_as_documented("reload", report);
	assert_string_equal(json_object_get_string(json_object_object_get(report, "message")),
			    "reloaded, epoch 4");
	json_object_put(report);
}

static void test_status(void **state)
{
	static const char *const names[] = {"requests", "handovers", NULL};
	static const unsigned long long values[] = {12, 18446744073709551615ULL};
	static const char *const states[] = {"up", "draining"};
	static const double shares[] = {0.25, 0.75};
	static const struct es_report_service services[] = {{17, 3, 1, 300, 2, 3001}, {}};
	static const char *const troubles[] = {"the service address is missing", ""};
	static const struct es_node_clocks clocks = {.node = {{.ahead_ms = -1500, .is_told = 1}}};
	struct es_report_status status = {
		.conf = conf,
		.self = 1,
		.datapath_type = "bpf",
		.config_path = "earshot.conf",
		.datapath_state = "fallback",
		.datapath_note = "this kernel refuses",
		.uptime_s = 3.25,
		.epoch = 7,
		.members = 2,
		.loads = {3, 2, 1},
		.node_states = states,
		.troubles = troubles,
		.ring_shares = shares,
		.clocks = &clocks,
		.services = services,
		.workers = json_object_new_array(),
	};
	struct json_object *report;

	(void)state;
	json_object_array_add(status.workers, es_report_worker(0, names, values));
	report = es_report_status(&status);
	expect_as_documented("status", report);
	assert_string_equal(
		json_object_to_json_string_ext(report, JSON_C_TO_STRING_PLAIN),
		"{\"version\":\"" EARSHOT_VERSION
		"\",\"cluster\":\"lab\",\"node\":\"n2\",\"config\":\"earshot.conf\","
		"\"datapath\":{\"type\":\"bpf\",\"state\":\"fallback\",\"note\":\"this kernel "
		"refuses\"},\"uptime_s\":3.250000,\"waiting_for_"
		"restart\":\"\","
		"\"ring\":{\"epoch\":7,\"members\":2},"
		"\"workers\":[{\"id\":0,\"requests\":12,\"handovers\":18446744073709551615}],"
		"\"loads\":{\"sent\":3,\"received\":2,\"refused\":1},"
		"\"services\":[{\"name\":\"web\",\"address\":\"10.77.0.100\",\"addresses\":[\"10.77.0.100\"],"
		"\"port\":80,\"policy\":\"uri-"
		"hash\","
		"\"inspect\":\"first\",\"nodes\":[\"n1\",\"n2\"],\"connections\":17,\"active\":3,\"idle\":1,"
		"\"load\":300,\"measured\":"
		"2,\"mean_"
		"bytes\":1500},{\"name\":\"l4\",\"address\":\"10.77.0.100\",\"addresses\":[\"10.77.0.100\"],"
		"\"port\":443,\"policy\":"
		"\"ring\","
		"\"inspect\":\"never\",\"nodes\":[\"n1\",\"n2\"],\"connections\":0,\"active\":0,\"idle\":0,"
		"\"load\":0,\"measured\":0,"
		"\"mean_"
		"bytes\":0}],"
		"\"nodes\":[{\"name\":\"n1\",\"address\":\"10.78.0.1\",\"weight\":100,\"state\":\"up\","
		"\"self\":false,"
		"\"ring_share\":0.250000,\"clock_ahead_ms\":-1500,\"trouble\":\"the service "
		"address is missing\"},{\"name\":\"n2\",\"address\":\"10.78.0."
		"2\",\"weight\":50,\"state\":"
		"\"draining\",\"self\":true,\"ring_share\":0.750000,\"clock_ahead_ms\":0,\"trouble\":\"\"}]"
		"}");
	json_object_put(report);
	status.workers = NULL;
	status.services = NULL;
	status.node_states = NULL;
	status.troubles = NULL;
	status.ring_shares = NULL;
	status.clocks = NULL;
	report = es_report_status(&status);
	assert_non_null(
		strstr(json_object_to_json_string_ext(report, JSON_C_TO_STRING_PLAIN), "\"workers\":[]"));
	json_object_put(report);
}

static void test_content(void **state)
{
	struct json_object *report = json_object_new_object();
	struct es_report_url_table content = {
		.service = "web",
		.path = "/var/www/html",
		.has_root = 1,
		.table = {.max_entries = 65536, .scanned = 1300, .observed = 20, .evicted = 3},
		.root = {.watch = ES_DOCROOT_WATCHED,
			 .files = 1200,
			 .directories = 100,
			 .watches = 101,
			 .hidden = 4,
			 .links = 1,
			 .scans = 1,
			 .events = 57},
	};

	(void)state;
	es_report_url_table_add(report, &content);
	content = (struct es_report_url_table){.service = "api", .table = {.max_entries = 65536}};
	es_report_url_table_add(report, &content);
	expect_as_documented("content", report);
	json_object_put(report);
}

static const char *drift_of(struct json_object *nodes, size_t node)
{
	return json_object_to_json_string_ext(
		json_object_object_get(json_object_array_get_idx(nodes, node), "drift"),
		JSON_C_TO_STRING_PLAIN);
}

/*
 * The node of three that differs is named, or both of two; keys that rotate, and settings that need not be
 * alike, are no differences. A setting that should be alike counts where both nodes tell it: a version before
 * does not.
 */
static void test_drift(void **state)
{
	struct es_report_told told = {.count = 3,
				      .name = {"n1", "n2", "n3"},
				      .settings = {"=a=1\n=k=x y\nkernel=1\n~s=7\n~t=1\n",
						   "=a=2\n=k=y x\n=c=3\n~s=7\n~u=1\n",
						   "=a=1\n=k=x\nkernel=2\n~s=8\n"}};
	struct json_object *nodes = json_tokener_parse("[{},{},{}]");

	(void)state;
	es_report_drift(nodes, &told);
	assert_string_equal(drift_of(nodes, 0), "null");
	assert_string_equal(
		drift_of(nodes, 1),
		"[{\"setting\":\"a\",\"must\":true,\"value\":\"2\",\"others\":{\"n1\":\"1\",\"n3\":\"1\"}},"
		"{\"setting\":\"c\",\"must\":true,\"value\":\"3\","
		"\"others\":{\"n1\":\"missing\",\"n3\":\"missing\"}}]");
	assert_string_equal(drift_of(nodes, 2), "[{\"setting\":\"s\",\"must\":false,\"value\":\"8\","
						"\"others\":{\"n1\":\"7\",\"n2\":\"7\"}}]");
	expect_as_documented("drift", json_object_array_get_idx(nodes, 1));
	json_object_put(nodes);
	told.settings[2] = NULL;
	nodes = json_tokener_parse("[{},{},{}]");
	es_report_drift(nodes, &told);
	assert_string_equal(
		drift_of(nodes, 0),
		"[{\"setting\":\"a\",\"must\":true,\"value\":\"1\",\"others\":{\"n2\":\"2\"}},"
		"{\"setting\":\"c\",\"must\":true,\"value\":\"missing\",\"others\":{\"n2\":\"3\"}}]");
	assert_null(json_object_object_get(json_object_array_get_idx(nodes, 2), "drift"));
	json_object_put(nodes);
}

static void test_membership(void **state)
{
	static struct es_group group = {
		.node_count = 2,
		.self = 1,
		.phase = ES_GROUP_STABLE,
		.epoch = 12,
		.phase_since_ms = 900,
		.grants.node[0].granted_until_ms = 2000,
	};
	static struct es_hearing hearing = {.count = 2};
	struct es_report_membership membership = {.group = &group,
						  .hearing = &hearing,
						  .is_connected = 1,
						  .is_quorate = 1,
						  .why = "",
						  .lease_ms = 1000,
						  .granted_ms = 1950,
						  .now_ms = 1900};
	const struct es_wire_by_hand weight = {
		.what = ES_WIRE_CHANGE_WEIGHT, .value = 50, .set_ms = 7, .who = "bob@n2"};
	struct json_object *report = json_tokener_parse("{\"nodes\":[{},{}]}"), *nodes, *by_hand;

	(void)state;
	group.node[0] = (struct es_group_node){.is_member = 1,
					       .is_accepted = 1,
					       .grants = 2,
					       .state = ES_NODE_DRAINING,
					       .since_ms = 400,
					       .load = {.cpu = 250,
							.state = ES_NODE_DRAINING,
							.has_requests = 1,
							.active = 3,
							.load = 300,
							.mean_us = 2500,
							.disk = 125},
					       .settings = "=protocol=2\nkernel=6.12\ngrants=2\njunk"};
	group.node[1] = (struct es_group_node){.reason = ES_GROUP_NODE, .since_ms = 900};
	es_report_membership(report, &membership);
	expect_as_documented("membership", report);
	nodes = json_object_object_get(report, "nodes");
	assert_null(json_object_object_get(json_object_array_get_idx(nodes, 1), "by_hand"));
	assert_string_equal(
		json_object_to_json_string_ext(json_object_array_get_idx(nodes, 0), JSON_C_TO_STRING_PLAIN),
		"{\"member\":true,\"reason\":\"\",\"refused\":\"\",\"since_s\":1.5,\"connections\":0,\"cpu\":"
		"0.25,"
		"\"queue\":0,\"active\":3,\"load\":300,\"mean_us\":2500,\"disk\":0.125,\"drained\":true,"
		"\"settings\":{\"protocol\":\"2\",\"kernel\":\"6.12\",\"grants\":\"2\"},"
		"\"granted_ms\":100}");
	assert_string_equal(
		json_object_to_json_string_ext(json_object_array_get_idx(nodes, 1), JSON_C_TO_STRING_PLAIN),
		"{\"member\":false,\"reason\":\"its machine or network "
		"died\",\"refused\":\"\",\"since_s\":1.0}");
	json_object_put(report);
	/* Heard on the public network, and not any more. */
	hearing.peer[1].heard_ms = 1900 - ES_HEARING_LOST_MS + 1;
	hearing.peer[1].word.hears[0] = 1;
	report = json_tokener_parse("{\"nodes\":[{},{}]}");
	es_report_membership(report, &membership);
	nodes = json_object_object_get(report, "nodes");
	assert_null(json_object_object_get(json_object_array_get_idx(nodes, 0), "heard"));
	assert_true(json_object_get_boolean(
		json_object_object_get(json_object_array_get_idx(nodes, 1), "heard")));
	assert_true(json_object_get_boolean(
		json_object_object_get(json_object_array_get_idx(nodes, 1), "hears")));
	json_object_put(report);
	hearing.peer[1].heard_ms--;
	report = json_tokener_parse("{\"nodes\":[{},{}]}");
	es_report_membership(report, &membership);
	nodes = json_object_object_get(report, "nodes");
	assert_false(json_object_get_boolean(
		json_object_object_get(json_object_array_get_idx(nodes, 1), "heard")));
	assert_null(json_object_object_get(json_object_array_get_idx(nodes, 1), "hears"));
	json_object_put(report);
	/* A weight that an operator has set. */
	membership.weight[1] = &weight;
	report = json_tokener_parse("{\"nodes\":[{},{}]}");
	es_report_membership(report, &membership);
	by_hand = json_object_object_get(
		json_object_array_get_idx(json_object_object_get(report, "nodes"), 1), "by_hand");
	assert_string_equal(json_object_to_json_string_ext(by_hand, JSON_C_TO_STRING_PLAIN),
			    "{\"weight\":{\"weight\":50,\"by\":\"bob@n2\",\"set_ms\":7,\"reason\":\"\"}}");
	json_object_put(report);
	membership.weight[1] = NULL;
	/* A node of an older version does not tell its requests. */
	group.node[0].load.has_requests = 0;
	report = json_tokener_parse("{\"nodes\":[{},{}]}");
	es_report_membership(report, &membership);
	nodes = json_object_object_get(report, "nodes");
	assert_null(json_object_object_get(json_object_array_get_idx(nodes, 0), "active"));
	json_object_put(report);
	/* Alone, a node knows only itself. */
	report = json_tokener_parse("{\"nodes\":[{},{}]}");
	membership.group = NULL;
	membership.self = 1;
	membership.own = (struct es_wire_load){.connections = 2, .has_requests = 1, .active = 1, .load = 20};
	es_report_membership(report, &membership);
	assert_string_equal(json_object_to_json_string_ext(report, JSON_C_TO_STRING_PLAIN),
			    "{\"nodes\":[{},{\"connections\":2,\"cpu\":0.0,\"queue\":0,\"active\":1,"
			    "\"load\":20,\"mean_us\":0,\"disk\":0.0}],\"membership\":{\"provider\":"
			    "\"static\"}}");
	json_object_put(report);
}

static void test_counters(void **state)
{
	unsigned long long values[ES_COUNTER_COUNT] = {0};
	struct json_object *report, *counters, *first, *last;
	unsigned int n = ES_COUNTER_COUNT;

	(void)state;
	values[0] = 18446744073709551615ULL;
	report = es_report_counters(values);
	es_report_counter_add(report, "decided", 5, "requests that a policy decided");
	expect_as_documented("counters", report);
	assert_true(json_object_object_get_ex(report, "counters", &counters));
	assert_int_equal(json_object_array_length(counters), n + 1);
	first = json_object_array_get_idx(counters, 0);
	last = json_object_array_get_idx(counters, n);
	assert_string_equal(json_object_to_json_string_ext(first, JSON_C_TO_STRING_PLAIN),
			    "{\"name\":\"deliver_established\",\"value\":18446744073709551615,"
			    "\"description\":\"segment of a "
			    "connection whose socket is here\"}");
	assert_string_equal(
		json_object_to_json_string_ext(last, JSON_C_TO_STRING_PLAIN),
		"{\"name\":\"decided\",\"value\":5,\"description\":\"requests that a policy decided\"}");
	json_object_put(report);
}

static void test_metrics(void **state)
{
	struct json_object *built = json_object_new_object(), *example = doc_example("metrics");
	struct es_addr address;

	(void)state;
	assert_int_equal(es_conf_addr_parse("10.78.0.1", &address), 0);
	json_object_object_add(
		built, "metrics",
		es_report_metrics(&address, 7351, "10.78.0.1 port 7351: Address already in use"));
	assert_string_equal(json_object_to_json_string(built), json_object_to_json_string(example));
	json_object_put(built);
	json_object_put(example);
}

static void test_events(void **state)
{
	struct json_object *example = doc_example("events"), *event = NULL, *built;
	struct es_event read;

	(void)state;
	event = json_object_array_get_idx(json_object_object_get(example, "events"), 0);
	assert_int_equal(es_event_parse(event, &read), 0);
	built = es_event_json(&read);
	assert_string_equal(json_object_to_json_string(built), json_object_to_json_string(event));
	json_object_put(built);
	json_object_put(example);
}

static void test_trace(void **state)
{
	struct es_trace_entry entry = {
		.took_ns = 11250,
		.client_port = 40312,
		.decision = ES_TALLY_first,
		.service = "web",
		.node = "n2",
		.why = "policy",
	};
	struct json_object *example = doc_example("trace"), *decision, *built;

	(void)state;
	decision = json_object_array_get_idx(json_object_object_get(example, "decisions"), 0);
	entry.at_ns = (unsigned long long)json_object_get_int64(json_object_object_get(decision, "time_us")) *
			      1000 -
		      70;
	assert_int_equal(es_conf_addr_parse("10.77.1.1", &entry.client), 0);
	entry.text_len = (uint16_t)snprintf(entry.text, sizeof(entry.text), "GET /a");
	built = es_report_trace(&entry, 70);
	assert_string_equal(json_object_to_json_string(built), json_object_to_json_string(decision));
	json_object_put(built);
	/* Nobody serves it, and it is no HTTP. */
	entry.decision = ES_TRACE_REJECT;
	entry.node[0] = 0;
	entry.text_len = 0;
	built = es_report_trace(&entry, 0);
	assert_null(json_object_object_get(built, "target"));
	assert_string_equal(json_object_get_string(json_object_object_get(built, "decision")), "reject");
	assert_string_equal(json_object_get_string(json_object_object_get(built, "request")), "");
	json_object_put(built);
	json_object_put(example);
}

static void test_tls(void **state)
{
	struct json_object *built = json_object_new_object(), *counters = json_object_new_object();
	struct json_object *array, *shown;
	struct es_ledger ledger = {
		.runs = 1,
		.head = {.pid = 812, .workers = 2, .started_wall_ns = 1000000000ULL},
	};
	struct es_ledger_head *head = &ledger.head;

	(void)state;
	strcpy(head->service[1].name, "gone");
	strcpy(head->service[3].name, "shop");
	head->service[3].state = ES_LEDGER_SERVED;
	ledger.count[1][ES_LEDGER_accepted] = 5;
	ledger.count[3][ES_LEDGER_accepted] = 8120;
	ledger.count[3][ES_LEDGER_ended] = 8108;
	ledger.count[3][ES_LEDGER_handshakes] = 7300;
	json_object_object_add(built, "tls", es_report_tls(&ledger, 3606125000000ULL));
	/* The example leaves out most of the counters. */
	json_object_object_get_ex(json_object_object_get(built, "tls"), "services", &array);
	shown = json_object_object_get(json_object_array_get_idx(array, 0), "counters");
	for (unsigned int i = 0; i < ES_LEDGER_COUNTER_COUNT; i++)
		if (i != ES_LEDGER_accepted && i != ES_LEDGER_handshakes)
			json_object_object_del(shown, es_ledger_counter_name[i]);
	expect_as_documented("tls", built);
	/* One that has ended has no connections, whatever it has left in its counters. */
	json_object_put(built);
	ledger.runs = 0;
	built = es_report_tls(&ledger, 0);
	assert_non_null(strstr(json_object_to_json_string(built), "\"connections\": 0"));
	assert_non_null(strstr(json_object_to_json_string(built), "\"served\": false"));
	json_object_put(built);
	json_object_object_add(counters, "counters", json_object_new_array());
	es_report_tls_counters(counters, &ledger);
	json_object_object_get_ex(counters, "counters", &array);
	assert_int_equal(json_object_array_length(array), ES_LEDGER_COUNTER_COUNT);
	/* Nothing that was counted once is taken away. */
	assert_non_null(strstr(json_object_to_json_string(array), "\"tls_accepted\", \"value\": 8125"));
	json_object_put(counters);
}

static void test_poison(void **state)
{
	struct es_poisons poisons = {};
	struct json_object *built = json_object_new_object(), *example = doc_example("poison");
	struct es_poison poison = {
		.flow_hash = 1,
		.client = es_addr_from_v4(htonl(0xc6336407)),
		.client_port = htons(40312),
		.node = 1,
	};

	(void)state;
	assert_int_equal(es_poison_note(&poisons, &poison, 1000000000ULL), 1);
	json_object_object_add(built, "poison", es_report_poison(conf, &poisons, 13500000000ULL));
	expect_as_documented("poison", built);
	assert_string_equal(json_object_to_json_string(json_object_object_get(built, "poison")),
			    json_object_to_json_string(json_object_object_get(example, "poison")));
	json_object_put(built);
	json_object_put(example);
}

/* A plugin as it is loaded is what the example shows: its members, and what it says of itself. */
static void test_plugins(void **state)
{
	static const char text[] =
		"datapath { interface = a cluster_interface = b }\nnode n1 { address = 10.78.0.1 }\n"
		"service web { address = 10.77.0.100 port = 80 plugin canary { config = \"percent 5; nodes "
		"n1\" } }\n";
	static const char *const same[] = {"service",	  "name", "plugin",   "version",
					   "description", "fail", "budget_us"};
	struct json_object *built = json_object_new_object(), *example = doc_example("plugins"), *a, *b;
	struct es_plugins *plugins = NULL;
	struct es_conf *with = NULL;

	(void)state;
	setenv(ES_PLUGIN_DIR_ENV, EARSHOT_PLUGINS, 1);
	assert_int_equal(es_conf_parse(text, sizeof(text) - 1, "t.conf", &with, NULL), 0);
	assert_int_equal(es_plugins_new(with, ES_PLUGINS_MISSING_FAILS, &plugins, NULL), 0);
	json_object_object_add(built, "plugins", es_report_plugins(with, plugins));
	expect_as_documented("plugins", built);
	a = json_object_array_get_idx(json_object_object_get(built, "plugins"), 0);
	b = json_object_array_get_idx(json_object_object_get(example, "plugins"), 0);
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		assert_string_equal(json_object_get_string(json_object_object_get(a, same[i])),
				    json_object_get_string(json_object_object_get(b, same[i])));
	json_object_put(example);
	json_object_put(built);
	es_plugins_free(&plugins);
	es_conf_free(&with);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_status),	 cmocka_unit_test(test_membership),
		cmocka_unit_test(test_drift),	 cmocka_unit_test(test_content),
		cmocka_unit_test(test_counters), cmocka_unit_test(test_plugins),
		cmocka_unit_test(test_metrics),	 cmocka_unit_test(test_events),
		cmocka_unit_test(test_trace),	 cmocka_unit_test(test_poison),
		cmocka_unit_test(test_tls),	 cmocka_unit_test(test_reload),
	};

	return cmocka_run_group_tests_name("report", tests, load, unload);
}
