// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot table`: the content that is asked for most, with its server sets, and the state of the table.
 */
#include <stdio.h>
#include <stdlib.h>

#include "inspector/cli/cli.h"
#include "inspector/cli/table.h"

static const struct argp_option options[] = {
	{"service", ES_CLI_OPT_SERVICE, "NAME", 0, "of this service (default: the only one)", 0},
	{"limit", ES_CLI_OPT_LIMIT, "N", 0, "show so many URIs (default 20)", 0},
	{0},
};

static void print_nodes(struct es_table *table, struct json_object *content)
{
	struct json_object *nodes = es_json_array(content, "nodes");
	char text[512] = "";
	size_t used = 0;

	for (size_t i = 0; i < json_object_array_length(nodes) && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? " " : "",
					 json_object_get_string(json_object_array_get_idx(nodes, i)));
	es_table_cell(table, "%s", text);
}

static void print_contents(struct json_object *result)
{
	static const char *const headings[] = {">REQUESTS", ">UNCHANGED", "NODES", "CONTENT", NULL};
	struct json_object *contents = es_json_array(result, "targets"), *changed;
	struct es_table *table = es_table_new(headings);

	for (size_t i = 0; i < json_object_array_length(contents); i++) {
		struct json_object *content = json_object_array_get_idx(contents, i);

		es_table_cell(table, "%llu", es_json_number(content, "requests"));
		if (json_object_object_get_ex(content, "changed_s", &changed))
			es_table_cell(table, "%.1f s", json_object_get_double(changed));
		else
			es_table_cell(table, "-");
		print_nodes(table, content);
		es_table_cell(table, "%s", es_json_string(content, "uri"));
	}
	es_table_print(table, stdout);
	es_table_free(&table);
}

static void print_state(struct json_object *result)
{
	struct json_object *table = es_json_object(result, "table");

	printf("service %s, policy %s", es_json_string(result, "service"), es_json_string(result, "policy"));
	if (!json_object_object_get_ex(result, "table", NULL)) {
		printf(" (keeps no server sets)\n\n");
		return;
	}
	printf(": %llu of %llu entries, %s\n", es_json_number(table, "entries"),
	       es_json_number(table, "max_entries"), es_json_string(table, "state"));
	printf("changes: %llu assigned, %llu added, %llu removed, %llu moved, %llu told by others, %llu "
	       "evicted\n\n",
	       es_json_number(table, "assigned"), es_json_number(table, "added"),
	       es_json_number(table, "removed"), es_json_number(table, "moved"),
	       es_json_number(table, "told"), es_json_number(table, "evicted"));
}

static int run(const struct es_cli *cli)
{
	struct json_object *request, *result;
	long limit;
	int r;

	if (cli->limit && es_cli_number("limit", cli->limit, 0, 100000, &limit))
		return ES_CLI_USAGE;
	request = es_cli_command_request("table");
	if (cli->service)
		json_object_object_add(request, "service", json_object_new_string(cli->service));
	if (cli->limit)
		json_object_object_add(request, "limit", json_object_new_int64(limit));
	r = es_cli_request(cli, request, &result);
	if (r)
		return r;
	if (cli->json) {
		es_cli_print_json(result);
	} else {
		print_state(result);
		print_contents(result);
	}
	json_object_put(result);
	return ES_CLI_OK;
}

const struct es_cli_command es_cli_table = {
	.name = "table",
	.doc = "Show the content that was asked for most lately, as this node's inspector has seen it, "
	       "and the nodes that serve them.",
	.options = options,
	.run = run,
};
