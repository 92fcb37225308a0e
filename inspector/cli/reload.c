// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot reload`: asks the daemon to read its configuration and key file again. If they are wrong it says
 * so and keeps what it has.
 */
#include <stdio.h>

#include "inspector/cli/cli.h"

static int run(const struct es_cli *cli)
{
	struct json_object *result, *message = NULL;
	int r = es_cli_request(cli, es_cli_command_request("reload"), &result);

	if (r)
		return r;
	if (cli->json)
		es_cli_print_json(result);
	else if (json_object_object_get_ex(result, "message", &message))
		puts(json_object_get_string(message));
	else
		puts("reloaded");
	json_object_put(result);
	return ES_CLI_OK;
}

const struct es_cli_command es_cli_reload = {
	.name = "reload",
	.doc = "Have the daemon read its configuration and key file again; wrong ones are refused and change "
	       "nothing.",
	.run = run,
};
