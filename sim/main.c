// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * earshot-sim: a trace-driven simulator for the policies. Finds the command and runs it.
 */
#include <stdio.h>
#include <string.h>
#include "sim/args.h"

static const struct {
	const char *name;
	const char *help;
	int (*run)(int argc, char **argv);
} es_commands[] = {
	{"run", "simulate one policy on a cluster", es_cmd_run},
	{"sweep", "simulate many values of a parameter, and recommend one", es_cmd_sweep},
	{"trace", "say what is in an access log", es_cmd_trace},
	{"policies", "list the policies and their parameters", es_cmd_policies},
};
#define ES_COMMAND_COUNT (sizeof(es_commands) / sizeof(es_commands[0]))

static void es_usage(FILE *out)
{
	fprintf(out, "usage: earshot-sim COMMAND [OPTION...]\n\n");
	for (size_t i = 0; i < ES_COMMAND_COUNT; i++)
		fprintf(out, "  %-10s %s\n", es_commands[i].name, es_commands[i].help);
	fprintf(out, "\n'earshot-sim COMMAND --help' has the options.\n");
}

int main(int argc, char **argv)
{
	const char *command = argc > 1 ? argv[1] : "";
	char name[64];

	for (size_t i = 0; i < ES_COMMAND_COUNT; i++) {
		if (strcmp(command, es_commands[i].name) != 0)
			continue;
		snprintf(name, sizeof(name), "earshot-sim %s", command);
		argv[1] = name;
		return es_commands[i].run(argc - 1, argv + 1);
	}
	if (!strcmp(command, "--version") || !strcmp(command, "-V")) {
		printf("%s\n", argp_program_version);
		return 0;
	}
	if (!strcmp(command, "--help") || !strcmp(command, "-?") || !strcmp(command, "help")) {
		es_usage(stdout);
		return 0;
	}
	if (*command)
		fprintf(stderr, "earshot-sim: no command \"%s\"\n", command);
	es_usage(stderr);
	return 2;
}
