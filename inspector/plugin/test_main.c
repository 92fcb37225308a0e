// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * earshot-plugin-test: runs requests through one plugin, without a cluster. The plugin is loaded, configured
 * and asked by the daemon's own code; only the cluster is made up, and all of its nodes are idle targets.
 */
#include <argp.h>
#include <arpa/inet.h>
#include <ctype.h>
#include <earshot/plugin.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "earshot_version.h"
#include "inspector/base/endpoint.h"
#include "inspector/base/help.h"
#include "inspector/base/output.h"
#include "inspector/config/explain_text.h"
#include "inspector/http/head.h"
#include "inspector/plugin/guard.h"
#include "inspector/plugin/host.h"
#include "inspector/policy/name.h"

#define REQUEST_MAX  (1024 * 1024)
#define DOWN_MAX     128
#define EXIT_OTHER   1 /* another answer than expected */
#define EXIT_TROUBLE 2

enum {
	OPT_CONFIG = 'c',
	OPT_CONFIG_FILE = 'f',
	OPT_NODES = 'n',
	OPT_CLIENT = 'C',
	OPT_EXPECT = 'e',
	OPT_CUT = 'k',
	OPT_REPEAT = 'r',
	OPT_DOWN = 'd',
	OPT_QUIET = 'q',
	OPT_BUDGET = 'b',
	OPT_CURRENT = 'o'
};

static const struct argp_option options[] = {
	{"config", OPT_CONFIG, "TEXT", 0, "the plugin's configuration", 0},
	{"config-file", OPT_CONFIG_FILE, "FILE", 0, "the same from a file", 0},
	{"nodes", OPT_NODES, "N1,N2,…", 0, "the cluster (default n1,n2,n3)", 0},
	{"down", OPT_DOWN, "N1,…", 0, "nodes that are not targets", 0},
	{"client", OPT_CLIENT, "ADDRESS[:PORT]", 0, "who asks (default 192.0.2.1:40000)", 0},
	{"current", OPT_CURRENT, "NODE", 0, "a later request, on a connection that this node has", 0},
	{"cut", OPT_CUT, "BYTES", 0,
	 "the request comes in pieces of so many bytes, as in segments: MORE is answered with the next one, "
	 "and in the end with is_truncated()",
	 0},
	{"repeat", OPT_REPEAT, "N", 0, "ask N times, and tell the time of one call", 0},
	{"budget-us", OPT_BUDGET, "N", 0, "as in the configuration (default: none)", 0},
	{"expect", OPT_EXPECT, "ANSWER", 0,
	 "pass, node=NAME, nodes=N1,…, reject=STATUS, more or failed=REASON, or content=NAME, which the "
	 "plugin "
	 "has named: exit with 1 if one request's answer is another one",
	 0},
	{"quiet", OPT_QUIET, NULL, 0, "only the answers", 0},
	{0},
};

struct tool {
	const char *plugin;
	const char *config;
	const char *config_file;
	const char *node_names;
	const char *down;
	const char *client;
	const char *current;
	const char *expect;
	size_t cut;
	unsigned long repeat;
	unsigned long budget_us;
	int quiet;
	char **files;
	struct es_conf *conf;
	struct es_plugins *plugins;
	struct es_plugins_thread *thread;
	struct es_ring *ring;
	struct es_node_view node[ES_NODES_MAX];
	struct es_flow flow;
	struct es_explain explain;
};

/* libc's name, which -fvisibility=hidden would hide from libc */
__attribute__((visibility("default"))) const char *argp_program_version =
	"earshot-plugin-test " EARSHOT_VERSION;

