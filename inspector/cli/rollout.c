// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot rollout FILE`: a configuration for all nodes, or for none. The daemon leads it; here its file is
 * read, and it is asked how it stands until it is over.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "inspector/base/utf8.h"
#include "inspector/cli/cli.h"
#include "inspector/cli/table.h"
#include "inspector/control/control.h"

#define POLL_NS	 100000000L
#define POLL_MAX 600 /* the daemon's own limits end before */
#define JOIN_MAX 150 /* for one that was refused until now */

/* So many for each node that restarts, which has two minutes for it, and the others two to serve. */
#define RESTART_POLL_MAX 2500

static const struct argp_option options[] = {
	{"dry-run", ES_CLI_OPT_DRY_RUN, NULL, 0, "check it on all nodes, and change nothing", 0},
	{"without", ES_CLI_OPT_WITHOUT, "NODE", 0,
	 "leave out a node, which is off perhaps; it differs from the others then. May be given several "
	 "times",
	 0},
	{"restart", ES_CLI_OPT_RESTART, NULL, 0,
	 "restart one daemon after the other where FILE changes what only a start of the daemon can", 0},
	{0},
};

/* The file's text, for free(); half of a request is enough for any, since escaping may make it longer. */
static int file_read(const char *path, char **ret_text)
{
	size_t max = ES_CONTROL_REQUEST_MAX / 2, len, at = 0, step;
	FILE *file = fopen(path, "re");
	char *text = malloc(max + 1);
	int rc = 0;

	if (!file || !text) {
		rc = es_cli_fail("%s: cannot be opened: %s", path, strerror(errno));
		goto out;
	}
	len = fread(text, 1, max + 1, file);
	if (ferror(file)) {
		rc = es_cli_fail("%s: cannot be read: %s", path, strerror(errno));
		goto out;
	}
	if (!len || len > max) {
		rc = es_cli_fail("%s: expected 1 to %zu bytes", path, max);
		goto out;
	}
	while (at < len && text[at] && (step = es_utf8_len(text + at, len - at)))
		at += step;
	if (at < len) {
		rc = es_cli_fail("%s: byte %zu: expected a text in UTF-8", path, at + 1);
		goto out;
	}
	text[len] = 0;
	*ret_text = text;
	text = NULL;
out:
	free(text);
	if (file)
		fclose(file);
	return rc;
}

static int request_make(const struct es_cli *cli, struct json_object **ret_request)
{
	struct json_object *request, *without;
	char path[PATH_MAX], *text = NULL;
	int r = file_read(cli->args[0], &text);

	if (r)
		return r;
	request = es_cli_command_request("rollout");
	json_object_object_add(request, "name", json_object_new_string(cli->args[0]));
	if (realpath(cli->args[0], path))
		json_object_object_add(request, "path", json_object_new_string(path));
	json_object_object_add(request, "by", json_object_new_string(es_cli_operator()));
	json_object_object_add(request, "dry_run", json_object_new_boolean(cli->dry_run));
	json_object_object_add(request, "text", json_object_new_string(text));
	json_object_object_add(request, "restart", json_object_new_boolean(cli->restart));
	free(text);
	if (cli->without_count) {
		without = json_object_new_array();
		for (unsigned int i = 0; i < cli->without_count; i++)
			json_object_array_add(without, json_object_new_string(cli->without[i]));
		json_object_object_add(request, "without", without);
	}
	*ret_request = request;
	return ES_CLI_OK;
}

/* The meaning of a word of docs/json.md; the word itself if it is of a version to come. */
static const char *in_words(const char *state)
{
	static const char *const words[][2] = {
		{"ready", "would take it"},
		{"refused", "refuses it"},
		{"switched", "has it"},
		{"failed", "could not switch, and has the one before"},
		{"taken_back", "has the one before"},
		{"stuck", "has it, and could not go back"},
		{"busy", "is busy"},
		{"gone", "has the one before, or the new one"},
		{"left_out", "left out"},
		{"old_version", "cannot take part"},
		{"lost", "no answer"},
		{"restarts", "has it, and restarts"},
		{"restarted", "has it, and has restarted"},
		{"asked", "asked"},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i][0], state))
			return words[i][1];
	return state;
}

