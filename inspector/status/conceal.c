// SPDX-License-Identifier: GPL-2.0-or-later
/* Makes a view of the cluster fit for those who need no password. */
#include <string.h>
#include "inspector/base/json.h"
#include "inspector/status/conceal.h"

static struct json_object *find(struct json_object *contents, const char *uri)
{
	for (size_t i = 0; i < json_object_array_length(contents); i++) {
		struct json_object *content = json_object_array_get_idx(contents, i);

		if (!strcmp(es_json_string(content, "uri"), uri))
			return content;
	}
	return NULL;
}

static int has_node(struct json_object *nodes, const char *name)
{
	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		const char *there = json_object_get_string(json_object_array_get_idx(nodes, i));

		if (!there || !name || !strcmp(there, name))
			return 1;
	}
	return 0;
}

/* Both are one from now on: all requests, on all nodes that serve either. */
static void merge(struct json_object *into, struct json_object *content)
{
	struct json_object *nodes = NULL, *more = es_json_array(content, "nodes");

	json_object_object_add(into, "requests",
			       json_object_new_uint64(es_json_number(into, "requests") +
						      es_json_number(content, "requests")));
	if (!json_object_object_get_ex(into, "nodes", &nodes)) {
		if (json_object_array_length(more))
			json_object_object_add(into, "nodes", json_object_get(more));
		return;
	}
	for (size_t i = 0; i < json_object_array_length(more); i++) {
		struct json_object *node = json_object_array_get_idx(more, i);

		if (!has_node(nodes, json_object_get_string(node)))
			json_object_array_add(nodes, json_object_get(node));
	}
}

static void conceal_service(struct json_object *service)
{
	struct json_object *contents = es_json_array(service, "targets"), *shown = json_object_new_array();

	for (size_t i = 0; i < json_object_array_length(contents); i++) {
		struct json_object *content = json_object_array_get_idx(contents, i), *same, *cut;
		const char *uri = es_json_string(content, "uri");

		if (!json_object_is_type(content, json_type_object))
			continue;
		cut = json_object_new_string_len(uri, (int)strcspn(uri, "?"));
		same = find(shown, json_object_get_string(cut));
		if (same) {
			merge(same, content);
			json_object_put(cut);
			continue;
		}
		json_object_object_add(content, "uri", cut);
		json_object_array_add(shown, json_object_get(content));
	}
	json_object_object_add(service, "targets", shown);
}

void es_conceal_queries(struct json_object *view)
{
	struct json_object *nodes = es_json_array(view, "nodes");

	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct json_object *node = json_object_array_get_idx(nodes, i);
		struct json_object *hot = es_json_array(es_json_object(node, "snapshot"), "hot");

		for (size_t k = 0; k < json_object_array_length(hot); k++)
			if (json_object_is_type(json_object_array_get_idx(hot, k), json_type_object))
				conceal_service(json_object_array_get_idx(hot, k));
	}
}
