// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot trace`: each decision of this node as it happens, a line each. The daemon keeps them until they
 * are asked for here, several times a second; when we do not ask any more, it stops.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "inspector/base/escape.h"
#include "inspector/cli/cli.h"

#define INTERVAL_US 200000
#define US_PER_S    1000000ULL

static const struct argp_option options[] = {
	{"filter", ES_CLI_OPT_FILTER, "KEY=VALUE", 0,
	 "only decisions that this admits: node, service, client (address or network), path (what it begins "
	 "with), why, decision; given several times, all must admit it",
	 0},
	{"limit", ES_CLI_OPT_LIMIT, "N", 0, "end after so many", 0},
	{0},
};

/* struct watch - @left: how many more are to be shown */
struct watch {
	const struct es_cli *cli;
	unsigned long long id;
	long left;
};

static volatile sig_atomic_t is_over;

static void on_signal(int number)
{
	(void)number;
	is_over = 1;
}

static void print_line(struct json_object *decision)
{
	unsigned long long time_us = es_json_number(decision, "time_us");
	const char *request = es_json_string(decision, "request");
	const char *content = es_json_string(decision, "content");
	size_t len = strlen(request);
	time_t time_s = (time_t)(time_us / US_PER_S);
	char when[32] = "", client[64], *text;
	struct tm tm;

	text = malloc(4 * len + 1);
	if (!text)
		return;
	es_escape(request, len, text);
	if (localtime_r(&time_s, &tm))
		strftime(when, sizeof(when), "%H:%M:%S", &tm);
	snprintf(client, sizeof(client),
		 strchr(es_json_string(decision, "address"), ':') ? "[%s]:%llu" : "%s:%llu",
		 es_json_string(decision, "address"), es_json_number(decision, "port"));
	printf("%s.%06llu  %-21s  %s  %-6s  %-8s  %s  %.1fus  %s%s%s%s\n", when, time_us % US_PER_S, client,
	       es_json_string(decision, "service"), es_json_string(decision, "decision"),
	       es_json_string(decision, "why"), es_json_string(decision, "target"),
	       es_json_fraction(decision, "took_us"), *text ? text : "-",
	       es_json_is_true(decision, "cut") ? "..." : "", *content ? "  content " : "", content);
	free(text);
}

static void print_object(struct json_object *object)
{
	puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
}

static void print_left_out(const struct watch *watch, unsigned long long count)
{
	struct json_object *object;

	if (!count)
		return;
	if (!watch->cli->json) {
		printf("(%llu decisions are left out here: there were more than could be shown)\n", count);
		return;
	}
	object = json_object_new_object();
	json_object_object_add(object, "left_out", json_object_new_int64((int64_t)count));
	print_object(object);
	json_object_put(object);
}

static void print_reply(struct watch *watch, struct json_object *reply)
{
	struct json_object *list = es_json_array(reply, "decisions");

	for (size_t i = 0; i < json_object_array_length(list) && watch->left; i++, watch->left--) {
		struct json_object *decision = json_object_array_get_idx(list, i);

		if (watch->cli->json)
			print_object(decision);
		else
			print_line(decision);
	}
	print_left_out(watch, es_json_number(reply, "left_out"));
	fflush(stdout);
}

static struct json_object *question(const struct watch *watch)
{
	struct json_object *request = es_cli_command_request("trace");

	json_object_object_add(request, "id", json_object_new_int64((int64_t)watch->id));
	return request;
}

static int begin(struct watch *watch)
{
	struct json_object *request = es_cli_command_request("trace"), *filter = json_object_new_array(),
			   *reply;
	int r;

	for (unsigned int i = 0; i < watch->cli->filter_count; i++)
		json_object_array_add(filter, json_object_new_string(watch->cli->filters[i]));
	json_object_object_add(request, "filter", filter);
	r = es_cli_request(watch->cli, request, &reply);
	if (r)
		return r;
	watch->id = es_json_number(reply, "id");
	json_object_put(reply);
	return ES_CLI_OK;
}

/*
 * Tells the daemon that nobody watches any more. It would notice, but late, and only so many may watch at
 * once.
 */
static int end(const struct watch *watch)
{
	struct json_object *request = question(watch), *reply;
	int r;

	json_object_object_add(request, "end", json_object_new_boolean(1));
	r = es_cli_request(watch->cli, request, &reply);
	if (!r)
		json_object_put(reply);
	return r;
}

static int run(const struct es_cli *cli)
{
	const struct sigaction action = {.sa_handler = on_signal};
	struct watch watch = {.cli = cli, .left = LONG_MAX};
	struct json_object *reply;
	int r = ES_CLI_OK;

	if (cli->limit)
		r = es_cli_number("--limit", cli->limit, 1, INT_MAX, &watch.left);
	if (!r)
		r = begin(&watch);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	while (!r) {
		r = es_cli_request(cli, question(&watch), &reply);
		if (r)
			break;
		print_reply(&watch, reply);
		json_object_put(reply);
		if (!watch.left || is_over)
			return end(&watch);
		usleep(INTERVAL_US);
	}
	return r;
}

const struct es_cli_command es_cli_trace = {
	.name = "trace",
	.doc = "Show each decision of this node as it happens: time, client, service, first, stay, move, "
	       "again "
	       "or reject, why, target, microseconds, request. If there are more than can be shown, it says "
	       "how "
	       "many are left out. --json prints an object on each line.",
	.options = options,
	.run = run,
};
