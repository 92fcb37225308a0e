// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * earshot-sim: a trace-driven simulator for the policies. Finds the command and runs it.
 */
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include "inspector/base/output.h"
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
	fprintf(out, "\n'earshot-sim COMMAND --help', or 'earshot-sim help COMMAND', has the options. Exit "
		     "status: 0 "
		     "done, 1 refused or\nfailed, 64 wrong command line.\n");
}

static int es_run_command(const char *command, int argc, char **argv)
{
	char name[64];

	for (size_t i = 0; i < ES_COMMAND_COUNT; i++) {
		if (strcmp(command, es_commands[i].name) != 0)
			continue;
		snprintf(name, sizeof(name), "earshot-sim %s", command);
		argv[0] = name;
		return es_commands[i].run(argc, argv);
	}
	return -1;
}

static int es_is_one_of(const char *word, const char *const *words)
{
	while (*words && strcmp(word, *words) != 0)
		words++;
	return *words != NULL;
}

int main(int argc, char **argv)
{
	static const char *const helps[] = {"--help", "-h", "-?", "--usage", "help", NULL};
	static char option[] = "--help";
	const char *command = argc > 1 ? argv[1] : "";
	int rc;

	es_output_watch();
	if (argc > 2 && !strcmp(command, "help")) {
		char *line[] = {argv[2], option, NULL};

		command = argv[2];
		rc = es_run_command(command, 2, line);
	} else {
		rc = argc > 1 ? es_run_command(command, argc - 1, argv + 1) : -1;
	}
	if (rc >= 0)
		return rc;
	if (!strcmp(command, "--version") || !strcmp(command, "-V")) {
		printf("%s\n", argp_program_version);
		return 0;
	}
	if (es_is_one_of(command, helps)) {
		es_usage(stdout);
		return fflush(stdout) != 0;
	}
	if (*command)
		fprintf(stderr, "earshot-sim: no command \"%s\"\n", command);
	es_usage(stderr);
	return EX_USAGE;
}
