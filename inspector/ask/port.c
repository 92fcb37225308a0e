// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads what processes ask, lets inspect/asked.c decide, answers, and keeps account of what is in hand. A
 * process that breaks the rules, or does not take its answers, loses its connection, and nothing else.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>
#include "inspector/ask/port.h"
#include "inspector/cluster/content_sync.h"
#include "inspector/inspect/inspect.h"

#define EVENTS_MAX  4	      /* at a time, so that the worker soon shows again that it runs */
#define BATCHES_MAX 4	      /* of a process, before others have their turn */
#define ANSWERS_MAX (1 << 20) /* bytes that may wait for a process */
#define NEWS_NS	    200000000 /* between two looks for news */
#define LOAD_NONE   UINT8_MAX /* there is no room for one more service */

_Static_assert(ES_ASKED_ANSWER_MAX <= ES_ASK_PAGE_MAX, "an answer fits");
_Static_assert(ES_CONF_SERVICES_MAX < LOAD_NONE, "each service has a number");
_Static_assert(ES_CONF_NAME_SIZE <= ES_ASK_NODE_SIZE, "a name fits");
_Static_assert(ES_CONF_SERVICES_MAX <= 64, "a bit for each service");

static void count(struct es_inspector *in, enum es_worker_counter counter)
{
	atomic_fetch_add_explicit(&in->count[counter], 1, memory_order_relaxed);
}

/* --- what is in hand */

/* The worker is the only writer. */
static void add(struct es_ask_port *p, const struct es_ask_note *note, int by)
{
	struct es_ask_load *load = &p->load[note->load < ES_CONF_SERVICES_MAX ? note->load : 0];
	unsigned long long cost = atomic_load_explicit(&load->cost, memory_order_relaxed);
	unsigned int active = atomic_load_explicit(&load->active, memory_order_relaxed);

	if (note->load == LOAD_NONE)
		return;
	cost = by > 0 ? cost + note->asked.order.cost : cost - note->asked.order.cost;
	atomic_store_explicit(&load->cost, cost, memory_order_relaxed);
	atomic_store_explicit(&load->active, by > 0 ? active + 1 : active - 1, memory_order_relaxed);
}

/* The service's, which it keeps as long as something of it is in hand: services may get other numbers. */
static uint8_t load_of(struct es_ask_port *p, uint32_t tag)
{
	unsigned int free = LOAD_NONE;

	for (unsigned int i = 0; i < ES_CONF_SERVICES_MAX; i++) {
		if (atomic_load_explicit(&p->load[i].tag, memory_order_relaxed) == tag)
			return (uint8_t)i;
		if (free == LOAD_NONE && !atomic_load_explicit(&p->load[i].active, memory_order_relaxed))
			free = i;
	}
	if (free != LOAD_NONE)
		atomic_store_explicit(&p->load[free].tag, tag, memory_order_relaxed);
	return (uint8_t)free;
}

static void over(struct es_ask_port *p, struct es_asker *asker, struct es_ask_note *note)
{
	if (!note)
		return;
	add(p, note, -1);
	es_ask_table_remove(&asker->in_hand, note);
}

static void begin(struct es_ask_port *p, struct es_asker *asker, uint64_t id, const struct es_conf *conf,
		  struct es_asked *asked)
{
	struct es_ask_note *note = asked->service < 0 ? NULL : es_ask_table_add(&asker->in_hand, id);

	if (!note) {
		es_asked_forget(asked);
		return;
	}
	note->asked = *asked;
	note->load = load_of(p, es_content_sync_tag(conf->services[asked->service].name));
	add(p, note, 1);
	if (!asked->is_first)
		atomic_fetch_add_explicit(&p->begun, 1, memory_order_relaxed);
}

/* --- what processes say */

