// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The thread behind libearshot: accepts programs, reads what each wants, and lets move.c do the handover. It
 * is a thread of its own because workers wait for nobody, and it reads sockets that may be in use.
 */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/base/clock.h"
#include "inspector/machine/close_apart.h"
#include "inspector/machine/local_socket.h"
#include "inspector/program/internal.h"
#include "libearshot/wire.h"

#define TICK_MS		10
#define EVENTS_MAX	64
#define DESCRIPTORS_MAX 253 /* SCM_MAX_FD: the kernel closes any more, and waits for it */
#define STOP_WAIT_NS	5000000000ULL

/* In epoll's data, beside the slots of moves. */
enum { EVENT_LISTEN = ES_PROGRAM_MOVES_MAX, EVENT_SENDER, EVENT_GRACE, EVENT_STOP };

static int es_watch(const struct es_programs *p, int fd, uint32_t what)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = what};

	return epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* A program that cannot be accepted must not keep the thread awake. */
static void es_set_full(struct es_programs *p, int is_full)
{
	struct epoll_event event = {.events = is_full ? 0 : EPOLLIN, .data.u32 = EVENT_LISTEN};

	if (p->is_full != is_full && !epoll_ctl(p->epoll_fd, EPOLL_CTL_MOD, p->listen_fd, &event))
		p->is_full = is_full;
}

static struct es_program_move *es_slot_find(struct es_programs *p)
{
	for (unsigned int i = 0; i < ES_PROGRAM_MOVES_MAX; i++)
		if (p->moves[i].phase == ES_PROGRAM_FREE) {
			if (p->moves_end <= i)
				p->moves_end = i + 1;
			return &p->moves[i];
		}
	return NULL;
}

static void es_accept(struct es_programs *p)
{
	struct es_program_move *m;
	int fd;

	/* Those beyond the bound wait in the socket's backlog. */
	while (!es_close_apart_is_full() && (m = es_slot_find(p)) != NULL) {
		fd = accept4(p->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS)
			return;
		if (fd < 0)
			break;
		memset(m, 0, sizeof(*m));
		m->client_fd = fd;
		m->connection.fd = -1;
		m->phase = ES_PROGRAM_CONNECTED;
		m->since_ns = m->next_ns = p->now_ns;
		if (es_watch(p, fd, (uint32_t)(m - p->moves)))
			es_program_move_finish(m, -EAGAIN);
	}
	p->reopen_ns = p->now_ns + TICK_MS * 1000000ULL;
	es_set_full(p, 1);
}

/* The connection's descriptor in a message; -1 if there is not just one. */
static int es_descriptor_of(struct msghdr *msg)
{
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg);
	size_t count;
	int fd = -1;

	if (!cmsg || cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
		return -1;
	count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	for (size_t i = 0; i < count; i++) {
		memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(fd), sizeof(fd));
		if (count > 1)
			es_close_apart(fd);
	}
	return count == 1 ? fd : -1;
}

/* Reads the one message of a program. */
static void es_program_read(struct es_programs *p, struct es_program_move *m)
{
	struct es_program_request request;
	uint8_t *bytes = malloc(ES_PROGRAM_BYTES_MAX + 1);
	struct iovec iov[2] = {
		{.iov_base = &request, .iov_len = sizeof(request)},
		{.iov_base = bytes, .iov_len = ES_PROGRAM_BYTES_MAX},
	};
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(DESCRIPTORS_MAX * sizeof(int))];
	} control;
	struct msghdr msg = {
		.msg_iov = iov,
		.msg_iovlen = 2,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t got;
	int fd;

	if (!bytes) {
		es_program_move_finish(m, -ENOMEM);
		return;
	}
	got = recvmsg(m->client_fd, &msg, MSG_CMSG_CLOEXEC);
	if (got < 0 && errno == EAGAIN) { /* the event belonged to the slot's former owner */
		free(bytes);
		return;
	}
	/* From now on the only event is the program's end, which changes nothing. */
	epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, m->client_fd, NULL);
	fd = got >= 0 ? es_descriptor_of(&msg) : -1;
	if (got < (ssize_t)sizeof(request) || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || fd < 0 ||
	    request.magic != ES_PROGRAM_MAGIC ||
	    (request.version != ES_PROGRAM_VERSION && request.version != ES_PROGRAM_VERSION_FRONT) ||
	    !memchr(request.node, 0, sizeof(request.node))) {
		free(bytes);
		m->connection.fd = fd;
		es_program_move_finish(m, -EOPNOTSUPP);
		return;
	}
	m->connection.front = request.version == ES_PROGRAM_VERSION_FRONT ? ES_PROGRAM_FRONT_MAX : 0;
	es_program_move_begin(p, m, request.node, fd, bytes, (size_t)got - sizeof(request));
}

static void es_on_event(struct es_programs *p, uint32_t what)
{
	struct es_program_move *m;

	if (what == EVENT_LISTEN) {
		es_accept(p);
	} else if (what == EVENT_SENDER) {
		es_program_moves_messages(p);
	} else if (what == EVENT_GRACE) {
		es_grace_heard(&p->grace);
		es_program_moves_settled(p);
	} else if (what < ES_PROGRAM_MOVES_MAX) {
		m = &p->moves[what];
		if (m->phase == ES_PROGRAM_CONNECTED)
			es_program_read(p, m);
	}
}

