// SPDX-License-Identifier: GPL-2.0-or-later
/* Makes the sockets by which programs of this machine talk to the daemon, and says who may. */
#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "inspector/machine/local_socket.h"

#define SOCKET_MODE 0660

int es_local_socket_open(const char *path, const char *purpose, int backlog, struct es_conf_error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(address.sun_path)) {
		es_conf_error_set(err, "socket for %s %s: path too long: expected at most 107 characters",
				  purpose, path);
		return -ENAMETOOLONG;
	}
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/*
	 * The old socket is no other daemon's: the control socket has made sure that none of this node runs.
	 */
	unlink(path);
	/* bind() gives the file this mode less the umask: never open to others, not for a moment */
	if (fchmod(fd, SOCKET_MODE) || bind(fd, (const struct sockaddr *)&address, sizeof(address)) ||
	    chmod(path, SOCKET_MODE) || listen(fd, backlog)) {
		int rc = -errno;

		es_conf_error_set(err, "socket for %s %s: cannot be made: %s", purpose, path, strerror(-rc));
		close(fd);
		return rc;
	}
	return fd;
}

static int has_tls(const struct es_conf *conf)
{
	for (unsigned int i = 0; i < conf->service_count; i++)
		if (conf->services[i].tls.line)
			return 1;
	return 0;
}

int es_local_socket_share(const char *path, const struct es_conf *conf, struct es_conf_error *err)
{
	const char *name = conf->inspector.program_group;
	const struct group *group = NULL;

	if (*name) {
		group = getgrnam(name);
		if (!group) {
			es_conf_error_set(err, "inspector: program_group = %s: there is no such group", name);
			return -ENOENT;
		}
	} else if (has_tls(conf)) {
		group = getgrnam(ES_TLS_GROUP);
	}
	if (chown(path, (uid_t)-1, group ? group->gr_gid : getegid())) {
		int rc = -errno;

		es_conf_error_set(err, "%s: cannot be given to its group: %s", path, strerror(-rc));
		return rc;
	}
	return 0;
}
