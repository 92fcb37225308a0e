// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot drain` and `undrain` with --service: a node is given nothing new of one service, and goes on with
 * all others.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "inspector/cli/drain.h"

#define POLL_NS 200000000L
#define TAKEN_S 5.0 /* for the node's own word that it is so */

static int is_drained(struct json_object *node, const char *service)
{
	return es_json_find(es_json_array(node, "drained_services"), "service", service) != NULL;
}

/* Is there a node but @name that is given requests of the service? */
static int another_serves(struct json_object *status, const char *name, const char *service)
{
	struct json_object *nodes = es_json_array(status, "nodes");

	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i), *failing;
		int fails = 0;

		failing = es_json_array(node, "failing");
		for (size_t k = 0; k < json_object_array_length(failing); k++)
			fails |= !strcmp(json_object_get_string(json_object_array_get_idx(failing, k)),
					 service);
		if (strcmp(es_json_string(node, "name"), name) != 0 && !fails && !is_drained(node, service) &&
		    !strcmp(es_json_string(node, "state"), "up") && es_json_number(node, "weight"))
			return 1;
	}
	return 0;
}

/* @ret_node: whom it is about, for as long as @ret_status lives */
static int others_ask(const struct es_cli *cli, struct json_object **ret_status, const char **ret_node)
{
	int r = es_cli_request(cli, es_cli_command_request("status"), ret_status);

	if (r)
		return r;
	*ret_node = cli->arg_count ? cli->args[0] : es_json_string(*ret_status, "node");
	if (!cli->force && !another_serves(*ret_status, *ret_node, cli->service))
		return es_cli_fail(
			"no node but %s is up and serves %s: it would go on serving all of its requests, and "
			"keep "
			"its connections; \"earshot drain %s --service=%s --force\" does it all the same",
			*ret_node, cli->service, *ret_node, cli->service);
	return ES_CLI_OK;
}

static int send(const struct es_cli *cli, int drains, const char *node)
{
	struct json_object *request, *result;
	int r;

	if (cli->until_restart)
		return es_cli_usage(
			"--until-restart: of a node as a whole only; expected --for=TIME, or none");
	request = es_cli_drain_request(cli, drains ? "drain_service" : "undrain_service");
	if (!request)
		return ES_CLI_USAGE;
	json_object_object_add(request, "node", json_object_new_string(node));
	json_object_object_add(request, "service", json_object_new_string(cli->service));
	r = es_cli_request(cli, request, &result);
	if (r)
		return r;
	if (cli->json && !cli->wait)
		es_cli_print_json(result);
	json_object_put(result);
	return ES_CLI_OK;
}

/* The node says so itself; one of the version before would say nothing. */
static int taken_wait(const struct es_cli *cli, int drains, const char *name)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};
	double start_s = es_cli_drain_now_s();

	while (es_cli_drain_now_s() - start_s < TAKEN_S) {
		struct json_object *status, *node;
		int r = es_cli_request(cli, es_cli_command_request("status"), &status), is_so;

		if (r)
			return r;
		node = es_json_find(es_json_array(status, "nodes"), "name", name);
		is_so = node && is_drained(node, cli->service) == drains;
		json_object_put(status);
		if (is_so)
			return ES_CLI_OK;
		nanosleep(&pause, NULL);
	}
	return es_cli_fail("%s has not said within %.0f s that it has done it: its daemon is of a version "
			   "before, or it has "
			   "left the cluster",
			   name, TAKEN_S);
}

/* Connections of the service that the node says it has; -1: it does not answer. */
static long long connections_of(struct json_object *view, const char *name, const char *service)
{
	struct json_object *node = es_json_find(es_json_array(view, "nodes"), "name", name);

	if (!node || !es_json_is_true(node, "answers"))
		return -1;
	return (long long)es_json_number(
		es_json_find(es_json_array(es_json_object(node, "snapshot"), "services"), "name", service),
		"connections");
}

/* Looked at again, as requests may have been on their way when the others heard of it. */
static int empty_wait(const struct es_cli *cli, const char *name, double limit_s)
{
	const struct timespec pause = {.tv_nsec = 2 * POLL_NS};
	double start_s = es_cli_drain_now_s();
	long long left = -1;

	for (int empty = 0; empty < 3;) {
		struct json_object *view;
		int r = es_cli_request(cli, es_cli_command_request("cluster"), &view);

		if (r)
			return r;
		left = connections_of(view, name, cli->service);
		json_object_put(view);
		empty = left ? 0 : empty + 1;
		if (empty < 3 && es_cli_drain_now_s() - start_s > limit_s)
			return left < 0 ? es_cli_fail("%s does not answer", name)
					: es_cli_fail("%s still has %lld connections of %s after %.0f s; it "
						      "goes on draining",
						      name, left, cli->service, limit_s);
		nanosleep(&pause, NULL);
	}
	if (cli->json)
		printf("{\"node\":\"%s\",\"service\":\"%s\",\"drained\":true,\"seconds\":%.1f}\n", name,
		       cli->service, es_cli_drain_now_s() - start_s);
	else
		printf("%s is drained of %s, after %.1f s\n", name, cli->service,
		       es_cli_drain_now_s() - start_s);
	return ES_CLI_OK;
}

int es_cli_drain_service(const struct es_cli *cli, int drains, double limit_s)
{
	struct json_object *status = NULL;
	const char *node = NULL;
	int r = ES_CLI_OK;

	if (drains) {
		r = others_ask(cli, &status, &node);
	} else {
		r = es_cli_request(cli, es_cli_command_request("status"), &status);
		if (!r)
			node = cli->arg_count ? cli->args[0] : es_json_string(status, "node");
	}
	if (!r)
		r = send(cli, drains, node);
	if (!r)
		r = taken_wait(cli, drains, node);
	if (!r && drains && cli->wait)
		r = empty_wait(cli, node, limit_s);
	json_object_put(status);
	return r;
}
