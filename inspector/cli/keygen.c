// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot keygen`: makes the cluster's key file or the next version of it. Bringing it to the other nodes is
 * the administrator's part, since Earshot has no secret channel before there is a key.
 */
#include "inspector/cli/cli.h"
#include "inspector/config/keyfile.h"

static const struct argp_option options[] = {
	{"rotate", ES_CLI_OPT_ROTATE, NULL, 0,
	 "make the staged key, or else a new one, the current one; the old one "
	 "stays valid as the second",
	 0},
	{"stage", ES_CLI_OPT_STAGE, NULL, 0, "add a new key that all nodes accept and none signs with yet",
	 0},
	{0},
};

static int run(const struct es_cli *cli)
{
	struct es_conf_error err;
	int r;

	if (cli->rotate && cli->stage)
		return es_cli_usage("keygen: expected either --stage or --rotate");
	if (cli->stage)
		r = es_keyfile_stage(cli->args[0], &err);
	else if (cli->rotate)
		r = es_keyfile_rotate(cli->args[0], &err);
	else
		r = es_keyfile_create(cli->args[0], &err);
	return r ? es_cli_fail("%s", err.text) : ES_CLI_OK;
}

const struct es_cli_command es_cli_keygen = {
	.name = "keygen",
	.args_doc = "FILE",
	.doc = "Make a key file, the same for all nodes of a cluster, readable by its owner only."
	       "\vTo change the key without losing a request: --stage, copy the file to all nodes and reload "
	       "them; then --rotate, copy and reload again. "
	       "The ring's secret never changes, since that would move connections.",
	.options = options,
	.args_min = 1,
	.args_max = 1,
	.run = run,
};