static unsigned long number_of(const char *text, struct argp_state *state)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	/* strtoul() would take "-1" for a very large one. */
	if (!isdigit((unsigned char)*text) || *end || errno || n > INT_MAX)
		argp_error(state, "%s: expected a number from 0 to %d", text, INT_MAX);
	return n;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct tool *t = state->input;

	switch (key) {
	case OPT_CONFIG:
		t->config = arg;
		return 0;
	case OPT_CONFIG_FILE:
		t->config_file = arg;
		return 0;
	case OPT_NODES:
		t->node_names = arg;
		return 0;
	case OPT_DOWN:
		t->down = arg;
		return 0;
	case OPT_CLIENT:
		t->client = arg;
		return 0;
	case OPT_CURRENT:
		t->current = arg;
		return 0;
	case OPT_EXPECT:
		t->expect = arg;
		return 0;
	case OPT_CUT:
		t->cut = number_of(arg, state);
		return 0;
	case OPT_REPEAT:
		t->repeat = number_of(arg, state);
		return 0;
	case OPT_BUDGET:
		t->budget_us = number_of(arg, state);
		return 0;
	case OPT_QUIET:
		t->quiet = 1;
		return 0;
	case ARGP_KEY_ARGS:
		t->plugin = state->argv[state->next];
		t->files = &state->argv[state->next + 1];
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_usage(state);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int trouble(const char *what, const char *why)
{
	fprintf(stderr, "earshot-plugin-test: %s: %s\n", what, why);
	return EXIT_TROUBLE;
}

/* Is @name in a list "a,b,c"? */
static int list_has(const char *list, const char *name)
{
	size_t len = strlen(name);

	while (list && *list && len) {
		size_t item = strcspn(list, ",");

		if (item == len && !memcmp(list, name, len))
			return 1;
		list += item + (list[item] == ',');
	}
	return 0;
}

/* A file, or else an installed plugin, with its ".so" or without. Returns 0, or -1 and errno. */
static int file_find(const char *name, char path[PATH_MAX])
{
	static const char *const suffixes[] = {"", ".so"};
	char installed[PATH_MAX];

	if (realpath(name, path) && strstr(path, ".so"))
		return 0;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]) && !strchr(name, '/'); i++) {
		snprintf(installed, sizeof(installed), "%s/%s%s", es_plugins_dir(), name, suffixes[i]);
		if (realpath(installed, path))
			return 0;
	}
	return realpath(name, path) ? 0 : -1;
}

/* A configuration as the daemon's would be, with the plugin as its only rule. */
static int conf_make(struct tool *t)
{
	const char *slash = t->plugin ? strrchr(t->plugin, '/') : NULL, *name = slash ? slash + 1 : t->plugin;
	struct es_conf_plugin *plugin;
	char path[PATH_MAX];

	if (!t->plugin)
		return EXIT_TROUBLE;
	t->conf = calloc(1, sizeof(*t->conf));
	plugin = calloc(1, sizeof(*plugin));
	if (!t->conf || !plugin || file_find(t->plugin, path) || strlen(path) >= sizeof(plugin->file)) {
		free(plugin);
		return trouble(t->plugin, strerror(errno ? errno : ENAMETOOLONG));
	}
	snprintf(t->conf->path, sizeof(t->conf->path), "--config");
	t->conf->plugins = plugin;
	t->conf->plugin_count = t->conf->service_count = 1;
	snprintf(t->conf->services[0].name, ES_CONF_NAME_SIZE, "web");
	snprintf(plugin->name, sizeof(plugin->name), "%.*s", (int)strcspn(name, "."), name);
	memcpy(plugin->file, path, strlen(path) + 1);
	plugin->line = plugin->config_line = 1;
	plugin->budget_us = (unsigned int)t->budget_us;
	if (t->config && strlen(t->config) >= sizeof(plugin->config))
		return trouble("--config", "too long: expected a --config-file");
	if (t->config)
		snprintf(plugin->config, sizeof(plugin->config), "%s", t->config);
	if (t->config_file)
		snprintf(plugin->config_file, sizeof(plugin->config_file), "%s", t->config_file);
	return 0;
}

/* The first node of that name, or as many as there are. */
static unsigned int node_find(const struct tool *t, const char *name, size_t len)
{
	unsigned int n = 0;

	while (n < t->conf->node_count &&
	       (strlen(t->conf->nodes[n].name) != len || memcmp(t->conf->nodes[n].name, name, len) != 0))
		n++;
	return n;
}

