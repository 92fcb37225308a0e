// SPDX-License-Identifier: GPL-2.0-or-later
/* One connection of the load: opens, asks, compares, ends as it should, and says what came of it. */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "tests/lab/load/connection.h"

#define READ_BYTES (256 << 10)
#define READ_TURNS 4 /* then the others have their turn */

static void on_io(struct ev_loop *loop, struct ev_io *io, int events);
static void on_timeout(struct ev_loop *loop, struct ev_timer *timer, int events);

uint64_t es_load_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

int es_connection_init(struct es_connection *c, struct es_load *load)
{
	memset(c, 0, sizeof(*c));
	c->load = load;
	c->fd = -1;
	ev_init(&c->io, on_io);
	ev_init(&c->timer, on_timeout);
	c->io.data = c->timer.data = c;
	return es_response_init(&c->response);
}

void es_connection_fini(struct es_connection *c)
{
	es_response_fini(&c->response);
}

static uint64_t retransmissions(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	memset(&info, 0, sizeof(info));
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) ? 0 : info.tcpi_total_retrans;
}

static void close_now(struct es_connection *c, int reset)
{
	const struct linger linger = {.l_onoff = 1};

	c->load->report.retransmissions += retransmissions(c->fd);
	if (reset)
		setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	ev_io_stop(c->load->loop, &c->io);
	ev_timer_stop(c->load->loop, &c->timer);
	close(c->fd);
	c->fd = -1;
	c->load->active--;
}

static void succeed(struct es_connection *c)
{
	struct es_load_report *report = &c->load->report;
	uint64_t us = es_load_now_us() - c->begun_us;

	close_now(c, c->ending == ES_LOAD_RESET);
	es_load_report_result(report, ES_LOAD_OK, us, NULL);
	es_load_report_node(report, c->node);
	es_connection_next(c);
}

static void fail_only(struct es_connection *c, enum es_load_result result, const char *what)
{
	union es_sockaddr local;
	socklen_t len = sizeof(local);
	char message[256], progress[96];

	memset(&local, 0, sizeof(local));
	getsockname(c->fd, &local.sa, &len);
	if (!c->connected)
		snprintf(progress, sizeof(progress), "connecting");
	else if (c->ends)
		snprintf(progress, sizeof(progress), "waiting for the end of %s", c->response.node);
	else
		es_response_progress(&c->response, progress, sizeof(progress));
	snprintf(message, sizeof(message),
		 "%s; connection %u, IPv%u port %u, %s, %s (%llu bytes), after %llu ms: %s", what, c->number,
		 local.sa.sa_family == AF_INET6 ? 6 : 4, es_sockaddr_port(&local),
		 es_load_ending_names[c->ending], c->response.object->path,
		 (unsigned long long)c->response.object->size,
		 (unsigned long long)(es_load_now_us() - c->begun_us) / 1000, progress);
	close_now(c, 1);
	es_load_report_result(&c->load->report, result, 0, message);
}

static void fail(struct es_connection *c, enum es_load_result result, const char *what)
{
	fail_only(c, result, what);
	es_connection_next(c);
}

static void fail_errno(struct es_connection *c, const char *call, int number)
{
	enum es_load_result result = ES_LOAD_ERRORS;
	char what[64];

	if (number == ECONNRESET || number == ECONNREFUSED || number == EPIPE)
		result = ES_LOAD_RESETS;
	else if (number == ETIMEDOUT)
		result = ES_LOAD_TIMEOUTS;
	snprintf(what, sizeof(what), "%s: %s", call, strerrordesc_np(number));
	fail(c, result, what);
}

void es_connection_give_up(struct es_connection *c)
{
	if (c->fd >= 0)
		fail_only(c, ES_LOAD_TIMEOUTS, "the run's time is up");
}

static void on_timeout(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	(void)loop;
	(void)events;
	fail(timer->data, ES_LOAD_TIMEOUTS, "timeout");
}