/* Is any move under way that must be finished? */
static int es_is_busy(const struct es_programs *p)
{
	for (unsigned int i = 0; i < p->moves_end; i++)
		if (p->moves[i].phase > ES_PROGRAM_CONNECTED)
			return 1;
	return 0;
}

static int es_is_idle(const struct es_programs *p)
{
	for (unsigned int i = 0; i < p->moves_end; i++)
		if (p->moves[i].phase != ES_PROGRAM_FREE)
			return 0;
	return 1;
}

static void *es_programs_main(void *arg)
{
	struct epoll_event events[EVENTS_MAX];
	struct es_programs *p = arg;
	unsigned long long stop_ns = 0;
	int timeout_ms = -1, count;

	for (;;) {
		count = epoll_wait(p->epoll_fd, events, EVENTS_MAX, timeout_ms);
		pthread_mutex_lock(&p->lock);
		p->now_ns = es_clock_now_ns();
		for (int i = 0; i < count; i++)
			es_on_event(p, events[i].data.u32);
		es_program_moves_deadlines(p);
		es_program_moves_depart(p);
		es_handover_flush(p->sender);
		if (p->is_stopping) {
			stop_ns = stop_ns ? stop_ns : p->now_ns + STOP_WAIT_NS;
			if (!es_is_busy(p) || p->now_ns > stop_ns)
				break;
		}
		if (p->is_full && p->now_ns >= p->reopen_ns)
			es_set_full(p, !es_slot_find(p) || es_close_apart_is_full());
		timeout_ms = es_is_idle(p) && !p->is_full ? -1 : TICK_MS;
		pthread_mutex_unlock(&p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static int es_programs_open(struct es_programs *p, struct es_conf_error *err)
{
	int rc;

	p->listen_fd = es_local_socket_open(p->params.path, "programs", ES_PROGRAM_MOVES_MAX, err);
	if (p->listen_fd < 0)
		return p->listen_fd;
	rc = es_local_socket_share(p->params.path, p->cluster->conf, err);
	if (rc)
		return rc;
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	p->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->epoll_fd < 0 || p->stop_fd < 0)
		return -errno;
	rc = es_raw_open(&p->raw);
	if (!rc && es_datapath_mark(p->params.datapath))
		rc = es_raw_mark(&p->raw, es_datapath_mark(p->params.datapath));
	if (!rc)
		rc = es_handover_sender_new(p->cluster, ES_STREAM_PROGRAMS, &p->keys.key[0].handover,
					    &p->sender);
	if (!rc)
		rc = es_watch(p, p->listen_fd, EVENT_LISTEN);
	if (!rc)
		rc = es_watch(p, p->stop_fd, EVENT_STOP);
	if (!rc)
		rc = es_watch(p, es_handover_sender_fd(p->sender), EVENT_SENDER);
	if (!rc)
		rc = es_watch(p, p->grace.over_fd, EVENT_GRACE);
	return rc;
}

static void es_programs_destroy(struct es_programs *p)
{
	const int fds[] = {p->listen_fd, p->epoll_fd, p->stop_fd};

	for (unsigned int i = 0; i < ES_PROGRAM_MOVES_MAX; i++)
		if (p->moves[i].phase != ES_PROGRAM_FREE)
			es_program_move_abandon(p, &p->moves[i]);
	es_grace_stop(&p->grace);
	es_handover_sender_free(&p->sender);
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	es_raw_close(&p->raw);
	pthread_mutex_destroy(&p->lock);
	es_keys_wipe(&p->keys);
	free(p);
}

int es_programs_new(const struct es_programs_params *params, const struct es_cluster *cluster,
		    const struct es_keys *keys, struct es_programs **ret_programs, struct es_conf_error *err)
{
	struct es_programs *p = calloc(1, sizeof(*p));
	sigset_t all, before;
	int rc;

	if (!p)
		return -ENOMEM;
	p->params = *params;
	p->cluster = cluster;
	p->keys = *keys;
	p->listen_fd = p->epoll_fd = p->stop_fd = -1;
	p->raw = ES_RAW_CLOSED;
	p->grace = ES_GRACE_CLOSED;
	pthread_mutex_init(&p->lock, NULL);
	/* Signals are the control thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = es_grace_start(&p->grace);
	if (!rc)
		rc = es_programs_open(p, err);
	if (!rc)
		rc = -pthread_create(&p->thread, NULL, es_programs_main, p);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc) {
		if (!err->text[0])
			es_conf_error_set(err, "handovers of programs: cannot be started: %s", strerror(-rc));
		es_programs_destroy(p);
		return rc;
	}
	*ret_programs = p;
	return 0;
}

int es_programs_set_cluster(struct es_programs *p, const struct es_cluster *cluster,
			    const struct es_keys *keys)
{
	int rc;

	pthread_mutex_lock(&p->lock);
	p->cluster = cluster;
	p->keys = *keys;
	rc = es_handover_sender_set(p->sender, cluster, &keys->key[0].handover);
	pthread_mutex_unlock(&p->lock);
	return rc;
}

void es_programs_free(struct es_programs **programs)
{
	struct es_programs *p = *programs;
	const uint64_t one = 1;

	if (!p)
		return;
	unlink(p->params.path);
	pthread_mutex_lock(&p->lock);
	p->is_stopping = 1;
	pthread_mutex_unlock(&p->lock);
	if (write(p->stop_fd, &one, sizeof(one)) < 0)
		errno = 0; /* it cannot be full */
	pthread_join(p->thread, NULL);
	es_programs_destroy(p);
	*programs = NULL;
}
