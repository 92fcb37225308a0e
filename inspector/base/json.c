// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writing JSON that is JSON whatever it tells of, and reading replies for people without ever stumbling: an
 * older or newer daemon's reply may lack a member or have it in another type, and then a "-" or a 0 is
 * printed.
 */
#include "inspector/base/json.h"

#include <err.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/base/utf8.h"

int es_json_write(struct json_object *object, FILE *file)
{
	const char *text = json_object_to_json_string_ext(
		object, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE);
	size_t len = text ? strlen(text) : 0;
	char *valid = malloc(3 * len + 1);
	int rc = 0;

	if (!text || !valid) {
		free(valid);
		return -ENOMEM;
	}
	errno = 0;
	len = es_utf8_copy(text, len, valid);
	valid[len++] = '\n';
	if (fwrite(valid, 1, len, file) != len || fflush(file))
		rc = errno ? -errno : -EIO;
	free(valid);
	return rc;
}

static struct json_object *member(struct json_object *object, const char *key, enum json_type type)
{
	struct json_object *value;

	if (json_object_is_type(object, json_type_object) && json_object_object_get_ex(object, key, &value) &&
	    json_object_is_type(value, type))
		return value;
	return NULL;
}

const char *es_json_string(struct json_object *object, const char *key)
{
	struct json_object *value = member(object, key, json_type_string);

	return value ? json_object_get_string(value) : "-";
}

unsigned long long es_json_number(struct json_object *object, const char *key)
{
	return json_object_get_uint64(member(object, key, json_type_int));
}

int es_json_is_true(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	return object && json_object_object_get_ex(object, key, &value) && json_object_get_boolean(value);
}

double es_json_fraction(struct json_object *object, const char *key)
{
	struct json_object *value = member(object, key, json_type_double);

	return json_object_get_double(value ? value : member(object, key, json_type_int));
}

struct json_object *es_json_array(struct json_object *object, const char *key)
{
	static struct json_object *empty;
	struct json_object *value = member(object, key, json_type_array);

	if (value)
		return value;
	if (!empty)
		empty = json_object_new_array();
	if (!empty)
		err(EXIT_FAILURE, "reply");
	return empty;
}

struct json_object *es_json_object(struct json_object *object, const char *key)
{
	static struct json_object *empty;
	struct json_object *value = member(object, key, json_type_object);

	if (value)
		return value;
	if (!empty)
		empty = json_object_new_object();
	if (!empty)
		err(EXIT_FAILURE, "reply");
	return empty;
}

struct json_object *es_json_find(struct json_object *array, const char *key, const char *value)
{
	for (size_t i = 0; i < json_object_array_length(array); i++) {
		struct json_object *object = json_object_array_get_idx(array, i);

		if (!strcmp(es_json_string(object, key), value))
			return object;
	}
	return NULL;
}
