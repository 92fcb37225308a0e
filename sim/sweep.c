// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * earshot-sim sweep: which value of a policy's parameter is best for this workload? Each value runs with
 * several seeds; a seed makes the same requests for all values, so values are compared pair by pair, and what
 * one seed's trace has by chance does not count for any of them.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include "sim/report.h"

#define ES_VALUES_MAX 500

struct es_measure_point {
	double throughput_rps;
	double hit_rate;
	double moves_per_request;
	double imbalance;
};

/**
 * struct es_sweep -
 * @index: of the parameter; @value: what was asked for, and (@has_extra) the default behind it
 * @point: by value, then by seed
 */
struct es_sweep {
	struct es_args *args;
	char name[64];
	int index;
	double *value;
	unsigned int count;
	int has_extra;
	unsigned int default_at;
	struct es_measure_point *point;
};

/**
 * struct es_recommendation - @best: of the values; the others compare it with the default, in percent
 * @better: seeds in which it was better; @as_good: values that are not worse in all seeds
 */
struct es_recommendation {
	unsigned int best;
	double gain, gain_least, gain_most;
	unsigned int better;
	unsigned char as_good[ES_VALUES_MAX + 1];
};

/* --- which values */

static int es_sweep_add(struct es_sweep *sweep, double value)
{
	const struct es_policy_param *param = &sweep->args->params.policy->params[sweep->index];

	if (sweep->count == ES_VALUES_MAX) {
		es_error("--param %s: more than %d values", sweep->name, ES_VALUES_MAX);
		return -EINVAL;
	}
	if (value < param->min || value > param->max) {
		es_error("--param %s: %g is out of range, expected %g..%g", sweep->name, value, param->min,
			 param->max);
		return -EINVAL;
	}
	sweep->value[sweep->count++] = value;
	sweep->args->params.settings.param[sweep->index] = value;
	return es_args_contradiction(&sweep->args->params);
}

static int es_sweep_range(struct es_sweep *sweep, double from, double to, double step)
{
	double steps = floor((to - from) / step + 1e-9);

	if (!(step > 0) || to < from) {
		es_error("--param %s: expected FROM:TO:STEP with FROM <= TO and STEP > 0", sweep->name);
		return -EINVAL;
	}
	/* One more than there may be is enough to be refused. */
	for (unsigned int i = 0; i <= (unsigned int)fmin(steps, ES_VALUES_MAX); i++) {
		int rc = es_sweep_add(sweep, from + i * step);

		if (rc)
			return rc;
	}
	return 0;
}

/* "A:B:STEP" or "A,B,..." */
static int es_sweep_values(struct es_sweep *sweep, char *text)
{
	char *save = NULL;
	double number[3];
	int count = 0, rc = 0;

	if (strchr(text, ':')) {
		for (char *part = strtok_r(text, ":", &save); part; part = strtok_r(NULL, ":", &save))
			if (count == 3 || !es_args_number(part, &number[count++]))
				count = 4;
		if (count == 3)
			return es_sweep_range(sweep, number[0], number[1], number[2]);
		es_error("--param %s: expected FROM:TO:STEP, or values with commas", sweep->name);
		return -EINVAL;
	}
	/* strtok_r() would pass over what is empty. */
	for (char *part; !rc && (part = strsep(&text, ","));) {
		if (!es_args_number(part, &number[0])) {
			es_error("--param %s: \"%s\" is not a number", sweep->name, part);
			return -EINVAL;
		}
		rc = es_sweep_add(sweep, number[0]);
	}
	return rc;
}

/* The one parameter with several values. */
static const char *es_sweep_find(const struct es_args *args)
{
	const char *found = NULL;

	for (unsigned int i = 0; i < args->policy_param_count; i++) {
		if (!strpbrk(args->policy_param[i], ":,"))
			continue;
		if (found)
			return NULL;
		found = args->policy_param[i];
	}
	return found;
}

