// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot status`: the node, its datapath and workers, the cluster's nodes and services, as the daemon sees
 * them.
 */
#include <stdio.h>
#include <string.h>

#include "inspector/cli/cli.h"
#include "inspector/cli/table.h"

static void print_uptime(double uptime_s)
{
	unsigned long s = uptime_s > 0 ? (unsigned long)uptime_s : 0;

	if (s >= 86400)
		printf("%lu d %lu h", s / 86400, s % 86400 / 3600);
	else if (s >= 3600)
		printf("%lu h %lu min", s / 3600, s % 3600 / 60);
	else if (s >= 60)
		printf("%lu min %lu s", s / 60, s % 60);
	else
		printf("%lu s", s);
}

/* With ", " between them; @text has the room. A daemon of a version before tells one address only. */
static const char *addresses_text(struct json_object *service, char *text, size_t size)
{
	struct json_object *addresses = es_json_array(service, "addresses");
	size_t used = 0;

	if (!json_object_array_length(addresses))
		return es_json_string(service, "address");
	for (size_t i = 0; i < json_object_array_length(addresses) && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "",
					 json_object_get_string(json_object_array_get_idx(addresses, i)));
	return text;
}

static void print_services(struct json_object *status)
{
	char text[128];
	static const char *const headings[] = {"SERVICE", "ADDRESS", ">PORT", "POLICY", "INSPECT", NULL};
	struct json_object *services = es_json_array(status, "services");
	struct es_table *table = es_table_new(headings);
	size_t i;

	for (i = 0; i < json_object_array_length(services); i++) {
		struct json_object *service = json_object_array_get_idx(services, i);

		es_table_cell(table, "%s", es_json_string(service, "name"));
		es_table_cell(table, "%s", addresses_text(service, text, sizeof(text)));
		es_table_cell(table, "%llu", es_json_number(service, "port"));
		es_table_cell(table, "%s", es_json_string(service, "policy"));
		es_table_cell(table, "%s", es_json_string(service, "inspect"));
	}
	puts("");
	es_table_print(table, stdout);
	es_table_free(&table);
}

/* A worker's members are the daemon's choice, so the first worker's names make the table's rows. */
static void print_workers(struct json_object *status)
{
	static const char *const headings[] = {"WORKERS", ">TOTAL", "EACH", NULL};
	struct json_object *workers = es_json_array(status, "workers");
	size_t i, n = json_object_array_length(workers);
	struct es_table *table;

	if (!n || !json_object_is_type(json_object_array_get_idx(workers, 0), json_type_object))
		return;
	table = es_table_new(headings);
	json_object_object_foreach(json_object_array_get_idx(workers, 0), key, value)
	{
		unsigned long long total = 0;
		char each[128] = "";
		size_t used = 0;

		if (key[0] == 'i' && key[1] == 'd' && !key[2])
			continue;
		if (!json_object_is_type(value, json_type_int))
			continue;
		for (i = 0; i < n; i++) {
			unsigned long long one = es_json_number(json_object_array_get_idx(workers, i), key);

			total += one;
			if (used < sizeof(each))
				used += (size_t)snprintf(each + used, sizeof(each) - used, "%s%llu",
							 i ? " " : "", one);
		}
		es_table_cell(table, "%s", key);
		es_table_cell(table, "%llu", total);
		es_table_cell(table, "%s", each);
	}
	puts("");
	es_table_print(table, stdout);
	es_table_free(&table);
}

static void print_plugins(struct json_object *status)
{
	static const char *const headings[] = {"PLUGIN",   "SERVICE", "VERSION", ">CALLS",  ">NODE",
					       ">NODES",   ">PASS",   ">MORE",	 ">REJECT", ">FAILED",
					       ">MEAN US", ">MAX US", NULL};
	static const char *const kinds[] = {"node", "nodes", "pass", "more", "reject"};
	struct json_object *plugins = es_json_array(status, "plugins");
	struct es_table *table;

	if (!json_object_array_length(plugins))
		return;
	table = es_table_new(headings);
	for (size_t i = 0; i < json_object_array_length(plugins); i++) {
		struct json_object *plugin = json_object_array_get_idx(plugins, i);
		struct json_object *failures = es_json_object(plugin, "failures");
		unsigned long long failed = 0;

		json_object_object_foreach(failures, reason, value)
		{
			(void)reason;
			failed += json_object_get_uint64(value);
		}
		es_table_cell(table, "%s", es_json_string(plugin, "name"));
		es_table_cell(table, "%s", es_json_string(plugin, "service"));
		es_table_cell(table, "%s", es_json_string(plugin, "version"));
		es_table_cell(table, "%llu", es_json_number(plugin, "calls"));
		for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
			es_table_cell(table, "%llu",
				      es_json_number(es_json_object(plugin, "answers"), kinds[k]));
		es_table_cell(table, "%llu", failed);
		es_table_cell(table, "%.1f", es_json_fraction(plugin, "mean_us"));
		es_table_cell(table, "%.1f", es_json_fraction(plugin, "max_us"));
	}
	puts("");
	es_table_print(table, stdout);
	es_table_free(&table);
	for (size_t i = 0; i < json_object_array_length(plugins); i++) {
		struct json_object *plugin = json_object_array_get_idx(plugins, i);

		if (*es_json_string(plugin, "last_error"))
			printf("plugin %s of service %s failed last with: %s\n",
			       es_json_string(plugin, "name"), es_json_string(plugin, "service"),
			       es_json_string(plugin, "last_error"));
		if (es_json_is_true(plugin, "is_off"))
			printf("plugin %s of service %s is OFF: it has crashed or hung %llu times\n",
			       es_json_string(plugin, "name"), es_json_string(plugin, "service"),
			       es_json_number(plugin, "crashes"));
	}
}

