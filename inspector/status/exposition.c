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

/* The labels of a histogram's sample; @le: its bucket's bound, NULL: none. */
static void put_bucket_labels(const struct es_exposition *e, const char *service, const char *le)
{
	if (!service && !le)
		return;
	fputc('{', e->file);
	if (service) {
		fputs("service=\"", e->file);
		put_escaped(e->file, service);
		fputs(le ? "\"," : "\"", e->file);
	}
	if (le)
		fprintf(e->file, "le=\"%s\"", le);
	fputc('}', e->file);
}

void es_exposition_histogram(struct es_exposition *e, const struct es_exposition_buckets *h,
			     const char *service)
{
	unsigned long long sum = 0;
	char le[32];

	for (unsigned int i = 0; i < h->bounds; i++) {
		double bound = (double)h->bound_ns[i] / 1e9;

		sum += h->count[i];
		/* OpenMetrics wants 1.0 for 1. */
		snprintf(le, sizeof(le), "%.9g%s", bound, bound >= 1 && bound == floor(bound) ? ".0" : "");
		fprintf(e->file, "earshot_%s_bucket", e->name);
		put_bucket_labels(e, service, le);
		fprintf(e->file, " %llu\n", sum);
	}
	sum += h->count[h->bounds];
	fprintf(e->file, "earshot_%s_bucket", e->name);
	put_bucket_labels(e, service, "+Inf");
	fprintf(e->file, " %llu\nearshot_%s_sum", sum, e->name);
	put_bucket_labels(e, service, NULL);
	fprintf(e->file, " %.15g\nearshot_%s_count", h->sum_s, e->name);
	put_bucket_labels(e, service, NULL);
	fprintf(e->file, " %llu\n", sum);
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