static int es_sweep_prepare(struct es_sweep *sweep)
{
	const char *text = es_sweep_find(sweep->args);
	const char *equals = text ? strchr(text, '=') : NULL;
	double preset;
	char *values;
	int rc;

	if (!equals || equals == text || (size_t)(equals - text) >= sizeof(sweep->name)) {
		es_error("sweep: which one? exactly one --param NAME=FROM:TO:STEP or NAME=A,B,...");
		return -EINVAL;
	}
	memcpy(sweep->name, text, (size_t)(equals - text));
	rc = es_args_policy(sweep->args, sweep->name);
	if (rc)
		return rc;
	sweep->index = es_policy_param_index(sweep->args->params.policy, sweep->name);
	sweep->value = calloc(ES_VALUES_MAX + 1, sizeof(*sweep->value));
	values = strdup(equals + 1);
	if (!sweep->value || !values) {
		free(values);
		return -ENOMEM;
	}
	rc = es_sweep_values(sweep, values);
	free(values);
	if (rc)
		return rc;
	if (!sweep->count) {
		es_error("--param %s: no values", text);
		return -EINVAL;
	}
	preset = es_policy_param_default(&sweep->args->params.policy->params[sweep->index]);
	sweep->default_at = 0;
	while (sweep->default_at < sweep->count && fabs(sweep->value[sweep->default_at] - preset) > 1e-9)
		sweep->default_at++;
	sweep->has_extra = sweep->default_at == sweep->count;
	if (sweep->has_extra)
		sweep->value[sweep->count++] = preset;
	sweep->point = calloc((size_t)sweep->count * sweep->args->seeds, sizeof(*sweep->point));
	return sweep->point ? 0 : -ENOMEM;
}

/* --- the runs */

static struct es_measure_point *es_sweep_point(const struct es_sweep *sweep, unsigned int value,
					       unsigned int seed)
{
	return &sweep->point[value * sweep->args->seeds + seed];
}

static int es_sweep_seed(struct es_sweep *sweep, unsigned int seed, const struct es_workload *workload,
			 struct es_progress *progress)
{
	static struct es_sim_result result;
	struct es_sim_params *params = &sweep->args->params;
	double runs = (double)sweep->count * sweep->args->seeds;

	for (unsigned int i = 0; i < sweep->count; i++) {
		int rc;

		params->settings.param[sweep->index] = sweep->value[i];
		progress->from = (seed * sweep->count + i) / runs;
		progress->to = (seed * sweep->count + i + 1) / runs;
		es_progress_show(progress, 0);
		rc = es_sim_run(params, workload, es_progress_show, progress, &result);
		if (rc) {
			es_error("%s", strerror(-rc));
			return rc;
		}
		*es_sweep_point(sweep, i, seed) = (struct es_measure_point){
			.throughput_rps = es_result_throughput_rps(&result),
			.hit_rate = es_result_hit_rate(&result),
			.moves_per_request = result.measured.served ? (double)result.measured.moves /
									      (double)result.measured.served
								    : 0,
			.imbalance = es_result_imbalance(&result, (unsigned int)params->nodes),
		};
	}
	return 0;
}

static int es_sweep_run(struct es_sweep *sweep)
{
	double first_seed = sweep->args->params.seed;
	struct es_workload workload = {};
	struct es_progress progress;
	int rc = 0;

	es_progress_begin(&progress, sweep->name);
	for (unsigned int seed = 0; !rc && seed < sweep->args->seeds; seed++) {
		sweep->args->params.seed = first_seed + seed;
		/* A trace is the same for all seeds, and standard input can be read once. */
		if (!seed || !sweep->args->trace) {
			es_workload_fini(&workload);
			rc = es_args_workload(sweep->args, &workload);
		}
		if (!rc)
			rc = es_sweep_seed(sweep, seed, &workload, &progress);
	}
	es_workload_fini(&workload);
	sweep->args->params.seed = first_seed;
	es_progress_end(&progress);
	return rc;
}

/* --- what comes of it */

static int es_double_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* @offset: of the field in struct es_measure_point */
static double es_sweep_median(const struct es_sweep *sweep, unsigned int value, size_t offset)
{
	double sorted[1000];
	unsigned int seeds = sweep->args->seeds;

	for (unsigned int i = 0; i < seeds; i++)
		sorted[i] = *(const double *)((const char *)es_sweep_point(sweep, value, i) + offset);
	qsort(sorted, seeds, sizeof(sorted[0]), es_double_compare);
	return seeds % 2 ? sorted[seeds / 2] : (sorted[seeds / 2 - 1] + sorted[seeds / 2]) / 2;
}

#define es_median(sweep, value, field) es_sweep_median(sweep, value, offsetof(struct es_measure_point, field))

static double es_sweep_extreme(const struct es_sweep *sweep, unsigned int value, int is_most)
{
	double extreme = es_sweep_point(sweep, value, 0)->throughput_rps;

	for (unsigned int i = 1; i < sweep->args->seeds; i++) {
		double now = es_sweep_point(sweep, value, i)->throughput_rps;

		extreme = is_most ? fmax(extreme, now) : fmin(extreme, now);
	}
	return extreme;
}

