// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot check` without a cluster: what it says of corosync and of the other nodes.
 */
#include "cmocka_all.h"
#include "check_world.h"

#define QDEVICE_PID "run/corosync-qdevice/corosync-qdevice.pid"

static void test_cluster(void **state)
{
	(void)state;
	conf->cluster.membership = ES_CONF_MEMBERSHIP_STATIC;
	expect_one("cluster.membership", ES_CHECK_WARNING, "static");
	conf->cluster.membership = ES_CONF_MEMBERSHIP_COROSYNC;
	conf->nodes[2].weight = 0;
	run_again();
	assert_int_equal(finding("cluster.weights")->severity, ES_CHECK_INFO);
	assert_non_null(strstr(finding("cluster.weights")->found, "n3"));
	conf->nodes[1].weight = 0;
	expect_one("cluster.weights", ES_CHECK_WARNING, "n2, n3");
	conf->nodes[1].weight = conf->nodes[2].weight = 100;
	conf->cluster.virtual_nodes = 1;
	expect_one("cluster.virtual_nodes", ES_CHECK_WARNING, "with virtual_nodes = 1");
	conf->cluster.virtual_nodes = 63;
	run_again();
	assert_int_equal(finding("cluster.ring_hash")->severity, ES_CHECK_OK);
	facts.datapath = ES_DATAPATH_NETFILTER;
	run_again();
	assert_int_equal(finding("cluster.ring_hash")->severity, ES_CHECK_INFO);
	conf->cluster.ring_hash = ES_CONF_RING_JHASH;
	run_again();
	assert_int_equal(finding("cluster.ring_hash")->severity, ES_CHECK_OK);
	facts.datapath = ES_DATAPATH_BPF;
	check.self = -1;
	facts.self_arp.rc = -ENODATA;
	run_again();
	assert_int_equal(finding("cluster.self")->severity, ES_CHECK_ERROR);
	assert_int_equal(finding("network.node_address")->severity, ES_CHECK_UNCHECKED);
	assert_int_equal(finding("neighbours.nodes")->severity, ES_CHECK_UNCHECKED);
	conf->node_count = 1;
	check.self = 0;
	run_again();
	assert_int_equal(finding("cluster.size")->severity, ES_CHECK_WARNING);
}

/* Replaces the lines with @key by @line ("" takes them away), or adds it. */
static void corosync_set(const char *key, const char *value)
{
	char *text = facts.corosync.text, *at = strstr(text, key), *end, *changed;

	end = at ? strchr(at, '\n') + 1 : text;
	if (!at)
		at = text;
	assert_true(asprintf(&changed, "%.*s%s%s%s%s%s", (int)(at - text), text, value ? key : "",
			     value ? " = " : "", value ? value : "", value ? "\n" : "", end) > 0);
	free(text);
	facts.corosync.text = changed;
}

static void corosync_reset(void)
{
	free(facts.corosync.text);
	facts.corosync.text = strdup(corosync);
}

