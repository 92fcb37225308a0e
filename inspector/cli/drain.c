// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot drain`, `undrain` and `weight`: a node's state and weight, told to the whole cluster by any
 * member.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "inspector/cli/cli.h"
#include "inspector/cli/drain.h"

#define POLL_NS	     200000000L
#define WAIT_FOREVER 1e9
#define KEPT_S	     2.0 /* for a change to be in force, which nobody promises */
#define SAID_S	     0.3 /* then, for a node's word that it cannot keep it */

/* Send a command about a node, by default the one that is asked; *ret_node is its name, for free(). */
static int command_send(const struct es_cli *cli, const char *name, long long weight, char **ret_node)
{
	struct json_object *request = es_cli_drain_request(cli, name), *result;
	const char *node = weight >= 0 || cli->arg_count ? cli->args[0] : NULL;
	int r;

	if (!request)
		return ES_CLI_USAGE;
	if (node)
		json_object_object_add(request, "node", json_object_new_string(node));
	if (cli->until_restart)
		json_object_object_add(request, "until_restart", json_object_new_boolean(1));
	if (weight >= 0)
		json_object_object_add(request, "weight", json_object_new_int64(weight));
	r = es_cli_request(cli, request, &result);
	if (r)
		return r;
	*ret_node = strdup(es_json_string(result, "node"));
	if (cli->json && !cli->wait)
		es_cli_print_json(result);
	json_object_put(result);
	return *ret_node ? ES_CLI_OK : es_cli_fail("out of memory");
}

/* The node's element of a status reply, which the reply owns. */
static struct json_object *node_find(struct json_object *status, const char *name)
{
	struct json_object *nodes = es_json_array(status, "nodes");

	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);

		if (!strcmp(es_json_string(node, "name"), name))
			return node;
	}
	return NULL;
}

/* Is it given requests? */
static int node_serves(struct json_object *node)
{
	return !strcmp(es_json_string(node, "state"), "up") && es_json_number(node, "weight");
}

/* Is there a node that could take this one's connections? */
static int others_are_up(struct json_object *status, const char *name)
{
	struct json_object *nodes = es_json_array(status, "nodes");

	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);

		if (strcmp(es_json_string(node, "name"), name) != 0 && node_serves(node))
			return 1;
	}
	return 0;
}

/* Refuses to take requests from the only node that has them: it goes on serving when nobody else does.
 * @command: as it was given, without options. */
static int others_ask(const struct es_cli *cli, const char *command)
{
	struct json_object *status;
	const char *name;
	int r = es_cli_request(cli, es_cli_command_request("status"), &status);

	if (r)
		return r;
	name = cli->arg_count ? cli->args[0] : es_json_string(status, "node");
	if (node_find(status, name) && node_serves(node_find(status, name)) && !others_are_up(status, name))
		r = es_cli_fail(
			"%s is the only node that is up, with a weight above 0: it would go on serving all "
			"requests, and keep its connections; \"earshot %s --force\" does it all the same",
			name, command);
	json_object_put(status);
	return r;
}

/* An empty node is looked at again: requests that were on their way when the others heard of the drain have
 * arrived by then. */
static int drain_wait(const struct es_cli *cli, const char *name, double limit_s)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};
	double start = es_cli_drain_now_s();
	unsigned long long left = 0;
	int empty = 0;

	while (empty < 3) {
		struct json_object *status, *node;
		int r = es_cli_request(cli, es_cli_command_request("status"), &status);

		if (r)
			return r;
		node = node_find(status, name);
		if (!node || !es_json_is_true(node, "member") ||
		    strcmp(es_json_string(node, "state"), "draining") != 0) {
			/* At first the change is still on its way. */
			if (es_cli_drain_now_s() - start > 2) {
				json_object_put(status);
				return es_cli_fail("%s is not draining: somebody has undrained it, or it has "
						   "left the cluster",
						   name);
			}
			empty = 0;
		} else {
			left = es_json_number(node, "connections");
			empty = es_json_is_true(node, "drained") ? empty + 1 : 0;
		}
		if (empty < 3 && !others_are_up(status, name)) {
			json_object_put(status);
			return es_cli_fail("no other node is up: %s keeps its %llu connections", name, left);
		}
		json_object_put(status);
		if (empty < 3 && es_cli_drain_now_s() - start > limit_s)
			return es_cli_fail("%s still has %llu connections after %.0f s; it goes on draining",
					   name, left, limit_s);
		nanosleep(&pause, NULL);
	}
	if (cli->json)
		printf("{\"node\":\"%s\",\"drained\":true,\"seconds\":%.1f}\n", name,
		       es_cli_drain_now_s() - start);
	else
		printf("%s is drained, after %.1f s\n", name, es_cli_drain_now_s() - start);
	return ES_CLI_OK;
}

/* Is the change in force, as far as the asked node knows? @weight: -1: it is a drain, or its end */
static int is_done(struct json_object *node, int drains, long weight)
{
	if (!node || weight >= 0)
		return node && es_json_number(node, "weight") == (unsigned long long)weight;
	return drains == !strcmp(es_json_string(node, "state"), "draining");
}

/*
 * Nodes keep their state and weight over restarts. One that cannot says so a moment after the change is in
 * force, and whoever has asked for it may rely on that.
 */
