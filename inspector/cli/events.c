// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot events`: what happened to the node and its cluster. The daemon says it; where none runs, the files
 * that it left do.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "inspector/base/event.h"
#include "inspector/base/wall.h"
#include "inspector/base/when.h"
#include "inspector/cli/cli.h"

#define STATE_DIRECTORY "/var/lib/earshot"
#define FOLLOW_US	500000

static const struct argp_option options[] = {
	{"follow", ES_CLI_OPT_FOLLOW, NULL, 0,
	 "go on with new ones as they happen, over restarts of the daemon", 0},
	{"since", ES_CLI_OPT_SINCE, "TIME", 0,
	 "only those of so long ago at most: 30s, 10m, 1h30m, 7d; or since a local time as they show it", 0},
	{"kind", ES_CLI_OPT_KIND, "KIND[,KIND...]", 0, "only those of these kinds, e.g. crash,leave,join", 0},
	{0},
};

/* struct view - what is to be seen, and @last: the last event that was */
struct view {
	int json;
	unsigned long long since_ms;
	unsigned long long kinds; /* a bit for each */
	unsigned long long last;
};

static int kinds_read(const char *text, unsigned long long *ret_kinds)
{
	char known[512] = "";
	size_t used = 0;

	*ret_kinds = text ? 0 : ~0ULL;
	while (text && *text) {
		size_t len = strcspn(text, ",");
		char name[32];
		int kind;

		snprintf(name, sizeof(name), "%.*s", (int)len, text);
		kind = es_event_kind_of(name);
		if (kind >= 0) {
			*ret_kinds |= 1ULL << kind;
			text += len + (text[len] == ',');
			continue;
		}
		for (int i = 0; i < ES_EVENT_KIND_COUNT; i++)
			used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
						 es_event_kind_name((enum es_event_kind)i));
		return es_cli_usage("events: bad kind \"%s\": expected some of %s", name, known);
	}
	return ES_CLI_OK;
}

static int since_read(const char *text, unsigned long long *ret_ms)
{
	*ret_ms = 0;
	if (!text || !es_when_since(text, es_wall_ns() / 1000000, ret_ms))
		return ES_CLI_OK;
	return es_cli_usage(
		"events: bad --since \"%s\": expected e.g. 30s, 10m, 1h30m, 7d, 09:30, 2026-11-25 or "
		"\"2026-11-25 09:30:12\"",
		text);
}

static void show(void *ctx, const struct es_event *event)
{
	time_t time_s = (time_t)(event->time_ms / 1000);
	struct view *view = ctx;
	struct json_object *object;
	char when[32] = "";
	struct tm tm;

	if (event->id <= view->last)
		return;
	view->last = event->id;
	if (event->time_ms < view->since_ms || !(view->kinds & 1ULL << event->kind))
		return;
	if (view->json) {
		object = es_event_json(event);
		puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN));
		json_object_put(object);
		return;
	}
	if (localtime_r(&time_s, &tm))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	printf("%s.%03u  %-14s  %-8s  %s\n", when, (unsigned int)(event->time_ms % 1000),
	       es_event_kind_name(event->kind), event->node, event->text);
}

/*
 * A daemon with --control keeps its file beside its socket: shows the one beside the socket that @cli names.
 */
static int show_beside(const struct es_cli *cli, struct view *view, char *path, size_t size)
{
	size_t len;

	if (es_cli_socket_path(cli, path, size))
		return -ENOENT;
	len = strlen(path);
	if (len > 5 && !strcmp(path + len - 5, ".sock"))
		len -= 5;
	snprintf(path + len, size - len, ES_EVENT_SUFFIX);
	return es_event_read(path, show, view);
}

static int is_events_name(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name), suffix = strlen(ES_EVENT_SUFFIX);

	return len > suffix && !strcmp(entry->d_name + len - suffix, ES_EVENT_SUFFIX);
}

