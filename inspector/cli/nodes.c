/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `earshot nodes`: the cluster's nodes, from the daemon's status. A star marks the node that was asked.
 */
#include <stdio.h>
#include <string.h>

#include "inspector/cli/cli.h"
#include "inspector/cli/table.h"

/* What a cluster whose members come and go shows besides. */
static void print_membership(struct es_table *table, struct json_object *node)
{
	const char *refused = es_cli_string(node, "refused"), *reason = es_cli_string(node, "reason");
	struct json_object *since = NULL;

	if (es_cli_is_true(node, "member"))
		es_table_cell(table, "%llu", es_cli_number(node, "connections"));
	else
		es_table_cell(table, "-");
	if (json_object_object_get_ex(node, "since_s", &since))
		es_table_cell(table, "%.0f s", es_cli_fraction(node, "since_s"));
	else
		es_table_cell(table, "-");
	es_table_cell(table, "%s%s", *refused ? "refused: " : "", *refused ? refused : reason);
}

void es_cli_print_nodes(struct json_object *status)
{
	static const char *const headings[] = {"NODE",	 "ADDRESS", ">WEIGHT", "STATE", ">SHARE",
					       ">CONNS", ">SINCE",  "",	       NULL};
	static const char *const static_headings[] = {"NODE", "ADDRESS", ">WEIGHT", "STATE", ">SHARE", NULL};
	struct json_object *nodes = es_cli_array(status, "nodes");
	int changes = !strcmp(es_cli_string(es_cli_object(status, "membership"), "provider"), "corosync");
	struct es_table *table = es_table_new(changes ? headings : static_headings);
	size_t i;

	for (i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);

		if (!json_object_is_type(node, json_type_object))
			continue;
		es_table_cell(table, "%s%s", es_cli_string(node, "name"),
			      es_cli_is_true(node, "self") ? " *" : "");
		es_table_cell(table, "%s", es_cli_string(node, "address"));
		es_table_cell(table, "%llu", es_cli_number(node, "weight"));
		es_table_cell(table, "%s", es_cli_string(node, "state"));
		es_table_cell(table, "%.1f%%", 100 * es_cli_fraction(node, "ring_share"));
		if (changes)
			print_membership(table, node);
	}
	es_table_print(table, stdout);
	es_table_free(&table);
}

static int run(const struct es_cli *cli)
{
	struct json_object *status, *nodes;
	int r = es_cli_request(cli, es_cli_command_request("status"), &status);

	if (r)
		return r;
	if (cli->json) {
		nodes = json_object_new_object();
		json_object_object_add(nodes, "nodes", json_object_get(es_cli_array(status, "nodes")));
		es_cli_print_json(nodes);
		json_object_put(nodes);
	} else {
		es_cli_print_nodes(status);
	}
	json_object_put(status);
	return ES_CLI_OK;
}

const struct es_cli_command es_cli_nodes = {
	.name = "nodes",
	.doc = "Show the cluster's nodes; * marks the one that was asked.",
	.run = run,
};