static void on_question(struct es_ask_port *p, struct es_inspector *in, struct es_asker *asker, uint64_t id,
			const struct es_question *question)
{
	static const enum es_ask_word words[] = {
		[ES_ASKED_STAY] = ES_ASK_STAY,
		[ES_ASKED_MOVE] = ES_ASK_MOVE,
		[ES_ASKED_REJECT] = ES_ASK_REJECT,
		[ES_ASKED_RESET] = ES_ASK_RESET,
	};
	struct es_ask_reply *reply = &p->reply[p->replies++];
	struct es_asked asked;

	reply->len = es_inspect_asked(in, question, &asked, reply->text);
	reply->head = (struct es_ask_answer){
		.magic = ES_ASK_MAGIC,
		.version = ES_ASK_VERSION,
		.word = (uint16_t)words[asked.word],
		.id = id,
	};
	if (asked.word == ES_ASKED_MOVE)
		snprintf(reply->head.node, sizeof(reply->head.node), "%s",
			 in->cluster->conf->nodes[asked.node].name);
	if (asked.word == ES_ASKED_STAY || asked.word == ES_ASKED_MOVE)
		begin(p, asker, id, in->cluster->conf, &asked);
}

/* Returns 0, or -EAGAIN if the process does not take them. */
static int answer(struct es_ask_port *p, const struct es_asker *asker)
{
	struct iovec iov[ES_ASK_BATCH][2];
	struct mmsghdr msgs[ES_ASK_BATCH];
	int sent;

	for (unsigned int i = 0; i < p->replies; i++) {
		struct es_ask_reply *reply = &p->reply[i];

		iov[i][0] = (struct iovec){.iov_base = &reply->head, .iov_len = sizeof(reply->head)};
		iov[i][1] = (struct iovec){.iov_base = reply->text, .iov_len = reply->len};
		msgs[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = iov[i], .msg_iovlen = 2}};
	}
	sent = p->replies ? sendmmsg(asker->fd, msgs, p->replies, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
	return sent == (int)p->replies ? 0 : -EAGAIN;
}

static void stayed(struct es_inspector *in, struct es_ask_note *note)
{
	es_inspect_asked_stayed(in, &note->asked);
	note->asked.word = ES_ASKED_STAY;
}

static void respond(struct es_ask_port *p, const struct es_inspector *in, const struct es_asked *asked,
		    const struct es_ask *ask)
{
	unsigned int written = atomic_load_explicit(&p->written, memory_order_relaxed);

	if (!ask->status || asked->conf_version != in->conf_version ||
	    written - atomic_load_explicit(&p->taken, memory_order_acquire) == ES_ASK_RESPONSES)
		return;
	p->response[written & (ES_ASK_RESPONSES - 1)] = (struct es_response_entry){
		.url_key = asked->order.url_key,
		.bytes = ask->bytes < UINT32_MAX ? (__u32)ask->bytes : UINT32_MAX,
		.status = (__u16)ask->status,
		.service = (__u8)asked->service,
		.request_flags = asked->order.request_flags,
		.took_ns = ask->duration_us * 1000,
	};
	atomic_store_explicit(&p->written, written + 1, memory_order_release);
}

/* The request may be unknown: a daemon before this one had it, or the table was full. */
static void on_news(struct es_ask_port *p, struct es_inspector *in, struct es_asker *asker,
		    const struct es_ask *ask)
{
	struct es_ask_note *note = es_ask_table_find(&asker->in_hand, ask->id);

	if (!note)
		return;
	if (ask->kind == ES_ASK_MOVED) {
		if (note->asked.word == ES_ASKED_MOVE)
			es_inspect_asked_moved(in, &note->asked);
		over(p, asker, note);
		return;
	}
	/* Its process goes on with it here. */
	if (note->asked.word == ES_ASKED_MOVE)
		stayed(in, note);
	if (ask->kind == ES_ASK_DONE) {
		respond(p, in, &note->asked, ask);
		over(p, asker, note);
	}
}

/* Returns 0, or -EBADMSG. */
static int on_message(struct es_ask_port *p, struct es_inspector *in, struct es_asker *asker,
		      const uint8_t *message, size_t len)
{
	size_t text_len = len - sizeof(struct es_ask);
	struct es_question question;
	struct es_asked asked;
	struct es_ask ask;
	int has_text;

	if (len < sizeof(ask) || len > sizeof(p->message[0]))
		return -EBADMSG;
	memcpy(&ask, message, sizeof(ask));
	has_text = ask.kind == ES_ASK_REQUEST || ask.kind == ES_ASK_TAKEN;
	if (ask.magic != ES_ASK_MAGIC || ask.version != ES_ASK_VERSION || ask.kind > ES_ASK_TAKEN ||
	    (text_len > 0) != has_text)
		return -EBADMSG;
	if (!has_text) {
		on_news(p, in, asker, &ask);
		return 0;
	}
	question = (struct es_question){
		.flow = ask.flow,
		.text = (const char *)message + sizeof(ask),
		.len = text_len,
		.moves = ask.moves,
		.is_first = ask.first != 0,
	};
	over(p, asker, es_ask_table_find(&asker->in_hand, ask.id));
	if (ask.kind == ES_ASK_REQUEST) {
		on_question(p, in, asker, ask.id, &question);
		return 0;
	}
	es_inspect_taken(in, &question, &asked);
	begin(p, asker, ask.id, in->cluster->conf, &asked);
	return 0;
}

