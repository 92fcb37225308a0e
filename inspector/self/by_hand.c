// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The file of settings that were made by hand, and its words. daemon/by_hand.c knows what they do to the
 * cluster.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "inspector/base/file.h"
#include "inspector/base/json.h"
#include "inspector/self/by_hand.h"

#define FILE_MAX 4096

static void text_take(struct json_object *object, const char *key, char *text, size_t size)
{
	struct json_object *value;

	if (json_object_object_get_ex(object, key, &value) && json_object_is_type(value, json_type_string))
		snprintf(text, size, "%s", json_object_get_string(value));
}

int es_by_hand_parse(struct json_object *object, struct es_wire_by_hand *ret)
{
	struct json_object *value;

	if (!json_object_is_type(object, json_type_object))
		return -EBADMSG;
	if (json_object_object_get_ex(object, "weight", &value))
		ret->value = (uint16_t)json_object_get_uint64(value);
	else if (ret->what == ES_WIRE_CHANGE_WEIGHT)
		return -EBADMSG;
	ret->until_restart = (uint8_t)es_json_is_true(object, "until_restart");
	ret->set_ms = es_json_number(object, "set_ms");
	ret->until_ms = es_json_number(object, "until_ms");
	ret->for_s = (uint32_t)es_json_number(object, "for_s");
	text_take(object, "by", ret->who, sizeof(ret->who));
	text_take(object, "reason", ret->why, sizeof(ret->why));
	return 0;
}

int es_by_hand_read(const char *path, uint8_t what, struct es_wire_by_hand *ret)
{
	char text[FILE_MAX] = "";
	struct json_object *object;
	FILE *file = fopen(path, "re");
	size_t len;
	int rc;

	*ret = (struct es_wire_by_hand){.what = what};
	if (what == ES_WIRE_CHANGE_STATE)
		ret->value = ES_NODE_DRAINING;
	if (!file)
		return -errno;
	len = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	if (!len)
		return what == ES_WIRE_CHANGE_STATE ? 0 : -EBADMSG;
	object = json_tokener_parse(text);
	rc = es_by_hand_parse(object, ret);
	json_object_put(object);
	return rc;
}

int es_by_hand_write(const char *path, const struct es_wire_by_hand *by_hand)
{
	struct json_object *object;
	int rc;

	if (!by_hand) {
		/* Where nothing can be written, even what is not there cannot be removed. */
		rc = unlink(path) ? -errno : 0;
		return rc && access(path, F_OK) && errno == ENOENT ? 0 : rc;
	}
	object = es_by_hand_json(by_hand);
	rc = es_file_replace(path, json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN));
	json_object_put(object);
	return rc;
}

const char *es_by_hand_text(const struct es_wire_by_hand *by_hand, char *text, size_t size)
{
	time_t until_s = (time_t)(by_hand->until_ms / 1000);
	char until[64] = "", when[32];
	struct tm tm;

	if (by_hand->until_ms && localtime_r(&until_s, &tm) &&
	    strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(until, sizeof(until), ", until %s", when);
	else if (by_hand->until_restart)
		snprintf(until, sizeof(until), ", until its daemon starts anew");
	snprintf(text, size, "%s%s%s%s%s", by_hand->who[0] ? " by " : "", by_hand->who, until,
		 by_hand->why[0] ? ": " : "", by_hand->why);
	return text;
}

struct json_object *es_by_hand_json(const struct es_wire_by_hand *by_hand)
{
	struct json_object *object = json_object_new_object();

	if (by_hand->what == ES_WIRE_CHANGE_WEIGHT)
		json_object_object_add(object, "weight", json_object_new_int(by_hand->value));
	json_object_object_add(object, "by", json_object_new_string(by_hand->who));
	json_object_object_add(object, "set_ms", json_object_new_uint64(by_hand->set_ms));
	if (by_hand->until_ms) {
		json_object_object_add(object, "until_ms", json_object_new_uint64(by_hand->until_ms));
		json_object_object_add(object, "for_s", json_object_new_int64(by_hand->for_s));
	}
	if (by_hand->until_restart)
		json_object_object_add(object, "until_restart", json_object_new_boolean(1));
	json_object_object_add(object, "reason", json_object_new_string(by_hand->why));
	return object;
}

uint64_t es_by_hand_left_ms(const struct es_wire_by_hand *by_hand, uint64_t wall_ms)
{
	uint64_t most_ms = by_hand->for_s * 1000ULL;
	uint64_t left_ms = by_hand->until_ms > wall_ms ? by_hand->until_ms - wall_ms : 0;

	return left_ms < most_ms ? left_ms : most_ms;
}