/* It has the file, and is not a member. */
static int is_outside(struct json_object *node)
{
	struct json_object *member;

	return json_object_object_get_ex(node, "member", &member) && !json_object_get_boolean(member);
}

static int has_outside(struct json_object *report)
{
	struct json_object *nodes = es_json_array(report, "nodes");

	for (size_t i = 0; i < json_object_array_length(nodes); i++)
		if (is_outside(json_object_array_get_idx(nodes, i)))
			return 1;
	return 0;
}

static const char *result_in_words(const char *result)
{
	static const char *const words[][2] = {
		{"checked", "all of these nodes would take it; nothing was changed"},
		{"switched", "it is in force on all of these nodes"},
		{"refused", "not rolled out: nothing was changed on any node"},
		{"taken_back", "not rolled out: all nodes have the configuration before again"},
		{"incomplete",
		 "some nodes may have another configuration than others: see docs/operating.md"},
		{"halted",
		 "it is in force on all of these nodes, but not all that needed it were restarted: the same "
		 "command goes on, and that with the file before goes back"},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i][0], result))
			return words[i][1];
	return result;
}

static void print(struct json_object *report)
{
	static const char *const headings[] = {"NODE", "", "WHY", NULL};
	struct json_object *nodes = es_json_array(report, "nodes");
	struct es_table *table = es_table_new(headings);

	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);

		es_table_cell(table, "%s", es_json_string(node, "name"));
		es_table_cell(table, "%s%s", in_words(es_json_string(node, "state")),
			      is_outside(node) ? ", and is not a member" : "");
		es_table_cell(table, "%s", es_json_string(node, "reason"));
	}
	es_table_print(table, stdout);
	es_table_free(&table);
	printf("\n%s: %s%s\n", es_json_string(report, "name"),
	       result_in_words(es_json_string(report, "result")),
	       has_outside(report) ? ", but not all of them are members" : "");
}

static int is_over(struct json_object *report)
{
	return !strcmp(es_json_string(report, "phase"), "done");
}

/* Tell which nodes restart, and which have, while one waits. */
static void tell_restarts(const struct es_cli *cli, struct json_object *report, struct json_object **told)
{
	struct json_object *nodes = es_json_array(report, "nodes"), *before;

	for (size_t i = 0; !cli->json && i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);
		const char *name = es_json_string(node, "name"), *state = es_json_string(node, "state");

		if (strcmp(state, "restarts") != 0 && strcmp(state, "restarted") != 0)
			continue;
		if (json_object_object_get_ex(*told, name, &before) &&
		    !strcmp(json_object_get_string(before), state))
			continue;
		printf("%s %s\n", name, !strcmp(state, "restarts") ? "restarts …" : "serves again");
		fflush(stdout);
		json_object_object_add(*told, name, json_object_new_string(state));
	}
}

static int poll_max(const struct es_cli *cli, struct json_object *report)
{
	size_t nodes = json_object_array_length(es_json_array(report, "nodes"));

	return cli->restart ? POLL_MAX + RESTART_POLL_MAX * (int)nodes : POLL_MAX;
}

/*
 * Asks until it is over, and a while for those to join that were refused until now. *@report is another one
 * then.
 */
static int wait_for_end(const struct es_cli *cli, struct json_object **report)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};
	unsigned long long number = es_json_number(*report, "number");
	struct json_object *told = json_object_new_object();
	int r = ES_CLI_OK;

	for (int i = 0, joining = 0; i < poll_max(cli, *report) && joining < JOIN_MAX; i++) {
		struct json_object *request;

		if (is_over(*report) && !has_outside(*report))
			break;
		joining += is_over(*report);
		nanosleep(&pause, NULL);
		request = es_cli_command_request("rollout");
		json_object_object_add(request, "number", json_object_new_uint64(number));
		json_object_put(*report);
		*report = NULL;
		r = es_cli_request(cli, request, report);
		if (r)
			break;
		tell_restarts(cli, *report, &told);
	}
	json_object_put(told);
	if (r)
		return r;
	return is_over(*report) ? ES_CLI_OK : es_cli_fail("the rollout has no end: see earshot events");
}

