// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot detach`: takes off the datapath that an ended daemon left, so that nothing of Earshot stays in the
 * kernel: before the software is removed, or when its daemon will not come back. It needs no configuration.
 */
#include <stdio.h>
#include <string.h>

#include "inspector/cli/cli.h"
#include "inspector/datapath/datapath.h"

/* The things that were taken off, for both forms of the answer. */
struct detached {
	const struct es_cli *cli;
	struct json_object *list;
};

static void on_detached(void *ctx, const char *interface, const char *program)
{
	struct detached *detached = ctx;
	struct json_object *entry = json_object_new_object();

	if (!detached->cli->json)
		printf("%s: %s detached\n", interface, program);
	json_object_object_add(entry, "interface", json_object_new_string(interface));
	json_object_object_add(entry, "program", json_object_new_string(program));
	json_object_array_add(detached->list, entry);
}

static int run(const struct es_cli *cli)
{
	struct detached detached = {.cli = cli};
	char path[256];
	int rc;

	if (es_cli_daemon_runs(path, sizeof(path)))
		return es_cli_fail("detach: a daemon answers on %s and would be left without its datapath: "
				   "\"earshot stop\" ends both",
				   path);
	detached.list = json_object_new_array();
	rc = es_datapath_detach_all(on_detached, &detached);
	if (cli->json)
		es_cli_print_json(detached.list);
	else if (!rc && !json_object_array_length(detached.list))
		puts("nothing was attached");
	json_object_put(detached.list);
	return rc ? es_cli_fail("detach: the datapath cannot be taken off the interfaces: %s", strerror(-rc))
		  : ES_CLI_OK;
}

const struct es_cli_command es_cli_detach = {
	.name = "detach",
	.doc = "Take the datapath off all interfaces when no daemon runs; connections that are open here "
	       "end.",
	.run = run,
};
