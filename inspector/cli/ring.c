// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot ring`: the ring's members, its points, or which node inspects a client's connection. The daemon
 * computes all of it: the ring's key is not the user's to read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/cli/cli.h"
#include "inspector/cli/table.h"

static const struct argp_option options[] = {
	{"points", ES_CLI_OPT_POINTS, NULL, 0, "also list every point: position and node", 0},
	{"service", ES_CLI_OPT_SERVICE, "NAME", 0, "lookup: the service that the client connects to", 0},
	{0},
};

static void print_members(struct json_object *ring)
{
	static const char *const headings[] = {"MEMBER", "ADDRESS", ">VIRTUAL NODES", ">SHARE", NULL};
	struct json_object *members = es_json_array(ring, "members");
	struct es_table *table = es_table_new(headings);
	size_t i;

	for (i = 0; i < json_object_array_length(members); i++) {
		struct json_object *member = json_object_array_get_idx(members, i);

		es_table_cell(table, "%s", es_json_string(member, "name"));
		es_table_cell(table, "%s", es_json_string(member, "address"));
		es_table_cell(table, "%llu", es_json_number(member, "virtual_nodes"));
		es_table_cell(table, "%.1f%%", 100 * es_json_fraction(member, "share"));
	}
	es_table_print(table, stdout);
	es_table_free(&table);
}

static void print_points(struct json_object *ring)
{
	static const char *const headings[] = {"POSITION", "MEMBER", NULL};
	struct json_object *points = es_json_array(ring, "points");
	struct es_table *table = es_table_new(headings);
	size_t i;

	for (i = 0; i < json_object_array_length(points); i++) {
		struct json_object *point = json_object_array_get_idx(points, i);

		if (!json_object_is_type(point, json_type_array) || json_object_array_length(point) != 2)
			continue;
		es_table_cell(table, "%s", json_object_get_string(json_object_array_get_idx(point, 0)));
		es_table_cell(table, "%s", json_object_get_string(json_object_array_get_idx(point, 1)));
	}
	puts("");
	es_table_print(table, stdout);
	es_table_free(&table);
}

static int run_members(const struct es_cli *cli)
{
	struct json_object *ring, *request = es_cli_command_request("ring");
	int r;

	if (cli->points)
		json_object_object_add(request, "points", json_object_new_boolean(1));
	r = es_cli_request(cli, request, &ring);
	if (r)
		return r;
	if (cli->json) {
		es_cli_print_json(ring);
	} else {
		printf("epoch %llu, %llu virtual nodes at weight 100\n\n", es_json_number(ring, "epoch"),
		       es_json_number(ring, "virtual_nodes"));
		print_members(ring);
		if (cli->points)
			print_points(ring);
	}
	json_object_put(ring);
	return ES_CLI_OK;
}

static int run_lookup(const struct es_cli *cli)
{
	struct json_object *ring, *flow, *lookup, *request;
	long port;
	int r = es_cli_number("client port", cli->args[2], 1, 65535, &port);

	if (r)
		return r;
	request = es_cli_command_request("ring");
	lookup = json_object_new_object();
	json_object_object_add(lookup, "address", json_object_new_string(cli->args[1]));
	json_object_object_add(lookup, "port", json_object_new_int((int)port));
	if (cli->service)
		json_object_object_add(lookup, "service", json_object_new_string(cli->service));
	json_object_object_add(request, "lookup", lookup);
	r = es_cli_request(cli, request, &ring);
	if (r)
		return r;
	flow = es_json_object(ring, "lookup");
	if (cli->json)
		es_cli_print_json(ring);
	else
		printf("%s (%s) inspects %s port %llu to service %s: position %s, epoch %llu\n",
		       es_json_string(flow, "node"), es_json_string(flow, "node_address"),
		       es_json_string(flow, "address"), es_json_number(flow, "port"),
		       es_json_string(flow, "service"), es_json_string(flow, "position"),
		       es_json_number(ring, "epoch"));
	json_object_put(ring);
	return ES_CLI_OK;
}

static int run(const struct es_cli *cli)
{
	if (!cli->arg_count)
		return run_members(cli);
	if (strcmp(cli->args[0], "lookup") != 0 || cli->arg_count != 3)
		return es_cli_usage("ring: expected nothing, or lookup ADDRESS PORT");
	return run_lookup(cli);
}

const struct es_cli_command es_cli_ring = {
	.name = "ring",
	.args_doc = "\nlookup ADDRESS PORT",
	.doc = "Show the ring's members and their shares, or (lookup) the node that inspects the connection "
	       "of the client with this address and port.",
	.options = options,
	.args_max = 3,
	.run = run,
};
