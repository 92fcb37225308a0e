// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Questions to the daemon: one connection of a worker, many questions on it, answers in any order. News wait
 * a moment for a question that takes them along, since each message on its own wakes the daemon.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "inspector/base/clock.h"
#include "tls/serve/ask.h"

#define AGAIN_NS 1000000000ULL /* after which a daemon that was not there is looked for again */
#define NEWS_MAX 16	       /* that wait for company */
#define NEWS_S	 0.002

struct es_question {
	struct es_asker *asker;
	uint64_t id;
	es_question_fn *answered;
	void *ctx;
	ev_timer timer;
	struct es_question *next, *previous;
};

struct es_asker {
	struct ev_loop *loop;
	struct sockaddr_un path;
	int fd; /* -1: not connected */
	ev_io io;
	uint64_t last_id;
	unsigned long long again_ns;
	struct es_question *questions; /* the last asked first */
	struct es_ask said[NEWS_MAX];  /* without an answer: they go with the next question, or soon */
	unsigned int said_count;
	ev_timer soon;
	es_news_fn *news;
	void *ctx;
	uint8_t body[ES_ASK_BODY_MAX];
};

static void unlink_it(struct es_question *q)
{
	if (q->previous)
		q->previous->next = q->next;
	else
		q->asker->questions = q->next;
	if (q->next)
		q->next->previous = q->previous;
	ev_timer_stop(q->asker->loop, &q->timer);
}

void es_question_free(struct es_question **question)
{
	if (!*question)
		return;
	unlink_it(*question);
	free(*question);
	*question = NULL;
}

static void answer(struct es_question *q, const struct es_ask_answer *a, const uint8_t *body, size_t len)
{
	es_question_fn *answered = q->answered;
	void *ctx = q->ctx;

	es_question_free(&q);
	answered(ctx, a, body, len);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
	(void)loop;
	(void)events;
	answer(timer->data, NULL, NULL, 0);
}

static void hang_up(struct es_asker *asker)
{
	struct es_question *q;

	ev_io_stop(asker->loop, &asker->io);
	ev_timer_stop(asker->loop, &asker->soon);
	asker->said_count = 0;
	close(asker->fd);
	asker->fd = -1;
	asker->again_ns = es_clock_now_ns() + AGAIN_NS;
	/* One that is answered may end others: those of the same connection. */
	while ((q = asker->questions) != NULL) {
		es_question_fn *answered = q->answered;
		void *ctx = q->ctx;

		asker->questions = q->next;
		if (q->next)
			q->next->previous = NULL;
		ev_timer_stop(asker->loop, &q->timer);
		free(q);
		answered(ctx, NULL, NULL, 0);
	}
}

/* Returns 0 when there is no further message. */
static int receive(struct es_asker *asker)
{
	struct es_ask_answer a;
	struct iovec iov[2] = {{.iov_base = &a, .iov_len = sizeof(a)},
			       {.iov_base = asker->body, .iov_len = sizeof(asker->body)}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	struct es_question *q;
	ssize_t got = recvmsg(asker->fd, &msg, MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got < (ssize_t)sizeof(a) || (msg.msg_flags & MSG_TRUNC) || a.magic != ES_ASK_MAGIC ||
	    a.version != ES_ASK_VERSION || !memchr(a.node, 0, sizeof(a.node))) {
		hang_up(asker);
		return 0;
	}
	if (!a.id && (a.word == ES_ASK_DRAINS || a.word == ES_ASK_SERVES))
		asker->news(asker->ctx, a.node, a.word == ES_ASK_DRAINS);
	for (q = asker->questions; q; q = q->next)
		if (q->id == a.id)
			break;
	if (q)
		answer(q, &a, asker->body, (size_t)got - sizeof(a));
	return 1;
}

static void on_io(struct ev_loop *loop, ev_io *io, int events)
{
	struct es_asker *asker = io->data;

	(void)loop;
	(void)events;
	while (asker->fd >= 0 && receive(asker))
		;
}

static int call(struct es_asker *asker)
{
	int fd;

	if (asker->fd >= 0)
		return 0;
	if (es_clock_now_ns() < asker->again_ns)
		return -ENOLINK;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&asker->path, sizeof(asker->path))) {
		close(fd);
		asker->again_ns = es_clock_now_ns() + AGAIN_NS;
		return -ENOLINK;
	}
	asker->fd = fd;
	ev_io_init(&asker->io, on_io, fd, EV_READ);
	asker->io.data = asker;
	ev_io_start(asker->loop, &asker->io);
	asker->news(asker->ctx, NULL, 0);
	return 0;
}

void es_asker_listen(struct es_asker *asker)
{
	call(asker);
}