/* Is this the status of a daemon that serves, and has put all of its file in force? */
static int has_restarted(struct json_object *status)
{
	struct json_object *nodes = es_json_array(status, "nodes"), *membership = NULL, *silent = NULL;
	const char *self = es_json_string(status, "node");

	json_object_object_get_ex(status, "membership", &membership);
	if (*es_json_string(status, "waiting_for_restart") ||
	    (json_object_object_get_ex(membership, "silent", &silent) && json_object_get_boolean(silent)))
		return 0;
	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);

		if (!strcmp(es_json_string(node, "name"), self))
			return !strcmp(es_json_string(node, "state"), "up");
	}
	return 0;
}

/* The daemon that has led it comes last: nobody else could tell of the others. */
static int restart_self(const struct es_cli *cli, struct json_object *report)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};
	struct json_object *result = NULL, *needed = NULL, *nodes = es_json_array(report, "nodes");
	struct json_object *self = NULL;
	char unwanted[256];
	int is_done = 0, r;

	if (!json_object_object_get_ex(report, "restart_self", &needed) || !json_object_get_boolean(needed))
		return ES_CLI_OK;
	for (size_t i = 0; i < json_object_array_length(nodes); i++)
		if (!strcmp(es_json_string(json_object_array_get_idx(nodes, i), "name"),
			    es_json_string(report, "node")))
			self = json_object_array_get_idx(nodes, i);
	if (!cli->json)
		printf("%s restarts …\n", es_json_string(report, "node"));
	fflush(stdout);
	r = es_cli_request(cli, es_cli_command_request("restart"), &result);
	json_object_put(result);
	if (r)
		return r;
	es_cli_hold(unwanted, sizeof(unwanted));
	for (int i = 0; i < RESTART_POLL_MAX && !is_done; i++) {
		nanosleep(&pause, NULL);
		result = NULL;
		is_done = !es_cli_request(cli, es_cli_command_request("status"), &result) &&
			  has_restarted(result);
		json_object_put(result);
	}
	es_cli_hold(NULL, 0);
	if (self)
		json_object_object_add(self, "state", json_object_new_string(is_done ? "restarted" : "lost"));
	if (self)
		json_object_object_add(
			self, "reason",
			json_object_new_string(is_done ? ""
						       : "it was told to restart, and does not serve again"));
	if (!is_done)
		json_object_object_add(report, "result", json_object_new_string("halted"));
	else if (!cli->json)
		printf("%s serves again\n", es_json_string(report, "node"));
	return ES_CLI_OK;
}

static int run(const struct es_cli *cli)
{
	struct json_object *request, *report = NULL;
	const char *result;
	int r = request_make(cli, &request);

	if (!r)
		r = es_cli_request(cli, request, &report);
	if (!r)
		r = wait_for_end(cli, &report);
	if (!r)
		r = restart_self(cli, report);
	if (!r) {
		if (cli->json)
			es_cli_print_json(report);
		else
			print(report);
		result = es_json_string(report, "result");
		r = (!strcmp(result, "switched") && !has_outside(report)) || !strcmp(result, "checked")
			    ? ES_CLI_OK
			    : ES_CLI_FAILED;
	}
	json_object_put(report);
	return r;
}

const struct es_cli_command es_cli_rollout = {
	.name = "rollout",
	.args_doc = "FILE",
	.doc = "Put a configuration in force on all nodes, or on none: each node checks FILE for itself, and "
	       "when all would "
	       "take it, all switch together."
	       "\vThe other nodes get FILE from this node's daemon, over the cluster's network; plugins, key "
	       "files and document "
	       "roots must be there already. Each keeps the file that it had as FILE.previous. Status 1: it "
	       "was not rolled "
	       "out, or a node that has it is not a member; a line for each node says why.",
	.options = options,
	.args_min = 1,
	.args_max = 1,
	.run = run,
};
