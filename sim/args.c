// SPDX-License-Identifier: GPL-2.0-or-later
/* Options of the commands: their tables, and what is made of them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "earshot_version.h"
#include "inspector/base/help.h"
#include "sim/args.h"

enum {
	ES_OPT_TRACE = 256,
	ES_OPT_TRACE_FORMAT,
	ES_OPT_SYNTHETIC,
	ES_OPT_POLICY,
	ES_OPT_PARAM,
	ES_OPT_INSPECT,
	ES_OPT_CONTENT_HOST,
	ES_OPT_SEEDS,
	ES_OPT_JSON,
	ES_OPT_FORMAT,
	ES_OPT_PLOT,
	ES_OPT_NUMBERS = 512, /* and on: es_sim_param_list */
};

#define ES_OPTIONS_MAX 80

/* libc's name, which -fvisibility=hidden would hide from libc */
__attribute__((visibility("default"))) const char *argp_program_version = "earshot-sim " EARSHOT_VERSION;

void es_args_init(struct es_args *ret_args)
{
	*ret_args = (struct es_args){.seeds = 5};
	es_sim_params_init(&ret_args->params);
}

int es_args_number(const char *text, double *ret_value)
{
	char *end;

	errno = 0;
	*ret_value = strtod(text, &end);
	return end != text && !*end && !errno && isfinite(*ret_value);
}

static void es_parse_number(struct es_args *args, const struct es_sim_param *param, const char *text,
			    struct argp_state *state)
{
	double value;

	if (!es_args_number(text, &value) || value < param->min || value > param->max ||
	    (param->is_whole && value != floor(value)))
		argp_error(state, "--%s=%s: expected a %snumber from %g to %.16g", param->name, text,
			   param->is_whole ? "whole " : "", param->min, param->max);
	*es_sim_param_value(&args->params, param) = value;
}

static int es_parse_choice(const char *option, const char *text, const char *const *choices,
			   struct argp_state *state)
{
	char expected[200] = "";

	for (int i = 0; choices[i]; i++) {
		if (!strcmp(choices[i], text))
			return i;
		snprintf(expected + strlen(expected), sizeof(expected) - strlen(expected), "%s%s",
			 i ? " | " : "", choices[i]);
	}
	argp_error(state, "--%s=%s: expected %s", option, text, expected);
	return 0;
}

static const char *const es_formats[] = {"text", "csv", "json", NULL};
static const char *const es_trace_formats[] = {"auto", "log", "wc98", NULL};
static const char *const es_synthetics[] = {"worldcup98", "zipf", NULL};
static const char *const es_inspects[] = {"every", "first", NULL};
static const char *const es_yes_no[] = {"yes", "no", NULL};

static void es_parse_end(struct es_args *args, struct argp_state *state)
{
	if (args->wants_file && !args->trace)
		argp_error(state, "no trace is named: expected FILE");
	if (!args->wants_requests)
		return;
	if (!args->trace == !args->synthetic)
		argp_error(
			state,
			"no workload, or two: expected one of --trace FILE and --synthetic worldcup98|zipf");
	if (!args->policy)
		argp_error(state,
			   "no policy is named: expected --policy NAME ('earshot-sim policies' lists them)");
	if ((args->params.hot_share > 0) != (args->params.hot_rate > 0))
		argp_error(state, "--hot-share and --hot-rate go together");
}