static int kept_check(const struct es_cli *cli, const char *name, int drains, long weight)
{
	const struct timespec pause = {.tv_nsec = POLL_NS / 4};
	double start = es_cli_drain_now_s(), done = 0;

	while (es_cli_drain_now_s() - start < KEPT_S && !(done && es_cli_drain_now_s() - done >= SAID_S)) {
		struct json_object *status, *node;
		int r = es_cli_request(cli, es_cli_command_request("status"), &status), is_self;

		if (r)
			return r;
		node = node_find(status, name);
		is_self = node && es_json_is_true(node, "self");
		if (!done && is_done(node, drains, weight))
			done = es_cli_drain_now_s();
		if (done && es_json_is_true(node, "unkept"))
			r = es_cli_fail("%s: done, but it cannot keep that over a restart of its daemon: its "
					"log says why",
					name);
		json_object_put(status);
		if (r || (done && is_self))
			return r;
		nanosleep(&pause, NULL);
	}
	return ES_CLI_OK;
}

static int drain_run(const struct es_cli *cli)
{
	double limit_s = WAIT_FOREVER;
	char *node = NULL, *end, command[128];
	int r, kept = ES_CLI_OK;

	if (cli->wait && *cli->wait) {
		limit_s = strtod(cli->wait, &end);
		if (*end || !(limit_s >= 0))
			return es_cli_usage("bad time \"%.80s\": expected seconds", cli->wait);
	}
	if (cli->service)
		return es_cli_drain_service(cli, 1, limit_s);
	snprintf(command, sizeof(command), "drain%s%s", cli->arg_count ? " " : "",
		 cli->arg_count ? cli->args[0] : "");
	r = cli->force ? ES_CLI_OK : others_ask(cli, command);
	if (!r)
		r = command_send(cli, "drain", -1, &node);
	if (!r && node && !cli->until_restart)
		kept = kept_check(cli, node, 1, -1);
	if (!r && node && cli->wait)
		r = drain_wait(cli, node, limit_s);
	free(node);
	return r ? r : kept;
}

static int undrain_run(const struct es_cli *cli)
{
	char *node = NULL;
	int r;

	if (cli->service)
		return es_cli_drain_service(cli, 0, WAIT_FOREVER);
	r = command_send(cli, "undrain", -1, &node);

	if (!r && node)
		r = kept_check(cli, node, 0, -1);
	free(node);
	return r;
}

static int weight_run(const struct es_cli *cli)
{
	char *node = NULL, command[128];
	long weight;
	int r = es_cli_number("weight", cli->args[1], 0, 1000, &weight);

	snprintf(command, sizeof(command), "weight %s 0", cli->args[0]);
	if (!r && !weight && !cli->force)
		r = others_ask(cli, command);
	if (!r)
		r = command_send(cli, "weight", weight, &node);
	if (!r && node)
		r = kept_check(cli, node, 0, weight);
	free(node);
	return r;
}

static const struct argp_option drain_options[] = {
	{"for", ES_CLI_OPT_FOR, "TIME", 0, "end it by itself after so long: 90s, 30m, 1h30m, 7d", 0},
	{"force", ES_CLI_OPT_FORCE, NULL, 0, "also the only node that is up", 0},
	{"reason", ES_CLI_OPT_REASON, "TEXT", 0, "shown with it, in nodes and events", 0},
	{"service", ES_CLI_OPT_SERVICE, "NAME", 0, "of this service alone", 0},
	{"until-restart", ES_CLI_OPT_UNTIL_RESTART, NULL, 0,
	 "of this node: the next start of its daemon ends it", 0},
	{"wait", ES_CLI_OPT_WAIT, "SECONDS", OPTION_ARG_OPTIONAL,
	 "return when the node has no connection left; fail after so many seconds", 0},
	{0},
};

const struct es_cli_command es_cli_drain = {
	.name = "drain",
	.args_doc = "[NODE]",
	.doc = "Give a node no new requests, and let its connections move away with their next one.",
	.options = drain_options,
	.args_max = 1,
	.run = drain_run,
};

static const struct argp_option weight_options[] = {
	{"force", ES_CLI_OPT_FORCE, NULL, 0, "0 also for the only node that serves", 0},
	{"reason", ES_CLI_OPT_REASON, "TEXT", 0, "shown with it, in nodes and events", 0},
	{0},
};

static const struct argp_option undrain_options[] = {
	{"reason", ES_CLI_OPT_REASON, "TEXT", 0, "shown with it, in nodes and events", 0},
	{"service", ES_CLI_OPT_SERVICE, "NAME", 0, "of this service alone", 0},
	{0},
};

const struct es_cli_command es_cli_undrain = {
	.name = "undrain",
	.args_doc = "[NODE]",
	.doc = "Give a drained or draining node requests again.",
	.options = undrain_options,
	.args_max = 1,
	.run = undrain_run,
};

const struct es_cli_command es_cli_weight = {
	.name = "weight",
	.args_doc = "NODE WEIGHT",
	.doc = "Change a node's weight, until it is set to the configuration's; 0 gives it no requests and "
	       "no flows, while another node has some.",
	.options = weight_options,
	.args_min = 2,
	.args_max = 2,
	.run = weight_run,
};
