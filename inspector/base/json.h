/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_JSON_H
#define ES_JSON_H

#include <json-c/json.h>

#include <stdio.h>

/**
 * es_json_write() - for programs to read, a newline behind it
 * JSON is UTF-8 (RFC 8259), and names of files and paths of requests need not be: what is none becomes
 * U+FFFD. Returns 0, or -errno of writing; @file is flushed.
 */
int es_json_write(struct json_object *object, FILE *file);

/* Members of @object for people: "-" and 0 stand for what is missing or of another type. */
const char *es_json_string(struct json_object *object, const char *key);
unsigned long long es_json_number(struct json_object *object, const char *key);
double es_json_fraction(struct json_object *object, const char *key);
int es_json_is_true(struct json_object *object, const char *key);
/* Never NULL: an empty array or object that lives as long as the program stands for what is missing. */
struct json_object *es_json_array(struct json_object *object, const char *key);
struct json_object *es_json_object(struct json_object *object, const char *key);
/* The first of @array's objects whose @key is @value; NULL if there is none. */
struct json_object *es_json_find(struct json_object *array, const char *key, const char *value);

#endif
