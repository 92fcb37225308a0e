// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The cost of a plugin for a request: the daemon's own reading of the head, its chain of plugins and its
 * policy, with an empty chain and with one plugin. Prints lines of round, case, plugin, and two times with
 * tabs between them: CPU nanoseconds of one request without and with it. Rounds are interleaved, and each
 * case has an empty chain right before it; plugins.py makes medians of it. usage: plugin_bench ROUNDS
 * REQUESTS
 */
#include <arpa/inet.h>
#include <earshot/plugin.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "inspector/inspect/route.h"
#include "tests/hello.h"

static struct es_name name; /* large */

#define NODES	 8
#define NETWORKS 1000
#define HTTP_FIELDS                                                                                          \
	"GET /images/2026/a-picture.png?size=3 HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: "            \
	"bench/1.0\r\n"                                                                                      \
	"Accept: */*\r\nX-Tenant: tenant-42\r\nCookie: theme=dark; sid=0123456789abcdef\r\n\r\n"

#define BODY_BYTES  1024
#define BODY_FIELDS "POST /v1/chat HTTP/1.1\r\nHost: www.example.org\r\nContent-Length: 1024\r\n\r\n"

/* The case's requests. */
enum request_kind {
	REQUEST_GET,
	REQUEST_TLS,
	REQUEST_BODY,
	REQUEST_KINDS,
};

static struct {
	const char *text;
	size_t len;
} requests_of[REQUEST_KINDS];

/* @plugin: NULL for an empty chain; @config: NULL for networks, which are made */
struct chain {
	const char *name;
	const char *plugin;
	const char *config;
	enum request_kind kind;
};

static const struct chain chains[] = {
	{"template", "my-rule", "prefix /images/ n3", REQUEST_GET},
	{"header-hash", "header-hash", "header X-Tenant", REQUEST_GET},
	{"header-hash, cookie", "header-hash", "cookie sid", REQUEST_GET},
	{"path-map, prefix", "path-map", "prefix /css/ n1; prefix /js/ n2; prefix /images/ n3 n4",
	 REQUEST_GET},
	{"path-map, regex", "path-map", "regex '\\.(mp4|webm)$' n1; regex '\\.(png|jpe?g)$' n3 n4",
	 REQUEST_GET},
	{"sni-map", "sni-map", "sni a.example.org n1; sni *.example.net n2; sni *.example.org n3",
	 REQUEST_TLS},
	{"canary", "canary", "percent 5; nodes n4", REQUEST_GET},
	{"body-prefix", "body-prefix", "path /v1/; bytes 1024", REQUEST_BODY},
	{"geo-cidr, 1 network", "geo-cidr", "192.0.2.0/24 n1 n2", REQUEST_GET},
	{"geo-cidr, 1000 networks", "geo-cidr", NULL, REQUEST_GET},
	{"lua, a constant", "lua", "function route() return 'n3' end", REQUEST_GET},
	{"lua, path prefix", "lua",
	 "function route(req) if req.path and req.path:find('^/images/') then return 'n3' end end",
	 REQUEST_GET},
	{"lua, header on the ring", "lua",
	 "function route(req, cluster) local t = req:header('X-Tenant') return t and cluster:ring_target(t) "
	 "end",
	 REQUEST_GET},
	{"lua, least load of a set", "lua",
	 "function route(req, cluster) local best, least for _, n in ipairs(cluster:nodes()) do local l = "
	 "n.load "
	 "if not least or l < least then best, least = n, l end end return best end",
	 REQUEST_GET},
	{"debug, pass", "debug", "answer pass", REQUEST_GET},
};

#define CHAINS (sizeof(chains) / sizeof(chains[0]))

/* Everything that the daemon has for one configuration. */
struct world {
	struct es_conf *conf;
	struct es_plugins *plugins;
	struct es_cluster *cluster;
	struct es_router router;
};

static struct es_health health;
static struct hello hello;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "plugin_bench: %s: %s\n", what, why);
	exit(2);
}

static void networks_make(char *text, size_t size)
{
	size_t used = 0;

	for (unsigned int i = 0; i < NETWORKS; i++)
		used += (size_t)snprintf(text + used, size - used, "10.%u.%u.0/24 n%u\n", i / 250, i % 250,
					 1 + i % NODES);
	snprintf(text + used, size - used, "192.0.2.0/24 n1 n2\n");
}

/* A file with the plugin's configuration; NULL if that can stand in the daemon's. */
static const char *config_file(const struct chain *chain)
{
	static char path[32];
	static char text[NETWORKS * 32];
	FILE *file;
	int fd;

	networks_make(text, sizeof(text));
	snprintf(path, sizeof(path), "/tmp/plugin_bench.XXXXXX");
	fd = mkstemp(path);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file)
		die(path, "cannot be made");
	fputs(chain->config ? chain->config : text, file);
	fclose(file);
	return path;
}

