// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot nodes`: the cluster's nodes, from the daemon's status. A star marks the node that was asked.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "inspector/cli/cli.h"
#include "inspector/cli/table.h"
#include "inspector/member/by_hand.h"

static int has(struct json_object *node, const char *key)
{
	return json_object_object_get_ex(node, key, NULL);
}

static void print_time(struct es_table *table, unsigned long long us)
{
	if (!us)
		es_table_cell(table, "-");
	else if (us < 1000000)
		es_table_cell(table, "%.*f ms", us < 10000, (double)us / 1e3);
	else
		es_table_cell(table, "%.1f s", (double)us / 1e6);
}

/* How busy it is; unknown if the node has reported nothing. */
static void print_load(struct es_table *table, struct json_object *node)
{
	static const char *const counts[] = {"connections", "active", "load"};
	static const char *const shares[] = {"cpu", "disk"};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (has(node, counts[i]))
			es_table_cell(table, "%llu", es_json_number(node, counts[i]));
		else
			es_table_cell(table, "-");
	print_time(table, es_json_number(node, "mean_us"));
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++)
		if (has(node, shares[i]))
			es_table_cell(table, "%.0f%%", 100 * es_json_fraction(node, shares[i]));
		else
			es_table_cell(table, "-");
}

/* The further lines for a cluster whose members come and go. */
static void print_membership(struct es_table *table, struct json_object *node)
{
	const char *refused = es_json_string(node, "refused"), *reason = es_json_string(node, "reason");
	struct json_object *since = NULL;

	if (json_object_object_get_ex(node, "since_s", &since))
		es_table_cell(table, "%.0f s", es_json_fraction(node, "since_s"));
	else
		es_table_cell(table, "-");
	if (!*refused && !*reason && has(node, "heard") && !es_json_is_true(node, "heard"))
		reason = "not heard on the public network";
	if (!*refused && !*reason && json_object_array_length(es_json_array(node, "drift")))
		reason = "its settings differ";
	es_table_cell(table, "%s%s", *refused ? "refused: " : "", *refused ? refused : reason);
}

/* Says why some nodes do not serve, or not everything. */
static void print_troubles(struct json_object *nodes)
{
	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);
		struct json_object *trouble = NULL;

		if (json_object_object_get_ex(node, "trouble", &trouble) &&
		    json_object_get_string_len(trouble) > 0)
			printf("%s: %s\n", es_json_string(node, "name"), json_object_get_string(trouble));
	}
}

/* "n1: differs from n2 and n3 in service.0.web; ..." */
static void print_drift(struct json_object *nodes)
{
	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);
		struct json_object *drift = es_json_array(node, "drift");

		for (size_t k = 0; k < json_object_array_length(drift); k++) {
			struct json_object *element = json_object_array_get_idx(drift, k);
			const char *separator = "";

			printf("%s: setting %s differs: %s here, ", es_json_string(node, "name"),
			       es_json_string(element, "setting"), es_json_string(element, "value"));
			json_object_object_foreach(es_json_object(element, "others"), name, value)
			{
				printf("%s%s on %s", separator, json_object_get_string(value), name);
				separator = ", ";
			}
			putchar('\n');
		}
		if (json_object_array_length(drift))
			printf("%s: would be refused if it joined anew: make the configuration the same on "
			       "all nodes, "
			       "and reload\n",
			       es_json_string(node, "name"));
	}
}

static void print_by_hand(struct json_object *node, const char *key, const char *what)
{
	struct json_object *object;
	struct es_wire_by_hand by_hand;
	char text[ES_BY_HAND_TEXT_SIZE], since[32] = "";
	struct tm tm;
	time_t set_s;

	if (!json_object_object_get_ex(es_json_object(node, "by_hand"), key, &object))
		return;
	es_by_hand_parse(object, &by_hand);
	set_s = (time_t)(by_hand.set_ms / 1000);
	if (localtime_r(&set_s, &tm))
		strftime(since, sizeof(since), "%Y-%m-%d %H:%M:%S", &tm);
	printf("%s: %s by hand since %s%s\n", es_json_string(node, "name"), what, since,
	       es_by_hand_text(&by_hand, text, sizeof(text)));
}

/* What operators have set, and the configuration has not. */
static void print_all_by_hand(struct json_object *nodes)
{
	char weight[48];

	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);

		print_by_hand(node, "drain", "drained");
		snprintf(weight, sizeof(weight), "weight %llu", es_json_number(node, "weight"));
		print_by_hand(node, "weight", weight);
	}
}

void es_cli_print_nodes(struct json_object *status)
{
	static const char *const headings[] = {"NODE",	 "ADDRESS", ">WEIGHT", "STATE", ">SHARE",
					       ">CONNS", ">ACTIVE", ">LOAD",   ">MEAN", ">CPU",
					       ">DISK",	 ">SINCE",  "",	       NULL};
	static const char *const static_headings[] = {"NODE",	"ADDRESS", ">WEIGHT", "STATE",
						      ">SHARE", ">CONNS",  ">ACTIVE", ">LOAD",
						      ">MEAN",	">CPU",	   ">DISK",   NULL};
	struct json_object *nodes = es_json_array(status, "nodes");
	int changes = !strcmp(es_json_string(es_json_object(status, "membership"), "provider"), "corosync");
	struct es_table *table = es_table_new(changes ? headings : static_headings);
	size_t i;

	for (i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);

		if (!json_object_is_type(node, json_type_object))
			continue;
		es_table_cell(table, "%s%s", es_json_string(node, "name"),
			      es_json_is_true(node, "self") ? " *" : "");
		es_table_cell(table, "%s", es_json_string(node, "address"));
		es_table_cell(table, "%llu", es_json_number(node, "weight"));
		es_table_cell(table, "%s", es_json_string(node, "state"));
		es_table_cell(table, "%.1f%%", 100 * es_json_fraction(node, "ring_share"));
		print_load(table, node);
		if (changes)
			print_membership(table, node);
	}
	es_table_print(table, stdout);
	es_table_free(&table);
	print_troubles(nodes);
	print_drift(nodes);
	print_all_by_hand(nodes);
}

static int run(const struct es_cli *cli)
{
	struct json_object *status, *nodes;
	int r = es_cli_request(cli, es_cli_command_request("status"), &status);

	if (r)
		return r;
	if (cli->json) {
		nodes = json_object_new_object();
		json_object_object_add(nodes, "nodes", json_object_get(es_json_array(status, "nodes")));
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
