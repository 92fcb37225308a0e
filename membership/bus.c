// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The thread that talks to corosync, and the two queues between it and its owner. Both are bounded: if too
 * many of the owner's messages wait, the bus is given up, as in corosync.c; if too many events wait for the
 * owner, further ones are left with corosync. A session is the time from a first view to the loss of the bus:
 * a message that was sent in one is never heard in another.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "membership/bus.h"

#define CONNECT_AGAIN_MS 250
#define RETRY_MS	 20 /* for a bus that was busy */
#define TOKEN_CHECK_MS	 5000
#define HANGS_MS	 1000 /* a call to a corosync that was killed hangs, too, for 2 s */
#define STOP_MS		 1000
#define OUT_MAX		 (4u << 20)
#define IN_MAX		 (8u << 20)

enum es_bus_kind { ES_BUS_VIEW, ES_BUS_DATAGRAM, ES_BUS_LOST };

/* @data: members and leavers of a view, a datagram, or the reason of a loss */
struct es_bus_event {
	struct es_bus_event *next;
	enum es_bus_kind kind;
	uint64_t session;
	struct es_group_id from; /* of a view: our own */
	unsigned int count;
	unsigned int leaver_count;
	size_t len;
	_Alignas(8) char data[];
};

/* Messages in a row, as es_wire_append() makes them. */
struct es_bus_out {
	char *data;
	size_t len, size;
	uint64_t session;
};

/**
 * struct es_bus
 * @heard: the session that the owner has last had a view of; @deaf_to: the owner wants nothing more of this
 * session and those before; @is_joined: as the owner knows it. These three are the owner's.
 * @corosync, @session, @has_view: the thread's; @is_failed: there was no memory for an event
 * @is_full: the owner has to take something before the thread hears more
 * @call_since_ms: when the thread began to talk to corosync, 0 while it waits; atomic
 */
struct es_bus {
	const struct es_corosync_ops *ops;
	void *ctx;
	pthread_t thread;
	int to_owner, to_thread;
	uint64_t heard, deaf_to;
	int is_joined;

	struct es_corosync *corosync;
	uint64_t session;
	int has_view;
	int is_failed;
	uint64_t connect_at_ms, token_at_ms;

	uint64_t call_since_ms;

	pthread_mutex_t lock; /* for what follows */
	int is_wanted, is_stopping, is_abandoned, is_done, is_full, is_too_much;
	uint64_t leave_session;
	struct es_bus_event *first, **last;
	size_t in_bytes;
	struct es_bus_out out;
	struct es_bus_state state;
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void wake(int fd)
{
	const uint64_t one = 1;

	/* It fails only if it is readable already. */
	if (write(fd, &one, sizeof(one)) < 0)
		return;
}

static void woken(int fd)
{
	uint64_t count;

	if (read(fd, &count, sizeof(count)) < 0)
		return;
}

/* --- the thread */

static void event_add(struct es_bus *b, struct es_bus_event *event)
{
	event->session = b->session;
	pthread_mutex_lock(&b->lock);
	*b->last = event;
	b->last = &event->next;
	b->in_bytes += sizeof(*event) + event->len;
	pthread_mutex_unlock(&b->lock);
	wake(b->to_owner);
}

/* Later events may rest on one for which there is no memory, so none follows in this session. */
static struct es_bus_event *event_new(struct es_bus *b, enum es_bus_kind kind, size_t len)
{
	struct es_bus_event *event = b->is_failed ? NULL : calloc(1, sizeof(*event) + len);