static int nodes_make(struct tool *t)
{
	struct es_ring_node nodes[ES_CONF_NODES_MAX];
	const char *at = t->node_names;
	int rc;

	while (*at) {
		unsigned int n = t->conf->node_count;
		size_t len = strcspn(at, ",");

		if (n == ES_CONF_NODES_MAX || !len || len >= ES_CONF_NAME_SIZE)
			return trouble("--nodes", "expected NAME,NAME,…");
		memcpy(t->conf->nodes[n].name, at, len);
		if (node_find(t, at, len) != n)
			return trouble("--nodes", "expected each name once");
		t->conf->nodes[n].address = es_addr_from_v4(htonl(10u << 24 | 78u << 16 | (n + 1)));
		nodes[n] = (struct es_ring_node){t->conf->nodes[n].address, ES_RING_VIRTUAL_NODES_DEFAULT,
						 (__u16)n};
		t->node[n] = (struct es_node_view){
			.weight = 100,
			.is_target = !list_has(t->down, t->conf->nodes[n].name),
		};
		t->conf->node_count++;
		at += len + (at[len] == ',');
	}
	if (!t->conf->node_count)
		return trouble("--nodes", "expected NAME,NAME,…");
	for (at = t->down; at && *at; at += strcspn(at, ","), at += *at == ',')
		if (node_find(t, at, strcspn(at, ",")) == t->conf->node_count)
			return trouble("--down", "expected names of --nodes");
	if (t->current && node_find(t, t->current, strlen(t->current)) == t->conf->node_count)
		return trouble("--current", "expected a name of --nodes");
	rc = es_ring_new(nodes, t->conf->node_count, &t->ring);
	return rc ? trouble("--nodes", strerror(-rc)) : 0;
}

static int client_make(struct tool *t)
{
	char address[INET6_ADDRSTRLEN];
	int port;

	if (es_endpoint_split(t->client, address, &port) || es_conf_addr_parse(address, &t->flow.client))
		return trouble("--client", "expected ADDRESS[:PORT], an IPv6 address in brackets");
	t->flow.client_port = htons(port < 0 ? 0 : (uint16_t)port);
	t->flow.service_port = htons(80);
	return es_conf_addr_parse(es_addr_is_v4(&t->flow.client) ? "198.51.100.1" : "2001:db8::100",
				  &t->flow.service);
}

/* --- one request */

static size_t file_read(const char *path, char *text)
{
	FILE *file = strcmp(path, "-") ? fopen(path, "re") : stdin;
	size_t len = 0;

	if (!file) {
		trouble(path, strerror(errno));
		return 0;
	}
	len = fread(text, 1, REQUEST_MAX, file);
	if (file != stdin)
		fclose(file);
	if (!len)
		trouble(path, "is empty");
	return len;
}

static const char *nodes_text(const struct tool *t, struct es_node_set set, char *text, size_t size)
{
	size_t used = 0;

	text[0] = 0;
	for (unsigned int i = 0; i < t->conf->node_count && used < size; i++)
		if (es_node_set_has(set, i))
			used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "," : "",
						 t->conf->nodes[i].name);
	return text;
}

/* The host's last count, which shows the plugin's own answer, even a wrong one. */
static const char *failure_of(struct tool *t, const struct es_plugin_report *before)
{
	static struct es_plugin_report now;

	es_plugins_describe(t->plugins, 0, &now);
	for (unsigned int i = 0; i < ES_PLUGIN_FAILURE_COUNT; i++)
		if (now.failures[i] != before->failures[i])
			return es_plugin_failure_name[i];
	return NULL;
}

static void request_view(const struct tool *t, const char *text, size_t len, int is_all,
			 struct es_http_head *head, struct es_request_view *ret)
{
	static struct es_name name; /* large */
	const char *host = NULL;
	size_t host_len = 0;

