// SPDX-License-Identifier: GPL-2.0-or-later
/* One response: from the client's answer to the last acknowledgment. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/base/clock.h"
#include "inspector/base/sockaddr.h"
#include "inspector/resume/client.h"
#include "inspector/resume/heads.h"
#include "inspector/resume/socket.h"
#include "inspector/resume/transfer.h"

#define STACK_BYTES    (1024 * 1024) /* a request's head is parsed on it */
#define CHUNK_BYTES    65536
#define LOOK_MS	       250 /* for @stop */
#define UNSENT_LOOK_MS 20

/* struct rest - what the server has answered: @fd, and @have bytes of the body that came with the head */
struct rest {
	int fd;
	size_t have;
	char bytes[CHUNK_BYTES];
};

static int has_lease(const struct es_resume *r)
{
	__u64 lease_ns = __atomic_load_n(r->params->lease_ns, __ATOMIC_ACQUIRE);

	return !lease_ns || es_clock_now_ns() < lease_ns;
}

/* Returns 0, -ETIMEDOUT or -ECANCELED. */
static int wait_for(const struct es_resume *r, int fd, short events, unsigned int ms)
{
	unsigned long long until_ns = es_clock_now_ns() + ms * 1000000ULL;
	struct pollfd one = {.fd = fd, .events = events};

	while (!atomic_load(&r->params->stop)) {
		if (poll(&one, 1, LOOK_MS) > 0)
			return 0;
		if (es_clock_now_ns() >= until_ns)
			return -ETIMEDOUT;
	}
	return -ECANCELED;
}

/* Returns a connection to the server here, by which clients' requests would reach it, or -errno. */
static int server_connect(const struct es_resume *r)
{
	const struct es_flow *flow = &r->download.flow;
	const union es_sockaddr to = es_sockaddr_of(&flow->service, es_ntohs(flow->service_port));
	int fd = socket(to.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), rc = 0, error = 0;
	socklen_t len = sizeof(error);

	if (fd < 0)
		return -errno;
	if (connect(fd, &to.sa, es_sockaddr_len(&to)) && errno != EINPROGRESS)
		rc = -errno;
	rc = rc ? rc : wait_for(r, fd, POLLOUT, ES_RESUME_SERVER_MS);
	if (!rc && (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) || error))
		rc = -(error ? error : errno);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* Reads the answer's head. */
static enum es_resume_why answer_read(const struct es_resume *r, uint64_t from, struct rest *rest)
{
	size_t len = 0, head = 0;
	enum es_resume_why why;

	while (!head) {
		ssize_t got;

		if (len == ES_RESUME_ANSWER_MAX || wait_for(r, rest->fd, POLLIN, ES_RESUME_SERVER_MS))
			return ES_RESUME_WHY_server;
		got = recv(rest->fd, rest->bytes + len, ES_RESUME_ANSWER_MAX - len, 0);
		if (got <= 0)
			return ES_RESUME_WHY_server;
		len += (size_t)got;
		head = es_resume_head_len(rest->bytes, len);
	}
	why = es_resume_judge(&r->download, from, rest->bytes, head);
	rest->have = len - head;
	memmove(rest->bytes, rest->bytes + head, rest->have);
	return why;
}

/* Asks the server for the rest. */
static enum es_resume_why rest_open(const struct es_resume *r, uint64_t from, struct rest *rest)
{
	char request[ES_RESUME_REQUEST_MAX];
	size_t len = es_resume_request(&r->download, from, request);
	enum es_resume_why why;

	if (!len)
		return ES_RESUME_WHY_request;
	rest->fd = server_connect(r);
	if (rest->fd < 0)
		return ES_RESUME_WHY_server;
	why = send(rest->fd, request, len, MSG_NOSIGNAL) == (ssize_t)len ? answer_read(r, from, rest)
									 : ES_RESUME_WHY_server;
	if (why)
		close(rest->fd);
	return why;
}

/* Sends so many bytes. Returns 0 or -errno. */
static int chunk_send(const struct es_resume *r, int fd, const char *bytes, size_t len)
{
	while (len) {
		ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);

		if (sent < 0 && errno != EAGAIN)
			return -errno;
		if (sent < 0) {
			int rc = wait_for(r, fd, POLLOUT, ES_RESUME_STALL_MS);

			if (rc)
				return rc;
			continue;
		}
		bytes += sent;
		len -= (size_t)sent;
	}
	return 0;
}

/* Sends the rest, @left bytes. Returns 0 or -errno: -ENODATA if the server does not send it all. */
static int rest_send(const struct es_resume *r, int fd, struct rest *rest, uint64_t left)
{
	while (left) {
		int rc = rest->have ? 0 : wait_for(r, rest->fd, POLLIN, ES_RESUME_STALL_MS);

		if (rc)
			return rc;
		if (!rest->have) {
			ssize_t got = recv(rest->fd, rest->bytes, sizeof(rest->bytes), 0);

			if (got <= 0)
				return -ENODATA;
			rest->have = (size_t)got;
		}
		if (rest->have > left)
			return -ENODATA;
		rc = chunk_send(r, fd, rest->bytes, rest->have);
		if (rc)
			return rc;
		left -= rest->have;
		rest->have = 0;
	}
	return 0;
}