static void test_corosync(void **state)
{
	static const struct {
		const char *key, *value, *id;
		enum es_check_severity severity;
		const char *words;
	} cases[] = {
		{"quorum.provider", NULL, "corosync.provider", ES_CHECK_ERROR, "no quorum provider"},
		{"quorate", "0", "corosync.quorate", ES_CHECK_ERROR, "not quorate"},
		{"quorate", NULL, "corosync.quorate", ES_CHECK_UNCHECKED, "libquorum"},
		{"runtime.config.totem.token", "3650", "corosync.detection", ES_CHECK_WARNING, "after 4.8 s"},
		{"runtime.config.totem.token", "100", "corosync.token_fast", ES_CHECK_WARNING, "100 ms"},
		{"runtime.config.totem.interface.1.knet_ping_timeout", "500", "corosync.ping_timeout",
		 ES_CHECK_WARNING, "link 1 is 500 ms"},
		{"quorum.expected_votes", "1", "corosync.votes", ES_CHECK_ERROR, "two halves"},
		{"quorum.expected_votes", "5", "corosync.votes", ES_CHECK_WARNING, "5, and there are 3"},
		{"nodelist.node.1.quorum_votes", "2", "corosync.votes", ES_CHECK_WARNING, "4 votes"},
		{"quorum.last_man_standing", "1", "corosync.wait_for_all", ES_CHECK_WARNING,
		 "last_man_standing"},
		{"quorum.auto_tie_breaker", "1", "corosync.wait_for_all", ES_CHECK_WARNING,
		 "auto_tie_breaker"},
		{"nodelist.node.1.ring0_addr", "192.0.2.2", "corosync.network", ES_CHECK_WARNING,
		 "n2: corosync knows it by 192.0.2.2 only, not by 10.78.0.2"},
		{"nodelist.node.1.ring0_addr", "no such name", "corosync.nodes", ES_CHECK_UNCHECKED,
		 "no such name"},
		{"totem.crypto_hash", "none", "corosync.crypto", ES_CHECK_WARNING, "none"},
		{"totem.crypto_hash", NULL, "corosync.crypto", ES_CHECK_WARNING, "none"},
		{"stats.knet.node2.link1.connected", "0", "corosync.links_up", ES_CHECK_WARNING,
		 "link 1 to corosync's node 2 (10.79.0.2)"},
		{"stats.srp.continuous_gather", "50", "corosync.ring", ES_CHECK_ERROR, "50 tries"},
		{"stats.srp.firewall_enabled_or_nic_failure", "1", "corosync.ring", ES_CHECK_ERROR,
		 "firewall"},
		{"stats.srp.continuous_gather", NULL, "corosync.ring", ES_CHECK_UNCHECKED, "ring"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		corosync_set(cases[i].key, cases[i].value);
		if (!strcmp(cases[i].words, "no such name")) {
			/* known by its name, but the address stays open */
			run_again();
			assert_int_equal(finding("corosync.nodes")->severity, ES_CHECK_UNCHECKED);
		} else {
			expect_one(cases[i].id, cases[i].severity, cases[i].words);
		}
		corosync_reset();
	}
	corosync_set("totem.transport", "udpu");
	run_again();
	assert_int_equal(finding("corosync.crypto")->severity, ES_CHECK_WARNING);
	assert_non_null(strstr(finding("corosync.crypto")->found, "not knet"));
	assert_int_equal(finding("corosync.ping_timeout")->severity, ES_CHECK_OK);
}

static void test_corosync_nodes(void **state)
{
	struct es_cmap_node *nodes;

	(void)state;
	assert_int_equal(es_cmap_nodes(corosync, &nodes), 3);
	assert_int_equal(nodes[2].nodeid, 3);
	assert_int_equal(nodes[2].links, 2);
	assert_string_equal(nodes[2].names[1], "10.79.0.3");
	free(nodes);
	/* a node that only Earshot knows */
	corosync_set("nodelist.node.3.name", "other");
	corosync_set("nodelist.node.3.ring0_addr", "10.78.0.7");
	run_again();
	assert_int_equal(check.totals[ES_CHECK_ERROR], 1);
	assert_string_equal(finding("corosync.nodes")->found,
			    "node n3 (10.78.0.3) is not in corosync's nodelist");
	assert_string_equal(finding("corosync.strangers")->found,
			    "corosync's node 3 (10.78.0.7) is not a node in t.conf");
	corosync_reset();
	/* one link; an even number of nodes */
	corosync_set("nodelist.node.0.ring1_addr", NULL);
	run_again();
	assert_int_equal(finding("corosync.links")->severity, ES_CHECK_INFO);
	corosync_reset();
	corosync_set("nodelist.node.4.nodeid", "4");
	corosync_set("nodelist.node.4.ring0_addr", "10.78.0.4");
	run_again();
	assert_int_equal(finding("corosync.even")->severity, ES_CHECK_INFO);
	assert_non_null(strstr(finding("corosync.even")->found, "silences all"));
	assert_int_equal(finding("corosync.votes")->severity, ES_CHECK_WARNING);
	free(facts.corosync.text);
	facts.corosync.text = strdup("totem.token = 1000\n");
	run_again();
	assert_int_equal(finding("corosync.nodes")->severity, ES_CHECK_UNCHECKED);
	assert_int_equal(finding("corosync.detection")->severity, ES_CHECK_UNCHECKED);
}

static void test_two_nodes(void **state)
{
	static const char stonith[] = "<primitive id=\"f\" class=\"stonith\"/>\n";

	(void)state;
	conf->node_count = 2;
	corosync_set("nodelist.node.3.ring0_addr", NULL);
	expect_one("corosync.two_nodes", ES_CHECK_WARNING, "either's death silences the other");
	conf->services[0].survive = 1;
	expect_one("corosync.two_nodes", ES_CHECK_WARNING, "and survive takes no effect");
	conf->services[0].survive = 0;
	corosync_set("runtime.votequorum.two_node", "1");
	expect_one("corosync.two_nodes", ES_CHECK_ERROR, "without fencing");
	put("var/lib/pacemaker/cib/cib.xml", stonith);
	expect_one("corosync.two_nodes", ES_CHECK_WARNING, "until Pacemaker has fenced one");
	put("var/lib/pacemaker/cib/cib.xml",
	    "<primitive class=\"stonith\"/><nvpair id=\"s\" name=\"stonith-enabled\" value=\"false\"/>");
	expect_one("corosync.two_nodes", ES_CHECK_ERROR, "without fencing");
	corosync_set("quorum.device.model", "net");
	corosync_set("quorum.device.timeout", "1250");
	put(QDEVICE_PID, "1");
	run_again();
	assert_int_equal(check.totals[ES_CHECK_ERROR], 0);
	assert_int_equal(finding("corosync.two_nodes")->severity, ES_CHECK_OK);
	corosync_set("quorum.wait_for_all", "0");
	expect_one("corosync.wait_for_all", ES_CHECK_ERROR, "wait_for_all off");
	take(QDEVICE_PID);
}

static void test_quorum_device(void **state)
{
	(void)state;
	run_again();
	assert_string_equal(finding("corosync.quorum_device")->found, "no quorum device");
	corosync_set("quorum.device.model", "net");
	expect_one("corosync.quorum_device", ES_CHECK_WARNING, "no corosync-qdevice runs here");
	put(QDEVICE_PID, "4711\n");
	expect_one("corosync.quorum_device", ES_CHECK_WARNING,
		   "up to 12.0 s, and answer nothing (its timeout is 10000 ms)");
	corosync_set("quorum.device.timeout", "2501");
	expect_one("corosync.quorum_device", ES_CHECK_WARNING, "up to 3.0 s");
	corosync_set("quorum.device.timeout", "1250");
	run_again();
	assert_int_equal(finding("corosync.quorum_device")->severity, ES_CHECK_OK);
	assert_non_null(strstr(finding("corosync.quorum_device")->found, "within 1.5 s"));
	corosync_set("quorum.device.timeout", "100");
	run_again();
	assert_non_null(strstr(finding("corosync.quorum_device")->found, "within 1.5 s"));
	take(QDEVICE_PID);
}

static void test_corosync_out_of_reach(void **state)
{
	(void)state;
	facts.corosync.rc = -ECONNREFUSED;
	run_again();
	assert_int_equal(finding("corosync.running")->severity, ES_CHECK_ERROR);
	assert_int_equal(check.totals[ES_CHECK_UNCHECKED], 1);
	facts.corosync.rc = -ETIMEDOUT;
	run_again();
	assert_non_null(strstr(finding("corosync.running")->found, "corosync hangs"));
	facts.corosync.rc = -ELIBACC;
	run_again();
	assert_non_null(strstr(finding("corosync.running")->found, "libraries"));
	facts.corosync.rc = -EACCES;
	run_again();
	assert_int_equal(finding("corosync.running")->severity, ES_CHECK_UNCHECKED);
	assert_non_null(strstr(finding("corosync.running")->found, "uidgid"));
	conf->cluster.membership = ES_CONF_MEMBERSHIP_STATIC;
	facts.corosync.rc = -ECONNREFUSED;
	run_again();
	assert_int_equal(finding("corosync.running")->severity, ES_CHECK_OK);
	/* One that runs beside a static cluster is advised, not accused. */
	facts.corosync.rc = 0;
	corosync_set("quorate", "0");
	run_again();
	assert_int_equal(finding("corosync.quorate")->severity, ES_CHECK_WARNING);
	assert_int_equal(check.totals[ES_CHECK_ERROR], 0);
}

static struct json_object *member(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	assert_true(json_object_object_get_ex(object, key, &value));
	return value;
}

static struct json_object *node_of(size_t node)
{
	return json_object_array_get_idx(member(facts.daemon.status, "nodes"), node);
}

static void set(struct json_object *object, const char *key, const char *value)
{
	json_object_object_add(object, key, json_object_new_string(value));
}

static void status_reset(void)
{
	json_object_put(facts.daemon.status);
	facts.daemon.status = json_tokener_parse(reply);
}

static void test_settings(void **state)
{
	(void)state;
	set(member(node_of(1), "settings"), "wscale", "7");
	expect_one("members.settings", ES_CHECK_ERROR, "wscale: n1 and n3 10, n2 7");
	set(member(node_of(1), "settings"), "wscale", "10");
	set(member(node_of(2), "settings"), "other", "1"); /* told by one only */
	run_again();
	assert_int_equal(check.totals[ES_CHECK_ERROR], 0);
	set(member(node_of(1), "settings"), "other", "2");
	expect_one("members.settings", ES_CHECK_ERROR, "other: n2 2, n3 1");
	status_reset();
	set(member(node_of(2), "settings"), "key", "bb aa"); /* while keys rotate */
	expect_one("members.settings", ES_CHECK_WARNING, "key: n1 and n2 aa, n3 bb aa");
	status_reset();
	set(member(node_of(2), "settings"), "kernel", "6.12");
	run_again();
	assert_int_equal(finding("members.settings")->severity, ES_CHECK_INFO);
	status_reset();
	json_object_object_del(node_of(2), "settings");
	expect_one("members.settings", ES_CHECK_UNCHECKED, "node n3 has not told");
}

/* Said once, and not again among the settings. */
static void test_drift(void **state)
{
	(void)state;
	set(member(node_of(1), "settings"), "wscale", "7");
	json_object_object_add(
		node_of(1), "drift",
		json_tokener_parse("[{\"setting\":\"wscale\",\"value\":\"7\",\"others\":{\"n1\":\"10\","
				   "\"n3\":\"10\"}}]"));
	json_object_object_add(
		node_of(2), "drift",
		json_tokener_parse("[{\"setting\":\"wscale\",\"value\":\"10\",\"others\":{\"n2\":\"7\"}}]"));
	expect_one("members.drift", ES_CHECK_ERROR, "wscale: n2 7, n1 10, n3 10");
	assert_int_equal(check.totals[ES_CHECK_ERROR], 1);
	assert_int_equal(finding("members.settings")->severity, ES_CHECK_OK);
}

static void test_members(void **state)
{
	struct json_object *datapath, *membership;

	(void)state;
	datapath = member(facts.daemon.status, "datapath");
	set(datapath, "state", "fallback");
	expect_one("members.state", ES_CHECK_ERROR, "inspects nothing");
	set(datapath, "state", "detached");
	expect_one("members.state", ES_CHECK_ERROR, "detached");
	set(datapath, "state", "inspecting");
	json_object_object_add(node_of(0), "self", json_object_new_boolean(1));
	set(node_of(0), "state", "down");
	set(node_of(0), "trouble", "connections are not heard of again");
	expect_one("members.down", ES_CHECK_ERROR, "this node is down: connections are not heard of again");
	status_reset();
	set(facts.daemon.status, "version", "0.0.1");
	expect_one("members.version", ES_CHECK_WARNING, "version 0.0.1");
	status_reset();
	set(node_of(1), "refused", "another key");
	expect_one("members.refused", ES_CHECK_ERROR, "node n2 is refused: another key");
	status_reset();
	json_object_object_add(node_of(1), "member", json_object_new_boolean(0));
	set(node_of(1), "reason", "its daemon died");
	expect_one("members.away", ES_CHECK_WARNING, "node n2 is not a member: its daemon died");
	set(node_of(1), "state", "removed"); /* nobody waits for it */
	run_again();
	assert_int_equal(finding("members.away")->severity, ES_CHECK_OK);
	status_reset();
	set(facts.daemon.status, "waiting_for_restart", "inspector: workers");
	expect_one("members.waiting", ES_CHECK_WARNING, "that are not in force: inspector: workers");
	status_reset();
	membership = member(facts.daemon.status, "membership");
	set(membership, "phase", "holding");
	expect_one("members.membership", ES_CHECK_WARNING, "in phase holding for 100 s");
	json_object_object_add(membership, "phase_s", json_object_new_double(0.5));
	run_again();
	assert_int_equal(finding("members.membership")->severity, ES_CHECK_OK);
	json_object_object_add(membership, "silent", json_object_new_boolean(1));
	set(membership, "why", "no quorum");
	set(member(facts.daemon.status, "datapath"), "state", "silent");
	expect_one("members.membership", ES_CHECK_ERROR, "this node is silent: no quorum");
	status_reset();
	set(member(facts.daemon.status, "membership"), "provider", "static");
	set(member(node_of(1), "settings"), "wscale", "7"); /* static nodes tell them, too */
	expect_one("members.settings", ES_CHECK_ERROR, "wscale: n1 and n3 10, n2 7");
	json_object_put(facts.daemon.status);
	facts.daemon.status = NULL;
	expect_one("members.daemon", ES_CHECK_ERROR, "does not answer");
}

static void set_clock(size_t node, int ahead_ms)
{
	json_object_object_add(node_of(node), "clock_ahead_ms", json_object_new_int(ahead_ms));
}

static void test_clocks(void **state)
{
	(void)state;
	status_reset();
	json_object_object_add(node_of(0), "self", json_object_new_boolean(1));
	set_clock(1, 1900);
	set_clock(2, -1900);
	run_again();
	assert_int_equal(finding("members.clocks")->severity, ES_CHECK_OK);
	set_clock(1, 2500);
	expect_one("members.clocks", ES_CHECK_WARNING, "node n2: its clock is 2.5 s ahead");
	set_clock(1, -75000);
	expect_one("members.clocks", ES_CHECK_ERROR, "node n2: its clock is 75.0 s behind");
	/* All the others agree with each other: it is this node's. */
	set_clock(2, -74000);
	expect_one("members.clocks", ES_CHECK_ERROR, "node n1: its clock is 74.0 s ahead");
	json_object_object_add(node_of(2), "clock_ahead_ms", NULL); /* of two nobody knows which one it is */
	expect_one("members.clocks", ES_CHECK_ERROR, "node n2: its clock is 75.0 s behind");
	json_object_object_add(node_of(1), "clock_ahead_ms", NULL);
	expect_one("members.clocks", ES_CHECK_UNCHECKED, "no other node has told its time");
	status_reset();
}

static void counters_set(const char *reply_text)
{
	json_object_put(facts.daemon.counters);
	facts.daemon.counters = reply_text ? json_tokener_parse(reply_text) : NULL;
}

static void test_partial(void **state)
{
	(void)state;
	counters_set("{\"counters\": [{\"name\": \"handover_partial\", \"value\": 12}]}");
	expect_one("members.partial", ES_CHECK_WARNING, "12 handover messages came in parts");
	counters_set(NULL);
	run_again();
	assert_int_equal(finding("members.partial")->severity, ES_CHECK_UNCHECKED);
	counters_set("{\"counters\": []}");
	run_again();
	assert_int_equal(finding("members.partial")->severity, ES_CHECK_OK);
}

static void test_decisions(void **state)
{
	static const char early[] = "{\"counters\": [{\"name\": \"inspect_requests\", \"value\": 9}, "
				    "{\"name\": \"inspect_decisions_early\", \"value\": 7}]}";

	(void)state;
	status_reset();
	counters_set(early);
	expect_one("members.decisions", ES_CHECK_WARNING,
		   "7 decisions were forgotten early, with connection_rate = 500");
	assert_non_null(strstr(finding("members.decisions")->action, "connection_rate = 1000"));
	conf->inspector.decision_entries = 1024;
	expect_one("members.decisions", ES_CHECK_WARNING, "with decision_entries = 1024");
	conf->inspector.decision_entries = 0;
	counters_set(NULL);
	run_again();
	assert_int_equal(finding("members.decisions")->severity, ES_CHECK_UNCHECKED);
	counters_set("{\"counters\": []}");
	run_again();
	assert_int_equal(finding("members.decisions")->severity, ES_CHECK_OK);
}

static void set_bool(struct json_object *object, const char *key, int value)
{
	json_object_object_add(object, key, json_object_new_boolean(value));
}

static void test_heard(void **state)
{
	(void)state;
	status_reset();
	run_again();
	assert_int_equal(finding("members.heard")->severity, ES_CHECK_OK);
	set_bool(node_of(1), "hears", 0);
	run_again();
	assert_int_equal(finding("members.heard")->severity, ES_CHECK_OK); /* n3 does */
	set_bool(node_of(0), "hears", 0);
	set_bool(node_of(2), "hears", 0);
	expect_one("members.heard", ES_CHECK_WARNING, "none of them hears it");
	status_reset();
	set_bool(node_of(2), "heard", 0);
	json_object_object_del(node_of(2), "hears");
	expect_one("members.heard", ES_CHECK_WARNING, "node n3 is a member, and not heard");
	set_bool(node_of(2), "member", 0);
	run_again();
	assert_int_equal(finding("members.heard")->severity, ES_CHECK_OK);
	status_reset();
	for (size_t i = 0; i < 3; i++) {
		json_object_object_del(node_of(i), "heard");
		json_object_object_del(node_of(i), "hears");
	}
	run_again();
	assert_int_equal(finding("members.heard")->severity, ES_CHECK_INFO);
}

static void test_metrics(void **state)
{
	(void)state;
	status_reset();
	json_object_object_add(facts.daemon.status, "metrics",
			       json_tokener_parse("{\"address\": \"10.78.0.1\", \"port\": 7351, \"error\": "
						  "\"10.78.0.1 port 7351: Address already in use\"}"));
	expect_one("members.metrics", ES_CHECK_WARNING, "10.78.0.1 port 7351: Address already in use");
	json_object_object_add(
		facts.daemon.status, "metrics",
		json_tokener_parse("{\"address\": \"10.78.0.1\", \"port\": 0, \"error\": \"\"}"));
	run_again();
	assert_int_equal(finding("members.metrics")->severity, ES_CHECK_OK);
	status_reset();
}

/* The operator must see what a request or a plugin has done to a daemon. */
static void test_poison(void **state)
{
	(void)state;
	status_reset();
	json_object_object_add(facts.daemon.status, "poison",
			       json_tokener_parse("[{\"node\": \"n2\", \"service\": \"web\", \"client\": "
						  "\"198.51.100.7\", \"port\": 4711, "
						  "\"daemon\": \"hung\", \"age_s\": 12.5}]"));
	expect_one("members.poison", ES_CHECK_ERROR, "198.51.100.7 port 4711 ended the daemon of n2");
	status_reset();
	json_object_object_add(
		facts.daemon.status, "plugins",
		json_tokener_parse(
			"[{\"name\": \"a\", \"service\": \"web\", \"crashes\": 0, \"is_off\": false}, "
			"{\"name\": \"b\", \"service\": \"web\", \"crashes\": 1, \"is_off\": false}]"));
	expect_one("members.plugins", ES_CHECK_WARNING,
		   "plugin b of service web has crashed or hung 1 times");
	json_object_object_add(
		facts.daemon.status, "plugins",
		json_tokener_parse(
			"[{\"name\": \"b\", \"service\": \"web\", \"crashes\": 3, \"is_off\": true}]"));
	expect_one("members.plugins", ES_CHECK_ERROR, "plugin b of service web is off");
	json_object_put(facts.daemon.status);
	facts.daemon.status = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_cluster),   TEST(test_corosync),	TEST(test_corosync_nodes),
		TEST(test_two_nodes), TEST(test_quorum_device), TEST(test_corosync_out_of_reach),
		TEST(test_settings),  TEST(test_drift),		TEST(test_members),
		TEST(test_clocks),    TEST(test_partial),	TEST(test_decisions),
		TEST(test_heard),     TEST(test_metrics),	TEST(test_poison),
	};

	return cmocka_run_group_tests_name("check_cluster", tests, group_setup, group_teardown);
}