/* By how many percent @value is better than @other with a seed. */
static double es_sweep_gain(const struct es_sweep *sweep, unsigned int value, unsigned int other,
			    unsigned int seed)
{
	double base = es_sweep_point(sweep, other, seed)->throughput_rps;

	return base > 0 ? 100 * (es_sweep_point(sweep, value, seed)->throughput_rps / base - 1) : 0;
}

static void es_sweep_recommend(const struct es_sweep *sweep, struct es_recommendation *ret)
{
	unsigned int seeds = sweep->args->seeds;
	double gains[1000];

	*ret = (struct es_recommendation){};
	for (unsigned int i = 1; i < sweep->count; i++)
		if (es_median(sweep, i, throughput_rps) > es_median(sweep, ret->best, throughput_rps))
			ret->best = i;
	for (unsigned int i = 0; i < seeds; i++) {
		gains[i] = es_sweep_gain(sweep, ret->best, sweep->default_at, i);
		ret->better += gains[i] > 0;
	}
	qsort(gains, seeds, sizeof(gains[0]), es_double_compare);
	ret->gain_least = gains[0];
	ret->gain_most = gains[seeds - 1];
	ret->gain = seeds % 2 ? gains[seeds / 2] : (gains[seeds / 2 - 1] + gains[seeds / 2]) / 2;
	for (unsigned int i = 0; i < sweep->count; i++)
		for (unsigned int s = 0; s < seeds; s++)
			if (es_sweep_gain(sweep, ret->best, i, s) <= 0)
				ret->as_good[i] = 1;
}

static struct json_object *es_json_value(double value)
{
	return isnan(value) ? json_object_new_string("auto") : es_json_number(value, 6);
}

static struct json_object *es_json_sweep(const struct es_sweep *sweep, const struct es_recommendation *r)
{
	struct json_object *json = json_object_new_object();
	struct json_object *rows = json_object_new_array(), *as_good = json_object_new_array();
	struct json_object *best = json_object_new_object();

	json_object_object_add(json, "command", json_object_new_string("sweep"));
	json_object_object_add(json, "policy", json_object_new_string(sweep->args->policy));
	json_object_object_add(json, "parameter", json_object_new_string(sweep->name));
	json_object_object_add(json, "seeds", json_object_new_int64(sweep->args->seeds));
	json_object_object_add(json, "default", es_json_value(sweep->value[sweep->default_at]));
	for (unsigned int i = 0; i < sweep->count; i++) {
		struct json_object *row = json_object_new_object();
		struct json_object *each = json_object_new_array();

		json_object_object_add(row, "value", es_json_value(sweep->value[i]));
		json_object_object_add(row, "throughput_rps",
				       es_json_number(es_median(sweep, i, throughput_rps), 2));
		json_object_object_add(row, "throughput_rps_min",
				       es_json_number(es_sweep_extreme(sweep, i, 0), 2));
		json_object_object_add(row, "throughput_rps_max",
				       es_json_number(es_sweep_extreme(sweep, i, 1), 2));
		json_object_object_add(row, "hit_rate", es_json_number(es_median(sweep, i, hit_rate), 6));
		json_object_object_add(row, "moves_per_request",
				       es_json_number(es_median(sweep, i, moves_per_request), 6));
		json_object_object_add(row, "imbalance", es_json_number(es_median(sweep, i, imbalance), 4));
		for (unsigned int s = 0; s < sweep->args->seeds; s++)
			json_object_array_add(each,
					      es_json_number(es_sweep_point(sweep, i, s)->throughput_rps, 2));
		json_object_object_add(row, "throughput_rps_by_seed", each);
		json_object_array_add(rows, row);
		if (r->as_good[i] && i != r->best)
			json_object_array_add(as_good, es_json_value(sweep->value[i]));
	}
	json_object_object_add(json, "values", rows);
	if (sweep->args->trace)
		es_json_add_loss(json, &sweep->args->loss);
	json_object_object_add(best, "value", es_json_value(sweep->value[r->best]));
	json_object_object_add(best, "is_default", json_object_new_boolean(r->best == sweep->default_at));
	json_object_object_add(best, "gain_percent", es_json_number(r->gain, 2));
	json_object_object_add(best, "gain_percent_min", es_json_number(r->gain_least, 2));
	json_object_object_add(best, "gain_percent_max", es_json_number(r->gain_most, 2));
	json_object_object_add(best, "better_in_seeds", json_object_new_int64(r->better));
	json_object_object_add(best, "as_good", as_good);
	json_object_object_add(json, "recommended", best);
	return json;
}