	if (!event) {
		b->is_failed = 1;
		return NULL;
	}
	event->kind = kind;
	event->len = len;
	return event;
}

static void on_view(void *ctx, struct es_group_id self, const struct es_group_id *members, unsigned int count,
		    const struct es_group_leaver *leavers, unsigned int leaver_count)
{
	struct es_bus *b = ctx;
	struct es_bus_event *event =
		event_new(b, ES_BUS_VIEW, count * sizeof(*members) + leaver_count * sizeof(*leavers));

	if (!event)
		return;
	if (!b->has_view)
		b->session++;
	b->has_view = 1;
	event->from = self;
	event->count = count;
	event->leaver_count = leaver_count;
	memcpy(event->data, members, count * sizeof(*members));
	if (leaver_count)
		memcpy(event->data + count * sizeof(*members), leavers, leaver_count * sizeof(*leavers));
	event_add(b, event);
}

static void on_datagram(void *ctx, struct es_group_id from, const void *data, size_t len)
{
	struct es_bus *b = ctx;
	struct es_bus_event *event = event_new(b, ES_BUS_DATAGRAM, len);

	if (!event)
		return;
	event->from = from;
	memcpy(event->data, data, len);
	event_add(b, event);
}

static void on_lost(void *ctx, const char *why)
{
	struct es_bus *b = ctx;
	struct es_bus_event *event;

	b->is_failed = 0;
	event = event_new(b, ES_BUS_LOST, strlen(why) + 1);
	b->is_failed = 0;
	b->has_view = 0;
	if (!event)
		return;
	memcpy(event->data, why, event->len);
	event_add(b, event);
}

static const struct es_corosync_ops thread_ops = {on_view, on_datagram, on_lost};

/* The owner's orders since the thread's last turn. */
struct es_bus_orders {
	int is_wanted, is_stopping, is_full, is_too_much;
	uint64_t leave_session;
	struct es_bus_out out;
};

static struct es_bus_orders orders_take(struct es_bus *b)
{
	struct es_bus_orders orders;

