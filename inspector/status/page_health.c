// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A part of the status page: how the cluster is, in some words. It is well only if each node and each service
 * on it is.
 */
#include <string.h>
#include "inspector/base/json.h"
#include "inspector/status/html.h"
#include "inspector/status/page.h"

static struct json_object *at(struct json_object *array, size_t i)
{
	return json_object_array_get_idx(array, i);
}

/* How a service is on all nodes. */
struct tally {
	size_t well;	 /* nodes where it is up */
	size_t served;	 /* where requests for it are served at all */
	size_t expected; /* where it should be */
};

static struct tally tally_of(struct json_object *nodes, const char *service)
{
	struct tally tally = {};

	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		enum es_page_cell_kind kind = es_page_cell(at(nodes, i), service).kind;

		tally.expected += kind != ES_PAGE_ELSEWHERE;
		tally.served += kind == ES_PAGE_UP || kind == ES_PAGE_DEGRADED;
		tally.well += kind == ES_PAGE_UP;
	}
	return tally;
}

/* Does a service say what is the matter with the node? */
static int is_said(struct json_object *view, struct json_object *node)
{
	struct json_object *services = es_json_array(view, "services");

	for (size_t i = 0; i < json_object_array_length(services); i++) {
		struct es_page_cell cell = es_page_cell(node, es_json_string(at(services, i), "name"));

		if (cell.kind == ES_PAGE_DOWN || cell.kind == ES_PAGE_DEGRADED)
			return 1;
	}
	return 0;
}

static int has_trouble(struct json_object *view, struct json_object *node)
{
	return *es_page_trouble(node, view) && !is_said(view, node);
}

enum es_page_health es_page_health_of(struct json_object *view)
{
	struct json_object *nodes = es_json_array(view, "nodes"), *services = es_json_array(view, "services");
	size_t count = json_object_array_length(nodes), well = 0;
	int is_bad = es_json_is_true(es_json_object(view, "membership"), "silent"), is_troubled = 0;

	for (size_t i = 0; i < count; i++) {
		well += (size_t)es_page_is_well(at(nodes, i));
		is_troubled |= has_trouble(view, at(nodes, i));
	}
	for (size_t i = 0; i < json_object_array_length(services); i++) {
		struct tally tally = tally_of(nodes, es_json_string(at(services, i), "name"));

		is_bad |= !tally.served;
		is_troubled |= tally.well < tally.expected;
	}
	return is_bad || !well ? ES_PAGE_BAD : is_troubled || well < count ? ES_PAGE_WARN : ES_PAGE_OK;
}

/* Say what is the matter with a node; no time that passes, since each change is read aloud. */
static void complain(FILE *file, struct json_object *view, struct json_object *node)
{
	const char *state = es_page_state(node);

	if (!es_page_is_well(node)) {
		fputs(" ", file);
		es_html_text(file, es_json_string(node, "name"));
		if (!strcmp(state, "up"))
			fputs(" does not answer.", file);
		else {
			fputs(" is ", file);
			es_html_text(file, state);
			fputs(es_json_is_true(node, "answers") ? "." : " and does not answer.", file);
		}
	} else if (has_trouble(view, node)) {
		fputs(" ", file);
		es_html_text(file, es_json_string(node, "name"));
		fputs(": ", file);
		es_html_text(file, es_page_trouble(node, view));
		fputs(".", file);
	}
}

/* Say of a service that is not well on nodes which are: where, and why. */
static void complain_of(FILE *file, struct json_object *nodes, const char *service)
{
	struct tally tally = tally_of(nodes, service);

	if (!tally.expected || !tally.served) {
		fputs(" Service ", file);
		es_html_text(file, service);
		fputs(tally.expected ? " is served by no node." : " is on no node.", file);
	}
	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct es_page_cell cell = es_page_cell(at(nodes, i), service);

		if ((cell.kind != ES_PAGE_DOWN && cell.kind != ES_PAGE_DEGRADED) ||
		    !strcmp(cell.text, "draining"))
			continue;
		fputs(" Service ", file);
		es_html_text(file, service);
		fputs(" is ", file);
		es_html_text(file, cell.text);
		fputs(" on ", file);
		es_html_text(file, es_json_string(at(nodes, i), "name"));
		fputs(*cell.why ? ": " : "", file);
		es_html_text(file, cell.why);
		fputs(".", file);
	}
}

void es_page_health(FILE *file, struct json_object *view)
{
	static const char *const classes[] = {
		[ES_PAGE_OK] = "ok", [ES_PAGE_WARN] = "warn", [ES_PAGE_BAD] = "bad"};
	struct json_object *nodes = es_json_array(view, "nodes"), *services = es_json_array(view, "services"),
			   *membership = es_json_object(view, "membership");
	size_t count = json_object_array_length(nodes), well = 0;
	enum es_page_health health = es_page_health_of(view);

	for (size_t i = 0; i < count; i++)
		well += (size_t)es_page_is_well(at(nodes, i));
	fprintf(file, "<p id=\"health\" role=\"status\" aria-live=\"polite\" class=\"%s\">", classes[health]);
	if (es_json_is_true(membership, "silent")) {
		fputs("This node is silent: ", file);
		es_html_text(file, es_json_string(membership, "why"));
		fputs(". ", file);
	}
	if (health == ES_PAGE_OK)
		fprintf(file, "All %zu nodes are up, and all services on them.", count);
	else if (well < count || !count)
		fprintf(file, "%zu of %zu nodes are up and answer.", well, count);
	for (size_t i = 0; i < count; i++)
		complain(file, view, at(nodes, i));
	for (size_t i = 0; i < json_object_array_length(services); i++)
		complain_of(file, nodes, es_json_string(at(services, i), "name"));
	fputs("</p>\n", file);
}