static error_t es_parse_option(int key, char *arg, struct argp_state *state)
{
	struct es_args *args = state->input;

	switch (key) {
	case ES_OPT_TRACE:
		if (args->trace)
			argp_error(state, "--trace %s: there is %s already: expected one", arg, args->trace);
		args->trace = arg;
		return 0;
	case ES_OPT_TRACE_FORMAT:
		args->trace_format =
			(enum es_trace_format)es_parse_choice("trace-format", arg, es_trace_formats, state);
		return 0;
	case ES_OPT_SYNTHETIC:
		args->synthetic = es_synthetics[es_parse_choice("synthetic", arg, es_synthetics, state)];
		return 0;
	case ES_OPT_POLICY:
		args->policy = arg;
		return 0;
	case ES_OPT_PARAM:
		if (args->policy_param_count == ES_POLICY_ARGS_MAX)
			argp_error(state, "more than %d --param", ES_POLICY_ARGS_MAX);
		args->policy_param[args->policy_param_count++] = arg;
		return 0;
	case ES_OPT_INSPECT:
		args->inspect = es_inspects[es_parse_choice("inspect", arg, es_inspects, state)];
		return 0;
	case ES_OPT_CONTENT_HOST:
		args->no_host = es_parse_choice("content-host", arg, es_yes_no, state);
		return 0;
	case ES_OPT_SEEDS: {
		double value;

		if (!es_args_number(arg, &value) || value < 1 || value > 1000 || value != floor(value))
			argp_error(state, "--seeds=%s: expected a whole number from 1 to 1000", arg);
		args->seeds = (unsigned int)value;
		return 0;
	}
	case ES_OPT_JSON:
		args->format = ES_FORMAT_JSON;
		return 0;
	case ES_OPT_FORMAT:
		args->format = (enum es_format)es_parse_choice("format", arg, es_formats, state);
		return 0;
	case ES_OPT_PLOT:
		args->plot = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (!args->wants_file || args->trace)
			argp_error(state, "unexpected argument \"%s\"", arg);
		args->trace = arg;
		return 0;
	case ARGP_KEY_END:
		es_parse_end(args, state);
		return 0;
	default:
		if (key < ES_OPT_NUMBERS || key >= ES_OPT_NUMBERS + ES_OPTIONS_MAX)
			return ARGP_ERR_UNKNOWN;
		es_parse_number(args, &es_sim_param_list[key - ES_OPT_NUMBERS], arg, state);
		return 0;
	}
}

static const struct argp_option es_trace_options[] = {
	{"trace", ES_OPT_TRACE, "FILE", 0, "the same as FILE alone, as it is of run and sweep", 1},
	{"trace-format", ES_OPT_TRACE_FORMAT, "FORMAT", 0, "auto, log (common or combined), or wc98", 1},
	{"format", ES_OPT_FORMAT, "FORMAT", 0, "text, csv or json", 1},
	{"json", ES_OPT_JSON, NULL, 0, "--format=json", 1},
	{},
};

static const struct argp_option es_policies_options[] = {
	{"format", ES_OPT_FORMAT, "FORMAT", 0, "text, csv or json", 1},
	{"json", ES_OPT_JSON, NULL, 0, "--format=json", 1},
	{},
};

static const struct argp_option es_run_options[] = {
	{"trace", ES_OPT_TRACE, "FILE", 0,
	 "replay an access log (common or combined log format, HAProxy's, "
	 "WorldCup98 binary; also gzipped; - for stdin)",
	 1},
	{"trace-format", ES_OPT_TRACE_FORMAT, "FORMAT", 0, "auto, log or wc98", 1},
	{"synthetic", ES_OPT_SYNTHETIC, "KIND", 0, "or generate: worldcup98 or zipf", 1},
	{"policy", ES_OPT_POLICY, "P", 0, "as in earshot.conf; 'earshot-sim policies' lists them", 1},
	{"param", ES_OPT_PARAM, "NAME=VALUE", 0, "a parameter of the policy; may be repeated", 1},
	{"inspect", ES_OPT_INSPECT, "WHAT", 0,
	 "every: decide for each request; first: for each connection (default for wrr, wlc and ring)", 1},
	{"content-host", ES_OPT_CONTENT_HOST, "yes|no", 0,
	 "as in earshot.conf: the same path on two sites is two contents to the policy (default yes)", 1},
	{"format", ES_OPT_FORMAT, "FORMAT", 0, "text, csv or json", 1},
	{"json", ES_OPT_JSON, NULL, 0, "--format=json", 1},
	{"plot", ES_OPT_PLOT, "FILE", 0,
	 "draw the result into FILE.svg or FILE.png (needs python3-matplotlib)", 1},
	{},
};

