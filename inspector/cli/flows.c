// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot flows`: the connections of this node whose every request is inspected.
 */
#include <stdio.h>

#include "inspector/cli/cli.h"
#include "inspector/cli/table.h"

static const struct argp_option options[] = {
	{"pinned", ES_CLI_OPT_PINNED, NULL, 0, "only connections that are inspected no more", 0},
	{"limit", ES_CLI_OPT_LIMIT, "N", 0, "show at most N connections; default 1000", 0},
	{0},
};

/* Other nodes have told of these idle connections of theirs. */
static void print_kept(struct json_object *kept)
{
	static const char *const headings[] = {"CLIENT", ">PORT", "SERVICE", "KEPT FOR", NULL};
	struct json_object *flows = es_json_array(kept, "flows");
	struct es_table *table;

	if (!es_json_number(kept, "own") && !es_json_number(kept, "total"))
		return;
	printf("\nidle connections kept for other nodes: %llu; of this one by others: %llu\n\n",
	       es_json_number(kept, "total"), es_json_number(kept, "own"));
	table = es_table_new(headings);
	for (size_t i = 0; i < json_object_array_length(flows); i++) {
		struct json_object *flow = json_object_array_get_idx(flows, i);

		es_table_cell(table, "%s", es_json_string(flow, "address"));
		es_table_cell(table, "%llu", es_json_number(flow, "port"));
		es_table_cell(table, "%s", es_json_string(flow, "service"));
		es_table_cell(table, "%s", es_json_string(flow, "node"));
	}
	es_table_print(table, stdout);
	es_table_free(&table);
}

/* Clients for whom nobody else can do anything but tell them. */
static void print_waiting(struct json_object *waiting)
{
	if (es_json_number(waiting, "own") || es_json_number(waiting, "total"))
		printf("\nclients of other nodes that wait for an answer, known here: %llu; of this one "
		       "known to "
		       "others: %llu\n",
		       es_json_number(waiting, "total"), es_json_number(waiting, "own"));
}

/* Long responses, which another node goes on with when theirs is lost. */
static void print_downloads(struct json_object *downloads)
{
	struct json_object *reset = es_json_object(downloads, "reset");
	unsigned long long resets = 0;

	if (!es_json_number(downloads, "own") && !es_json_number(downloads, "told"))
		return;
	json_object_object_foreach(reset, why, count)
	{
		(void)count;
		resets += es_json_number(reset, why);
	}
	printf("\nlong responses kept for other nodes: %llu; of this one by others: %llu; gone on with: "
	       "%llu, "
	       "broken off: %llu, reset: %llu\n",
	       es_json_number(downloads, "total"), es_json_number(downloads, "own"),
	       es_json_number(downloads, "whole"), es_json_number(downloads, "broken"), resets);
}

static void print_flows(struct json_object *report)
{
	static const char *const headings[] = {"CLIENT",    ">PORT",  "SERVICE",   "STATE",
					       ">REQUESTS", ">MOVES", "PINNED BY", NULL};
	struct json_object *flows = es_json_array(report, "flows"),
			   *states = es_json_object(report, "states");
	struct es_table *table = es_table_new(headings);

	printf("%llu connections: %llu idle, %llu serving, %llu deciding, %llu pinned, %llu closing\n\n",
	       es_json_number(report, "total"), es_json_number(states, "idle"),
	       es_json_number(states, "serving"), es_json_number(states, "deciding"),
	       es_json_number(states, "pinned"), es_json_number(states, "closing"));
	for (size_t i = 0; i < json_object_array_length(flows); i++) {
		struct json_object *flow = json_object_array_get_idx(flows, i);

		es_table_cell(table, "%s", es_json_string(flow, "address"));
		es_table_cell(table, "%llu", es_json_number(flow, "port"));
		es_table_cell(table, "%s", es_json_string(flow, "service"));
		es_table_cell(table, "%s", es_json_string(flow, "state"));
		es_table_cell(table, "%llu", es_json_number(flow, "requests"));
		es_table_cell(table, "%llu", es_json_number(flow, "moves"));
		es_table_cell(table, "%s", es_json_string(flow, "pin"));
	}
	es_table_print(table, stdout);
	es_table_free(&table);
	print_kept(es_json_object(report, "kept"));
	print_waiting(es_json_object(report, "waiting"));
	print_downloads(es_json_object(report, "downloads"));
}

static int run(const struct es_cli *cli)
{
	struct json_object *report, *request;
	long limit;
	int r;

	if (cli->limit && es_cli_number("limit", cli->limit, 0, 1000000, &limit))
		return ES_CLI_USAGE;
	request = es_cli_command_request("flows");
	if (cli->limit)
		json_object_object_add(request, "limit", json_object_new_int64(limit));
	if (cli->pinned)
		json_object_object_add(request, "pinned", json_object_new_boolean(1));
	r = es_cli_request(cli, request, &report);
	if (r)
		return r;
	if (cli->json)
		es_cli_print_json(report);
	else
		print_flows(report);
	json_object_put(report);
	return ES_CLI_OK;
}

const struct es_cli_command es_cli_flows = {
	.name = "flows",
	.doc = "Show the connections that this node has, of services that inspect every request.",
	.options = options,
	.run = run,
};
