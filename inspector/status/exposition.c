// SPDX-License-Identifier: GPL-2.0-or-later
/* The text formats of Prometheus: families, labels with their escapes, and numbers. */
#include <math.h>
#include <stdarg.h>
#include "inspector/status/exposition.h"

const char *const es_exposition_content_type[ES_EXPOSITION_FORMATS] = {
	[ES_EXPOSITION_PROMETHEUS] = "text/plain; version=0.0.4; charset=utf-8",
	[ES_EXPOSITION_OPENMETRICS] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

static const char *suffix(const struct es_exposition *e)
{
	return e->type == ES_EXPOSITION_COUNTER ? "_total" : "";
}

void es_exposition_family(struct es_exposition *e, enum es_exposition_type type, const char *name,
			  const char *help)
{
	static const char *const types[] = {"gauge", "counter", "histogram", "summary"};
	const char *end;

	e->name = name;
	e->type = type;
	end = e->format == ES_EXPOSITION_OPENMETRICS ? "" : suffix(e);
	fprintf(e->file, "# HELP earshot_%s%s %s.\n# TYPE earshot_%s%s %s\n", name, end, help, name, end,
		types[type]);
}

static void put_escaped(FILE *file, const char *value)
{
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", file);
		else if (*value == '"' || *value == '\\')
			fprintf(file, "\\%c", *value);
		else
			fputc(*value, file);
	}
}

static void put_labels(struct es_exposition *e, va_list ap)
{
	const char *name, *before = "{";

	while ((name = va_arg(ap, const char *))) {
		fprintf(e->file, "%s%s=\"", before, name);
		put_escaped(e->file, va_arg(ap, const char *));
		fputc('"', e->file);
		before = ",";
	}
	if (*before == ',')
		fputc('}', e->file);
}

void es_exposition_add(struct es_exposition *e, double value, ...)
{
	va_list ap;

	fprintf(e->file, "earshot_%s%s", e->name, suffix(e));
	va_start(ap, value);
	put_labels(e, ap);
	va_end(ap);
	if (isnan(value))
		fputs(" NaN\n", e->file);
	else
		fprintf(e->file, " %.15g\n", value);
}

void es_exposition_count(struct es_exposition *e, unsigned long long value, ...)
{
	va_list ap;

	fprintf(e->file, "earshot_%s%s", e->name, suffix(e));
	va_start(ap, value);
	put_labels(e, ap);
	va_end(ap);
	fprintf(e->file, " %llu\n", value);
}

void es_exposition_histogram(struct es_exposition *e, const unsigned long long *bucket,
			     unsigned long long sum_ns)
{
	unsigned long long sum = 0;

	for (int i = 0; i < ES_HISTOGRAM_BOUNDS; i++) {
		double bound = (double)es_histogram_bound_ns[i] / 1e9;

		sum += bucket[i];
		/* OpenMetrics wants 1.0 for 1. */
		fprintf(e->file, "earshot_%s_bucket{le=\"%.9g%s\"} %llu\n", e->name, bound,
			bound >= 1 ? ".0" : "", sum);
	}
	sum += bucket[ES_HISTOGRAM_BOUNDS];
	fprintf(e->file, "earshot_%s_bucket{le=\"+Inf\"} %llu\n", e->name, sum);
	fprintf(e->file, "earshot_%s_sum %.15g\nearshot_%s_count %llu\n", e->name, (double)sum_ns / 1e9,
		e->name, sum);
}

void es_exposition_summary(struct es_exposition *e, double sum, unsigned long long count, const char *service)
{
	fprintf(e->file, "earshot_%s_sum{service=\"", e->name);
	put_escaped(e->file, service);
	fprintf(e->file, "\"} %.15g\nearshot_%s_count{service=\"", sum, e->name);
	put_escaped(e->file, service);
	fprintf(e->file, "\"} %llu\n", count);
}

void es_exposition_end(struct es_exposition *e)
{
	if (e->format == ES_EXPOSITION_OPENMETRICS)
		fputs("# EOF\n", e->file);
}
