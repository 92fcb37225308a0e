// SPDX-License-Identifier: GPL-2.0-or-later
/* Which files were rolled out, one after the other, and where another node's file stands among them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/base/file.h"
#include "inspector/base/json.h"
#include "inspector/rollout/history.h"

const struct es_rollout_past *es_rollout_history_last(const struct es_rollout_history *history)
{
	return history->count ? &history->past[history->count - 1] : NULL;
}

static void append(struct es_rollout_history *history, const struct es_rollout_past *past)
{
	if (history->count == ES_ROLLOUT_HISTORY_MAX)
		memmove(history->past, history->past + 1, --history->count * sizeof(history->past[0]));
	history->past[history->count++] = *past;
}

void es_rollout_history_add(struct es_rollout_history *history, unsigned long long before,
			    const struct es_rollout_past *past)
{
	const struct es_rollout_past *last = es_rollout_history_last(history);
	const struct es_rollout_past by_hand = {.digest = before};

	if (!last || last->digest != before)
		append(history, &by_hand);
	append(history, past);
}

/* Where the node's last rollout stands among the others'; their first file if it had none; -1: nowhere. */
static int position_of(const struct es_rollout_past *last, const struct es_rollout_history *others)
{
	if (!last)
		return 0;
	for (unsigned int i = 0; i < others->count; i++)
		if (others->past[i].number == last->number && others->past[i].digest == last->digest)
			return (int)i;
	return -1;
}

enum es_rollout_age es_rollout_history_age(const struct es_rollout_history *own, unsigned long long digest,
					   const struct es_rollout_history *others)
{
	const struct es_rollout_past *last = es_rollout_history_last(others);
	int from = position_of(es_rollout_history_last(own), others);

	if (last && last->digest == digest)
		return ES_ROLLOUT_SAME;
	if (from < 0)
		return ES_ROLLOUT_APART;
	/* One before the node's own last rollout is what somebody has gone back to. */
	for (unsigned int i = (unsigned int)from; i + 1 < others->count; i++)
		if (others->past[i].digest == digest)
			return ES_ROLLOUT_OLDER;
	return ES_ROLLOUT_CHANGED;
}

struct json_object *es_rollout_history_json(const struct es_rollout_history *history)
{
	struct json_object *array = json_object_new_array();
	char digest[20];

	for (unsigned int i = 0; i < history->count; i++) {
		const struct es_rollout_past *past = &history->past[i];
		struct json_object *object = json_object_new_object();

		snprintf(digest, sizeof(digest), "%016llx", past->digest);
		json_object_object_add(object, "number", json_object_new_uint64(past->number));
		json_object_object_add(object, "digest", json_object_new_string(digest));
		json_object_object_add(object, "time_ms", json_object_new_uint64(past->time_ms));
		json_object_object_add(object, "name", json_object_new_string(past->name));
		json_object_object_add(object, "by", json_object_new_string(past->by));
		json_object_array_add(array, object);
	}
	return array;
}

int es_rollout_history_parse(struct json_object *array, struct es_rollout_history *ret)
{
	struct es_rollout_history history = {};

	if (!json_object_is_type(array, json_type_array))
		return -EBADMSG;
	for (size_t i = 0; i < json_object_array_length(array); i++) {
		struct json_object *object = json_object_array_get_idx(array, i);
		struct es_rollout_past past = {};
		char *end;

		if (!json_object_is_type(object, json_type_object))
			return -EBADMSG;
		past.number = es_json_number(object, "number");
		past.digest = strtoull(es_json_string(object, "digest"), &end, 16);
		past.time_ms = es_json_number(object, "time_ms");
		if (*end)
			return -EBADMSG;
		snprintf(past.name, sizeof(past.name), "%s", es_json_string(object, "name"));
		snprintf(past.by, sizeof(past.by), "%s", es_json_string(object, "by"));
		append(&history, &past);
	}
	*ret = history;
	return 0;
}

int es_rollout_history_read(const char *path, struct es_rollout_history *ret)
{
	struct json_object *array;
	int rc;

	memset(ret, 0, sizeof(*ret));
	errno = 0;
	array = json_object_from_file(path);
	if (!array)
		return errno ? -errno : -EBADMSG;
	rc = es_rollout_history_parse(array, ret);
	json_object_put(array);
	return rc;
}

int es_rollout_history_write(const char *path, const struct es_rollout_history *history)
{
	struct json_object *array = es_rollout_history_json(history);
	int rc = es_file_replace(path, json_object_to_json_string_ext(array, JSON_C_TO_STRING_PLAIN));

	json_object_put(array);
	return rc;
}