/* The socket may have been inherited by a child of the daemon, which does not close it. */
static void asker_close(struct es_ask_port *p, struct es_asker *asker)
{
	for (size_t i = 0; i < asker->in_hand.size; i++)
		if (asker->in_hand.place[i].is_used)
			add(p, &asker->in_hand.place[i], -1);
	es_ask_table_fini(&asker->in_hand);
	epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, asker->fd, NULL);
	shutdown(asker->fd, SHUT_RDWR);
	close(asker->fd);
	atomic_store_explicit(&asker->is_taken, 0, memory_order_release);
}

/* Returns how many messages there were, or -errno if the process has to go. */
static int batch_read(struct es_ask_port *p, struct es_inspector *in, struct es_asker *asker)
{
	struct iovec iov[ES_ASK_BATCH];
	struct mmsghdr msgs[ES_ASK_BATCH];
	int n, rc = 0;

	for (unsigned int i = 0; i < ES_ASK_BATCH; i++) {
		iov[i] = (struct iovec){.iov_base = p->message[i], .iov_len = sizeof(p->message[i])};
		msgs[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &iov[i], .msg_iovlen = 1}};
	}
	n = recvmmsg(asker->fd, msgs, ES_ASK_BATCH, MSG_DONTWAIT | MSG_TRUNC, NULL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -ENOTCONN;
	p->replies = 0;
	for (int i = 0; i < n && !rc; i++)
		rc = msgs[i].msg_len ? on_message(p, in, asker, p->message[i], msgs[i].msg_len) : -ENOTCONN;
	if (!rc)
		rc = answer(p, asker);
	return rc ? rc : n;
}

static void asker_read(struct es_ask_port *p, struct es_inspector *in, struct es_asker *asker)
{
	int n = ES_ASK_BATCH;

	/* A batch that is not full was the last one; others have their turn after some. */
	for (int i = 0; i < BATCHES_MAX && n == ES_ASK_BATCH; i++)
		n = batch_read(p, in, asker);
	if (n == -EBADMSG)
		count(in, ES_WORKER_ask_bad);
	if (n == -EAGAIN)
		count(in, ES_WORKER_ask_slow);
	if (n < 0)
		asker_close(p, asker);
}

/* --- news */

/* The services of which this node is drained. One that is on no ring is drained of all. */
static uint64_t drained(const struct es_inspector *in)
{
	const struct es_health *health = in->params->health;
	unsigned int self = in->cluster->self;

	if (!in->cluster->weight[self] ||
	    atomic_load_explicit(&health->state[self], memory_order_relaxed) == ES_NODE_DRAINING)
		return UINT64_MAX;
	return atomic_load_explicit(&health->drained[self], memory_order_relaxed);
}