static void world_init(struct world *w, const struct chain *chain)
{
	const char *path = chain ? config_file(chain) : "";
	struct es_conf_error err = {};
	char text[4096], plugin[512] = "";
	size_t used;

	if (chain)
		snprintf(plugin, sizeof(plugin), "plugin %s { config_file = \"%s\" }", chain->plugin, path);
	used = (size_t)snprintf(text, sizeof(text),
				"datapath { interface = eth0 cluster_interface = eth1 }\n"
				"service web { address = 10.77.0.100 port = 80 policy = wrr\n%s\n}\n",
				plugin);
	for (unsigned int i = 1; i <= NODES; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "node n%u { address = 10.78.0.%u }\n", i, i);
	if (es_conf_parse(text, used, "bench.conf", &w->conf, &err) ||
	    es_plugins_new(w->conf, ES_PLUGINS_MISSING_FAILS, &w->plugins, &err))
		die(chain ? chain->name : "empty chain", err.text);
	if (es_cluster_new(w->conf, 0, 1, NULL, NULL, &w->cluster))
		die("cluster", "out of memory");
	w->cluster->plugins = w->plugins;
	if (es_router_init(&w->router, w->cluster, &health, NULL))
		die("router", "out of memory");
	if (chain)
		unlink(path);
}

static void world_fini(struct world *w)
{
	es_router_fini(&w->router);
	es_plugins_free(&w->plugins);
	es_cluster_free(&w->cluster);
	es_conf_free(&w->conf);
}

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* CPU time for each request, as a worker spends it: scan, describe, route. */
static double measure(struct world *w, enum request_kind kind, unsigned int requests)
{
	static struct es_http_head head;
	struct es_rejection rejection;
	struct es_addr client = es_addr_from_v4(htonl(0xc0000207));
	const char *text = requests_of[kind].text;
	size_t len = requests_of[kind].len;
	double start = cpu_ns();

	for (unsigned int i = 0; i < requests; i++) {
		struct es_request_view request = {.current = -1, .client = &client, .client_port = 40000};

		es_http_head_init(&head);
		es_http_head_scan(&head, text, len);
		es_request_describe(&request, &head, text, len, 1, &name);
		if (es_route(&w->router, 0, &request, 1000 + i, NULL, &rejection) < 0)
			die("route", "no node");
	}
	return (cpu_ns() - start) / requests;
}

/* A benchmark of answers that were not used would be one of something else. */
static void check(const struct world *w, const struct chain *chain)
{
	static struct es_plugin_report report;

	es_plugins_describe(w->plugins, 0, &report);
	for (unsigned int i = 0; i < ES_PLUGIN_FAILURE_COUNT; i++)
		if (report.failures[i] && i != ES_PLUGIN_FAILURE_too_slow)
			die(chain->name, es_plugin_failure_name[i]);
	/* The policy places what it names. */
	if (!strcmp(chain->plugin, "body-prefix")
		    ? !report.metric[0].value
		    : strcmp(chain->plugin, "debug") != 0 && report.answers[ES_PLUGIN_PASS])
		die(chain->name, "has not decided");
	if (!report.calls)
		die(chain->name, "has not decided");
}

static void requests_make(void)
{
	static char post[sizeof(BODY_FIELDS) + BODY_BYTES];
	struct hello extensions = {};

	hello_sni(&extensions, "www.example.org");
	hello_finish(&extensions, 16384, &hello);
	memset(post, 'x', sizeof(post) - 1);
	memcpy(post, BODY_FIELDS, sizeof(BODY_FIELDS) - 1);
	requests_of[REQUEST_GET].text = HTTP_FIELDS;
	requests_of[REQUEST_GET].len = sizeof(HTTP_FIELDS) - 1;
	requests_of[REQUEST_TLS].text = (const char *)hello.bytes;
	requests_of[REQUEST_TLS].len = hello.len;
	requests_of[REQUEST_BODY].text = post;
	requests_of[REQUEST_BODY].len = sizeof(post) - 1;
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
	unsigned long requests = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
	static struct world empty, world[CHAINS];

	if (!rounds || !requests) {
		fprintf(stderr, "usage: plugin_bench ROUNDS REQUESTS\n");
		return 2;
	}
	requests_make();
	world_init(&empty, NULL);
	for (size_t i = 0; i < CHAINS; i++)
		world_init(&world[i], &chains[i]);
	for (unsigned long round = 0; round <= rounds; round++) { /* the first one warms up */
		for (size_t i = 0; i < CHAINS; i++) {
			const struct chain *chain = &chains[(i + round) % CHAINS];
			double without = measure(&empty, chain->kind, (unsigned int)requests);
			double with = measure(&world[chain - chains], chain->kind, (unsigned int)requests);

			if (round)
				printf("%lu\t%s\t%s\t%.2f\t%.2f\n", round, chain->name, chain->plugin,
				       without, with);
		}
	}
	for (size_t i = 0; i < CHAINS; i++) {
		check(&world[i], &chains[i]);
		world_fini(&world[i]);
	}
	world_fini(&empty);
	return 0;
}
