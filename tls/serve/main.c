// SPDX-License-Identifier: GPL-2.0-or-later
/* earshot-tls: the command line. Always in the foreground, as earshotd is; its log is its standard error. */
#include <argp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include "earshot_version.h"
#include "inspector/base/help.h"
#include "inspector/base/log.h"
#include "inspector/base/output.h"
#include "tls/serve/parent.h"

#define DEFAULT_CONFIG "/etc/earshot/earshot.conf"

/* libc's name, which -fvisibility=hidden would hide from libc */
__attribute__((visibility("default"))) const char *argp_program_version = "earshot-tls " EARSHOT_VERSION;

static const char doc[] =
	"Ends the TLS connections of Earshot's services with tls { }, and moves them with their state.\v"
	"SIGHUP reads the files again: new connections get what they say, open ones stay. SIGTERM "
	"finishes the requests that are under way. SIGUSR1 writes the counters to the log.";

static const struct argp_option options[] = {
	{"config", 'c', "FILE", 0, "configuration (default " DEFAULT_CONFIG ")", 0},
	{"node", 'n', "NAME", 0, "which node this is (default: the one whose address is local)", 0},
	{"control", 's', "PATH", 0,
	 "the daemon's control socket, beside which are those that are used here (default "
	 "/run/earshot/NODE.sock)",
	 0},
	{"user", 'u', "NAME", 0, "whose rights workers have (default: earshot-tls, if there is such a user)",
	 0},
	{0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct es_parent_options *to = state->input;

	switch (key) {
	case 'c':
		to->config = arg;
		return 0;
	case 'n':
		to->node = arg;
		return 0;
	case 's':
		to->control = arg;
		return 0;
	case 'u':
		to->user = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'", arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* A connection of a client takes two. */
static void raise_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

int main(int argc, char **argv)
{
	static const struct argp_child children[] = {{&es_help_argp, 0, NULL, 0}, {0}};
	static const struct argp argp = {options, parse, NULL, doc, children, NULL, NULL};
	struct es_parent_options given = {.config = DEFAULT_CONFIG};

	es_parent_hold_signals();
	es_output_watch();
	es_log_program = "earshot-tls";
	argp_parse(&argp, argc, argv, 0, NULL, &given);
	signal(SIGPIPE, SIG_IGN);
	tzset(); /* workers cannot open its file any more */
	raise_files();
	return es_parent_run(&given);
}
