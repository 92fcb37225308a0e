// SPDX-License-Identifier: GPL-2.0-or-later
/* A part of the status page: why connections move or are pinned, and the hottest content. */
#include <stdlib.h>
#include <string.h>
#include "inspector/base/json.h"
#include "inspector/status/html.h"
#include "inspector/status/page.h"

#define HOT_SHOWN 15

static struct json_object *node_at(struct json_object *view, size_t i)
{
	return json_object_array_get_idx(es_json_array(view, "nodes"), i);
}

static size_t node_count(struct json_object *view)
{
	return json_object_array_length(es_json_array(view, "nodes"));
}

/* --- reasons */

/* The sums of what nodes count under the same names; the caller's. */
static struct json_object *sums_of(struct json_object *view, const char *key)
{
	struct json_object *sums = json_object_new_object();

	for (size_t i = 0; i < node_count(view); i++) {
		struct json_object *counts = es_json_object(es_page_word(node_at(view, i)), key);

		json_object_object_foreach(counts, reason, count)
		{
			unsigned long long before = json_object_object_get_ex(sums, reason, NULL)
							    ? es_json_number(sums, reason)
							    : 0;

			json_object_object_add(
				sums, reason, json_object_new_uint64(before + json_object_get_uint64(count)));
		}
	}
	return sums;
}

static void put_reasons(FILE *file, struct json_object *view, const char *key, const char *caption)
{
	static const char *const headings[] = {"Reason", "Connections", NULL};
	struct json_object *sums = sums_of(view, key);

	es_page_table(file, "", caption, headings);
	if (!json_object_object_length(sums))
		fputs("<tr><td colspan=\"2\">none</td></tr>\n", file);
	json_object_object_foreach(sums, reason, count)
	{
		fputs("<tr><th scope=\"row\">", file);
		es_html_text(file, reason);
		fputs("</th><td class=\"n\">", file);
		es_html_count(file, json_object_get_uint64(count));
		fputs("</td></tr>\n", file);
	}
	es_page_table_end(file);
	json_object_put(sums);
}

void es_page_reasons(FILE *file, struct json_object *view)
{
	es_page_section(file, "reasons", "Moves and pins");
	fputs("<div class=\"pair\">", file);
	put_reasons(file, view, "moves", "Connections that moved to another node, by reason");
	put_reasons(file, view, "pins", "Connections that are inspected no more (pinned), by reason");
	fputs("</div></section>\n", file);
}

/* --- hottest content */

/* Adds one node's words about a service's contents to @all, by name. */
static void merge_service(struct json_object *all, struct json_object *service)
{
	struct json_object *targets = es_json_array(service, "targets");

	for (size_t i = 0; i < json_object_array_length(targets); i++) {
		struct json_object *target = json_object_array_get_idx(targets, i), *entry = NULL,
				   *nodes = NULL;
		unsigned long long requests = es_json_number(target, "requests");
		const char *uri = es_json_string(target, "uri");
		char key[512]; /* of one service and another the same path is two contents */

		snprintf(key, sizeof(key), "%s %s", es_json_string(service, "service"), uri);
		if (!json_object_object_get_ex(all, key, &entry)) {
			entry = json_object_new_object();
			json_object_object_add(all, key, entry);
			json_object_object_add(entry, "uri", json_object_new_string(uri));
			json_object_object_add(entry, "service",
					       json_object_new_string(es_json_string(service, "service")));
		} else {
			requests += es_json_number(entry, "requests");
		}
		json_object_object_add(entry, "requests", json_object_new_uint64(requests));
		if (json_object_object_get_ex(target, "nodes", &nodes))
			json_object_object_add(entry, "nodes", json_object_get(nodes));
	}
}

static int by_requests(const void *a, const void *b)
{
	unsigned long long x = es_json_number(*(struct json_object *const *)a, "requests");
	unsigned long long y = es_json_number(*(struct json_object *const *)b, "requests");

	return x < y ? 1 : x > y ? -1 : 0;
}

static void put_content(FILE *file, struct json_object *content)
{
	struct json_object *nodes = es_json_array(content, "nodes");

	fputs("<tr><td class=\"path\">", file);
	es_html_text(file, es_json_string(content, "uri"));
	fputs("</td><td data-l=\"Service\">", file);
	es_html_text(file, es_json_string(content, "service"));
	fputs("</td><td class=\"n\" data-l=\"Requests\">", file);
	es_html_count(file, es_json_number(content, "requests"));
	fputs("</td><td data-l=\"Served by\">", file);
	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		fputs(i ? ", " : "", file);
		es_html_text(file, json_object_get_string(json_object_array_get_idx(nodes, i)));
	}
	if (!json_object_array_length(nodes))
		fputs("as the policy computes", file);
	fputs("</td></tr>\n", file);
}

void es_page_hot(FILE *file, struct json_object *view)
{
	static const char *const headings[] = {"Content", "Service", "Requests", "Served by", NULL};
	struct json_object *all = json_object_new_object(), *list = json_object_new_array();

	for (size_t i = 0; i < node_count(view); i++) {
		struct json_object *hot = es_json_array(es_page_word(node_at(view, i)), "hot");

		for (size_t k = 0; k < json_object_array_length(hot); k++)
			merge_service(all, json_object_array_get_idx(hot, k));
	}
	json_object_object_foreach(all, uri, entry)
	{
		(void)uri;
		json_object_array_add(list, json_object_get(entry));
	}
	json_object_array_sort(list, by_requests);
	es_page_section(file, "hot", "Hottest content");
	es_page_table(file, "stack",
		      "Contents that were asked for most lately, and the nodes that serve them", headings);
	for (size_t i = 0; i < json_object_array_length(list) && i < HOT_SHOWN; i++)
		put_content(file, json_object_array_get_idx(list, i));
	if (!json_object_array_length(list))
		fputs("<tr><td colspan=\"4\">none</td></tr>\n", file);
	es_page_table_end(file);
	fputs("</section>\n", file);
	json_object_put(list);
	json_object_put(all);
}