static void choose_object(struct es_connection *c)
{
	struct es_load *load = c->load;
	size_t count = c->ending == ES_LOAD_HALF ? load->small : load->manifest.count;

	es_response_begin(&c->response, &load->manifest.objects[draw(&c->random) % count]);
	c->requests_left--;
}

static void choose_ending(struct es_connection *c)
{
	unsigned int endings = c->load->options.endings;

	do
		c->ending = (enum es_load_ending)(draw(&c->random) % ES_LOAD_ENDINGS);
	while (!(endings & 1u << c->ending));
	c->requests_left = c->ending == ES_LOAD_SERIES ? c->load->options.requests : 1;
}

static int send_request(struct es_connection *c)
{
	char text[ES_LOAD_HEAD_MAX];
	int len = snprintf(
		text, sizeof(text), "GET %s HTTP/1.1\r\nHost: lab\r\nUser-Agent: earshot-load\r\n%s\r\n",
		c->response.object->path, c->ending == ES_LOAD_SERVER ? "Connection: close\r\n" : "");
	ssize_t sent = send(c->fd, text, (size_t)len, MSG_NOSIGNAL);

	if (sent != len) { /* a socket that has nothing else to send takes it all */
		fail_errno(c, "send", sent < 0 ? errno : ENOBUFS);
		return -1;
	}
	if (c->ending == ES_LOAD_HALF)
		shutdown(c->fd, SHUT_WR);
	c->load->report.requests++;
	return 0;
}

static void on_connected(struct es_connection *c)
{
	socklen_t len = sizeof(int);
	int number = 0;

	getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &number, &len);
	if (number) {
		fail_errno(c, "connect", number);
		return;
	}
	c->connected = 1;
	es_load_report_connected(&c->load->report, es_load_now_us() - c->begun_us);
	c->load->report.syn_retransmissions += retransmissions(c->fd); /* nothing else was sent yet */
	ev_io_stop(c->load->loop, &c->io);
	ev_io_set(&c->io, c->fd, EV_READ);
	ev_io_start(c->load->loop, &c->io);
	send_request(c);
}

/* Which node served: always the same on a connection, unless --any-node; another than last time is counted
 * for an object. */
static int note_node(struct es_connection *c)
{
	struct es_load_object *object =
		&c->load->manifest.objects[c->response.object - c->load->manifest.objects];
	const char *node = c->response.node;

	c->load->report.bytes += object->size;
	if (c->node[0] && c->load->options.any_node) {
		c->load->report.node_changes += !!strcmp(c->node, node);
	} else if (c->node[0]) {
		if (!strcmp(c->node, node))
			return 0;
		fail(c, ES_LOAD_BAD, "another node in the middle of the connection");
		return -1;
	}
	snprintf(c->node, sizeof(c->node), "%s", node);
	c->load->report.moved += object->node[0] && strcmp(object->node, node) != 0;
	snprintf(object->node, sizeof(object->node), "%s", node);
	return 0;
}

static void on_response(struct es_connection *c)
{
	if (note_node(c))
		return;
	if (c->requests_left) {
		choose_object(c);
		send_request(c);
	} else if (c->ending == ES_LOAD_SERIES || c->ending == ES_LOAD_RESET) {
		succeed(c);
	} else {
		c->ends = 1;
		if (c->ending == ES_LOAD_CLIENT)
			shutdown(c->fd, SHUT_WR);
	}
}

static void on_bytes(struct es_connection *c, const void *bytes, size_t len)
{
	if (c->ends) {
		fail(c, ES_LOAD_BAD, "bytes behind the response");
		return;
	}
	switch (es_response_feed(&c->response, bytes, len)) {
	case ES_RESPONSE_MORE:
		break;
	case ES_RESPONSE_DONE:
		on_response(c);
		break;
	case ES_RESPONSE_BAD:
		fail(c, ES_LOAD_BAD, c->response.problem);
		break;
	}
}