static void es_sweep_say(const struct es_sweep *sweep, const struct es_recommendation *r)
{
	unsigned int seeds = sweep->args->seeds, as_good = 0;
	char room[2][ES_PARAM_TEXT_SIZE];
	const char *best = es_policy_param_text(sweep->value[r->best], room[0]);
	const char *preset = es_policy_param_text(sweep->value[sweep->default_at], room[1]);

	if (r->best == sweep->default_at)
		printf("\nrecommended: %s=%s, which is the default", sweep->name, best);
	else
		printf("\nrecommended: %s=%s: %+.1f%% over the default %s (%+.1f to %+.1f%%), better with %u "
		       "of %u seeds",
		       sweep->name, best, r->gain, preset, r->gain_least, r->gain_most, r->better, seeds);
	printf("\n");
	for (unsigned int i = 0; i < sweep->count; i++)
		if (r->as_good[i] && i != r->best)
			printf("%s %s", as_good++ ? "," : "not told apart from it by these seeds:",
			       es_policy_param_text(sweep->value[i], room[0]));
	if (as_good)
		printf("\n");
	if (seeds < 3)
		printf("with fewer than 3 seeds that is little more than a guess\n");
}

static void es_sweep_print(const struct es_sweep *sweep, const struct es_recommendation *r, int is_csv)
{
	char room[ES_PARAM_TEXT_SIZE];

	printf(is_csv ? "%s,throughput_rps,throughput_rps_min,throughput_rps_max,hit_rate,moves_per_request,"
			"imbalance\n"
		      : "%12s %14s %20s %9s %14s %9s\n",
	       sweep->name, "throughput_rps", "(least .. most)", "hit_rate", "moves/request", "imbalance");
	for (unsigned int i = 0; i < sweep->count; i++) {
		printf(is_csv ? "%s,%.2f,%.2f,%.2f,%.6f,%.6f,%.4f\n"
			      : "%12s %14.1f (%8.1f .. %8.1f) %8.4f %14.4f %9.3f",
		       es_policy_param_text(sweep->value[i], room), es_median(sweep, i, throughput_rps),
		       es_sweep_extreme(sweep, i, 0), es_sweep_extreme(sweep, i, 1),
		       es_median(sweep, i, hit_rate), es_median(sweep, i, moves_per_request),
		       es_median(sweep, i, imbalance));
		if (!is_csv)
			printf("%s%s\n", i == sweep->default_at ? "  default" : "",
			       i == r->best ? "  best" : "");
	}
	if (!is_csv)
		es_sweep_say(sweep, r);
}

static int es_sweep_report(const struct es_sweep *sweep)
{
	struct es_recommendation r;
	struct json_object *json;
	int rc = 0;

	es_sweep_recommend(sweep, &r);
	json = es_json_sweep(sweep, &r);
	if (sweep->args->plot)
		rc = es_plot(json, sweep->args->plot);
	if (sweep->args->format == ES_FORMAT_JSON)
		return es_json_print(json) ? -EIO : rc;
	json_object_put(json);
	es_sweep_print(sweep, &r, sweep->args->format == ES_FORMAT_CSV);
	return fflush(stdout) ? -EIO : rc;
}

static const char es_sweep_doc[] =
	"Simulate each value of one parameter with several seeds, and recommend one (HyLARD Fig. 3)."
	"\vThe parameter is a --param NAME=FROM:TO:STEP or NAME=A,B,...; others have one value each. "
	"Numbers are medians over the seeds. "
	"A seed makes the same requests for all values, so they are compared seed by seed. "
	"With --trace only the flows differ between seeds.";

int es_cmd_sweep(int argc, char **argv)
{
	struct es_args args;
	struct es_sweep sweep = {.args = &args};
	int rc, is_wrong;

	es_args_init(&args);
	args.wants_requests = 1;
	args.wants_sweep = 1;
	es_args_parse(&args, argc, argv,
		      "(--trace FILE | --synthetic KIND) --policy P --param NAME=FROM:TO:STEP", es_sweep_doc);
	rc = es_sweep_prepare(&sweep);
	is_wrong = rc == -EINVAL;
	if (!rc)
		rc = es_sweep_run(&sweep);
	if (!rc)
		rc = es_sweep_report(&sweep);
	free(sweep.value);
	free(sweep.point);
	return is_wrong ? EX_USAGE : rc != 0;
}
