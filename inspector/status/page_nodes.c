// SPDX-License-Identifier: GPL-2.0-or-later
/* A part of the status page: the nodes, and the ring. */
#include <math.h>
#include <string.h>
#include "inspector/base/json.h"
#include "inspector/status/html.h"
#include "inspector/status/page.h"

#define RADIUS	    80.0
#define FULL_CIRCLE 6.283185307179586

static struct json_object *node_at(struct json_object *nodes, size_t i)
{
	return json_object_array_get_idx(nodes, i);
}

/* The label stands in the cell where there is no room for headings. */
static void begin(FILE *file, const char *label, const char *class)
{
	fprintf(file, "<td class=\"%s\" data-l=\"%s\">", class, label);
}

static void put_state(FILE *file, struct json_object *node)
{
	begin(file, "State", es_page_is_well(node) ? "ok" : "warn");
	es_html_text(file, es_page_state(node));
	fputs("</td>", file);
}

/* And that it does not answer. */
static void put_trouble(FILE *file, struct json_object *view, struct json_object *node)
{
	const char *trouble = es_page_trouble(node, view);
	struct json_object *age = NULL;

	begin(file, "Trouble", *trouble || !es_json_is_true(node, "answers") ? "path warn" : "path none");
	if (!*trouble && es_json_is_true(node, "answers"))
		fputs("none", file);
	es_html_text(file, trouble);
	if (!es_json_is_true(node, "answers")) {
		json_object_object_get_ex(node, "age_s", &age);
		fputs(*trouble ? "; " : "", file);
		if (age) {
			fputs("not answering; last answer ", file);
			es_html_clock(file, es_json_number(view, "at_s") -
						    (unsigned long long)es_json_fraction(node, "age_s"));
		} else {
			fputs(es_json_is_true(node, "tells")
				      ? "not answering"
				      : "has not told of itself (not heard, or an older version)",
			      file);
		}
	}
	fputs("</td>", file);
}

/* A number of the node's own; of one that does not answer it is old, and says so. */
static void put_number(FILE *file, struct json_object *node, const char *label, double value, int digits,
		       const char *unit)
{
	int is_old = !es_json_is_true(node, "answers");

	if (!json_object_object_get_ex(es_json_object(node, "snapshot"), "uptime_s", NULL)) {
		begin(file, label, "n");
		fputs("&ndash;</td>", file);
		return;
	}
	begin(file, label, is_old ? "n old" : "n");
	fprintf(file, "%.*f%s%s</td>", digits, value, unit, is_old ? " (old)" : "");
}

/* A time that requests take; 0: none came. */
static void put_time(FILE *file, struct json_object *node, const char *label, const char *key)
{
	unsigned long long us = es_json_number(es_json_object(node, "snapshot"), key);

	if (us) {
		put_number(file, node, label, (double)us / 1000, us < 10000 ? 2 : 1, " ms");
		return;
	}
	begin(file, label, "n");
	fputs("&ndash;</td>", file);
}

static void put_word(FILE *file, struct json_object *node, const char *label, const char *key)
{
	const char *word = es_json_string(es_page_word(node), key);

	begin(file, label, "");
	if (strcmp(word, "-") != 0)
		es_html_text(file, word);
	else
		fputs("&ndash;", file);
	fputs("</td>", file);
}

static void put_node(FILE *file, struct json_object *view, struct json_object *node)
{
	struct json_object *word = es_json_object(node, "snapshot");

	fputs("<tr><th scope=\"row\">", file);
	es_html_text(file, es_json_string(node, "name"));
	fputs(es_json_is_true(node, "self") ? " (this one)</th>" : "</th>", file);
	put_state(file, node);
	put_trouble(file, view, node);
	begin(file, "Share", "n");
	fprintf(file, "%.1f %%</td>", 100 * es_json_fraction(node, "ring_share"));
	put_number(file, node, "Requests/s", es_json_fraction(word, "requests_s"), 1, "");
	put_number(file, node, "Errors/s", es_json_fraction(word, "errors_s"), 1, "");
	put_number(file, node, "Connections", (double)es_json_number(word, "connections"), 0, "");
	put_number(file, node, "In hand", (double)es_json_number(word, "active"), 0, "");
	put_number(file, node, "Load", (double)es_json_number(word, "load"), 0, "");
	put_time(file, node, "Mean", "mean_now_us");
	put_time(file, node, "99 %", "p99_us");
	put_number(file, node, "CPU", 100 * es_json_fraction(word, "cpu"), 0, " %");
	put_word(file, node, "Version", "version");
	put_word(file, node, "Datapath", "datapath");
	fputs("</tr>\n", file);
}

