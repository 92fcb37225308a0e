// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which daemon is meant: --control names its socket, --node or EARSHOT_NODE the node, and on a machine with
 * one daemon neither is needed. EARSHOT_DIRECTORY replaces /run/earshot, for tests.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "inspector/cli/cli.h"
#include "inspector/control/control.h"

#define SUFFIX ".sock"

static const char *directory(void)
{
	const char *other = getenv("EARSHOT_DIRECTORY");

	return other && *other ? other : ES_CONTROL_DIRECTORY;
}

static int path_of_node(const char *node, char *path, size_t size)
{
	int len;

	if (!*node || *node == '.' || strchr(node, '/'))
		return es_cli_fail("no node can be named \"%.80s\": expected the name of a node", node);
	len = snprintf(path, size, "%s/%s" SUFFIX, directory(), node);
	if (len < 0 || (size_t)len >= size)
		return es_cli_fail("node name too long: %.80s...", node);
	return ES_CLI_OK;
}

static int is_socket_name(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return entry->d_name[0] != '.' && len > strlen(SUFFIX) &&
	       !strcmp(entry->d_name + len - strlen(SUFFIX), SUFFIX);
}

/* The only daemon's socket. */
static int only_path(char *path, size_t size)
{
	struct dirent **entries = NULL;
	char names[256] = "";
	size_t used = 0;
	int i, n, r;

	n = scandir(directory(), &entries, is_socket_name, alphasort);
	if (n < 0 && errno != ENOENT)
		return es_cli_fail("%s: cannot be read: %s", directory(), strerror(errno));
	if (n <= 0) {
		free(entries);
		es_cli_fail("no earshotd runs here (no socket in %s): start it, or give --control PATH",
			    directory());
		return ES_CLI_NO_DAEMON;
	}
	for (i = 0; i < n; i++) {
		entries[i]->d_name[strlen(entries[i]->d_name) - strlen(SUFFIX)] = 0;
		if (used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
						 entries[i]->d_name);
	}
	if (n > 1)
		r = es_cli_fail("several nodes run here: give --node NAME, one of %s", names);
	else
		r = path_of_node(entries[0]->d_name, path, size);
	for (i = 0; i < n; i++)
		free(entries[i]);
	free(entries);
	return r;
}

int es_cli_only_daemon(char *path, size_t size)
{
	struct dirent **entries = NULL;
	int n = scandir(directory(), &entries, is_socket_name, alphasort), found = 0;

	if (n == 1)
		found = (size_t)snprintf(path, size, "%s/%s", directory(), entries[0]->d_name) < size;
	for (int i = 0; i < n; i++)
		free(entries[i]);
	free(entries);
	return found;
}

static int answers(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, ok;

	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) >=
	    sizeof(address.sun_path))
		return 0;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	ok = !connect(fd, (const struct sockaddr *)&address, sizeof(address));
	close(fd);
	return ok;
}

int es_cli_daemon_runs(char *path, size_t size)
{
	struct dirent **entries = NULL;
	int n = scandir(directory(), &entries, is_socket_name, alphasort), runs = 0;

	for (int i = 0; i < n; i++) {
		if (!runs && (size_t)snprintf(path, size, "%s/%s", directory(), entries[i]->d_name) < size)
			runs = answers(path);
		free(entries[i]);
	}
	free(entries);
	return runs;
}

int es_cli_socket_path(const struct es_cli *cli, char *path, size_t size)
{
	const char *node = getenv("EARSHOT_NODE");

	if (cli->control) {
		if ((size_t)snprintf(path, size, "%s", cli->control) >= size)
			return es_cli_fail("path of the control socket too long: %.80s...", cli->control);
		return ES_CLI_OK;
	}
	if (cli->node)
		return path_of_node(cli->node, path, size);
	if (node && *node)
		return path_of_node(node, path, size);
	return only_path(path, size);
}
