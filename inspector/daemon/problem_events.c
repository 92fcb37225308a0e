// SPDX-License-Identifier: GPL-2.0-or-later
/* Compares what a run of `earshot check` has found with what was told, and tells what has changed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/base/event.h"
#include "inspector/base/json.h"
#include "inspector/daemon/problem_events.h"

static int find(const struct es_problem_events *e, const char *id)
{
	for (unsigned int i = 0; i < e->count; i++)
		if (!strcmp(e->known[i].id, id))
			return (int)i;
	return -1;
}

static void forget(struct es_problem_events *e, unsigned int at)
{
	e->known[at] = e->known[--e->count];
}

static int remember(struct es_problem_events *e, const char *id, enum es_log_level level)
{
	int at = find(e, id);

	if (at < 0 && e->count == ES_PROBLEM_EVENTS_KNOWN)
		return 0;
	if (at < 0)
		at = (int)e->count++;
	snprintf(e->known[at].id, sizeof(e->known[at].id), "%s", id);
	e->known[at].level = level;
	return 1;
}

/* Reads in the journal what the daemon before this one has told last of each check. */
static void begin(struct es_problem_events *e)
{
	struct es_event *told = calloc(ES_EVENT_KEPT, sizeof(*told));
	size_t count = told ? es_event_newest(told, ES_EVENT_KEPT) : 0;

	e->is_begun = 1;
	for (size_t i = 0; i < count; i++) {
		char *colon = strchr(told[i].text, ':');

		if (!colon ||
		    (told[i].kind != ES_EVENT_check_failed && told[i].kind != ES_EVENT_check_passed))
			continue;
		*colon = 0;
		if (told[i].kind == ES_EVENT_check_failed)
			remember(e, told[i].text, told[i].level);
		else if (find(e, told[i].text) >= 0)
			forget(e, (unsigned int)find(e, told[i].text));
	}
	free(told);
}

static int is_severity(struct json_object *finding, const char *severity)
{
	return !strcmp(es_json_string(finding, "severity"), severity);
}

/* ES_LOG_INFO: it says nothing against the node. */
static enum es_log_level level_of(struct json_object *finding)
{
	return is_severity(finding, "error")	 ? ES_LOG_ERR
	       : is_severity(finding, "warning") ? ES_LOG_WARNING
						 : ES_LOG_INFO;
}

/* The worst finding of the check @id; *@ret_is_open: one could not be made. */
static struct json_object *worst_of(struct json_object *findings, const char *id, int *ret_is_open)
{
	struct json_object *worst = NULL;

	*ret_is_open = 0;
	for (size_t i = 0; i < json_object_array_length(findings); i++) {
		struct json_object *finding = json_object_array_get_idx(findings, i);

		if (strcmp(es_json_string(finding, "id"), id) != 0)
			continue;
		*ret_is_open |= is_severity(finding, "unchecked");
		/* A lower level is the worse one. */
		if (!worst || level_of(finding) < level_of(worst))
			worst = finding;
	}
	return worst;
}

static unsigned int tell_failed(struct es_problem_events *e, struct json_object *finding,
				struct json_object *findings)
{
	const char *id = es_json_string(finding, "id");
	int is_open, has_action, at = find(e, id);
	struct json_object *action = NULL;

	if (level_of(finding) == ES_LOG_INFO || worst_of(findings, id, &is_open) != finding ||
	    (at >= 0 && e->known[at].level <= level_of(finding)) || !remember(e, id, level_of(finding)))
		return 0;
	has_action = json_object_object_get_ex(finding, "action", &action) && action;
	es_event(ES_EVENT_check_failed, level_of(finding), NULL, "%s: %s%s%s", id,
		 es_json_string(finding, "found"), has_action ? "; do: " : "",
		 has_action ? json_object_get_string(action) : "");
	return 1;
}

/* One that was an error and is a warning now is no news, but would be one if it became an error again. */
static unsigned int tell_passed(struct es_problem_events *e, unsigned int at, struct json_object *findings)
{
	int is_open;
	struct json_object *worst = worst_of(findings, e->known[at].id, &is_open);

	if (worst && level_of(worst) != ES_LOG_INFO) {
		e->known[at].level = level_of(worst);
		return 0;
	}
	if (is_open)
		return 0;
	es_event(ES_EVENT_check_passed, ES_LOG_INFO, NULL, "%s: %s", e->known[at].id,
		 worst ? es_json_string(worst, "found") : "nothing is wrong any more");
	forget(e, at);
	return 1;
}

void es_problem_events_take(struct es_problem_events *e, struct json_object *findings)
{
	unsigned int told = 0;

	if (!e->is_begun)
		begin(e);
	for (size_t i = 0; i < json_object_array_length(findings) && told < ES_PROBLEM_EVENTS_MAX; i++)
		told += tell_failed(e, json_object_array_get_idx(findings, i), findings);
	for (unsigned int i = e->count; i-- > 0 && told < ES_PROBLEM_EVENTS_MAX;)
		told += tell_passed(e, i, findings);
}