	*ret = (struct es_request_view){.current = -1,
					.cost = 1,
					.head = head,
					.text = text,
					.len = len,
					.client = &t->flow.client,
					.client_port = es_ntohs(t->flow.client_port)};
	for (unsigned int i = 0; t->current && i < t->conf->node_count; i++)
		if (!strcmp(t->conf->nodes[i].name, t->current))
			ret->current = (int)i;
	es_http_head_init(head);
	ret->truncated = is_all && es_http_head_scan(head, text, len) == ES_HTTP_MORE;
	if (ret->truncated)
		es_http_head_truncate(head);
	if (!is_all)
		es_http_head_scan(head, text, len);
	if (!head->target_complete || (!head->path.len && head->target_form != ES_HTTP_TARGET_ABSOLUTE))
		return;
	es_http_head_host(head, text, &host, &host_len);
	ret->uri = text + head->path.off;
	ret->uri_len = head->path.len + (head->has_query ? 1 + head->query.len : 0);
	es_name_make(&name, host, host_len, ret->uri, ret->uri_len);
	ret->name = name.text;
	ret->name_len = name.len;
	ret->content = es_content_hash(name.text, name.len);
}

/* As the inspector does: piece by piece, until a head is there and the plugin has decided. */
static enum es_plugins_verdict request_ask(struct tool *t, const char *text, size_t len,
					   struct es_plugins_answer *answer, struct es_request_view *request,
					   int is_explain)
{
	struct es_random random = {.state = 1};
	struct es_cluster_view view = {
		.count = t->conf->node_count,
		.node = t->node,
		.ring = t->ring,
		.now_ns = 1000000000ULL,
		.random = &random,
		.explain = is_explain ? &t->explain : NULL,
	};
	static struct es_http_head head;
	size_t have = t->cut && t->cut < len ? t->cut : len;
	enum es_plugins_verdict verdict;
	size_t wanted = 0;

	for (;;) {
		int is_all = have == len;

		request_view(t, text, have, is_all, &head, request);
		if (have < wanted && is_all)
			request->truncated = 1;
		if ((head.result != ES_HTTP_MORE && have >= wanted) || is_all) {
			verdict = es_plugins_route(t->thread, 0, request, &view, answer);
			if (verdict != ES_PLUGINS_MORE || (is_all && !t->cut))
				return verdict;
			wanted = answer->more_bytes;
		}
		have = t->cut && t->cut < len - have ? have + t->cut : len;
	}
}

static void answer_text(struct tool *t, enum es_plugins_verdict verdict,
			const struct es_plugins_answer *answer, const struct es_request_view *request,
			char *text, size_t size)
{
	char nodes[256];
	size_t used;

	switch (verdict) {
	case ES_PLUGINS_NODE:
		snprintf(text, size, "node=%s", t->conf->nodes[answer->node].name);
		break;
	case ES_PLUGINS_MORE:
		snprintf(text, size, "more=%zu", answer->more_bytes);
		break;
	case ES_PLUGINS_REJECT:
		snprintf(text, size, "reject=%u", answer->status);
		break;
	default:
		if (request->has_allowed)
			snprintf(text, size, "nodes=%s",
				 nodes_text(t, request->allowed, nodes, sizeof(nodes)));
		else
			snprintf(text, size, "pass");
		used = strlen(text);
		if (request->is_named)
			snprintf(text + used, size - used, " content=%.*s", (int)request->name_len,
				 request->name);
		break;
	}
}

static int is_expected(const struct tool *t, const char *answer)
{
	const char *content = strstr(answer, " content=");
	size_t len = content ? (size_t)(content - answer) : strlen(answer);

	if (t->expect && content && !strcmp(t->expect, content + 1))
		return 1;
	if (t->expect && content && strlen(t->expect) == len && !strncmp(t->expect, answer, len))
		return 1;
	return !t->expect || !strcmp(t->expect, answer) ||
	       (!strcmp(t->expect, "more") && !strncmp(answer, "more=", 5));
}