/* A process whose socket is full hears of it the next time. */
static void tell_news(const struct es_inspector *in, struct es_asker *asker, uint64_t now)
{
	const struct es_conf *conf = in->cluster->conf;

	/* Which numbers it has heard of is not known any more. */
	if (!asker->is_new && asker->conf_version != in->conf_version)
		asker->drained = ~now;
	asker->is_new = 0;
	asker->conf_version = in->conf_version;
	for (unsigned int i = 0; i < conf->service_count; i++) {
		const uint64_t bit = 1ULL << i;
		struct es_ask_answer news = {.magic = ES_ASK_MAGIC,
					     .version = ES_ASK_VERSION,
					     .word = now & bit ? ES_ASK_DRAINS : ES_ASK_SERVES};

		if (!conf->services[i].tls.line || !((asker->drained ^ now) & bit))
			continue;
		snprintf(news.node, sizeof(news.node), "%s", conf->services[i].name);
		if (send(asker->fd, &news, sizeof(news), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(news))
			asker->drained ^= bit;
	}
}

static void look_for_news(struct es_ask_port *p, const struct es_inspector *in)
{
	uint64_t times, now = drained(in);

	if (read(p->news_fd, &times, sizeof(times)) != sizeof(times))
		return;
	for (unsigned int i = 0; i < ES_ASK_PROCESSES_MAX; i++)
		if (atomic_load_explicit(&p->asker[i].is_taken, memory_order_acquire))
			tell_news(in, &p->asker[i], now);
}

void es_ask_port_serve(struct es_inspector *in, void *port)
{
	struct epoll_event events[EVENTS_MAX];
	struct es_ask_port *p = port;
	int n = epoll_wait(p->epoll_fd, events, EVENTS_MAX, 0);

	for (int i = 0; i < n; i++)
		if (events[i].data.ptr)
			asker_read(p, in, events[i].data.ptr);
		else
			look_for_news(p, in);
}

/* --- the control thread's */

int es_ask_port_init(struct es_ask_port *p)
{
	struct epoll_event event = {.events = EPOLLIN};
	int rc;

	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll_fd < 0)
		return -errno;
	p->news_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (p->news_fd >= 0 && !epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->news_fd, &event))
		return 0;
	rc = -errno;
	if (p->news_fd >= 0)
		close(p->news_fd);
	close(p->epoll_fd);
	p->epoll_fd = -1;
	return rc;
}

void es_ask_port_fini(struct es_ask_port *p)
{
	if (p->epoll_fd < 0)
		return;
	for (unsigned int i = 0; i < ES_ASK_PROCESSES_MAX; i++)
		if (atomic_load_explicit(&p->asker[i].is_taken, memory_order_acquire))
			asker_close(p, &p->asker[i]);
	close(p->news_fd);
	close(p->epoll_fd);
	p->epoll_fd = -1;
}

unsigned int es_ask_port_count(const struct es_ask_port *p)
{
	unsigned int taken = 0;

	for (unsigned int i = 0; i < ES_ASK_PROCESSES_MAX; i++)
		taken += atomic_load_explicit(&p->asker[i].is_taken, memory_order_relaxed) != 0;
	return taken;
}

int es_ask_port_add(struct es_ask_port *p, int fd)
{
	const struct itimerspec often = {.it_interval.tv_nsec = NEWS_NS, .it_value.tv_nsec = NEWS_NS};
	struct epoll_event event = {.events = EPOLLIN};
	const int room = ANSWERS_MAX;
	struct es_asker *asker = p->asker;

	while (asker < p->asker + ES_ASK_PROCESSES_MAX &&
	       atomic_load_explicit(&asker->is_taken, memory_order_acquire))
		asker++;
	if (asker == p->asker + ES_ASK_PROCESSES_MAX)
		return -EUSERS;
	/* More than the kernel lets others have; without that there is less room. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	asker->fd = fd;
	asker->drained = 0;
	asker->is_new = 1;
	atomic_store_explicit(&asker->is_taken, 1, memory_order_release);
	event.data.ptr = asker;
	if (!timerfd_settime(p->news_fd, 0, &often, NULL) &&
	    !epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &event))
		return 0;
	atomic_store_explicit(&asker->is_taken, 0, memory_order_release);
	return -errno;
}

void es_ask_port_load(const struct es_ask_port *p, uint32_t tag, unsigned int *active,
		      unsigned long long *cost)
{
	for (unsigned int i = 0; i < ES_CONF_SERVICES_MAX; i++) {
		const struct es_ask_load *load = &p->load[i];

		if (atomic_load_explicit(&load->tag, memory_order_relaxed) != tag)
			continue;
		*active += atomic_load_explicit(&load->active, memory_order_relaxed);
		*cost += atomic_load_explicit(&load->cost, memory_order_relaxed);
	}
}

int es_ask_port_response(struct es_ask_port *p, struct es_response_entry *ret)
{
	unsigned int taken = atomic_load_explicit(&p->taken, memory_order_relaxed);

	if (taken == atomic_load_explicit(&p->written, memory_order_acquire))
		return 0;
	*ret = p->response[taken & (ES_ASK_RESPONSES - 1)];
	atomic_store_explicit(&p->taken, taken + 1, memory_order_release);
	return 1;
}