/* Waits until the client has all. Returns 0 or -errno. */
static int acknowledged_wait(const struct es_resume *r, int fd)
{
	unsigned long long heard_ns = es_clock_now_ns();
	int unsent = es_resume_socket_unsent(fd), before;

	while (unsent > 0) {
		if (atomic_load(&r->params->stop))
			return -ECANCELED;
		if (es_clock_now_ns() - heard_ns > ES_RESUME_STALL_MS * 1000000ULL)
			return -ETIMEDOUT;
		poll(NULL, 0, UNSENT_LOOK_MS);
		before = unsent;
		unsent = es_resume_socket_unsent(fd);
		if (unsent != before)
			heard_ns = es_clock_now_ns();
	}
	return unsent;
}

/* The client has all: it may send its next request, unless one side has said that none comes. */
static void leave(const struct es_resume *r, int fd)
{
	const struct es_download *d = &r->download;
	const struct es_kept kept = {
		.flow = d->flow,
		.options = d->options,
		.seq = d->next_request_seq,
		.ack = es_download_end_seq(d),
		.requests = d->requests,
		.moves = d->moves,
		.service = d->service,
		.owner = d->owner,
	};

	if ((d->flags & ES_DOWNLOAD_F_CLOSES) || es_resume_socket_is_closed(fd)) {
		close(fd);
		return;
	}
	/* Its node may have told of it when it was idle: that is older. */
	es_directory_forget(r->params->directory, r->flow_hash, d->owner);
	es_directory_adopt(r->params->directory, r->flow_hash, &kept, es_clock_now_ns());
	es_resume_socket_let_go(fd);
}

static enum es_resume_result tell(struct es_resume *r, const struct es_resume_client *client,
				  enum es_resume_why why)
{
	if (!has_lease(r))
		return ES_RESUME_ASKED;
	r->why = why;
	es_resume_reset(&r->params->raw, &r->download, client->ack);
	return ES_RESUME_RESET;
}

static enum es_resume_result go_on(struct es_resume *r, const struct es_resume_client *client,
				   struct rest *rest, uint64_t left)
{
	int fd = has_lease(r) ? es_resume_socket(&r->download, client) : -EAGAIN, rc;
	struct es_resume_client now;

	if (fd < 0)
		return tell(r, client, ES_RESUME_WHY_system);
	atomic_store(&r->is_sending, 1);
	rc = rest_send(r, fd, rest, left);
	rc = rc ? rc : acknowledged_wait(r, fd);
	if (!rc) {
		leave(r, fd);
		return ES_RESUME_WHOLE;
	}
	/* Where the client stands is known to it alone. */
	es_resume_socket_let_go(fd);
	if (!es_resume_ask(&r->params->raw, &r->download, &now) && has_lease(r))
		es_resume_reset(&r->params->raw, &r->download, now.ack);
	return ES_RESUME_BROKEN;
}

static enum es_resume_result resume(struct es_resume *r, const struct es_resume_client *client, uint64_t from)
{
	struct rest *rest = calloc(1, sizeof(*rest));
	enum es_resume_result result;
	enum es_resume_why why;

	if (!rest)
		return tell(r, client, ES_RESUME_WHY_system);
	why = rest_open(r, from, rest);
	if (why) {
		free(rest);
		return tell(r, client, why);
	}
	result = go_on(r, client, rest, r->download.length - from);
	close(rest->fd);
	free(rest);
	return result;
}

/* It waits for bytes of the response, or for nothing. */
static enum es_resume_result answered(struct es_resume *r, const struct es_resume_client *client)
{
	const struct es_download *d = &r->download;
	__u32 has = client->ack - d->response_seq, whole = d->head_len + (__u32)d->length;
	enum es_resume_result result;

	/* Has it all, or is it not of this response? The lost node cannot have sent more. */
	if (has == whole || (d->length <= ES_RESUME_LENGTH_MAX && has > whole))
		return ES_RESUME_ASKED;
	if (client->seq != d->next_request_seq || client->has_more)
		return tell(r, client, ES_RESUME_WHY_request);
	if (!(d->flags & ES_DOWNLOAD_F_RESUMES))
		return tell(r, client, ES_RESUME_WHY_content);
	if (has < d->head_len)
		return tell(r, client, ES_RESUME_WHY_head);
	if (atomic_fetch_add(&r->params->sending, 1) < ES_RESUMES_MAX)
		result = resume(r, client, has - d->head_len);
	else
		result = tell(r, client, ES_RESUME_WHY_limit);
	atomic_fetch_sub(&r->params->sending, 1);
	return result;
}

/* One that has sent more since then sends that again, until some node answers it. */
static enum es_resume_result asked(struct es_resume *r, const struct es_resume_client *client)
{
	if (client->seq != r->download.next_request_seq || client->has_more)
		return ES_RESUME_ASKED;
	r->client = *client;
	return ES_RESUME_WAITS;
}

static void *run(void *data)
{
	struct es_resume *r = data;
	struct es_resume_client client;
	enum es_resume_result result = ES_RESUME_ASKED;

	if (!es_resume_ask(&r->params->raw, &r->download, &client))
		result = r->only_asks ? asked(r, &client) : answered(r, &client);
	atomic_store(&r->result, (int)result);
	return NULL;
}

int es_resume_start(struct es_resume *r)
{
	pthread_attr_t attr;
	int rc = pthread_attr_init(&attr);

	if (rc)
		return -rc;
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	rc = pthread_create(&r->thread, &attr, run, r);
	pthread_attr_destroy(&attr);
	return -rc;
}

void es_resume_end(struct es_resume **resume)
{
	if (!*resume)
		return;
	pthread_join((*resume)->thread, NULL);
	free(*resume);
	*resume = NULL;
}
