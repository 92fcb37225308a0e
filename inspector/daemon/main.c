// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * earshotd: the command line, and the run from start to end. Always in the foreground: systemd, Pacemaker and
 * the lab start it and read its standard error.
 */
#include <argp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "earshot_version.h"
#include "inspector/base/help.h"
#include "inspector/base/output.h"
#include "inspector/control/control.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/restart.h"
#include "inspector/base/event.h"
#include "inspector/daemon/wait.h"

#define ES_DEFAULT_CONFIG "/etc/earshot/earshot.conf"

/* libc's name, which -fvisibility=hidden would hide from libc */
__attribute__((visibility("default"))) const char *argp_program_version = "earshotd " EARSHOT_VERSION;

static const char es_doc[] =
	"The node daemon of Earshot: inspects requests and hands connections over.\v"
	"SIGHUP reads the configuration again. SIGTERM ends the daemon and leaves the datapath "
	"attached, which then serves without inspection until a daemon starts again; "
	"'earshot stop' ends both.";

static const struct argp_option es_options[] = {
	{"config", 'c', "FILE", 0, "configuration (default " ES_DEFAULT_CONFIG ")", 0},
	{"node", 'n', "NAME", 0, "which node this is (default: the one whose address is local)", 0},
	{"control", 's', "PATH", 0, "control socket (default " ES_CONTROL_DIRECTORY "/NODE.sock)", 0},
	{"wait", 'w', NULL, 0, "wait for interfaces and addresses that are not there yet, instead of failing",
	 0},
	{0},
};

static error_t es_parse(int key, char *arg, struct argp_state *state)
{
	struct es_daemon_options *options = state->input;

	switch (key) {
	case 'c':
		options->config_path = arg;
		return 0;
	case 'n':
		options->node = arg;
		return 0;
	case 's':
		options->control_path = arg;
		return 0;
	case 'w':
		options->waits = 1;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'", arg);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Workers have a socket for each node: the limit that most are started with is below what 127 nodes take. */
static void es_raise_files(void)
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
	static const struct argp argp = {es_options, es_parse, NULL, es_doc, children, NULL, NULL};
	struct es_daemon_options options = {.config_path = ES_DEFAULT_CONFIG};
	struct es_conf_error err = {};
	static struct es_daemon daemon;
	const struct es_conf *conf;

	es_output_watch();
	argp_parse(&argp, argc, argv, 0, NULL, &options);
	signal(SIGPIPE, SIG_IGN);
	es_raise_files();
	if (options.waits)
		es_daemon_wait(&options);
	if (es_daemon_init(&daemon, &options, &err)) {
		es_log(ES_LOG_ERR, "%s", err.text[0] ? err.text : "cannot start");
		return EXIT_FAILURE;
	}
	conf = daemon.conf;
	es_event(ES_EVENT_start, ES_LOG_INFO, NULL, "node %s of %s (%u nodes, %u services, %u workers) %s%s",
		 conf->nodes[daemon.cluster->self].name, conf->cluster.name, conf->node_count,
		 conf->service_count, daemon.datapath_params.workers,
		 daemon.membership ? "has started; it serves when it is a member" : "is serving",
		 es_datapath_adopted(daemon.datapath) ? "; took over a running datapath" : "");
	if (es_datapath_replaced(daemon.datapath))
		es_log(ES_LOG_WARNING,
		       "datapath: the one that was running is of another version, and its tables cannot be "
		       "taken over; this daemon begins with empty ones, and open connections stay on this "
		       "node, uninspected, until they end");
	ev_run(daemon.loop, 0);
	es_daemon_fini(&daemon);
	if (!daemon.begins_anew)
		return EXIT_SUCCESS;
	es_daemon_exec(argv);
	return EXIT_FAILURE;
}
