// SPDX-License-Identifier: GPL-2.0-or-later
/* A part of the status page: the last ten minutes, drawn from what the nodes remember of them. */
#include <math.h>
#include <string.h>
#include "inspector/base/json.h"
#include "inspector/status/history.h"
#include "inspector/status/html.h"
#include "inspector/status/page.h"

#define SAMPLES	   ES_HISTORY_SAMPLES
#define HEIGHT	   100 /* of a chart, in its own units; a sample is one wide */
#define LABEL_SIZE 24

/* struct line - of one node, by five seconds, the newest last; NAN: not known */
struct line {
	double at[SAMPLES];
};

static struct json_object *at(struct json_object *array, size_t i)
{
	return json_object_array_get_idx(array, i);
}

/* --- from what nodes remember */

/*
 * struct source - one node's samples: @joined: steps of five seconds in each; @late: steps that the newest is
 * old
 */
struct source {
	struct json_object *history;
	size_t count;
	size_t joined;
	size_t late;
};

static struct source source_of(struct json_object *node)
{
	struct source source = {.history = es_json_object(node, "history")};
	double age_s = es_json_fraction(source.history, "age_s");

	source.count = es_json_number(source.history, "samples");
	source.joined = es_json_number(source.history, "step_s") / ES_HISTORY_STEP_S;
	source.late = age_s < SAMPLES * ES_HISTORY_STEP_S ? (size_t)(age_s / ES_HISTORY_STEP_S) : SAMPLES;
	if (source.count > SAMPLES || !source.joined || source.joined > SAMPLES)
		source.count = 0;
	return source;
}

/*
 * Adds @values, each by @scale, where the node remembers anything; none, where it remembers nothing but
 * zeros.
 */
static void add(struct line *line, const struct source *source, struct json_object *values, double scale)
{
	size_t given = json_object_array_length(values);

	for (size_t i = 0; i < source->count; i++) {
		size_t back = source->late + (source->count - 1 - i) * source->joined;
		double value = given == source->count ? json_object_get_double(at(values, i)) * scale : 0;

		for (size_t k = back; k < back + source->joined && k < SAMPLES; k++) {
			double *bin = &line->at[SAMPLES - 1 - k];

			*bin = isnan(*bin) ? value : *bin + value;
		}
	}
}

static struct json_object *of_service(const struct source *source, const char *service)
{
	return es_json_object(es_json_object(source->history, "services"), service);
}

/* The contents of a chart; @service: "" for all */
struct chart {
	struct json_object *view;
	const char *service;
	const char *title;
	const char *unit;
	void (*fill)(struct line *line, const struct chart *chart, size_t node);
};

static double per_second(const struct source *source)
{
	return source->joined ? 1.0 / (double)(source->joined * ES_HISTORY_STEP_S) : 0;
}

/* Calls for each service that counts. */
static void add_each(struct line *line, const struct chart *chart, const struct source *source,
		     const char *key, const char *inner)
{
	struct json_object *services = es_json_array(chart->view, "services");

	for (size_t i = 0; i < json_object_array_length(services); i++) {
		const char *name = es_json_string(at(services, i), "name");
		struct json_object *service = of_service(source, name);

		if (*chart->service && strcmp(chart->service, name) != 0)
			continue;
		add(line, source,
		    inner ? es_json_array(es_json_object(service, key), inner) : es_json_array(service, key),
		    per_second(source));
	}
}

static void fill_requests(struct line *line, const struct chart *chart, size_t node)
{
	struct json_object *nodes = es_json_array(chart->view, "nodes");
	const char *name = es_json_string(at(nodes, node), "name");

	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		struct source source = source_of(at(nodes, i));

		add_each(line, chart, &source, "requests", name);
	}
}

static void fill_errors(struct line *line, const struct chart *chart, size_t node)
{
	struct source source = source_of(at(es_json_array(chart->view, "nodes"), node));

	add_each(line, chart, &source, "5xx", NULL);
	if (*chart->service)
		add_each(line, chart, &source, "rejected", NULL);
	else
		add(line, &source, es_json_array(source.history, "errors"), per_second(&source));
}

/* Where no response was read, there is no time. */
static void fill_p99(struct line *line, const struct chart *chart, size_t node)
{
	struct source source = source_of(at(es_json_array(chart->view, "nodes"), node));
	struct json_object *of = *chart->service ? of_service(&source, chart->service) : source.history;

	add(line, &source, es_json_array(of, "p99_us"), 1e-3);
	for (size_t i = 0; i < SAMPLES; i++)
		if (line->at[i] <= 0)
			line->at[i] = NAN;
}

/* --- as pictures */

static void label(char text[LABEL_SIZE], double value)
{
	snprintf(text, LABEL_SIZE, "%.*f", value > 0 && value < 10, value);
}

/* The next of 1, 2, 5, 10, ... */
static double round_up(double value)
{
	double unit = value > 0 ? pow(10, floor(log10(value))) : 1;

	return value <= unit ? unit : value <= 2 * unit ? 2 * unit : value <= 5 * unit ? 5 * unit : 10 * unit;
}

static void put_point(FILE *file, size_t x, int y, int *is_line)
{
	fprintf(file, "%s%zu %d", *is_line ? "L" : "M", x, y);
	*is_line = 1;
}

