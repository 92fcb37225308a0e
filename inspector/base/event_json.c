// SPDX-License-Identifier: GPL-2.0-or-later
/* An event as JSON (docs/json.md), in the journal's files and in replies. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "inspector/base/event.h"
#include "inspector/base/json.h"

static const char *const kind_names[] = {
#define X(name) [ES_EVENT_##name] = #name,
	ES_EVENT_KINDS(X)
#undef X
};

const char *es_event_kind_name(enum es_event_kind kind)
{
	return kind < ES_EVENT_KIND_COUNT ? kind_names[kind] : "";
}

int es_event_kind_of(const char *name)
{
	for (int i = 0; i < ES_EVENT_KIND_COUNT; i++)
		if (!strcmp(kind_names[i], name))
			return i;
	return -1;
}

static const char *level_name(enum es_log_level level)
{
	return level == ES_LOG_ERR ? "error" : level == ES_LOG_WARNING ? "warning" : "info";
}

struct json_object *es_event_json(const struct es_event *event)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "id", json_object_new_int64((int64_t)event->id));
	json_object_object_add(object, "time_ms", json_object_new_int64((int64_t)event->time_ms));
	json_object_object_add(object, "kind", json_object_new_string(es_event_kind_name(event->kind)));
	json_object_object_add(object, "level", json_object_new_string(level_name(event->level)));
	json_object_object_add(object, "node", json_object_new_string(event->node));
	json_object_object_add(object, "text", json_object_new_string(event->text));
	return object;
}

int es_event_parse(struct json_object *object, struct es_event *ret)
{
	const char *level;
	int kind;

	if (!json_object_is_type(object, json_type_object))
		return -EINVAL;
	kind = es_event_kind_of(es_json_string(object, "kind"));
	level = es_json_string(object, "level");
	if (kind < 0 || !es_json_number(object, "id"))
		return -EINVAL;
	*ret = (struct es_event){
		.id = es_json_number(object, "id"),
		.time_ms = es_json_number(object, "time_ms"),
		.kind = (enum es_event_kind)kind,
		.level = !strcmp(level, "error")     ? ES_LOG_ERR
			 : !strcmp(level, "warning") ? ES_LOG_WARNING
						     : ES_LOG_INFO,
	};
	snprintf(ret->node, sizeof(ret->node), "%s", es_json_string(object, "node"));
	snprintf(ret->text, sizeof(ret->text), "%s", es_json_string(object, "text"));
	return 0;
}
