// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot counters`: what the datapath and the daemon have counted, by reason.
 */
#include <stdio.h>

#include "inspector/cli/cli.h"
#include "inspector/cli/table.h"

static const struct argp_option options[] = {
	{"all", ES_CLI_OPT_ALL, NULL, 0, "also the counters that are 0", 0},
	{0},
};

static void print_counters(struct json_object *report, int all)
{
	static const char *const headings[] = {"COUNTER", ">VALUE", "DESCRIPTION", NULL};
	struct json_object *counters = es_json_array(report, "counters");
	struct es_table *table = es_table_new(headings);
	size_t i;

	for (i = 0; i < json_object_array_length(counters); i++) {
		struct json_object *counter = json_object_array_get_idx(counters, i);
		unsigned long long value = es_json_number(counter, "value");

		if (!value && !all)
			continue;
		es_table_cell(table, "%s", es_json_string(counter, "name"));
		es_table_cell(table, "%llu", value);
		es_table_cell(table, "%s", es_json_string(counter, "description"));
	}
	es_table_print(table, stdout);
	es_table_free(&table);
}

static int run(const struct es_cli *cli)
{
	struct json_object *report;
	int r = es_cli_request(cli, es_cli_command_request("counters"), &report);

	if (r)
		return r;
	if (cli->json)
		es_cli_print_json(report);
	else
		print_counters(report, cli->all);
	json_object_put(report);
	return ES_CLI_OK;
}

const struct es_cli_command es_cli_counters = {
	.name = "counters",
	.doc = "Show what was counted, and why. With --json always all counters.",
	.options = options,
	.run = run,
};