/* Shows the file of this machine's only node. */
static int show_only(struct view *view, char *path, size_t size)
{
	struct dirent **entries = NULL;
	int n = scandir(STATE_DIRECTORY, &entries, is_events_name, alphasort), rc = -ENOENT;

	if (n == 1) {
		snprintf(path, size, STATE_DIRECTORY "/%s", entries[0]->d_name);
		rc = es_event_read(path, show, view);
	}
	for (int i = 0; i < n; i++)
		free(entries[i]);
	free(entries);
	return rc;
}

/* There is no daemon, and the user has been told so: shows what it left. */
static int show_files(const struct es_cli *cli, struct view *view)
{
	const char *node = cli->node ? cli->node : getenv("EARSHOT_NODE");
	int is_named = cli->control || (node && *node), rc = -ENOENT;
	char path[512];

	if (!cli->control && node && *node && !strchr(node, '/')) {
		snprintf(path, sizeof(path), STATE_DIRECTORY "/%s" ES_EVENT_SUFFIX, node);
		rc = es_event_read(path, show, view);
	}
	if (rc && is_named)
		rc = show_beside(cli, view, path, sizeof(path));
	else if (rc)
		rc = show_only(view, path, sizeof(path));
	if (rc)
		return ES_CLI_NO_DAEMON;
	fprintf(stderr, "earshot: these events are from the file that it left, %s\n", path);
	return ES_CLI_OK;
}

static unsigned long long newest_of(struct json_object *list)
{
	size_t count = json_object_array_length(list);

	return count ? es_json_number(json_object_array_get_idx(list, count - 1), "id") : 0;
}

/* @is_first: of this daemon, which may have begun after the last one that was shown */
static int show_new(const struct es_cli *cli, struct view *view, int is_first)
{
	struct json_object *request = es_cli_command_request("events"), *reply, *list;
	struct es_event event;
	int r;

	json_object_object_add(request, "after", json_object_new_int64(is_first ? 0 : (int64_t)view->last));
	r = es_cli_request(cli, request, &reply);
	if (r)
		return r;
	list = es_json_array(reply, "events");
	/* A daemon that has lost its file counts from 1 again. */
	if (is_first && newest_of(list) < view->last)
		view->last = 0;
	/* Events that the daemon does not have in memory, or not any more, are in its file. */
	if (is_first)
		es_event_read(es_json_string(reply, "file"), show, view);
	for (size_t i = 0; i < json_object_array_length(list); i++)
		if (!es_event_parse(json_object_array_get_idx(list, i), &event))
			show(view, &event);
	json_object_put(reply);
	fflush(stdout);
	return ES_CLI_OK;
}

/* Goes on when the daemon is restarted. That it is away is said once. */
static void follow(const struct es_cli *cli, struct view *view)
{
	int is_away = 0, failed;
	char why[512];

	for (;;) {
		usleep(FOLLOW_US);
		es_cli_hold(why, sizeof(why));
		failed = show_new(cli, view, is_away) != ES_CLI_OK;
		es_cli_hold(NULL, 0);
		if (failed && !is_away)
			fprintf(stderr, "earshot: %s; waiting for it\n", why);
		is_away = failed;
	}
}

static int run(const struct es_cli *cli)
{
	struct view view = {.json = cli->json};
	int r = kinds_read(cli->kind, &view.kinds);

	if (!r)
		r = since_read(cli->since, &view.since_ms);
	if (r)
		return r;
	r = show_new(cli, &view, 1);
	if (r == ES_CLI_NO_DAEMON && !cli->follow)
		return show_files(cli, &view);
	if (!r && cli->follow)
		follow(cli, &view);
	return r;
}

const struct es_cli_command es_cli_events = {
	.name = "events",
	.doc = "Show what happened to the node and its cluster: who joined, left or died, drains, weights, "
	       "quorum, "
	       "servers, reloads. They outlive the daemon. --json prints an object on each line.",
	.options = options,
	.run = run,
};
