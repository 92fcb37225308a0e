// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * earshot, the command line of a node: reads the command line, in which the global options may stand before
 * or after the command, and runs the command. Each command has a file of its own.
 */
#include <stdio.h>
#include <string.h>

#include "earshot_version.h"
#include "inspector/base/help.h"
#include "inspector/base/output.h"
#include "inspector/cli/cli.h"

static const struct es_cli_command *const commands[] = {
	&es_cli_status,	 &es_cli_nodes,	  &es_cli_ring,		 &es_cli_counters, &es_cli_flows,
	&es_cli_table,	 &es_cli_explain, &es_cli_drain,	 &es_cli_undrain,  &es_cli_weight,
	&es_cli_reload,	 &es_cli_stop,	  &es_cli_keygen,	 &es_cli_check,	   &es_cli_check_config,
	&es_cli_version, &es_cli_detach,  &es_cli_corosync_conf, &es_cli_metrics,  &es_cli_events,
	&es_cli_top,	 &es_cli_trace,	  &es_cli_rollout,	 &es_cli_report,
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

/* libc's name, which -fvisibility=hidden would hide from libc */
__attribute__((visibility("default"))) const char *argp_program_version = "earshot " EARSHOT_VERSION;

static const struct argp_option global_options[] = {
	{"node", ES_CLI_OPT_NODE, "NAME", 0,
	 "ask this node's daemon (default: $EARSHOT_NODE, or the only one here)", 1},
	{"control", ES_CLI_OPT_CONTROL, "PATH", 0, "ask the daemon with this control socket", 1},
	{"json", ES_CLI_OPT_JSON, NULL, 0, "print JSON (docs/json.md)", 1},
	{0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct es_cli *cli = state->input;

	switch (key) {
	case ES_CLI_OPT_NODE:
		cli->node = arg;
		return 0;
	case ES_CLI_OPT_CONTROL:
		cli->control = arg;
		return 0;
	case ES_CLI_OPT_JSON:
		cli->json = 1;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp global_argp = {.options = global_options, .parser = parse_option};
static const struct argp_child global_child[] = {
	{&global_argp, 0, "Global options:", 1}, {&es_help_argp, 0, NULL, 0}, {0}};

/* The input of the parser for a command's own part of the line. */
struct command_line {
	struct es_cli *cli;
	const struct es_cli_command *command;
};

static error_t parse_argument(struct command_line *line, char *arg, struct argp_state *state)
{
	if (line->cli->arg_count == line->command->args_max)
		argp_error(state, "unexpected argument \"%s\"", arg);
	else
		line->cli->args[line->cli->arg_count++] = arg;
	return 0;
}

static error_t parse_command_option(int key, char *arg, struct argp_state *state)
{
	struct command_line *line = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = line->cli;
		return 0;
	case ARGP_KEY_ARG:
		return parse_argument(line, arg, state);
	case ARGP_KEY_END:
		if (line->cli->arg_count < line->command->args_min)
			argp_error(state, "expected %s", line->command->args_doc);
		return 0;
	case ES_CLI_OPT_ROTATE:
		line->cli->rotate = 1;
		return 0;
	case ES_CLI_OPT_STAGE:
		line->cli->stage = 1;
		return 0;
	case ES_CLI_OPT_ALL:
		line->cli->all = 1;
		return 0;
	case ES_CLI_OPT_POINTS:
		line->cli->points = 1;
		return 0;
	case ES_CLI_OPT_PINNED:
		line->cli->pinned = 1;
		return 0;
	case ES_CLI_OPT_WAIT:
		line->cli->wait = arg ? arg : "";
		return 0;
	case ES_CLI_OPT_UNTIL_RESTART:
		line->cli->until_restart = 1;
		return 0;
	case ES_CLI_OPT_FOR:
		line->cli->for_time = arg;
		return 0;
	case ES_CLI_OPT_REASON:
		line->cli->reason = arg;
		return 0;
	case ES_CLI_OPT_FORCE:
		line->cli->force = 1;
		return 0;
	case ES_CLI_OPT_DRY_RUN:
		line->cli->dry_run = 1;
		return 0;
	case ES_CLI_OPT_RESTART:
		line->cli->restart = 1;
		return 0;
	case ES_CLI_OPT_WITHOUT:
		if (line->cli->without_count == ES_CLI_WITHOUT_MAX)
			argp_error(state, "more than %d nodes", ES_CLI_WITHOUT_MAX);
		else
			line->cli->without[line->cli->without_count++] = arg;
		return 0;
	case ES_CLI_OPT_LIMIT:
		line->cli->limit = arg;
		return 0;
	case ES_CLI_OPT_CONFIG:
		line->cli->config = arg;
		return 0;
	case ES_CLI_OPT_STRICT:
		line->cli->strict = 1;
		return 0;
	case ES_CLI_OPT_FIX:
		line->cli->fix = 1;
		return 0;
	case ES_CLI_OPT_YES:
		line->cli->yes = 1;
		return 0;
	case ES_CLI_OPT_VERBOSE:
		line->cli->verbose = 1;
		return 0;
	case ES_CLI_OPT_CLIENT:
		line->cli->client = arg;
		return 0;
	case ES_CLI_OPT_OUTPUT:
		line->cli->output = arg;
		return 0;
	case ES_CLI_OPT_OPENMETRICS:
		line->cli->openmetrics = 1;
		return 0;
	case ES_CLI_OPT_FOLLOW:
		line->cli->follow = 1;
		return 0;
	case ES_CLI_OPT_SINCE:
		line->cli->since = arg;
		return 0;
	case ES_CLI_OPT_KIND:
		line->cli->kind = arg;
		return 0;
	case ES_CLI_OPT_ONCE:
		line->cli->once = 1;
		return 0;
	case ES_CLI_OPT_SORT:
		line->cli->sort = arg;
		return 0;
	case ES_CLI_OPT_FILTER:
		if (line->cli->filter_count == ES_CLI_FILTERS_MAX)
			argp_error(state, "more than %d filters", ES_CLI_FILTERS_MAX);
		else
			line->cli->filters[line->cli->filter_count++] = arg;
		return 0;
	case ES_CLI_OPT_REQUEST:
		line->cli->request_file = arg;
		return 0;
	case ES_CLI_OPT_CRASH:
		line->cli->crash = arg;
		return 0;
	case ES_CLI_OPT_ON:
		line->cli->on = arg;
		return 0;
	case ES_CLI_OPT_HEADER:
		if (line->cli->header_count == ES_CLI_HEADERS_MAX)
			argp_error(state, "more than %d headers", ES_CLI_HEADERS_MAX);
		else
			line->cli->headers[line->cli->header_count++] = arg;
		return 0;
	case ES_CLI_OPT_SERVICE:
		line->cli->service = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int run_command(struct es_cli *cli, const struct es_cli_command *command, int argc, char **argv)
{
	const struct argp argp = {
		.options = command->options,
		.parser = parse_command_option,
		.args_doc = command->args_doc,
		.doc = command->doc,
		.children = global_child,
	};
	struct command_line line = {.cli = cli, .command = command};
	char name[64];

	snprintf(name, sizeof(name), "earshot %s", command->name);
	argv[0] = name; /* what argp's messages start with */
	/* An optional value stands in the same word; after a blank it would be the name of a node. */
	for (int i = 1; i + 1 < argc; i++)
		if (!strcmp(argv[i], "--wait") && argv[i + 1][strspn(argv[i + 1], "0123456789.")] == 0)
			return es_cli_usage("%s: --wait %s: expected --wait=%s", command->name, argv[i + 1],
					    argv[i + 1]);
	if (argp_parse(&argp, argc, argv, 0, NULL, &line))
		return ES_CLI_FAILED;
	return command->run(cli);
}

static const struct es_cli_command *command_find(const char *name)
{
	size_t i;

	for (i = 0; i < COMMAND_COUNT; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

/* Where the top-level parser stopped. */
struct top_line {
	struct es_cli *cli;
	const struct es_cli_command *command;
	int index;
};

/* "help", or "help COMMAND": what --help says, there or of the command */
static error_t help(struct top_line *top, struct argp_state *state)
{
	static char option[] = "--help";

	if (state->next == state->argc) {
		argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP);
		return 0;
	}
	top->command = command_find(state->argv[state->next]);
	if (!top->command)
		argp_error(state, "unknown command \"%s\"", state->argv[state->next]);
	state->argv[state->argc - 1] = option;
	top->index = state->argc - 2;
	state->next = state->argc;
	return 0;
}

static error_t parse_top(int key, char *arg, struct argp_state *state)
{
	struct top_line *top = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = top->cli;
		return 0;
	case ARGP_KEY_ARG:
		top->command = command_find(arg);
		if (!strcmp(arg, "help"))
			return help(top, state);
		if (!top->command)
			argp_error(state, "unknown command \"%s\"", arg);
		top->index = state->next - 1;
		state->next = state->argc; /* the rest is the command's */
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "expected a command");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_top,
		.args_doc = "COMMAND [ARGUMENT...]",
		.doc = "Look at and control a node of an Earshot cluster."
		       "\vCommands:\n"
		       "  status        the node, its datapath and workers, the cluster\n"
		       "  nodes         the cluster's nodes\n"
		       "  top           nodes and services of the cluster, each second anew\n"
		       "  ring          the ring's members; ring lookup ADDRESS PORT\n"
		       "  counters      what was counted, and why\n"
		       "  metrics       what was counted, for Prometheus\n"
		       "  events        what happened to the node and its cluster\n"
		       "  trace         each decision as it happens\n"
		       "  flows         the connections of this node, their requests and moves\n"
		       "  table         the content that is asked for most, and its nodes\n"
		       "  explain       which node a request would go to, and why\n"
		       "  drain         give a node nothing new; undrain ends it\n"
		       "  weight        change a node's share\n"
		       "  reload        read the configuration and key file again\n"
		       "  rollout       put a configuration in force on all nodes, or on none\n"
		       "  stop          detach the datapath and exit\n"
		       "  detach        take off what an ended daemon left attached\n"
		       "  keygen        make or rotate the cluster's key file\n"
		       "  check         what would not work on this machine, and what to do\n"
		       "  check-config  check a configuration file\n"
		       "  corosync-conf print a corosync.conf for the nodes of a configuration\n"
		       "  report        an archive with all that a bug report needs, without keys\n"
		       "  version       the version of this program\n"
		       "\nearshot COMMAND --help, or earshot help COMMAND, tells more. "
		       "Exit status: 0 done, 1 refused, 2 no daemon answers, 64 wrong command line.",
		.children = global_child,
	};
	struct es_cli cli = {0};
	struct top_line top = {.cli = &cli};

	es_output_watch();
	if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &top) || !top.command)
		return ES_CLI_FAILED;
	return run_command(&cli, top.command, argc - top.index, argv + top.index);
}