/* One line for each request that has ended a daemon; loud, since somebody must look for the reason. */
static void print_poison(struct json_object *status)
{
	struct json_object *poison = es_json_array(status, "poison");

	for (size_t i = 0; i < json_object_array_length(poison); i++) {
		struct json_object *p = json_object_array_get_idx(poison, i);

		printf("POISON    a request of %s port %llu, %.0f s ago: the daemon of %s %s; it is not "
		       "inspected again\n",
		       es_json_string(p, "client"), es_json_number(p, "port"), es_json_fraction(p, "age_s"),
		       es_json_string(p, "node"), es_json_string(p, "daemon"));
	}
}

static void print_membership(struct json_object *membership)
{
	if (strcmp(es_json_string(membership, "provider"), "corosync") != 0)
		return;
	printf("members   corosync, %s, epoch %llu, %s for %.0f s\n",
	       !es_json_is_true(membership, "connected") ? "not connected"
	       : es_json_is_true(membership, "quorate")	 ? "quorate"
							 : "no quorum",
	       es_json_number(membership, "epoch"), es_json_string(membership, "phase"),
	       es_json_fraction(membership, "phase_s"));
	if (es_json_is_true(membership, "silent"))
		printf("SILENT    %s\n", es_json_string(membership, "why"));
	else if (es_json_number(membership, "granted_ms"))
		printf("lease     granted by the other nodes for %llu ms more\n",
		       es_json_number(membership, "granted_ms"));
}

/* Loud, like a node that is silent: while it does not run, nobody serves these services here. */
static void print_tls(struct json_object *tls)
{
	struct json_object *services = es_json_array(tls, "services");

	if (!json_object_is_type(tls, json_type_object) || !json_object_object_length(tls))
		return;
	if (es_json_is_true(tls, "running")) {
		printf("tls       earshot-tls, %llu workers, up ", es_json_number(tls, "workers"));
		print_uptime(es_json_fraction(tls, "uptime_s"));
		if (es_json_number(tls, "leaving"))
			printf(", and %llu workers of before it was reloaded",
			       es_json_number(tls, "leaving"));
		if (es_json_number(tls, "died"))
			printf("; %llu workers have died, as its log says", es_json_number(tls, "died"));
		puts("");
	} else {
		puts("TLS       earshot-tls does not run: no service with tls { } is served here");
	}
	for (size_t i = 0; i < json_object_array_length(services); i++) {
		struct json_object *service = json_object_array_get_idx(services, i);

		if (es_json_is_true(tls, "running") && *es_json_string(service, "problem"))
			printf("TLS       service %s %s: %s\n", es_json_string(service, "name"),
			       es_json_is_true(service, "served") ? "is served" : "IS NOT SERVED",
			       es_json_string(service, "problem"));
	}
}

static void print_tls_services(struct json_object *tls)
{
	static const char *const headings[] = {"TLS",	   ">CONNECTIONS", ">HANDSHAKES",
					       ">RESUMED", ">FAILED",	   ">REQUESTS",
					       ">MOVED",   ">ARRIVED",	   NULL};
	static const char *const names[] = {
		"handshakes", "handshakes_resumed", "handshakes_failed", "requests", "moved", "arrived"};
	struct json_object *services = es_json_array(tls, "services");
	struct es_table *table;

	if (!json_object_array_length(services))
		return;
	table = es_table_new(headings);
	for (size_t i = 0; i < json_object_array_length(services); i++) {
		struct json_object *service = json_object_array_get_idx(services, i);

		es_table_cell(table, "%s", es_json_string(service, "name"));
		es_table_cell(table, "%llu", es_json_number(service, "connections"));
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			es_table_cell(table, "%llu",
				      es_json_number(es_json_object(service, "counters"), names[k]));
	}
	puts("");
	es_table_print(table, stdout);
	es_table_free(&table);
}

static void print_status(struct json_object *status)
{
	struct json_object *datapath = es_json_object(status, "datapath");
	struct json_object *ring = es_json_object(status, "ring");

	printf("node      %s of cluster %s, earshotd %s, up ", es_json_string(status, "node"),
	       es_json_string(status, "cluster"), es_json_string(status, "version"));
	print_uptime(es_json_fraction(status, "uptime_s"));
	printf("\ndatapath  %s, %s\n", es_json_string(datapath, "type"), es_json_string(datapath, "state"));
	printf("ring      epoch %llu, members %llu\n", es_json_number(ring, "epoch"),
	       es_json_number(ring, "members"));
	print_membership(es_json_object(status, "membership"));
	print_tls(es_json_object(status, "tls"));
	print_poison(status);
	puts("");
	es_cli_print_nodes(status);
	print_services(status);
	print_tls_services(es_json_object(status, "tls"));
	print_plugins(status);
	print_workers(status);
}

static int run(const struct es_cli *cli)
{
	struct json_object *status;
	int r = es_cli_request(cli, es_cli_command_request("status"), &status);

	if (r)
		return r;
	if (cli->json)
		es_cli_print_json(status);
	else
		print_status(status);
	json_object_put(status);
	return ES_CLI_OK;
}

const struct es_cli_command es_cli_status = {
	.name = "status",
	.doc = "Show the node, its datapath and workers, and the cluster's nodes and services.",
	.run = run,
};