static void on_readable(struct es_connection *c)
{
	static char bytes[READ_BYTES];
	unsigned int number = c->number;

	for (int turn = 0; turn < READ_TURNS; turn++) {
		ssize_t got = recv(c->fd, bytes, sizeof(bytes), 0);

		if (got < 0) {
			if (errno != EAGAIN && errno != EINTR)
				fail_errno(c, "recv", errno);
			return;
		}
		if (!got) {
			if (c->ends)
				succeed(c);
			else
				fail(c, ES_LOAD_SHORT, "the server closed too early");
			return;
		}
		on_bytes(c, bytes, (size_t)got);
		if (c->fd < 0 || c->number != number)
			return; /* over, and perhaps another one begun */
	}
}

static void on_io(struct ev_loop *loop, struct ev_io *io, int events)
{
	struct es_connection *c = io->data;

	(void)loop;
	(void)events;
	if (c->connected)
		on_readable(c);
	else
		on_connected(c);
}

/* A socket as the options want it, on its way to the server, or -errno. */
static int connect_from(const struct es_load_options *options, const union es_sockaddr *server,
			unsigned int port)
{
	union es_sockaddr local;
	int fd = socket(server->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const int on = 1, mss = (int)options->mss;
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (mss)
		setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof(mss));
	if (port) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		memset(&local, 0, sizeof(local));
		local.sa.sa_family = server->sa.sa_family;
		es_sockaddr_port_set(&local, port);
		rc = bind(fd, &local.sa, es_sockaddr_len(&local));
	}
	if (!rc)
		rc = connect(fd, &server->sa, es_sockaddr_len(server));
	if (!rc || errno == EINPROGRESS)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* The same from the next local port of the range that no socket of the client's own has any more. */
static int connect_next(struct es_load *load, unsigned int connection)
{
	const struct es_load_options *options = &load->options;
	const union es_sockaddr *server = &options->servers[connection % options->server_count];
	unsigned int range = options->last_port - options->first_port + 1;
	int fd = -EADDRINUSE;

	if (!options->first_port)
		return connect_from(options, server, 0);
	for (unsigned int tries = 0; tries < range && (fd == -EADDRINUSE || fd == -EADDRNOTAVAIL); tries++) {
		fd = connect_from(options, server, options->first_port + load->port_cursor);
		load->port_cursor = (load->port_cursor + 1) % range;
		load->report.ports_skipped += fd < 0;
	}
	return fd;
}

/* Returns whether it is on its way; if not, that is in the report already. */
static int begin(struct es_connection *c)
{
	struct es_load *load = c->load;
	char message[128];

	c->number = load->report.connections++;
	c->random = load->options.seed * 0x2545f4914f6cdd1d + c->number;
	c->connected = c->ends = 0;
	c->node[0] = '\0';
	choose_ending(c);
	choose_object(c);
	c->begun_us = es_load_now_us();
	c->fd = connect_next(load, c->number);
	if (c->fd < 0) {
		snprintf(message, sizeof(message), "connection %u: connect: %s", c->number,
			 strerrordesc_np(-c->fd));
		c->fd = -1;
		es_load_report_result(&load->report, ES_LOAD_ERRORS, 0, message);
		return 0;
	}
	load->active++;
	ev_now_update(load->loop);
	ev_timer_set(&c->timer, load->options.timeout_ms / 1000.0, 0);
	ev_timer_start(load->loop, &c->timer);
	ev_io_set(&c->io, c->fd, EV_WRITE);
	ev_io_start(load->loop, &c->io);
	return 1;
}

void es_connection_next(struct es_connection *c)
{
	struct es_load *load = c->load;

	while (load->report.connections < load->options.connections)
		if (begin(c))
			return;
	if (!load->active)
		ev_break(load->loop, EVBREAK_ALL);
}