/*
 * Send what is new, and then a question or nothing. A daemon that does not read is as good as none: what it
 * has no room for is left out.
 */
static int send_to(struct es_asker *asker, const struct es_ask *ask, const char *text, size_t len)
{
	unsigned int count = asker->said_count;
	struct iovec iov[NEWS_MAX + 2];
	struct mmsghdr msgs[NEWS_MAX + 1];
	int sent;

	for (unsigned int i = 0; i < count; i++) {
		iov[i] = (struct iovec){.iov_base = &asker->said[i], .iov_len = sizeof(asker->said[i])};
		msgs[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &iov[i], .msg_iovlen = 1}};
	}
	iov[count] = (struct iovec){.iov_base = (void *)(uintptr_t)ask, .iov_len = sizeof(*ask)};
	iov[count + 1] = (struct iovec){.iov_base = (void *)(uintptr_t)text, .iov_len = len};
	msgs[count] = (struct mmsghdr){.msg_hdr = {.msg_iov = &iov[count], .msg_iovlen = 2}};
	ev_timer_stop(asker->loop, &asker->soon);
	asker->said_count = 0;
	if (ask)
		count++;
	sent = count ? sendmmsg(asker->fd, msgs, count, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
	return sent == (int)count ? 0 : -EAGAIN;
}

static void on_soon(struct ev_loop *loop, ev_timer *timer, int events)
{
	(void)loop;
	(void)events;
	send_to(timer->data, NULL, NULL, 0);
}

struct es_question *es_question_new(struct es_asker *asker, const struct es_ask *ask, const char *text,
				    size_t len, es_question_fn *answered, void *ctx, uint64_t *ret_id)
{
	struct es_ask full = *ask;
	struct es_question *q;

	if (len > ES_ASK_TEXT_MAX || call(asker))
		return NULL;
	q = calloc(1, sizeof(*q));
	if (!q)
		return NULL;
	full.magic = ES_ASK_MAGIC;
	full.version = ES_ASK_VERSION;
	full.id = ++asker->last_id;
	if (send_to(asker, &full, text, len)) {
		free(q);
		return NULL;
	}
	q->asker = asker;
	q->id = full.id;
	q->answered = answered;
	q->ctx = ctx;
	q->next = asker->questions;
	if (q->next)
		q->next->previous = q;
	asker->questions = q;
	ev_timer_init(&q->timer, on_timer, ES_ASK_WAIT_S, 0.0);
	q->timer.data = q;
	ev_timer_start(asker->loop, &q->timer);
	*ret_id = q->id;
	return q;
}

int es_asker_take(struct es_asker *asker, const struct es_ask *ask, const char *text, size_t len,
		  uint64_t *ret_id)
{
	struct es_ask full = *ask;
	int rc = len > ES_ASK_TEXT_MAX ? -EMSGSIZE : call(asker);

	if (rc)
		return rc;
	full.magic = ES_ASK_MAGIC;
	full.version = ES_ASK_VERSION;
	full.id = ++asker->last_id;
	rc = send_to(asker, &full, text, len);
	if (!rc)
		*ret_id = full.id;
	return rc;
}

void es_asker_tell(struct es_asker *asker, const struct es_ask *ask)
{
	struct es_ask *full = &asker->said[asker->said_count];

	if (asker->fd < 0)
		return;
	*full = *ask;
	full->magic = ES_ASK_MAGIC;
	full->version = ES_ASK_VERSION;
	if (++asker->said_count == NEWS_MAX) {
		send_to(asker, NULL, NULL, 0);
	} else if (!ev_is_active(&asker->soon)) {
		ev_timer_set(&asker->soon, NEWS_S, 0.0);
		ev_timer_start(asker->loop, &asker->soon);
	}
}

int es_asker_new(struct ev_loop *loop, const char *path, es_news_fn *news, void *ctx,
		 struct es_asker **ret_asker)
{
	struct es_asker *asker;

	if (strlen(path) >= sizeof(asker->path.sun_path))
		return -ENAMETOOLONG;
	asker = calloc(1, sizeof(*asker));
	if (!asker)
		return -ENOMEM;
	asker->loop = loop;
	asker->news = news;
	asker->ctx = ctx;
	asker->fd = -1;
	ev_timer_init(&asker->soon, on_soon, NEWS_S, 0.0);
	asker->soon.data = asker;
	asker->path.sun_family = AF_UNIX;
	memcpy(asker->path.sun_path, path, strlen(path) + 1);
	*ret_asker = asker;
	return 0;
}

void es_asker_free(struct es_asker **asker)
{
	if (!*asker)
		return;
	if ((*asker)->fd >= 0) {
		send_to(*asker, NULL, NULL, 0);
		hang_up(*asker);
	}
	free(*asker);
	*asker = NULL;
}