	pthread_mutex_lock(&b->lock);
	b->is_full = b->in_bytes > IN_MAX;
	orders = (struct es_bus_orders){
		.is_wanted = b->is_wanted,
		.is_stopping = b->is_stopping,
		.is_full = b->is_full,
		.is_too_much = b->is_too_much,
		.leave_session = b->leave_session,
		.out = b->out,
	};
	b->is_too_much = 0;
	b->out = (struct es_bus_out){.session = b->out.session};
	pthread_mutex_unlock(&b->lock);
	return orders;
}

static void out_send(struct es_bus *b, struct es_bus_out *out)
{
	size_t at = 0, len;
	const void *payload;
	uint8_t type;

	while (b->has_view && out->session == b->session &&
	       es_wire_next(out->data, out->len, &at, &type, &payload, &len) > 0)
		es_corosync_send(b->corosync, type, payload, len);
	free(out->data);
}

static void state_publish(struct es_bus *b, const char *why)
{
	struct es_corosync_state is;
	unsigned int token_ms = 0, vote_late_ms = 0;
	int is_token_new = 0;

	es_corosync_state(b->corosync, &is);
	if (is.is_connected && now_ms() >= b->token_at_ms) {
		token_ms = es_corosync_token_ms(b->corosync);
		vote_late_ms = es_corosync_vote_late_ms(b->corosync);
		is_token_new = token_ms != 0;
		b->token_at_ms = now_ms() + TOKEN_CHECK_MS;
	}
	pthread_mutex_lock(&b->lock);
	b->state.is_connected = is.is_connected;
	b->state.is_quorate = is.is_quorate;
	if (is_token_new) {
		b->state.token_ms = token_ms;
		b->state.vote_late_ms = vote_late_ms;
	}
	if (why)
		snprintf(b->state.why, sizeof(b->state.why), "%s", why);
	pthread_mutex_unlock(&b->lock);
}

static void connect_again(struct es_bus *b)
{
	struct es_corosync_state is;
	char why[sizeof(b->state.why)] = "";

	if (b->has_view || now_ms() < b->connect_at_ms)
		return;
	b->connect_at_ms = now_ms() + CONNECT_AGAIN_MS;
	es_corosync_state(b->corosync, &is);
	if (!is.is_connected)
		b->token_at_ms = 0;
	es_corosync_connect(b->corosync, why, sizeof(why));
	/* The lease's length is known before the first view is. */
	state_publish(b, why);
	es_corosync_dispatch(b->corosync);
}

/*
 * One turn of the thread. Return: for how long, in ms, there is nothing to do unless a descriptor becomes
 * readable.
 */
static int turn(struct es_bus *b, struct es_bus_orders *orders, int ret_fds[2])
{
	if (orders->is_too_much || b->is_failed)
		es_corosync_give_up(b->corosync, "more waited for the bus than it may");
	if (b->has_view && orders->leave_session >= b->session) {
		b->has_view = 0;
		es_corosync_rejoin(b->corosync);
	}
	out_send(b, &orders->out);
	if (!orders->is_full)
		es_corosync_dispatch(b->corosync);
	if (orders->is_wanted && !orders->is_full && !orders->is_stopping)
		connect_again(b);
	state_publish(b, NULL);
	/*
	 * While the owner's queue is full, nothing is taken from corosync, and its descriptors do not matter.
	 */
	if (!orders->is_full)
		es_corosync_fds(b->corosync, ret_fds);
	return es_corosync_flush(b->corosync) ? RETRY_MS : CONNECT_AGAIN_MS;
}

static void rest(struct es_bus *b, const int fds[2], int timeout_ms)
{
	struct pollfd p[3] = {{.fd = b->to_thread, .events = POLLIN}};

	for (int i = 0; i < 2; i++)
		p[i + 1] = (struct pollfd){.fd = fds[i], .events = POLLIN};
	if (poll(p, 3, timeout_ms) > 0 && p[0].revents)
		woken(b->to_thread);
}

static void call_mark(struct es_bus *b, uint64_t since_ms)
{
	__atomic_store_n(&b->call_since_ms, since_ms, __ATOMIC_RELAXED);
}

static void bus_destroy(struct es_bus *b)
{
	struct es_bus_event *event;

	while ((event = b->first)) {
		b->first = event->next;
		free(event);
	}
	free(b->out.data);
	close(b->to_owner);
	close(b->to_thread);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

static void *run(void *arg)
{
	struct es_bus *b = arg;
	int is_abandoned;

	for (;;) {
		struct es_bus_orders orders = orders_take(b);
		int timeout_ms, fds[2] = {-1, -1};

		call_mark(b, now_ms());
		timeout_ms = turn(b, &orders, fds);
		if (orders.is_stopping)
			break;
		call_mark(b, 0);
		rest(b, fds, timeout_ms);
	}
	es_corosync_free(&b->corosync);
	pthread_mutex_lock(&b->lock);
	b->is_done = 1;
	is_abandoned = b->is_abandoned;
	pthread_mutex_unlock(&b->lock);
	if (is_abandoned)
		bus_destroy(b);
	return NULL;
}

/* --- the owner */

int es_bus_new(const struct es_corosync_ops *ops, void *ctx, struct es_bus **ret_bus)
{
	struct es_bus *b = calloc(1, sizeof(*b));
	sigset_t all, before;
	int rc;

	if (!b)
		return -ENOMEM;
	b->ops = ops;
	b->ctx = ctx;
	b->last = &b->first;
	pthread_mutex_init(&b->lock, NULL);
	b->to_owner = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	b->to_thread = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	rc = b->to_owner < 0 || b->to_thread < 0 ? -errno : es_corosync_new(&thread_ops, b, &b->corosync);
	if (rc)
		goto err_free;
	/* Signals are the owner's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(&b->thread, NULL, run, b);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		goto err_free;
	*ret_bus = b;
	return 0;

err_free:
	es_corosync_free(&b->corosync);
	bus_destroy(b);
	return rc;
}

/* A thread that still waits for corosync frees everything itself, should it ever return. */
void es_bus_free(struct es_bus **bus)
{
	struct es_bus *b = *bus;
	struct timespec until;
	int is_done;

	if (!b)
		return;
	*bus = NULL;
	pthread_mutex_lock(&b->lock);
	b->is_stopping = 1;
	pthread_mutex_unlock(&b->lock);
	wake(b->to_thread);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += STOP_MS / 1000;
	if (pthread_clockjoin_np(b->thread, NULL, CLOCK_MONOTONIC, &until)) {
		pthread_mutex_lock(&b->lock);
		is_done = b->is_done;
		b->is_abandoned = !is_done;
		if (!is_done)
			pthread_detach(b->thread);
		pthread_mutex_unlock(&b->lock);
		if (!is_done)
			return;
		pthread_join(b->thread, NULL);
	}
	bus_destroy(b);
}

int es_bus_fd(const struct es_bus *b)
{
	return b->to_owner;
}

void es_bus_want(struct es_bus *b, int is_wanted)
{
	int is_new;

	pthread_mutex_lock(&b->lock);
	is_new = is_wanted && !b->is_wanted;
	b->is_wanted = is_wanted;
	pthread_mutex_unlock(&b->lock);
	if (is_new)
		wake(b->to_thread);
}

static struct es_bus_event *event_take(struct es_bus *b)
{
	struct es_bus_event *event;
	int was_full = 0;

	pthread_mutex_lock(&b->lock);
	event = b->first;
	if (event) {
		b->first = event->next;
		if (!b->first)
			b->last = &b->first;
		b->in_bytes -= sizeof(*event) + event->len;
		was_full = b->is_full && b->in_bytes <= IN_MAX / 2;
		if (was_full)
			b->is_full = 0;
	}
	pthread_mutex_unlock(&b->lock);
	if (was_full)
		wake(b->to_thread);
	return event;
}

static void event_report(struct es_bus *b, const struct es_bus_event *event)
{
	const void *members = event->data;
	const void *leavers = event->data + event->count * sizeof(struct es_group_id);

	if (event->session <= b->deaf_to)
		return;
	if (b->is_joined && event->session != b->heard) {
		b->is_joined = 0;
		b->ops->lost(b->ctx, "no memory for what came from corosync");
	}
	switch (event->kind) {
	case ES_BUS_VIEW:
		b->heard = event->session;
		b->is_joined = 1;
		b->ops->view(b->ctx, event->from, members, event->count, leavers, event->leaver_count);
		return;
	case ES_BUS_DATAGRAM:
		if (b->is_joined)
			b->ops->datagram(b->ctx, event->from, event->data, event->len);
		return;
	case ES_BUS_LOST:
		b->is_joined = 0;
		b->ops->lost(b->ctx, event->data);
	}
}

void es_bus_dispatch(struct es_bus *b)
{
	struct es_bus_event *event;

	woken(b->to_owner);
	while ((event = event_take(b))) {
		event_report(b, event);
		free(event);
	}
	es_bus_flush(b);
}

void es_bus_send(struct es_bus *b, enum es_wire_type type, const void *payload, size_t len)
{
	struct es_bus_out *out = &b->out;
	size_t need;

	if (!b->is_joined)
		return;
	pthread_mutex_lock(&b->lock);
	if (out->session != b->heard)
		out->len = 0;
	out->session = b->heard;
	need = out->len + 4 + len;
	if (need > out->size) {
		char *bigger = need > OUT_MAX ? NULL : realloc(out->data, need * 2);

		if (bigger) {
			out->data = bigger;
			out->size = need * 2;
		}
	}
	/*
	 * Later messages may rest on this one (STOPPED on PROOFS), so if it is dropped, none is sent after
	 * it.
	 */
	if (need > out->size)
		b->is_too_much = 1;
	else if (!b->is_too_much)
		out->len = es_wire_append(out->data, out->size, out->len, type, payload, len);
	pthread_mutex_unlock(&b->lock);
}

void es_bus_flush(struct es_bus *b)
{
	int is_something;

	pthread_mutex_lock(&b->lock);
	is_something = b->out.len || b->is_too_much;
	pthread_mutex_unlock(&b->lock);
	if (is_something)
		wake(b->to_thread);
}

void es_bus_rejoin(struct es_bus *b)
{
	b->deaf_to = b->heard;
	b->is_joined = 0;
	pthread_mutex_lock(&b->lock);
	b->leave_session = b->heard;
	b->out.len = 0;
	pthread_mutex_unlock(&b->lock);
	wake(b->to_thread);
}

void es_bus_state(struct es_bus *b, struct es_bus_state *ret_state)
{
	uint64_t since_ms = __atomic_load_n(&b->call_since_ms, __ATOMIC_RELAXED), now = now_ms();

	pthread_mutex_lock(&b->lock);
	*ret_state = b->state;
	pthread_mutex_unlock(&b->lock);
	ret_state->is_joined = b->is_joined;
	ret_state->hangs_ms = since_ms && now > since_ms ? (unsigned int)(now - since_ms) : 0;
	if (ret_state->hangs_ms >= HANGS_MS)
		snprintf(ret_state->why, sizeof(ret_state->why),
			 "corosync on this machine does not answer (is it stopped?)");
}
