// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * In which settings a node differs from the others, by what all say of themselves: in those that as many
 * others have differently as have them alike, the node included. So one of three is named, and of two that
 * differ both.
 */
#include <stdlib.h>
#include <string.h>
#include "inspector/report/json.h"
#include "inspector/report/report.h"

/* Nodes with the same settings are compared once. More kinds than these are no drift but no cluster. */
#define KINDS_MAX    8
#define NAME_MAX_LEN 128

/* struct es_drift_kinds - @of: each node's kind, -1 if it has not told; @first: a node of each kind */
struct es_drift_kinds {
	int of[ES_NODES_MAX];
	unsigned int first[KINDS_MAX];
	unsigned int count;
	unsigned int telling;
};

/* struct es_drift_pair - what differs between a node and those of @other */
struct es_drift_pair {
	const struct es_report_told *told;
	const struct es_drift_kinds *kinds;
	struct json_object *drift;
	int other;
};

/* A hash of the settings that must or should be alike. */
static unsigned long long hash_of(const char *settings)
{
	unsigned long long hash = 14695981039346656037ULL; /* FNV-1a */
	int must = 0, begins = 1;

	for (const char *c = settings; *c; c++) {
		must = begins ? *c == '=' || *c == '~' : must;
		begins = *c == '\n';
		if (must)
			hash = (hash ^ (unsigned char)*c) * 1099511628211ULL;
	}
	return hash;
}

static void kinds_find(const struct es_report_told *told, struct es_drift_kinds *kinds)
{
	unsigned long long hashes[KINDS_MAX];

	for (unsigned int i = 0; i < told->count; i++) {
		unsigned long long hash;
		unsigned int kind = 0;

		kinds->of[i] = -1;
		if (!told->settings[i])
			continue;
		hash = hash_of(told->settings[i]);
		while (kind < kinds->count && hashes[kind] != hash)
			kind++;
		if (kind == KINDS_MAX)
			continue;
		if (kind == kinds->count) {
			hashes[kind] = hash;
			kinds->first[kinds->count++] = i;
		}
		kinds->of[i] = (int)kind;
		kinds->telling++;
	}
}

static struct json_object *string_of(const char *text, size_t len)
{
	return json_object_new_string_len(text, (int)len);
}

/* The element of that setting, made if there is none. */
static struct json_object *element_of(struct json_object *drift, const char *name,
				      const struct es_group_setting *s)
{
	struct json_object *element, *found;

	for (size_t i = 0; i < json_object_array_length(drift); i++) {
		element = json_object_array_get_idx(drift, i);
		if (json_object_object_get_ex(element, "setting", &found) &&
		    !strcmp(json_object_get_string(found), name))
			return element;
	}
	element = json_object_new_object();
	es_json_string(element, "setting", name);
	json_object_object_add(element, "must", json_object_new_boolean(s->must));
	json_object_object_add(element, "value", string_of(s->a, s->a_len));
	json_object_object_add(element, "others", json_object_new_object());
	json_object_array_add(drift, element);
	return element;
}

static void on_difference(void *ctx, const struct es_group_setting *s)
{
	struct es_drift_pair *pair = ctx;
	struct json_object *others = NULL;
	char name[NAME_MAX_LEN];

	snprintf(name, sizeof(name), "%.*s", (int)s->name_len, s->name);
	json_object_object_get_ex(element_of(pair->drift, name, s), "others", &others);
	for (unsigned int i = 0; i < pair->told->count; i++)
		if (pair->kinds->of[i] == pair->other)
			json_object_object_add(others, pair->told->name[i], string_of(s->b, s->b_len));
}

/* If most nodes have a setting as this node has it, the drift is the others'. */
static struct json_object *without_theirs(struct json_object *drift, unsigned int telling)
{
	struct json_object *own = json_object_new_array(), *others = NULL;

	for (size_t i = 0; i < json_object_array_length(drift); i++) {
		struct json_object *element = json_object_array_get_idx(drift, i);

		json_object_object_get_ex(element, "others", &others);
		if (2 * (unsigned int)json_object_object_length(others) >= telling)
			json_object_array_add(own, json_object_get(element));
	}
	json_object_put(drift);
	return own;
}

static struct json_object *drift_of(const struct es_report_told *told, const struct es_drift_kinds *kinds,
				    unsigned int node)
{
	struct es_drift_pair pair = {.told = told, .kinds = kinds, .drift = json_object_new_array()};

	for (; kinds->of[node] >= 0 && pair.other < (int)kinds->count; pair.other++)
		if (pair.other != kinds->of[node])
			es_group_settings_each(told->settings[node], told->settings[kinds->first[pair.other]],
					       on_difference, &pair);
	return without_theirs(pair.drift, kinds->telling);
}

void es_report_drift(struct json_object *nodes, const struct es_report_told *told)
{
	struct es_drift_kinds kinds = {};

	kinds_find(told, &kinds);
	for (unsigned int i = 0; i < told->count; i++) {
		struct json_object *drift = drift_of(told, &kinds, i);

		if (json_object_array_length(drift))
			json_object_object_add(json_object_array_get_idx(nodes, i), "drift", drift);
		else
			json_object_put(drift);
	}
}

void es_report_drift_counts(const struct es_report_told *told, unsigned int *ret_counts)
{
	struct es_drift_kinds kinds = {};

	kinds_find(told, &kinds);
	for (unsigned int i = 0; i < told->count; i++) {
		struct json_object *drift = drift_of(told, &kinds, i);

		ret_counts[i] = (unsigned int)json_object_array_length(drift);
		json_object_put(drift);
	}
}
