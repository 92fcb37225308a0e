// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A part of the status page: how a node is, and a service on it, by what the node itself says and what is
 * known of it.
 */
#include <string.h>
#include "inspector/base/json.h"
#include "inspector/status/page.h"

static int is_one_of(const char *word, const char *const *list)
{
	for (; *list; list++)
		if (!strcmp(word, *list))
			return 1;
	return 0;
}

static int is_among(struct json_object *names, const char *name)
{
	for (size_t i = 0; i < json_object_array_length(names); i++)
		if (!strcmp(json_object_get_string(json_object_array_get_idx(names, i)), name))
			return 1;
	return 0;
}

struct json_object *es_page_word(struct json_object *node)
{
	return es_json_object(node, es_json_is_true(node, "answers") ? "snapshot" : "");
}

/* "" for what is missing. */
static const char *text_of(struct json_object *object, const char *key)
{
	const char *text = es_json_string(object, key);

	return strcmp(text, "-") != 0 ? text : "";
}

const char *es_page_state(struct json_object *node)
{
	const char *state = es_json_string(node, "state");

	/* Another one's silence it says only itself. */
	if ((!strcmp(state, "up") || !strcmp(state, "draining")) &&
	    es_json_is_true(es_page_word(node), "silent"))
		return "silent";
	return state;
}

int es_page_is_well(struct json_object *node)
{
	return !strcmp(es_page_state(node), "up") && es_json_is_true(node, "answers");
}

const char *es_page_trouble(struct json_object *node, struct json_object *view)
{
	struct json_object *membership = es_json_object(view, "membership"), *heard;
	const char *text = text_of(node, "refused");

	if (!*text)
		text = text_of(node, "reason");
	if (!*text && es_json_is_true(node, "self") && es_json_is_true(membership, "silent"))
		text = text_of(membership, "why");
	if (!*text)
		text = text_of(node, "trouble");
	if (!*text && es_json_is_true(es_page_word(node), "silent"))
		text = text_of(es_page_word(node), "why");
	if (!*text && json_object_object_get_ex(node, "heard", &heard) && !json_object_get_boolean(heard))
		text = "not heard on the public network";
	if (!*text && json_object_array_length(es_json_array(node, "drift")))
		text = "its settings differ from the others'";
	return text;
}

/* The state that all know, for a node that does not tell of each service. */
static struct es_page_cell guess(struct json_object *node, const char *service)
{
	if (is_among(es_json_array(node, "lacks"), service))
		return (struct es_page_cell){ES_PAGE_DOWN, "down", "nothing listens for it"};
	if (is_among(es_json_array(node, "failing"), service))
		return (struct es_page_cell){ES_PAGE_DEGRADED, "degraded", "its server fails its check"};
	if (*text_of(node, "trouble"))
		return (struct es_page_cell){ES_PAGE_DEGRADED, "degraded", text_of(node, "trouble")};
	return (struct es_page_cell){ES_PAGE_UP, "up", ""};
}

static struct es_page_cell told(struct json_object *node, struct json_object *service)
{
	static const struct {
		const char *state;
		enum es_page_cell_kind kind;
		const char *text;
	} kinds[] = {
		{"up", ES_PAGE_UP, "up"},
		{"degraded", ES_PAGE_DEGRADED, "degraded"},
		{"down", ES_PAGE_DOWN, "down"},
		{"pending", ES_PAGE_DEGRADED, "being checked"},
		{"elsewhere", ES_PAGE_ELSEWHERE, "not here"},
	};
	const char *state = es_json_string(service, "state");
	struct es_page_cell cell = {ES_PAGE_DEGRADED, state, text_of(service, "why")};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(state, kinds[i].state)) {
			cell.kind = kinds[i].kind;
			cell.text = kinds[i].text;
		}
	if (cell.kind == ES_PAGE_UP && !strcmp(es_page_state(node), "down"))
		return (struct es_page_cell){ES_PAGE_DOWN, "down", "it gets no requests at the moment"};
	if (cell.kind == ES_PAGE_UP && !strcmp(es_page_state(node), "draining"))
		return (struct es_page_cell){ES_PAGE_DEGRADED, "draining", ""};
	return cell;
}

struct es_page_cell es_page_cell(struct json_object *node, const char *service)
{
	static const char *const away[] = {"absent", "left", "refused", "silent", NULL};
	struct json_object *services = es_json_array(es_page_word(node), "services"), *own;

	if (is_one_of(es_page_state(node), away))
		return (struct es_page_cell){ES_PAGE_AWAY, es_page_state(node), ""};
	if (!es_json_is_true(node, "answers"))
		return (struct es_page_cell){ES_PAGE_AWAY, "not answering", ""};
	own = es_json_find(services, "name", service);
	if (own && *text_of(own, "state")) {
		struct es_page_cell cell = told(node, own);

		if (cell.kind == ES_PAGE_UP &&
		    es_json_find(es_json_array(node, "drained_services"), "service", service))
			return (struct es_page_cell){ES_PAGE_DEGRADED, "drained", ""};
		return cell;
	}
	if (!own && json_object_array_length(services))
		return (struct es_page_cell){ES_PAGE_ELSEWHERE, "not here", ""};
	return guess(node, service);
}

struct json_object *es_page_service_on(struct json_object *node, const char *service)
{
	struct json_object *own =
		es_json_find(es_json_array(es_page_word(node), "services"), "name", service);

	return own ? own : es_json_object(node, "");
}
