// SPDX-License-Identifier: GPL-2.0-or-later
/* One handover: a connection to the daemon's socket, a message with the descriptor, and the answer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "libearshot/wire.h"
#include "tls/serve/handover.h"

#define ANSWER_S 30.0 /* longer than the daemon takes for any */

struct es_handing {
	struct ev_loop *loop;
	int daemon;
	ev_io io;
	ev_timer timer;
	void (*done)(void *ctx, int result);
	void *ctx;
};

int es_handing_is_lost(int result)
{
	return result == -ECONNRESET || result == -ETIMEDOUT;
}

void es_handing_free(struct es_handing **handing)
{
	struct es_handing *h = *handing;

	if (!h)
		return;
	ev_io_stop(h->loop, &h->io);
	ev_timer_stop(h->loop, &h->timer);
	close(h->daemon);
	free(h);
	*handing = NULL;
}

static void is_done(struct es_handing *h, int result)
{
	void (*done)(void *ctx, int result) = h->done;
	void *ctx = h->ctx;

	es_handing_free(&h);
	done(ctx, result);
}

static void on_io(struct ev_loop *loop, ev_io *io, int events)
{
	struct es_handing *h = io->data;
	struct es_program_reply reply = {};
	ssize_t got = recv(h->daemon, &reply, sizeof(reply), MSG_DONTWAIT);

	(void)loop;
	(void)events;
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* Without an answer the daemon has died with the connection in its hands. */
	is_done(h, got == sizeof(reply) && reply.magic == ES_PROGRAM_MAGIC ? reply.result : -ECONNRESET);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
	(void)loop;
	(void)events;
	is_done(timer->data, -ETIMEDOUT);
}

static int send_it(int daemon, int fd, const struct es_program_request *request, const uint8_t *first,
		   size_t first_len, const uint8_t *then, size_t then_len)
{
	struct iovec iov[3] = {
		{.iov_base = (void *)(uintptr_t)request, .iov_len = sizeof(*request)},
		{.iov_base = (void *)(uintptr_t)first, .iov_len = first_len},
		{.iov_base = (void *)(uintptr_t)then, .iov_len = then_len},
	};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {};
	struct msghdr msg = {
		.msg_iov = iov, .msg_iovlen = 3, .msg_control = &control, .msg_controllen = sizeof(control)};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	return sendmsg(daemon, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

int es_handing_new(struct ev_loop *loop, const char *path, int fd, const char *node, const uint8_t *first,
		   size_t first_len, const uint8_t *then, size_t then_len,
		   void (*done)(void *ctx, int result), void *ctx, struct es_handing **ret_handing)
{
	struct es_program_request request = {.magic = ES_PROGRAM_MAGIC, .version = ES_PROGRAM_VERSION_FRONT};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct es_handing *h;
	int rc = 0;

	if (strlen(path) >= sizeof(address.sun_path) || strlen(node) >= sizeof(request.node))
		return -ENAMETOOLONG;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	memcpy(address.sun_path, path, strlen(path) + 1);
	memcpy(request.node, node, strlen(node) + 1);
	h->loop = loop;
	h->done = done;
	h->ctx = ctx;
	h->daemon = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (h->daemon < 0) {
		rc = -errno;
		free(h);
		return rc;
	}
	ev_io_init(&h->io, on_io, h->daemon, EV_READ);
	ev_timer_init(&h->timer, on_timer, ANSWER_S, 0.0);
	h->io.data = h->timer.data = h;
	if (connect(h->daemon, (const struct sockaddr *)&address, sizeof(address)))
		rc = -errno;
	if (!rc)
		rc = send_it(h->daemon, fd, &request, first, first_len, then, then_len);
	if (rc) {
		es_handing_free(&h);
		return rc;
	}
	ev_io_start(loop, &h->io);
	ev_timer_start(loop, &h->timer);
	*ret_handing = h;
	return 0;
}