/* Points between two at the same height say nothing. */
static void put_line(FILE *file, const struct line *line, double top)
{
	int y[SAMPLES], is_line = 0;

	for (size_t i = 0; i < SAMPLES; i++)
		y[i] = isnan(line->at[i]) ? -1 : HEIGHT - (int)lround(line->at[i] / top * HEIGHT);
	for (size_t i = 0; i < SAMPLES; i++) {
		if (y[i] < 0)
			is_line = 0;
		else if (!is_line || i + 1 == SAMPLES || y[i - 1] != y[i] || y[i + 1] != y[i])
			put_point(file, i, y[i], &is_line);
		/* One alone is seen, too. */
		if (y[i] >= 0 && (i + 1 == SAMPLES || y[i + 1] < 0) && (!i || y[i - 1] < 0))
			fputs("h1", file);
	}
}

static double highest(const struct line *line)
{
	double most = -1;

	for (size_t i = 0; i < SAMPLES; i++)
		most = line->at[i] > most ? line->at[i] : most;
	return most;
}

void es_page_colour(FILE *file, size_t node)
{
	fprintf(file, "c%zu d%zu", node % ES_PAGE_COLOURS, node / ES_PAGE_COLOURS % 3);
}

static struct line line_of(const struct chart *chart, size_t node)
{
	struct line line;

	for (size_t i = 0; i < SAMPLES; i++)
		line.at[i] = NAN;
	chart->fill(&line, chart, node);
	return line;
}

/* @most: below 0: nothing is known */
static void begin_chart(FILE *file, const struct chart *chart, double most, double top)
{
	char text[LABEL_SIZE] = "&ndash;", top_text[LABEL_SIZE];

	if (most >= 0)
		label(text, most);
	label(top_text, top);
	fprintf(file,
		"<figure><figcaption>%s <small>at most %s%s</small></figcaption><div class=\"chart\">"
		"<span class=\"top\">%s%s</span><svg viewBox=\"0 -3 %d %d\" preserveAspectRatio=\"none\" "
		"role=\"img\" "
		"aria-label=\"%s by node, ten minutes\"><path class=\"grid\" d=\"M0 0H%dM0 50H%dM0 "
		"100H%d\"/>",
		chart->title, text, most < 0 ? "" : chart->unit, top_text, chart->unit, SAMPLES - 1,
		HEIGHT + 6, chart->title, SAMPLES, SAMPLES, SAMPLES);
}

static void put_chart(FILE *file, const struct chart *chart)
{
	size_t count = json_object_array_length(es_json_array(chart->view, "nodes"));
	double most = -1, top;

	for (size_t i = 0; i < count; i++) {
		const struct line line = line_of(chart, i);

		most = fmax(most, highest(&line));
	}
	top = round_up(most);
	begin_chart(file, chart, most, top);
	for (size_t i = 0; i < count; i++) {
		const struct line line = line_of(chart, i);

		fputs("<path class=\"line ", file);
		es_page_colour(file, i);
		fputs("\" d=\"", file);
		put_line(file, &line, top);
		fputs("\"/>", file);
	}
	fputs("</svg></div><p class=\"axis\"><span>&minus;10 min</span><span>now</span></p></figure>\n",
	      file);
}

static void put_row(FILE *file, struct json_object *view, const char *service, const char *heading)
{
	const struct chart charts[] = {
		{view, service, "Requests a second", "/s", fill_requests},
		{view, service, "Errors a second", "/s", fill_errors},
		{view, service, "99 % within", " ms", fill_p99},
	};

	fputs("<h3>", file);
	es_html_text(file, heading);
	fputs("</h3><div class=\"charts\">", file);
	for (size_t i = 0; i < sizeof(charts) / sizeof(charts[0]); i++)
		put_chart(file, &charts[i]);
	fputs("</div>\n", file);
}

void es_page_charts(FILE *file, struct json_object *view)
{
	struct json_object *nodes = es_json_array(view, "nodes"), *services = es_json_array(view, "services");
	size_t count = json_object_array_length(services);

	es_page_section(file, "history", "The last ten minutes");
	fputs("<ul class=\"legend\">", file);
	for (size_t i = 0; i < json_object_array_length(nodes); i++) {
		fputs("<li><svg width=\"24\" height=\"10\" aria-hidden=\"true\"><path class=\"line ", file);
		es_page_colour(file, i);
		fputs("\" d=\"M0 5h24\"/></svg>", file);
		es_html_text(file, es_json_string(at(nodes, i), "name"));
		fputs("</li>", file);
	}
	fputs("</ul>\n", file);
	for (size_t i = 0; count > 1 && i < count; i++) {
		const char *name = es_json_string(at(services, i), "name");

		if (strcmp(es_json_string(at(services, i), "inspect"), "never") != 0)
			put_row(file, view, name, name);
	}
	put_row(file, view, "", count == 1 ? es_json_string(at(services, 0), "name") : "All services");
	fputs("<p class=\"note\">Requests: by the node that serves them, where any is read. Errors: answers "
	      "5xx of the node\u2019s "
	      "server, and requests that it refused, gave back or reset as the one that decides. Times, and "
	      "answers 5xx, "
	      "are known with inspect = every only. A sample is five seconds.</p></section>\n",
	      file);
}
