// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot stop`: asks the daemon to take the datapath off and to exit. (A daemon that is merely killed
 * leaves the datapath, which then serves content-blind.)
 */
#include <stdio.h>

#include "inspector/cli/cli.h"

static int run(const struct es_cli *cli)
{
	struct json_object *result;
	int r = es_cli_request(cli, es_cli_command_request("stop"), &result);

	if (r)
		return r;
	if (cli->json)
		es_cli_print_json(result);
	json_object_put(result);
	return ES_CLI_OK;
}

const struct es_cli_command es_cli_stop = {
	.name = "stop",
	.doc = "Have the daemon detach the datapath and exit: the node leaves the cluster, its open "
	       "connections end.",
	.run = run,
};
