/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SIM_REPORT_H
#define ES_SIM_REPORT_H

/*
 * Prints the same numbers as text, CSV and JSON.
 */
#include <json-c/json.h>
#include "sim/args.h"
#include "sim/model.h"

/* struct es_metric - one number of a result; @decimals: 0 for a count */
struct es_metric {
	const char *name;
	double value;
	int decimals;
	const char *doc;
};

#define ES_METRICS_MAX 32

/* es_metrics() - all of a result; returns how many */
unsigned int es_metrics(const struct es_sim_params *params, const struct es_sim_result *result,
			struct es_metric *ret_metrics);

/* es_json_number() - printed with so many decimals, so that it is the same text everywhere */
struct json_object *es_json_number(double value, int decimals);

/* es_json_text() - a name from the command line; bytes that are not UTF-8 become U+FFFD */
struct json_object *es_json_text(const char *text);

/* es_json_add_loss() - adds how much of a trace is not in the results */
void es_json_add_loss(struct json_object *json, const struct es_trace_loss *loss);

/* es_json_run() - one run */
struct json_object *es_json_run(const struct es_args *args, const struct es_workload *workload,
				const struct es_sim_result *result);

/* es_json_print() - to stdout; releases it. Returns 0 or -EIO. */
int es_json_print(struct json_object *json);

/* --- progress.c: a bar on stderr, if that is a terminal */

/* struct es_progress - @from, @to: the part of the bar that the next run fills */
struct es_progress {
	int is_terminal;
	double from, to;
	int shown;
	const char *what;
};

void es_progress_begin(struct es_progress *progress, const char *what);
void es_progress_show(void *progress, double done);
void es_progress_end(struct es_progress *progress);

/* --- plot.c */

/* es_plot() - have the script draw @json into @path; returns 0, or -errno with the reason printed */
int es_plot(struct json_object *json, const char *path);

#endif
