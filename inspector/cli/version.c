// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot version`: this program's version; the daemon's is in its status.
 */
#include <stdio.h>

#include "earshot_version.h"
#include "inspector/cli/cli.h"

static int run(const struct es_cli *cli)
{
	if (cli->json)
		puts("{ \"version\": \"" EARSHOT_VERSION "\" }");
	else
		puts("earshot " EARSHOT_VERSION);
	return ES_CLI_OK;
}

const struct es_cli_command es_cli_version = {
	.name = "version",
	.doc = "Show the version of this program.",
	.run = run,
};