static int request_run(struct tool *t, const char *path)
{
	static struct es_plugin_report before;
	static char text[REQUEST_MAX];
	struct es_plugins_answer answer = {};
	struct es_request_view request;
	enum es_plugins_verdict verdict;
	const char *failure;
	char said[512], step[ES_EXPLAIN_TEXT_SIZE];
	size_t len = file_read(path, text);

	if (!len)
		return EXIT_TROUBLE;
	es_plugins_describe(t->plugins, 0, &before);
	verdict = request_ask(t, text, len, &answer, &request, 0);
	answer_text(t, verdict, &answer, &request, said, sizeof(said));
	failure = failure_of(t, &before);
	if (failure)
		snprintf(said, sizeof(said), "failed=%s", failure);
	printf("%s: %s\n", path, said);
	for (unsigned long i = 1; i < t->repeat; i++)
		request_ask(t, text, len, &answer, &request, 0);
	if (!t->quiet) {
		t->explain.count = 0;
		request_ask(t, text, len, &answer, &request, 1);
		for (unsigned int i = 0; i < t->explain.count; i++)
			printf("  %u. %s\n", i + 1, es_explain_text(t->conf, t->explain.step[i], step));
	}
	if (!t->expect && failure &&
	    (failure == es_plugin_failure_name[ES_PLUGIN_FAILURE_hung] ||
	     failure == es_plugin_failure_name[ES_PLUGIN_FAILURE_crashed])) {
		es_plugins_describe(t->plugins, 0, &before);
		return trouble(path, before.last_error);
	}
	if (is_expected(t, said))
		return 0;
	fprintf(stderr, "earshot-plugin-test: %s: %s, expected %s\n", path, said, t->expect);
	return EXIT_OTHER;
}

static void summary(struct tool *t)
{
	static struct es_plugin_report report;

	es_plugins_describe(t->plugins, 0, &report);
	printf("%s %s: %llu calls, %.3f us each, %.3f us at most\n", report.what, report.version,
	       report.calls, report.mean_us, report.max_us);
	for (unsigned int i = 0; i < report.metric_count; i++)
		printf("  %s %lld\n", report.metric[i].name, report.metric[i].value);
}

static int run(struct tool *t)
{
	struct es_conf_error err = {};
	int rc = conf_make(t), worst = 0;

	if (!rc)
		rc = nodes_make(t);
	if (!rc)
		rc = client_make(t);
	if (rc)
		return rc;
	if (es_plugins_new(t->conf, ES_PLUGINS_MISSING_FAILS, &t->plugins, &err)) {
		fprintf(stderr, "earshot-plugin-test: %s\n", err.text);
		return EXIT_TROUBLE;
	}
	if (es_plugins_thread_new(t->plugins, &t->thread))
		return trouble(t->plugin, "no memory for a thread");
	for (char **file = t->files; *file; file++) {
		rc = request_run(t, *file);
		if (rc > worst)
			worst = rc;
	}
	if (!t->quiet)
		summary(t);
	return worst;
}

int main(int argc, char **argv)
{
	static const struct argp_child children[] = {{&es_help_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {options,
					 parse,
					 "PLUGIN REQUEST…",
					 "Runs requests through a plugin, without a cluster.\v"
					 "PLUGIN is a file, or the name of an installed plugin. "
					 "A REQUEST is a file (- for standard input) with the bytes that a "
					 "client sends: an HTTP/1.x request with "
					 "its CRLFs, a TLS ClientHello with its record header, or anything "
					 "else. Exit status: 0; 1 if an answer was "
					 "not the expected one; 2 if the plugin could not be used.",
					 children,
					 NULL,
					 NULL};
	static char *none[] = {NULL};
	static struct tool t = {.node_names = "n1,n2,n3", .client = "192.0.2.1:40000", .files = none};
	int rc;

	es_output_watch();
	argp_parse(&argp, argc, argv, 0, NULL, &t);
	es_guard_install();
	es_guard_thread();
	rc = run(&t);
	es_plugins_thread_free(&t.thread);
	es_plugins_free(&t.plugins);
	es_ring_free(&t.ring);
	es_conf_free(&t.conf);
	return rc;
}
