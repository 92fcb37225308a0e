// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `earshot check`: looks at this machine, with or without its daemon, and says what would not work and what
 * to do. It changes nothing. inspector/check/ has what it looks at, and what it thinks of it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "inspector/check/check.h"
#include "inspector/cli/check_fix.h"
#include "inspector/cli/cli.h"
#include "inspector/machine/interface.h"
#include "inspector/plugin/guard.h"
#include "inspector/plugin/host.h"

#define CONFIG_DEFAULT "/etc/earshot/earshot.conf"
#define CANNOT_CHECK   2

#define CONNECT_TIMEOUT_S 10

/*
 * Return: 0 if somebody listens on @path, or -errno; a queue of clients that nobody takes is -EAGAIN in time.
 */
static int try_socket(const char *path)
{
	const struct timeval timeout = {.tv_sec = CONNECT_TIMEOUT_S};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, rc;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	rc = connect(fd, (const void *)&address, sizeof(address)) ? -errno : 0;
	close(fd);
	return rc;
}

/* Asks the daemon of that socket, once. */
static void ask_daemon(const struct es_cli *cli, const char *path, struct es_facts_daemon *ret)
{
	struct es_cli to = *cli;

	memset(ret, 0, sizeof(*ret));
	if ((size_t)snprintf(ret->socket, sizeof(ret->socket), "%s", path) >= sizeof(ret->socket)) {
		ret->rc = -ENAMETOOLONG;
		return;
	}
	to.control = ret->socket;
	ret->rc = try_socket(path);
	ret->runs = !ret->rc;
	if (ret->runs && es_cli_request(&to, es_cli_command_request("status"), &ret->status))
		ret->status = NULL;
	if (ret->status && es_cli_request(&to, es_cli_command_request("counters"), &ret->counters))
		ret->counters = NULL;
}

/*
 * Before the configuration has told the node's name: asks the daemon that is named, or else the only one
 * here.
 */
static void ask_named_daemon(const struct es_cli *cli, struct es_facts_daemon *ret)
{
	const char *node = getenv("EARSHOT_NODE");
	char path[sizeof(ret->socket)];

	memset(ret, 0, sizeof(*ret));
	if (cli->control || cli->node || (node && *node) ? !es_cli_socket_path(cli, path, sizeof(path))
							 : es_cli_only_daemon(path, sizeof(path)))
		ask_daemon(cli, path, ret);
}

/* Asks this node's daemon, unless another one was named or this one has answered already. */
static void ask_own_daemon(const struct es_cli *cli, const struct es_check *check,
			   struct es_facts_daemon *daemon)
{
	char path[sizeof(daemon->socket)];
	struct es_cli to = *cli;

	if (cli->control || check->self < 0 ||
	    (daemon->status && !strcmp(es_json_string(daemon->status, "node"), es_check_self_name(check))))
		return;
	to.node = es_check_self_name(check);
	if (es_cli_socket_path(&to, path, sizeof(path)) || !strcmp(path, daemon->socket))
		return;
	json_object_put(daemon->status);
	json_object_put(daemon->counters);
	ask_daemon(cli, path, daemon);
}

/* By default the file that the daemon uses. A relative path would mean another file here. */
static const char *config_of(const struct es_cli *cli, const struct es_facts_daemon *daemon)
{
	const char *path = daemon->status ? es_json_string(daemon->status, "config") : "";

	if (cli->config)
		return cli->config;
	return *path == '/' ? path : CONFIG_DEFAULT;
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

/* Replaces an interface's alternative name by its real one, which alone is in the kernel's files. */
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

	if (cli->fix)
		return es_cli_check_fix(check, cli->yes);
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

/* Takes over the replies of @daemon. */
static int check_machine(const struct es_cli *cli, struct es_conf *conf, struct es_facts_daemon *daemon)
{
	struct es_conf_error err = {};
	struct es_facts facts;
	struct es_check check = {.conf = conf, .facts = &facts};
	int r;

	check.self = find_self(cli, conf, &err);
	if (check.self < -1) {
		json_object_put(daemon->status);
		json_object_put(daemon->counters);
		return CANNOT_CHECK;
	}
	if (check.self >= 0)
		es_conf_use_node(conf, (unsigned int)check.self);
	use_real_name(conf->datapath.interface);
	use_real_name(conf->datapath.cluster_interface);
	es_facts_read(conf, check.self, &facts);
	memcpy(facts.self_text, err.text, sizeof(facts.self_text));
	ask_own_daemon(cli, &check, daemon);
	facts.daemon = *daemon;
	es_facts_read_programs(conf, &facts);
	read_plugins(conf, &facts.startup);
	es_check_run(&check);
	r = judge(cli, &check);
	es_check_fini(&check);
	es_facts_fini(&facts);
	return r;
}

static int run(const struct es_cli *cli)
{
	struct es_conf *conf = NULL;
	struct es_conf_error err = {};
	struct es_facts_daemon daemon;
	int r = CANNOT_CHECK;

	if (cli->yes && !cli->fix)
		return es_cli_usage("check: --yes is of --fix");
	if (cli->fix && cli->json)
		return es_cli_usage("check: expected either --fix or --json");
	ask_named_daemon(cli, &daemon);
	if (es_conf_read(config_of(cli, &daemon), &conf, &err)) {
		es_cli_fail("%s", err.text);
		json_object_put(daemon.status);
		json_object_put(daemon.counters);
		return CANNOT_CHECK;
	}
	r = check_machine(cli, conf, &daemon);
	es_conf_free(&conf);
	return r;
}

static const struct argp_option options[] = {
	{"config", ES_CLI_OPT_CONFIG, "FILE", 0,
	 "configuration (default: the running daemon's, or " CONFIG_DEFAULT ")", 0},
	{"fix", ES_CLI_OPT_FIX, NULL, 0,
	 "print the commands for what was found, where that is safe, and the rest as comments", 0},
	{"yes", ES_CLI_OPT_YES, NULL, 0, "with --fix: run them", 0},
	{"strict", ES_CLI_OPT_STRICT, NULL, 0, "status 1 for warnings, too", 0},
	{"verbose", ES_CLI_OPT_VERBOSE, NULL, 0, "show also what is right", 0},
	{0},
};

const struct es_cli_command es_cli_check = {
	.name = "check",
	.doc = "Look at this machine - kernel, interfaces, neighbours, server, certificates, corosync, other "
	       "members - "
	       "and say what would not work and what to do. "
	       "Changes nothing without --fix --yes, and needs no daemon, but one that died or hangs is an "
	       "error; as root it "
	       "sees all."
	       "\vExit status: 0 no errors, 1 errors (with --strict: or warnings), "
	       "2 nothing could be checked: the configuration is wrong.",
	.options = options,
	.run = run,
};
