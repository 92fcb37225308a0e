/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * `earshot check-config`: parses a configuration file as the daemon would and says what is in it, or what is
 * wrong. It asks no daemon and looks at nothing but the file.
 */
#include <arpa/inet.h>
#include <stdio.h>

#include "inspector/cli/cli.h"
#include "inspector/cli/table.h"
#include "inspector/config.h"

static void print_nodes(const struct es_conf *conf)
{
	static const char *const headings[] = {"NODE", "ADDRESS", ">WEIGHT", NULL};
	struct es_table *table = es_table_new(headings);
	char text[INET6_ADDRSTRLEN];
	unsigned int i;

	for (i = 0; i < conf->node_count; i++) {
		es_table_cell(table, "%s", conf->nodes[i].name);
		es_table_cell(table, "%s", es_conf_addr_text(&conf->nodes[i].address, text));
		es_table_cell(table, "%u", conf->nodes[i].weight);
	}
	es_table_print(table, stdout);
	es_table_free(&table);
}

static void print_services(const struct es_conf *conf)
{
	static const char *const headings[] = {"SERVICE", "ADDRESS", ">PORT", "POLICY", NULL};
	struct es_table *table = es_table_new(headings);
	char text[INET6_ADDRSTRLEN];
	unsigned int i;

	for (i = 0; i < conf->service_count; i++) {
		es_table_cell(table, "%s", conf->services[i].name);
		es_table_cell(table, "%s", es_conf_addr_text(&conf->services[i].address, text));
		es_table_cell(table, "%u", conf->services[i].port);
		es_table_cell(table, "%s", conf->services[i].policy);
	}
	es_table_print(table, stdout);
	es_table_free(&table);
}

static void print_summary_json(const struct es_conf *conf)
{
	struct json_object *summary = json_object_new_object();

	json_object_object_add(summary, "path", json_object_new_string(conf->path));
	json_object_object_add(summary, "cluster", json_object_new_string(conf->cluster.name));
	json_object_object_add(summary, "nodes", json_object_new_int((int)conf->node_count));
	json_object_object_add(summary, "services", json_object_new_int((int)conf->service_count));
	es_cli_print_json(summary);
	json_object_put(summary);
}

static int run(const struct es_cli *cli)
{
	struct es_conf *conf = NULL;
	struct es_conf_error err;

	if (es_conf_load(cli->args[0], &conf, &err))
		return es_cli_fail("%s", err.text);
	if (cli->json) {
		print_summary_json(conf);
	} else {
		printf("%s: correct, cluster %s\n\n", conf->path, conf->cluster.name);
		print_nodes(conf);
		puts("");
		print_services(conf);
	}
	es_conf_free(&conf);
	return ES_CLI_OK;
}

const struct es_cli_command es_cli_check_config = {
	.name = "check-config",
	.args_doc = "FILE",
	.doc = "Check a configuration file as the daemon would; status 1 and the first error if it is wrong.",
	.args_min = 1,
	.args_max = 1,
	.run = run,
};