static const struct argp_option es_seeds_option = {
	"seeds", ES_OPT_SEEDS, "N", 0, "sweep: repeat each value with N seeds, from --seed on (default 5)",
	1};

/* The numbers as options, each with its default behind its explanation; the texts live as long as the
 * program. */
static void es_number_options(struct argp_option *options)
{
	static char docs[ES_OPTIONS_MAX][240];
	const char *group = NULL;
	int number = 1, i = 0;

	for (const struct es_sim_param *p = es_sim_param_list; p->name; p++, i++) {
		if (group != p->group) {
			group = p->group;
			number++;
			*options++ = (struct argp_option){.doc = group, .group = number};
		}
		if (p->value < 0)
			snprintf(docs[i], sizeof(docs[i]), "%s", p->doc);
		else
			snprintf(docs[i], sizeof(docs[i]), "%s (default %g)", p->doc, p->value);
		*options++ = (struct argp_option){p->name, ES_OPT_NUMBERS + i, p->unit, 0, docs[i], number};
	}
}

void es_args_parse(struct es_args *args, int argc, char **argv, const char *args_doc, const char *doc)
{
	struct argp_option options[ES_OPTIONS_MAX] = {};
	const struct argp_child children[] = {{&es_help_argp, 0, NULL, 0}, {}};
	struct argp argp = {options, es_parse_option, args_doc, doc, children, NULL, NULL};
	size_t count = 0;

	if (args->wants_requests) {
		memcpy(options, es_run_options, sizeof(es_run_options));
		count = sizeof(es_run_options) / sizeof(es_run_options[0]) - 1;
		if (args->wants_sweep)
			options[count++] = es_seeds_option;
		es_number_options(options + count);
	} else {
		memcpy(options, args->wants_file ? es_trace_options : es_policies_options,
		       args->wants_file ? sizeof(es_trace_options) : sizeof(es_policies_options));
	}
	argp_parse(&argp, argc, argv, 0, NULL, args);
}

/* --- the policy */

static int es_policy_unknown(const char *name)
{
	fprintf(stderr, "earshot-sim: unknown policy \"%s\", expected", name);
	for (const struct es_policy *const *p = es_policy_list(); *p; p++)
		fprintf(stderr, "%s %s", p == es_policy_list() ? "" : " |", (*p)->name);
	fputc('\n', stderr);
	return -EINVAL;
}

static int es_param_unknown(const struct es_policy *policy, const char *text)
{
	char bounds[ES_PARAM_TEXT_SIZE];

	if (!policy->params || !policy->params[0].name) {
		es_error("--param %s: policy %s has no parameters", text, policy->name);
		return -EINVAL;
	}
	fprintf(stderr, "earshot-sim: --param %s: policy %s accepts", text, policy->name);
	for (const struct es_policy_param *p = policy->params; p->name; p++)
		fprintf(stderr, "%s %s (%s)", p == policy->params ? "" : ",", p->name,
			es_policy_param_expects(p, bounds));
	fputc('\n', stderr);
	return -EINVAL;
}

/* Those whose decision knows nothing of the content: once per connection is as good. */
static int es_policy_is_blind(const struct es_policy *policy)
{
	return !policy->inspects || !strcmp(policy->name, "wrr") || !strcmp(policy->name, "wlc");
}

/* Is @name set by an earlier --param? */
static int es_param_is_set(const struct es_args *args, unsigned int before, const char *name, size_t len)
{
	for (unsigned int i = 0; i < before; i++)
		if (strcspn(args->policy_param[i], "=") == len && !memcmp(args->policy_param[i], name, len))
			return 1;
	return 0;
}

