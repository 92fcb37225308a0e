/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SIM_ARGS_H
#define ES_SIM_ARGS_H

/*
 * The command line: what the commands have in common, read by argp.
 */
#include <argp.h>
#include "sim/error.h"
#include "sim/params.h"
#include "sim/trace.h"

enum es_format { ES_FORMAT_TEXT, ES_FORMAT_CSV, ES_FORMAT_JSON };

#define ES_POLICY_ARGS_MAX 16

/**
 * struct es_args - as given; strings belong to the command line
 * @policy_param: "NAME=VALUE"s in order
 * @no_host: the same path on two sites is one content to the policy
 * @loss: of the trace that es_args_workload() read
 * @wants_file: the command reads a trace, which must be named
 * @wants_requests: the command simulates, so policy and workload must be named
 */
struct es_args {
	struct es_sim_params params;
	const char *trace;
	enum es_trace_format trace_format;
	const char *synthetic;
	const char *policy;
	const char *inspect;
	const char *policy_param[ES_POLICY_ARGS_MAX];
	unsigned int policy_param_count;
	int no_host;
	unsigned int seeds;
	enum es_format format;
	const char *plot;
	int wants_file;
	int wants_requests;
	int wants_sweep;
	struct es_trace_loss loss;
};

void es_args_init(struct es_args *ret_args);

/* es_args_parse() - with all the options of @doc's command; exits with a message if something is wrong */
void es_args_parse(struct es_args *args, int argc, char **argv, const char *args_doc, const char *doc);

/* es_args_policy() - finds the policy, and sets the parameters other than @but (a name, or NULL). Returns 0,
 * or -EINVAL with the reason printed. */
int es_args_policy(struct es_args *args, const char *but);

/* es_args_contradiction() - do two of the policy's parameters contradict each other? Returns 0, or -EINVAL
 * with the reason printed. */
int es_args_contradiction(const struct es_sim_params *params);

/* es_args_number() - all of @text is a number; returns 1 */
int es_args_number(const char *text, double *ret_value);

/* es_args_workload() - generates or reads what is asked for, and says on stderr how much of a trace is left
 * out; returns 0, or -errno with the reason printed */
int es_args_workload(struct es_args *args, struct es_workload *ret_workload);

/* --- args_trace.c */

/* es_args_read_trace() - reads the trace; returns 0, or -errno with the reason printed. The caller has to
 * es_trace_fini() it in any case. */
int es_args_read_trace(const struct es_args *args, struct es_trace *ret_trace);

/* es_args_say_loss() - says on stderr what of a trace is not in the results, if it is worth a word */
void es_args_say_loss(const struct es_args *args, const struct es_trace_loss *loss);

/* es_args_say_empty() - says on stderr that nothing of a trace could be used, and why */
void es_args_say_empty(const struct es_args *args, const struct es_trace_loss *loss);

/* --- the commands; argv[0] is their name; return the exit status */
int es_cmd_run(int argc, char **argv);
int es_cmd_sweep(int argc, char **argv);
int es_cmd_trace(int argc, char **argv);
int es_cmd_policies(int argc, char **argv);

#endif
