/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_REPORT_JSON_H
#define ES_REPORT_JSON_H

/* The parts that all replies are made of. */
#include <json-c/json.h>
#include <stdio.h>

static inline void es_json_string(struct json_object *object, const char *key, const char *value)
{
	json_object_object_add(object, key, json_object_new_string(value));
}

static inline void es_json_number(struct json_object *object, const char *key, unsigned long long value)
{
	json_object_object_add(object, key, json_object_new_uint64(value));
}

/* With so many digits after the point: a share or a time needs no more, and %.17g is unreadable. */
static inline void es_json_fraction(struct json_object *object, const char *key, double value, int digits)
{
	char text[64];

	snprintf(text, sizeof(text), "%.*f", digits, value);
	json_object_object_add(object, key, json_object_new_double_s(value, text));
}

#endif