int es_args_contradiction(const struct es_sim_params *params)
{
	const struct es_policy_param *param = params->policy->params;
	int bound, index = es_policy_contradiction(params->policy, params->settings.param, &bound);

	if (index < 0)
		return 0;
	es_error("--param: %s is %g: expected at most %g, which %s is", param[index].name,
		 params->settings.param[index], params->settings.param[bound], param[bound].name);
	return -EINVAL;
}

int es_args_policy(struct es_args *args, const char *but)
{
	struct es_sim_params *params = &args->params;
	const struct es_policy *policy = es_policy_find(args->policy);

	if (!policy)
		return es_policy_unknown(args->policy);
	params->policy = policy;
	es_policy_defaults(policy, &params->settings);
	params->inspect_every = args->inspect ? !strcmp(args->inspect, "every")
					      : !es_policy_is_blind(policy) || params->handover_cost < 1;
	for (unsigned int i = 0; i < args->policy_param_count; i++) {
		const char *text = args->policy_param[i];
		size_t len = strcspn(text, "=");
		char name[64];
		double value;
		int index;

		snprintf(name, sizeof(name), "%.*s", (int)(len < 63 ? len : 63), text);
		index = es_policy_param_index(policy, name);
		if (index < 0)
			return es_param_unknown(policy, text);
		if (es_param_is_set(args, i, text, len)) {
			es_error("--param %s: %s is set already: expected each once", text, name);
			return -EINVAL;
		}
		if (but && !strcmp(but, name))
			continue;
		if (!text[len] || es_policy_param_parse(&policy->params[index], text + len + 1, &value))
			return es_param_unknown(policy, text);
		params->settings.param[index] = value;
	}
	return but ? 0 : es_args_contradiction(params);
}

/* --- the workload */

static int es_args_trace(struct es_args *args, struct es_workload *ret_workload)
{
	struct es_trace trace = {};
	int rc = es_args_read_trace(args, &trace);

	if (!rc) {
		es_trace_loss(&trace, &args->loss);
		rc = es_trace_workload(&trace, (__u32)args->params.requests_per_connection,
				       args->params.keepalive_s, ret_workload);
		if (rc == -ENODATA)
			es_args_say_empty(args, &args->loss);
		else if (rc)
			es_error("%s: %s", args->trace, strerror(-rc));
		else
			es_args_say_loss(args, &args->loss);
	}
	es_trace_fini(&trace);
	return rc;
}

static int es_args_synthetic(const struct es_args *args, struct es_workload *ret_workload)
{
	const struct es_sim_params *params = &args->params;
	int is_wc98 = !strcmp(args->synthetic, "worldcup98");
	double exponent = is_wc98 ? 1.16 : 0.8;
	struct es_synthetic s = {
		.seed = (__u64)params->seed,
		.requests = params->requests > 0 ? (__u32)params->requests : 1000000,
		.files = (__u32)params->files,
		.exponent = params->zipf_exponent >= 0 ? params->zipf_exponent : exponent,
		.mean_bytes = params->mean_kb * 1000,
		.sigma = params->sigma,
		.dynamic_share = params->dynamic_share,
		.hot_share = is_wc98 ? 0 : params->hot_share,
		.hot_rate = params->hot_rate,
	};
	int rc = is_wc98 ? es_synthetic_worldcup98(&s, ret_workload) : es_synthetic_zipf(&s, ret_workload);

	if (!rc) {
		rc = es_workload_cut(ret_workload, (__u32)params->requests_per_connection);
		if (rc)
			es_workload_fini(ret_workload);
	}
	if (rc)
		es_error("the trace: %s", strerror(-rc));
	return rc;
}

int es_args_workload(struct es_args *args, struct es_workload *ret_workload)
{
	int rc = args->trace ? es_args_trace(args, ret_workload) : es_args_synthetic(args, ret_workload);

	if (!rc)
		es_workload_price(ret_workload, !args->no_host, args->params.dynamic_cost);
	return rc;
}
