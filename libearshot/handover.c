// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * libearshot: asks this machine's earshotd to hand a connection over. It holds no key and no state: the
 * daemon does the work, with the descriptor that the library sends along.
 */
#include <earshot/handover.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "libearshot/wire.h"

/* Longer than the daemon takes for any answer. */
#define REPLY_TIMEOUT_S 30

_Static_assert(ES_HANDOVER_BYTES_MAX == ES_PROGRAM_BYTES_MAX, "what the daemon takes");

static int es_socket_find(struct sockaddr_un *ret)
{
	const char *path = secure_getenv("EARSHOT_HANDOVER_SOCKET");
	glob_t found = {};
	int rc = -ENOLINK;

	if (!path && !glob(ES_PROGRAM_DIRECTORY "/*" ES_PROGRAM_SUFFIX, 0, NULL, &found) &&
	    found.gl_pathc == 1)
		path = found.gl_pathv[0];
	if (path && strlen(path) < sizeof(ret->sun_path)) {
		memcpy(ret->sun_path, path, strlen(path) + 1);
		ret->sun_family = AF_UNIX;
		rc = 0;
	}
	globfree(&found);
	return rc;
}

static int es_daemon_connect(void)
{
	const struct timeval patience = {.tv_sec = REPLY_TIMEOUT_S};
	struct sockaddr_un address = {};
	int fd, rc = es_socket_find(&address);

	if (rc)
		return rc;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		rc = errno == EACCES || errno == EPERM ? -EACCES : errno == EAGAIN ? -EAGAIN : -ENOLINK;
		close(fd);
		return rc;
	}
	return fd;
}

static int es_request_send(int daemon, int fd, const struct es_program_request *request, const void *buf,
			   size_t len)
{
	struct iovec iov[2] = {
		{.iov_base = (void *)request, .iov_len = sizeof(*request)},
		{.iov_base = (void *)buf, .iov_len = len},
	};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {};
	struct msghdr msg = {
		.msg_iov = iov,
		.msg_iovlen = 2,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	ssize_t sent;

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	do
		sent = sendmsg(daemon, &msg, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent >= 0)
		return 0;
	/* Nothing was taken, so nothing was done. EBADF is the caller's descriptor: ours is open. */
	return errno == EPIPE || errno == ECONNRESET ? -ENOLINK : errno == EBADF ? -ENOTCONN : -errno;
}

static int es_reply_receive(int daemon)
{
	struct es_program_reply reply = {};
	ssize_t got;

	do
		got = recv(daemon, &reply, sizeof(reply), 0);
	while (got < 0 && errno == EINTR);
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return -ETIMEDOUT;
	/* The daemon has died with the connection in its hands. */
	return got == sizeof(reply) && reply.magic == ES_PROGRAM_MAGIC ? reply.result : -ECONNRESET;
}

int request_handover(int fd, const char *node, const void *buf, size_t len)
{
	struct es_program_request request = {.magic = ES_PROGRAM_MAGIC, .version = ES_PROGRAM_VERSION};
	int daemon, rc;

	if (len > ES_HANDOVER_BYTES_MAX)
		return -EMSGSIZE;
	if (!buf && len)
		return -EINVAL;
	if (node && strlen(node) >= sizeof(request.node))
		return -ENOENT;
	if (node)
		memcpy(request.node, node, strlen(node) + 1);
	daemon = es_daemon_connect();
	if (daemon < 0)
		return daemon;
	rc = es_request_send(daemon, fd, &request, buf, len);
	if (!rc)
		rc = es_reply_receive(daemon);
	close(daemon);
	return rc;
}
