// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One request to the daemon and its reply: connects, sends a line, reads a line, unwraps {"ok":...}. Every
 * failure is reported here, once, so that commands have only results to deal with.
 */
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "inspector/cli/cli.h"
#include "inspector/control/control.h"

#define TIMEOUT_S   10
#define FIRST_BYTES 65536

const char *es_cli_operator(void)
{
	const char *name = getenv("SUDO_USER");
	const struct passwd *user;

	if (name && *name)
		return name;
	user = getpwuid(getuid());
	return user ? user->pw_name : "";
}

struct json_object *es_cli_command_request(const char *command)
{
	struct json_object *request = json_object_new_object();

	json_object_object_add(request, "command", json_object_new_string(command));
	return request;
}

static int connect_to(const struct es_cli *cli, int *ret_fd)
{
	const struct timeval timeout = {.tv_sec = TIMEOUT_S};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, r;

	r = es_cli_socket_path(cli, address.sun_path, sizeof(address.sun_path));
	if (r)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return es_cli_fail("socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	if (connect(fd, (const void *)&address, sizeof(address))) {
		es_cli_fail("no earshotd answers on %s: %s", address.sun_path, strerror(errno));
		close(fd);
		return ES_CLI_NO_DAEMON;
	}
	*ret_fd = fd;
	return ES_CLI_OK;
}

static int send_all(int fd, const char *text, size_t len)
{
	ssize_t n;

	while (len) {
		n = send(fd, text, len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Reads one line, without its newline; the caller frees it. */
static int read_line(int fd, char **ret_line)
{
	size_t size = FIRST_BYTES, used = 0;
	char *line = malloc(size), *bigger, *end;
	ssize_t n;
	int r = -ENOMEM;

	while (line) {
		n = recv(fd, line + used, size - used - 1, 0);
		if (n < 0 && errno == EINTR)
			continue;
		r = n < 0 ? -errno : -EPROTO;
		if (n <= 0)
			break;
		end = memchr(line + used, '\n', (size_t)n);
		if (end) {
			*end = 0;
			*ret_line = line;
			return 0;
		}
		used += (size_t)n;
		if (used < size - 1)
			continue;
		r = -EMSGSIZE;
		if (size > ES_CONTROL_REPLY_MAX)
			break;
		size *= 2;
		bigger = realloc(line, size);
		r = -ENOMEM;
		if (!bigger)
			break;
		line = bigger;
	}
	free(line);
	return r;
}

static int exchange(int fd, struct json_object *request, struct json_object **ret_reply)
{
	char *line = NULL;
	int r;

	r = send_all(fd, json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN),
		     strlen(json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN)));
	if (!r)
		r = send_all(fd, "\n", 1);
	if (!r || r == -EPIPE) /* a daemon with too many clients answers without having read */
		r = read_line(fd, &line);
	if (r == -EAGAIN)
		return es_cli_fail("the daemon does not answer within %d s", TIMEOUT_S);
	if (r)
		return es_cli_fail("the daemon ended the conversation: %s", strerror(-r));
	*ret_reply = json_tokener_parse(line);
	free(line);
	return *ret_reply ? ES_CLI_OK : es_cli_fail("the daemon's reply is no JSON");
}

/* Print the daemon's error; if it does not know the command, also what to do. */
static int refuse(const char *error)
{
	static const char unknown[] = "unknown command";

	if (strncmp(error, unknown, sizeof(unknown) - 1) != 0)
		return es_cli_fail("%s", error);
	return es_cli_fail(
		"the earshotd that runs is of a version before this program's, and does not know this "
		"command: restart it (systemctl restart earshotd, or by Pacemaker), after an update if "
		"its package is old, too; it says: %s",
		error);
}

static int ask(const struct es_cli *cli, struct json_object *request, int is_quiet,
	       struct json_object **ret_result)
{
	struct json_object *ok, *reply = NULL;
	int fd = -1, r;

	r = connect_to(cli, &fd);
	if (!r) {
		r = exchange(fd, request, &reply);
		close(fd);
	}
	json_object_put(request);
	if (r)
		return r;
	if (json_object_object_get_ex(reply, "ok", &ok) && json_object_get_boolean(ok))
		*ret_result = json_object_get(es_json_object(reply, "result"));
	else if (is_quiet)
		*ret_result = NULL;
	else
		r = refuse(es_json_string(reply, "error"));
	json_object_put(reply);
	return r;
}

int es_cli_request(const struct es_cli *cli, struct json_object *request, struct json_object **ret_result)
{
	return ask(cli, request, 0, ret_result);
}

int es_cli_try(const struct es_cli *cli, struct json_object *request, struct json_object **ret_result)
{
	return ask(cli, request, 1, ret_result);
}
