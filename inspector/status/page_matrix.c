// SPDX-License-Identifier: GPL-2.0-or-later
/* A part of the status page: each service on each node. */
#include <string.h>
#include "inspector/base/json.h"
#include "inspector/status/html.h"
#include "inspector/status/page.h"

static struct json_object *at(struct json_object *array, size_t i)
{
	return json_object_array_get_idx(array, i);
}

/* Colours are not the only sign. */
static const struct {
	const char *class;
	const char *sign;
} looks[] = {
	[ES_PAGE_UP] = {"ok", "\u2713"},	  [ES_PAGE_DEGRADED] = {"warn", "!"},
	[ES_PAGE_DOWN] = {"bad", "\u2717"},	  [ES_PAGE_AWAY] = {"bad", "\u2717"},
	[ES_PAGE_ELSEWHERE] = {"none", "\u2013"},
};

static void put_label(FILE *file, const char *label)
{
	fprintf(file, "<div><dt>%s</dt><dd>", label);
}

static void put_rate(FILE *file, const char *label, int is_known, double rate)
{
	put_label(file, label);
	if (is_known)
		fprintf(file, "%.1f/s</dd></div>", rate);
	else
		fputs("&ndash;</dd></div>", file);
}

static void put_count(FILE *file, const char *label, unsigned long long count)
{
	put_label(file, label);
	es_html_count(file, count);
	fputs("</dd></div>", file);
}

/* The rate that all inspecting nodes which answer give to that node. */
static double given_to(struct json_object *nodes, const char *service, const char *node)
{
	double sum = 0;

	for (size_t i = 0; i < json_object_array_length(nodes); i++)
		sum += es_json_fraction(es_json_object(es_page_service_on(at(nodes, i), service), "given_s"),
					node);
	return sum;
}

static void put_check(FILE *file, struct json_object *own)
{
	struct json_object *check = es_json_object(own, "check");
	const char *result = es_json_string(check, "result");
	unsigned long long us = es_json_number(check, "us");

	put_label(file, "Check");
	if (!strcmp(result, "passed")) {
		fprintf(file, "ok, %.*f ms", us < 10000, (double)us / 1000);
	} else if (!strcmp(result, "none") || !strcmp(result, "-")) {
		fputs(*result == '-' ? "&ndash;" : "none", file);
	} else {
		es_html_text(file, result);
	}
	fputs("</dd></div>", file);
}

static void put_figures(FILE *file, struct json_object *nodes, struct json_object *service,
			struct json_object *node)
{
	const char *name = es_json_string(service, "name");
	struct json_object *own = es_page_service_on(node, name);
	int has_requests = strcmp(es_json_string(service, "inspect"), "never") != 0;
	int has_responses = json_object_object_get_ex(own, "5xx_s", NULL);
	unsigned long long p99_us = es_json_number(own, "p99_us");

	fputs("<dl>", file);
	if (has_requests)
		put_rate(file, "Requests", 1, given_to(nodes, name, es_json_string(node, "name")));
	else
		put_count(file, "Connections", es_json_number(own, "connections"));
	put_count(file, "In hand", es_json_number(own, "active"));
	if (has_requests) {
		put_rate(file, "4xx", has_responses, es_json_fraction(own, "4xx_s"));
		put_rate(file, "5xx", has_responses, es_json_fraction(own, "5xx_s"));
	}
	put_check(file, own);
	if (!has_requests) {
		fputs("</dl>", file);
		return;
	}
	put_label(file, "99 % within");
	if (p99_us)
		fprintf(file, "%.*f ms</dd></div>", p99_us < 10000, (double)p99_us / 1000);
	else
		fputs("&ndash;</dd></div>", file);
	fputs("</dl>", file);
}

static void put_cell(FILE *file, struct json_object *nodes, struct json_object *service,
		     struct json_object *node)
{
	struct es_page_cell cell = es_page_cell(node, es_json_string(service, "name"));

	fprintf(file, "<td class=\"cell %s\"><p><b>", looks[cell.kind].class);
	es_html_text(file, es_json_string(node, "name"));
	fprintf(file, "</b> <span class=\"state\"><span aria-hidden=\"true\">%s</span> ",
		looks[cell.kind].sign);
	es_html_text(file, cell.text);
	fputs("</span></p>", file);
	if (*cell.why) {
		fputs("<p class=\"why\">", file);
		es_html_text(file, cell.why);
		fputs("</p>", file);
	}
	if (cell.kind != ES_PAGE_AWAY && cell.kind != ES_PAGE_ELSEWHERE)
		put_figures(file, nodes, service, node);
	fputs("</td>", file);
}

/* On how many of the nodes where it should be. */
static void put_nodes(FILE *file, struct json_object *nodes, const char *service)
{
	size_t up = 0, expected = 0;

	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		enum es_page_cell_kind kind = es_page_cell(at(nodes, i), service).kind;

		up += kind == ES_PAGE_UP;
		expected += kind != ES_PAGE_ELSEWHERE;
	}
	fprintf(file, " <span class=\"%s\">up on %zu of %zu</span>",
		up == expected && up ? "ok"
		: up		     ? "warn"
				     : "bad",
		up, expected);
}

static void put_service(FILE *file, struct json_object *nodes, struct json_object *service)
{
	struct json_object *addresses = es_json_array(service, "addresses");

	fputs("<tr><th scope=\"row\">", file);
	es_html_text(file, es_json_string(service, "name"));
	fputs(" <small>", file);
	for (size_t i = 0; i < json_object_array_length(addresses); i++) {
		fputs(i ? " and " : "", file);
		es_html_text(file, json_object_get_string(at(addresses, i)));
	}
	fprintf(file, " port %llu, policy ", es_json_number(service, "port"));
	es_html_text(file, es_json_string(service, "policy"));
	fputs(", inspect = ", file);
	es_html_text(file, es_json_string(service, "inspect"));
	fputs("</small>", file);
	put_nodes(file, nodes, es_json_string(service, "name"));
	fputs("</th>", file);
	for (size_t i = 0; i < json_object_array_length(nodes); i++)
		put_cell(file, nodes, service, at(nodes, i));
	fputs("</tr>\n", file);
}

void es_page_matrix(FILE *file, struct json_object *view)
{
	struct json_object *nodes = es_json_array(view, "nodes"), *services = es_json_array(view, "services");

	es_page_section(file, "services", "Services on nodes");
	fprintf(file,
		"<table class=\"matrix m%zu\"><caption>Requests that each node is given, what its server has "
		"in hand, what its "
		"check says, and what it answers (read with inspect = every only).</caption><thead><tr>"
		"<th scope=\"col\">Service</th>",
		json_object_array_length(nodes));
	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		fputs("<th scope=\"col\">", file);
		es_html_text(file, es_json_string(at(nodes, i), "name"));
		fputs("</th>", file);
	}
	fputs("</tr></thead><tbody>\n", file);
	for (size_t i = 0; i < json_object_array_length(services); i++)
		put_service(file, nodes, at(services, i));
	fputs("</tbody></table></section>\n", file);
}
