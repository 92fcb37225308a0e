/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_EXPOSITION_H
#define ES_EXPOSITION_H

/*
 * Writes metrics in one of the two text formats that Prometheus reads: its own (version 0.0.4), and
 * OpenMetrics 1.0.0, which names the families of counters without _total and ends with a word of its own.
 */
#include <stdio.h>
#include "inspector/inspect/tally.h"

enum es_exposition_format { ES_EXPOSITION_PROMETHEUS, ES_EXPOSITION_OPENMETRICS, ES_EXPOSITION_FORMATS };

/* For HTTP. */
extern const char *const es_exposition_content_type[ES_EXPOSITION_FORMATS];

enum es_exposition_type {
	ES_EXPOSITION_GAUGE,
	ES_EXPOSITION_COUNTER,
	ES_EXPOSITION_HISTOGRAM,
	ES_EXPOSITION_SUMMARY
};

/* struct es_exposition - a text under way; @name, @type: of the family that is open */
struct es_exposition {
	FILE *file;
	enum es_exposition_format format;
	const char *name;
	enum es_exposition_type type;
};

/**
 * es_exposition_family() - begin a family
 * @name: without the prefix "earshot_", and of a counter without "_total"; @help: one sentence, without its
 * full stop
 */
void es_exposition_family(struct es_exposition *e, enum es_exposition_type type, const char *name,
			  const char *help);

/* es_exposition_add() - a sample of the family. Then its labels, name and value in turn, and NULL. */
void es_exposition_add(struct es_exposition *e, double value, ...) __attribute__((sentinel));

/* es_exposition_count() - the same for a number that must not be rounded */
void es_exposition_count(struct es_exposition *e, unsigned long long value, ...) __attribute__((sentinel));

/**
 * struct es_exposition_buckets - a histogram
 * @bounds: how many; @bound_ns: upper ones; @count: in each bucket, and behind the last bound
 */
struct es_exposition_buckets {
	unsigned int bounds;
	const unsigned long long *bound_ns;
	const unsigned long long *count;
	double sum_s;
};

/* es_exposition_histogram() - its samples; @service: of which they are, or NULL */
void es_exposition_histogram(struct es_exposition *e, const struct es_exposition_buckets *histogram,
			     const char *service);

/* es_exposition_summary() - the samples of a summary without quantiles, of one @service */
void es_exposition_summary(struct es_exposition *e, double sum, unsigned long long count,
			   const char *service);

/* es_exposition_end() - nothing comes any more */
void es_exposition_end(struct es_exposition *e);

#endif
