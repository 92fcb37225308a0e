// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot check`: looks at this machine, with or without its daemon, and says what would not work and what
 * to do. It changes nothing. What it looks at and what it thinks of it is in check_*.c.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "inspector/check/check.h"
#include "inspector/cli/cli.h"
#include "inspector/datapath/interface.h"
#include "inspector/plugin/guard.h"
#include "inspector/plugin/host.h"

#define CONFIG_DEFAULT "/etc/earshot/earshot.conf"
#define CANNOT_CHECK   2

/* The control socket of this node's daemon, unless `cli` names another. */
static int daemon_answers(const struct es_cli *cli)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, answers;

	if (es_cli_socket_path(cli, address.sun_path, sizeof(address.sun_path)))
		return 0;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	answers = !connect(fd, (const void *)&address, sizeof(address));
	close(fd);
	return answers;
}

static void read_daemon(const struct es_cli *cli, const struct es_check *check, struct es_facts_daemon *ret)
{
	struct es_cli to = *cli;

	memset(ret, 0, sizeof(*ret));
	if (check->self >= 0)
		to.node = es_check_self_name(check);
	if (!to.control && !to.node)
		return;
	ret->runs = daemon_answers(&to);
	if (ret->runs && es_cli_request(&to, es_cli_command_request("status"), &ret->status))
		ret->status = NULL;
	if (ret->status && es_cli_request(&to, es_cli_command_request("counters"), &ret->counters))
		ret->counters = NULL;
}

/* Could the daemon load the plugins? They are unloaded at once. */
static void read_plugins(const struct es_conf *conf, struct es_facts_startup *startup)
{
	struct es_plugins *plugins = NULL;
	struct es_conf_error err = {};

	es_guard_install();
	es_guard_thread();
	if (es_plugins_new(conf, ES_PLUGINS_MISSING_FAILS, &plugins, &err))
		snprintf(startup->plugins_text, sizeof(startup->plugins_text), "%s",
			 err.text[0] ? err.text : "plugins: out of memory");
	es_plugins_free(&plugins);
}

/* Return: the node's index; -1 when its addresses do not tell, which is a finding; -2 when --node is wrong */
static int find_self(const struct es_cli *cli, const struct es_conf *conf, struct es_conf_error *err)
{
	unsigned int index;

	if (!es_conf_find_self(conf, cli->node, &index, err))
		return (int)index;
	if (!cli->node)
		return -1;
	es_cli_fail("%s", err->text);
	return -2;
}

/* The kernel's files name no other. */
static void use_real_name(char *name)
{
	char real[IF_NAMESIZE];

	es_interface_real_name(name, real);
	if (es_interface_index(name))
		memcpy(name, real, sizeof(real));
}

static int judge(const struct es_cli *cli, const struct es_check *check)
{
	struct json_object *json;

	if (cli->json) {
		json = es_check_json(check);
		es_cli_print_json(json);
		json_object_put(json);
	} else {
		es_check_print(check, cli->verbose, stdout);
	}
	if (check->totals[ES_CHECK_ERROR] || (cli->strict && check->totals[ES_CHECK_WARNING]))
		return ES_CLI_FAILED;
	return ES_CLI_OK;
}

static int run(const struct es_cli *cli)
{
	struct es_conf *conf = NULL;
	struct es_conf_error err = {};
	struct es_facts facts;
	struct es_check check = {.facts = &facts};
	int r = CANNOT_CHECK;

	if (es_conf_load(cli->config ? cli->config : CONFIG_DEFAULT, &conf, &err)) {
		es_cli_fail("%s", err.text);
		return CANNOT_CHECK;
	}
	check.conf = conf;
	check.self = find_self(cli, conf, &err);
	if (check.self >= 0)
		es_conf_use_node(conf, (unsigned int)check.self);
	use_real_name(conf->datapath.interface);
	use_real_name(conf->datapath.cluster_interface);
	if (check.self >= -1) {
		es_facts_read(conf, check.self, &facts);
		memcpy(facts.self_text, err.text, sizeof(facts.self_text));
		read_daemon(cli, &check, &facts.daemon);
		read_plugins(conf, &facts.startup);
		es_check_run(&check);
		r = judge(cli, &check);
		es_check_fini(&check);
		es_facts_fini(&facts);
	}
	es_conf_free(&conf);
	return r;
}

static const struct argp_option options[] = {
	{"config", ES_CLI_OPT_CONFIG, "FILE", 0, "configuration (default " CONFIG_DEFAULT ")", 0},
	{"strict", ES_CLI_OPT_STRICT, NULL, 0, "status 1 for warnings, too", 0},
	{"verbose", ES_CLI_OPT_VERBOSE, NULL, 0, "show also what is right", 0},
	{0},
};

const struct es_cli_command es_cli_check = {
	.name = "check",
	.doc = "Look at this machine - kernel, interfaces, neighbours, server, corosync, other members - "
	       "and say what would not work and what to do. "
	       "Changes nothing, and needs no daemon; as root it sees all."
	       "\vExit status: 0 no errors, 1 errors (with --strict: or warnings), "
	       "2 nothing could be checked: the configuration is wrong.",
	.options = options,
	.run = run,
};
