/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reading replies for people without ever stumbling: an older or newer daemon's reply may lack a member or
 * have it in another type, and then a "-" or a 0 is printed.
 */
#include <err.h>
#include <stdarg.h>
#include <stdio.h>

#include "inspector/cli/cli.h"

int es_cli_fail(const char *format, ...)
{
	va_list ap;

	fputs("earshot: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	return ES_CLI_FAILED;
}

void es_cli_print_json(struct json_object *object)
{
	puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
							    JSON_C_TO_STRING_NOSLASHESCAPE));
}

static struct json_object *member(struct json_object *object, const char *key, enum json_type type)
{
	struct json_object *value;

	if (json_object_is_type(object, json_type_object) && json_object_object_get_ex(object, key, &value) &&
	    json_object_is_type(value, type))
		return value;
	return NULL;
}

const char *es_cli_string(struct json_object *object, const char *key)
{
	struct json_object *value = member(object, key, json_type_string);

	return value ? json_object_get_string(value) : "-";
}

unsigned long long es_cli_number(struct json_object *object, const char *key)
{
	return json_object_get_uint64(member(object, key, json_type_int));
}

int es_cli_is_true(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	return object && json_object_object_get_ex(object, key, &value) && json_object_get_boolean(value);
}

double es_cli_fraction(struct json_object *object, const char *key)
{
	struct json_object *value = member(object, key, json_type_double);

	return json_object_get_double(value ? value : member(object, key, json_type_int));
}

struct json_object *es_cli_array(struct json_object *object, const char *key)
{
	static struct json_object *empty;
	struct json_object *value = member(object, key, json_type_array);

	if (value)
		return value;
	if (!empty)
		empty = json_object_new_array();
	if (!empty)
		err(ES_CLI_FAILED, "reply");
	return empty;
}

struct json_object *es_cli_object(struct json_object *object, const char *key)
{
	static struct json_object *empty;
	struct json_object *value = member(object, key, json_type_object);

	if (value)
		return value;
	if (!empty)
		empty = json_object_new_object();
	if (!empty)
		err(ES_CLI_FAILED, "reply");
	return empty;
}