/* An operator's setting of a node; @what: which it is, e.g. "drained". */
static void put_by_hand(FILE *file, struct json_object *node, const char *key, const char *what)
{
	struct json_object *set;

	if (!json_object_object_get_ex(es_json_object(node, "by_hand"), key, &set))
		return;
	fputs("<li>", file);
	es_html_text(file, es_json_string(node, "name"));
	fprintf(file, ": %s by hand since ", what);
	es_html_date(file, es_json_number(set, "set_ms") / 1000);
	if (*es_json_string(set, "by")) {
		fputs(" by ", file);
		es_html_text(file, es_json_string(set, "by"));
	}
	if (es_json_number(set, "until_ms")) {
		fputs(", until ", file);
		es_html_date(file, es_json_number(set, "until_ms") / 1000);
	} else if (es_json_is_true(set, "until_restart")) {
		fputs(", until its daemon starts anew", file);
	}
	if (*es_json_string(set, "reason")) {
		fputs(": ", file);
		es_html_text(file, es_json_string(set, "reason"));
	}
	fputs("</li>\n", file);
}

static void put_all_by_hand(FILE *file, struct json_object *nodes)
{
	char weight[48];

	fputs("<ul>", file);
	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		put_by_hand(file, node_at(nodes, i), "drain", "drained");
		snprintf(weight, sizeof(weight), "weight %llu", es_json_number(node_at(nodes, i), "weight"));
		put_by_hand(file, node_at(nodes, i), "weight", weight);
		if (!es_json_is_true(node_at(nodes, i), "unkept"))
			continue;
		fputs("<li class=\"warn\">", file);
		es_html_text(file, es_json_string(node_at(nodes, i), "name"));
		fputs(": cannot keep over a restart what is set by hand: its log says why</li>\n", file);
	}
	fputs("</ul>\n", file);
}

void es_page_nodes(FILE *file, struct json_object *view)
{
	static const char *const headings[] = {"Node",	   "State",	  "Trouble", "Share",	 "Requests/s",
					       "Errors/s", "Connections", "In hand", "Load",	 "Mean",
					       "99 %",	   "CPU",	  "Version", "Datapath", NULL};
	struct json_object *nodes = es_json_array(view, "nodes");

	es_page_section(file, "nodes", "Nodes");
	es_page_table(file, "stack",
		      "Shares of the ring; requests that each node decided on; and what its server has in "
		      "hand, and "
		      "for how long",
		      headings);
	for (size_t i = 0; i < json_object_array_length(nodes); i++)
		put_node(file, view, node_at(nodes, i));
	es_page_table_end(file);
	put_all_by_hand(file, nodes);
	fputs("</section>\n", file);
}

/* From place @from up to @to of @count, clockwise from the top. */
static void put_arc(FILE *file, size_t from, size_t to, size_t count, int node)
{
	double a = FULL_CIRCLE * (double)from / (double)count, b = FULL_CIRCLE * (double)to / (double)count;

	if (to - from == count)
		fprintf(file, "<circle class=\"c%d\" cx=\"100\" cy=\"100\" r=\"80\"/>",
			node % ES_PAGE_COLOURS);
	else
		fprintf(file, "<path class=\"c%d\" d=\"M%.1f %.1fA80 80 0 %d 1 %.1f %.1f\"/>",
			node % ES_PAGE_COLOURS, 100 + RADIUS * sin(a), 100 - RADIUS * cos(a),
			b - a > FULL_CIRCLE / 2, 100 + RADIUS * sin(b), 100 - RADIUS * cos(b));
}

static int place_at(struct json_object *places, size_t i)
{
	return json_object_get_int(json_object_array_get_idx(places, i));
}

void es_page_ring(FILE *file, struct json_object *view)
{
	struct json_object *places = es_json_array(view, "ring_places"),
			   *nodes = es_json_array(view, "nodes");
	size_t count = json_object_array_length(places), from = 0;

	es_page_section(file, "ring", "Ring");
	fputs("<p>Who inspects new connections, around the ring of their hashes.</p><div class=\"pair\">"
	      "<svg class=\"ring\" viewBox=\"0 0 200 200\" fill=\"none\" stroke-width=\"26\" "
	      "aria-hidden=\"true\">",
	      file);
	for (size_t i = 1; i <= count; i++) {
		if (i < count && place_at(places, i) == place_at(places, from))
			continue;
		put_arc(file, from, i, count, place_at(places, from));
		from = i;
	}
	fputs("</svg>\n<ul>", file);
	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		fprintf(file,
			"<li><svg width=\"16\" height=\"16\" aria-hidden=\"true\"><path class=\"c%zu\" "
			"stroke-width=\"16\" "
			"d=\"M0 8h16\"/></svg>",
			i % ES_PAGE_COLOURS);
		es_html_text(file, es_json_string(node_at(nodes, i), "name"));
		fprintf(file, ": %.1f %%</li>", 100 * es_json_fraction(node_at(nodes, i), "ring_share"));
	}
	fputs("</ul></div></section>\n", file);
}
