// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of the configuration's sections and keys: type, range, unit and default of each, and the field
 * that it fills. A new key is a line here, a field in config.h and a paragraph in conf/earshot.conf.example.
 */
#include <stddef.h>
#include <string.h>

#include "inspector/config/internal.h"
#include "inspector/content/url_table.h"

#define FIELD(section, field)                                                                                \
	.offset = offsetof(struct es_conf_##section, field),                                                 \
	.size = sizeof(((struct es_conf_##section *)0)->field)
#define NUMBER(section, field, default_, min_, max_, unit_, zero_)                                           \
	{                                                                                                    \
		.name = #field, .kind = ES_CONF_KIND_NUMBER, FIELD(section, field), .def = (default_),       \
		.min = (min_), .max = (max_), .unit = (unit_), .zero = (zero_)                               \
	}
#define CHOICE(section, field, default_, choices_)                                                           \
	{                                                                                                    \
		.name = #field, .kind = ES_CONF_KIND_CHOICE, FIELD(section, field), .def = (default_),       \
		.choices = (choices_)                                                                        \
	}
#define VALUE(section, field, default_, kind_)                                                               \
	{                                                                                                    \
		.name = #field, .kind = ES_CONF_KIND_##kind_, FIELD(section, field), .def = (default_)       \
	}
#define LIST(section, key, field, item_)                                                                     \
	{                                                                                                    \
		.name = (key), .kind = ES_CONF_KIND_LIST, FIELD(section, field), .def = OPTIONAL,            \
		.item = ES_CONF_ITEM_##item_                                                                 \
	}
#define NAMED(section, key, field, kind_)                                                                    \
	{                                                                                                    \
		.name = (key), .kind = ES_CONF_KIND_##kind_, FIELD(section, field), .def = OPTIONAL          \
	}
#define REQUIRED NULL
#define OPTIONAL ""

#define VIRTUAL_NODES_MAX 1024

static const struct es_conf_choice memberships[] = {
	{"static", ES_CONF_MEMBERSHIP_STATIC},
	{"corosync", ES_CONF_MEMBERSHIP_COROSYNC},
	{NULL, 0},
};

static const struct es_conf_choice datapath_types[] = {
	{"auto", ES_CONF_DATAPATH_AUTO},
	{"bpf", ES_CONF_DATAPATH_BPF},
	{"module", ES_CONF_DATAPATH_MODULE},
	{"netfilter", ES_CONF_DATAPATH_NETFILTER},
	{NULL, 0},
};

static const struct es_conf_choice ring_hashes[] = {
	{"siphash", ES_CONF_RING_SIPHASH},
	{"jhash", ES_CONF_RING_JHASH},
	{NULL, 0},
};

static const struct es_conf_choice mac_modes[] = {
	{"multicast", ES_CONF_MAC_MULTICAST},
	{"unicast", ES_CONF_MAC_UNICAST},
	{NULL, 0},
};

static const struct es_conf_choice inspects[] = {
	{"first", ES_INSPECT_FIRST},
	{"every", ES_INSPECT_EVERY},
	{"never", ES_INSPECT_NEVER},
	{NULL, 0},
};

static const struct es_conf_choice unsafes[] = {
	{"once", ES_UNSAFE_ONCE},
	{"again", ES_UNSAFE_AGAIN},
	{"all", ES_UNSAFE_ALL},
	{NULL, 0},
};

static const struct es_conf_choice fails[] = {
	{"open", ES_CONF_FAIL_OPEN},
	{"closed", ES_CONF_FAIL_CLOSED},
	{NULL, 0},
};

static const struct es_conf_choice poisons[] = {
	{"serve", ES_CONF_POISON_SERVE},
	{"refuse", ES_CONF_POISON_REFUSE},
	{NULL, 0},
};

static const struct es_conf_choice check_types[] = {
	{"tcp", ES_CONF_CHECK_TCP},
	{"http", ES_CONF_CHECK_HTTP},
	{"https", ES_CONF_CHECK_HTTPS},
	{"none", ES_CONF_CHECK_NONE},
	{NULL, 0},
};

static const struct es_conf_choice all_downs[] = {
	{"serve", ES_CONF_ALL_DOWN_SERVE},
	{"reject", ES_CONF_ALL_DOWN_REJECT},
	{NULL, 0},
};

static const struct es_conf_choice otherwises[] = {
	{"any", ES_CONF_OTHERWISE_ANY},
	{"reject", ES_CONF_OTHERWISE_REJECT},
	{NULL, 0},
};

static const struct es_conf_choice types[] = {
	{"static", ES_CONF_TYPE_STATIC},
	{"dynamic", ES_CONF_TYPE_DYNAMIC},
	{NULL, 0},
};

static const struct es_conf_choice classes[] = {
	{"normal", 1 + ES_CLASS_NORMAL},
	{"cpu", 1 + ES_CLASS_CPU},
	{"disk", 1 + ES_CLASS_DISK},
	{"disk-cpu", 1 + ES_CLASS_DISK_CPU},
	{NULL, 0},
};

static const struct es_conf_choice priorities[] = {
	{"high", 1 + ES_PRIORITY_HIGH},
	{"normal", 1 + ES_PRIORITY_NORMAL},
	{"low", 1 + ES_PRIORITY_LOW},
	{NULL, 0},
};

static const struct es_conf_choice denials[] = {
	{"yes", ES_CONF_DENY_YES},
	{"no", ES_CONF_DENY_NO},
	{NULL, 0},
};

static const struct es_conf_choice affinities[] = {
	{"yes", ES_CONF_AFFINITY_VALUE},
	{"source", ES_CONF_AFFINITY_SOURCE},
	{"route", ES_CONF_AFFINITY_ROUTE},
	{"no", ES_CONF_AFFINITY_NONE},
	{NULL, 0},
};

static const struct es_conf_choice log_formats[] = {
	{"common", ES_CONF_LOG_COMMON},
	{"json", ES_CONF_LOG_JSON},
	{NULL, 0},
};

static const struct es_conf_choice log_tos[] = {
	{"syslog", ES_CONF_LOG_SYSLOG},
	{"file", ES_CONF_LOG_FILE},
	{NULL, 0},
};

/* Their numbers are RFC 5424's (table 1). */
static const struct es_conf_choice facilities[] = {
	{"daemon", 3},	{"local0", 16}, {"local1", 17}, {"local2", 18}, {"local3", 19},
	{"local4", 20}, {"local5", 21}, {"local6", 22}, {"local7", 23}, {NULL, 0},
};

static const struct es_conf_choice draineds[] = {
	{"leave", ES_CONF_DRAINED_LEAVE},
	{"stay", ES_CONF_DRAINED_STAY},
	{NULL, 0},
};

static const struct es_conf_choice yes_no[] = {
	{"yes", 1},
	{"no", 0},
	{NULL, 0},
};

static const struct es_conf_key cluster_keys[] = {
	VALUE(cluster, name, "earshot", TEXT),
	VALUE(cluster, key_file, "/etc/earshot/cluster.key", PATH),
	CHOICE(cluster, membership, "static", memberships),
	NUMBER(cluster, handover_port, "7350", 1, 65535, NULL, NULL),
	NUMBER(cluster, virtual_nodes, "63", 1, VIRTUAL_NODES_MAX, "of a node with weight 100", NULL),
	CHOICE(cluster, ring_hash, "siphash", ring_hashes),
	CHOICE(cluster, catch_up, "yes", yes_no),
	{.name = NULL},
};

static const struct es_conf_key datapath_keys[] = {
	CHOICE(datapath, type, "auto", datapath_types),
	VALUE(datapath, interface, REQUIRED, IFNAME),
	VALUE(datapath, cluster_interface, REQUIRED, IFNAME),
	CHOICE(datapath, mac_mode, "multicast", mac_modes),
	VALUE(datapath, cluster_mac, OPTIONAL, MAC),
	NUMBER(datapath, receive_window_scale, "10", 0, 14, NULL, NULL),
	NUMBER(datapath, mtu, "0", 576, 65535, "bytes", "ask the interface"),
	NUMBER(datapath, cookie_lifetime_s, "384", 120, 3600, "seconds", NULL),
	NUMBER(datapath, fallback_after_ms, "1000", 100, 60000, "milliseconds", NULL),
	NUMBER(datapath, conntrack_zone, "0", 1, 65535, NULL, "none"),
	{.name = NULL},
};

static const struct es_conf_key inspector_keys[] = {
	NUMBER(inspector, workers, "0", 1, ES_WORKERS_MAX, NULL, "one for each two CPUs, at most 8"),
	NUMBER(inspector, gather_timeout_ms, "200", 1, 10000, "milliseconds", NULL),
	NUMBER(inspector, gather_bytes, "65536", 1460, 1048576, "bytes per flow", NULL),
	NUMBER(inspector, gather_flows, "4096", 1, 1048576, "flows", NULL),
	NUMBER(inspector, connection_rate, "500", 1, 1000000, "new connections a second", NULL),
	NUMBER(inspector, decision_entries, "0", 1024, ES_DECISION_ENTRIES_MAX, "flows",
	       "connection_rate times cookie_lifetime_s"),
	NUMBER(inspector, target_entries, "100000", 1024, 16777216, "URIs", NULL),
	NUMBER(inspector, url_entries, "65536", ES_URL_ENTRIES_MIN, ES_URL_ENTRIES_MAX, "files and programs",
	       NULL),
	NUMBER(inspector, race_window_ms, "50", 0, 10000, "milliseconds", NULL),
	CHOICE(inspector, poison, "serve", poisons),
	NUMBER(inspector, settle_ms, "100", 10, 10000, "milliseconds",
	       "loads count as they are at each moment"),
	VALUE(inspector, program_group, OPTIONAL, TEXT),
	{.name = NULL},
};

static const struct es_conf_key status_keys[] = {
	VALUE(status, address, OPTIONAL, LOCAL),
	NUMBER(status, port, "7351", 1, 65535, NULL, "nowhere"),
	LIST(status, "allow", allow, PEERS),
	LIST(status, "names", names, CALLED),
	{.name = NULL},
};

static const struct es_conf_key log_keys[] = {
	CHOICE(log, format, "common", log_formats), CHOICE(log, to, "syslog", log_tos),
	VALUE(log, file, OPTIONAL, PATH),	    CHOICE(log, facility, "local5", facilities),
	NAMED(log, "service", service_name, TEXT),  {.name = NULL},
};

static const struct es_conf_key node_keys[] = {
	VALUE(node, address, REQUIRED, ADDRESS),
	NUMBER(node, weight, "100", 0, ES_CONF_WEIGHT_MAX, NULL, NULL),
	VALUE(node, interface, OPTIONAL, IFNAME),
	VALUE(node, cluster_interface, OPTIONAL, IFNAME),
	NUMBER(node, id, "0", 0, 2147483647, "corosync's nodeid, which earshot corosync-conf prints", NULL),
	CHOICE(node, removed, "no", yes_no),
	LIST(node, "route", routes, ROUTE),
	{.name = NULL},
};

static const struct es_conf_key service_keys[] = {
	VALUE(service, address, REQUIRED, ADDRESSES),
	NUMBER(service, port, REQUIRED, 1, 65535, NULL, NULL),
	VALUE(service, policy, OPTIONAL, POLICY),
	CHOICE(service, inspect, "first", inspects),
	CHOICE(service, unsafe, "once", unsafes),
	VALUE(service, server_address, "127.0.0.1, ::1", LOCALS),
	NUMBER(service, server_port, "0", 1, 65535, NULL, "no program hands connections over"),
	NUMBER(service, load_bound, "125", 100, 1000, "percent", "none"),
	NUMBER(service, handover_cost, "1", 0, 1000, "requests", NULL),
	CHOICE(service, content_host, "yes", yes_no),
	CHOICE(service, content_on_disk, "yes", yes_no),
	LIST(service, "parameters", parameters, PARAMETER),
	VALUE(service, document_root, OPTIONAL, PATH),
	NUMBER(service, admit_low, "0", 1, 1000000, "requests per node", "always"),
	NUMBER(service, admit_normal, "0", 1, 1000000, "requests per node", "always"),
	NUMBER(service, retry_after_s, "5", 1, 3600, "seconds", NULL),
	CHOICE(service, when_all_down, "serve", all_downs),
	LIST(service, "nodes", node_names, NODE),
	LIST(service, "backup", backup_names, NODE),
	{.name = NULL},
};

static const struct es_conf_key check_keys[] = {
	CHOICE(check, type, "tcp", check_types),
	NUMBER(check, port, "0", 1, 65535, NULL, "the service's"),
	VALUE(check, path, "/", PATH),
	VALUE(check, host, OPTIONAL, TEXT),
	VALUE(check, ca_file, OPTIONAL, PATH),
	NUMBER(check, expect, "0", 100, 599, "a status", "any of 200..399"),
	LIST(check, "status", statuses, STATUS),
	VALUE(check, body, OPTIONAL, BODY),
	NUMBER(check, interval_ms, "1000", 100, 600000, "milliseconds", NULL),
	NUMBER(check, timeout_ms, "2000", 10, 60000, "milliseconds", NULL),
	NUMBER(check, rise, "2", 1, 100, "checks", NULL),
	NUMBER(check, fall, "3", 1, 100, "checks", NULL),
	NUMBER(check, slow_start_s, "0", 1, 86400, "seconds", "the whole share at once"),
	{.name = NULL},
};

static const struct es_conf_key outlier_keys[] = {
	NUMBER(outlier, max_errors, "0", 1, 99, "percent of responses", "errors put nobody out"),
	NUMBER(outlier, max_slow, "0", 1, 99, "percent of responses", "slow ones put nobody out"),
	NUMBER(outlier, slow_ms, "1000", 1, 600000, "milliseconds", NULL),
	NUMBER(outlier, interval_ms, "10000", 1000, 600000, "milliseconds", NULL),
	NUMBER(outlier, min_responses, "20", 1, 1000000, "responses", NULL),
	NUMBER(outlier, out_s, "30", 1, 86400, "seconds", NULL),
	NUMBER(outlier, out_max_s, "300", 1, 86400, "seconds", NULL),
	NUMBER(outlier, max_out, "1", 1, 126, "nodes", NULL),
	{.name = NULL},
};

static const struct es_conf_key otherwise_keys[] = {
	NUMBER(page, status, "503", 400, 599, NULL, NULL),
	VALUE(page, body, OPTIONAL, BODY),
	VALUE(page, file, OPTIONAL, PATH),
	{.name = NULL},
};

#define RULE_SAYS                                                                                            \
	LIST(rule, "nodes", node_names, NODE), LIST(rule, "backup", backup_names, NODE),                     \
		CHOICE(rule, otherwise, OPTIONAL, otherwises), CHOICE(rule, type, OPTIONAL, types),          \
		CHOICE(rule, class, OPTIONAL, classes),                                                      \
		NUMBER(rule, cost, OPTIONAL, 1, 1000000, "response packets", NULL),                          \
		CHOICE(rule, priority, OPTIONAL, priorities)

static const struct es_conf_key rule_keys[] = {
	NAMED(rule, "service", service_name, TEXT),
	LIST(rule, "method", methods, METHOD),
	LIST(rule, "host", hosts, HOST),
	LIST(rule, "path", paths, PATH),
	LIST(rule, "suffix", suffixes, SUFFIX),
	LIST(rule, "client", clients, NETWORK),
	NAMED(rule, "header", header, HEADER),
	NAMED(rule, "cookie", cookie, TOKEN),
	RULE_SAYS,
	CHOICE(rule, affinity, OPTIONAL, affinities),
	CHOICE(rule, when_drained, OPTIONAL, draineds),
	CHOICE(rule, deny, OPTIONAL, denials),
	NUMBER(rule, status, OPTIONAL, 400, 599, NULL, NULL),
	NAMED(rule, "body", body, BODY),
	NAMED(rule, "rate", rate, RATE),
	NUMBER(rule, burst, OPTIONAL, 1, 1000000, "requests", NULL),
	{.name = NULL},
};

static const struct es_conf_key location_keys[] = {
	NAMED(rule, "service", service_name, TEXT),
	RULE_SAYS,
	NUMBER(rule, size_bytes, OPTIONAL, 1, 4294967295, "bytes", NULL),
	{.name = NULL},
};

static const struct es_conf_key plugin_keys[] = {
	VALUE(plugin, file, OPTIONAL, FILE),
	CHOICE(plugin, fail, "open", fails),
	NUMBER(plugin, budget_us, "10000", 1, 1000000, "microseconds", "not measured against any"),
	VALUE(plugin, config, OPTIONAL, CONFIG),
	VALUE(plugin, config_file, OPTIONAL, PATH),
	{.name = NULL},
};

#define KEY_COUNT(keys) (sizeof(keys) / sizeof((keys)[0]))
_Static_assert(KEY_COUNT(rule_keys) <= ES_CONF_KEYS_MAX + 1,
	       "ES_CONF_KEYS_MAX is that of the largest section");

const struct es_conf_section es_conf_sections[ES_CONF_SECTIONS] = {
	[ES_CONF_CLUSTER] = {"cluster", 0, cluster_keys, {NULL}},
	[ES_CONF_DATAPATH] = {"datapath", 0, datapath_keys, {NULL}},
	[ES_CONF_INSPECTOR] = {"inspector", 0, inspector_keys, {NULL}},
	[ES_CONF_STATUS] = {"status", 0, status_keys, {NULL}},
	[ES_CONF_LOG] = {"log", 0, log_keys, {NULL}},
	[ES_CONF_NODE] = {"node", 1, node_keys, {NULL}},
	[ES_CONF_SERVICE] = {"service",
			     1,
			     service_keys,
			     {&es_conf_sections[ES_CONF_PLUGIN], &es_conf_sections[ES_CONF_CHECK],
			      &es_conf_sections[ES_CONF_OUTLIER], &es_conf_sections[ES_CONF_PAGE]}},
	[ES_CONF_RULE] = {"rule", 1, rule_keys, {NULL}},
	[ES_CONF_LOCATION] = {"location", 1, location_keys, {NULL}},
	[ES_CONF_PLUGIN] = {"plugin", 1, plugin_keys, {NULL}},
	[ES_CONF_CHECK] = {"check", 0, check_keys, {NULL}},
	[ES_CONF_OUTLIER] = {"outlier", 0, outlier_keys, {NULL}},
	[ES_CONF_PAGE] = {"otherwise", 0, otherwise_keys, {NULL}},
};

int es_conf_key_index(const struct es_conf_section *section, const char *name)
{
	int i;

	for (i = 0; section->keys[i].name; i++)
		if (!strcmp(section->keys[i].name, name))
			return i;
	return -1;
}
