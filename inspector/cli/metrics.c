// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot metrics`: the metrics that the daemon serves over HTTP, on standard output, or in a file for
 * node_exporter's textfile collector, which must never see half of one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inspector/cli/cli.h"

static const struct argp_option options[] = {
	{"output", ES_CLI_OPT_OUTPUT, "FILE", 0,
	 "write FILE, all at once, for node_exporter's textfile collector", 0},
	{"openmetrics", ES_CLI_OPT_OPENMETRICS, NULL, 0, "in the format of OpenMetrics", 0},
	{0},
};

/* Writes a file beside @path, which then replaces it. */
static int write_file(const char *path, const char *text)
{
	char *name = NULL;
	FILE *file;
	int fd, failed;

	if (asprintf(&name, "%s.XXXXXX", path) < 0)
		return es_cli_fail("%s: %s", path, strerror(ENOMEM));
	fd = mkstemp(name);
	file = fd < 0 ? NULL : fdopen(fd, "w");
	if (!file) {
		failed = es_cli_fail("%s: cannot be made: %s", name, strerror(errno));
		if (fd >= 0) {
			close(fd);
			unlink(name);
		}
		free(name);
		return failed;
	}
	/* node_exporter runs as another user. */
	failed = fchmod(fd, 0644) || fputs(text, file) < 0 || fflush(file);
	if (fclose(file) || failed || rename(name, path)) {
		failed = es_cli_fail("%s: cannot be written: %s", path, strerror(errno));
		unlink(name);
		free(name);
		return failed;
	}
	free(name);
	return ES_CLI_OK;
}

static int run(const struct es_cli *cli)
{
	struct json_object *request = es_cli_command_request("metrics"), *report;
	int r;

	if (cli->openmetrics)
		json_object_object_add(request, "openmetrics", json_object_new_boolean(1));
	r = es_cli_request(cli, request, &report);
	if (r)
		return r;
	if (cli->output)
		r = write_file(cli->output, es_json_string(report, "text"));
	else if (cli->json)
		es_cli_print_json(report);
	else
		fputs(es_json_string(report, "text"), stdout);
	json_object_put(report);
	return r;
}

const struct es_cli_command es_cli_metrics = {
	.name = "metrics",
	.doc = "Print the node's metrics as Prometheus reads them. The daemon serves the same over HTTP "
	       "(section status of the configuration).",
	.options = options,
	.run = run,
};
