// SPDX-License-Identifier: GPL-2.0-or-later
/* A check of a server: the connection, what is said on it, and whether anybody has accepted it. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/base/sockaddr.h"
#include "inspector/health/server_check.h"
#include "inspector/machine/sock_diag.h"

/* More than this between two looks is the daemon's own sleep. */
#define ES_LOOK_MAX_MS 250

void es_server_check_init(struct es_server_check *check, const struct es_conf_service *service,
			  const struct es_addr *address)
{
	*check = (struct es_server_check){.conf = service->check,
					  .address = *address,
					  .port = service->check.port ? service->check.port : service->port,
					  .is_own_port = !service->check.port ||
							 service->check.port == service->port,
					  .fd = -1,
					  .rest_fd = -1};
	/* It may live longer than the configuration, which has that text; conf.right says all of it. */
	check->conf.statuses = (struct es_conf_list){};
}

static void forget(struct es_server_check *check)
{
	check->fd = -1;
	check->is_connected = check->is_sent = check->is_accepted = check->is_overdue = 0;
	check->is_shaken = check->is_asking = 0;
	check->elapsed_ms = check->accepted_ms = 0;
	check->answer = (struct es_answer){};
	es_tls_close(&check->tls);
	check->queue.count = 0;
	check->queue.is_over = 0;
}

static void reset(int fd)
{
	static const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(fd);
}

void es_server_check_rest_end(struct es_server_check *check)
{
	reset(check->rest_fd);
	check->rest_fd = -1;
}

void es_server_check_end(struct es_server_check *check)
{
	es_server_check_rest_end(check);
	reset(check->fd);
	forget(check);
	es_tls_fini(&check->tls);
}

int es_server_check_rest(struct es_server_check *check)
{
	if (check->rest_fd < 0)
		return 0;
	for (int i = 0; i < 4; i++) {
		ssize_t got =
			recv(check->rest_fd, NULL, ES_SERVER_CHECK_REST_BYTES, MSG_TRUNC | MSG_DONTWAIT);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return 1;
		if (got <= 0) {
			close(check->rest_fd);
			check->rest_fd = -1;
			return 0;
		}
		if ((size_t)got > check->rest_left) {
			es_server_check_rest_end(check);
			return 0;
		}
		check->rest_left -= (unsigned int)got;
	}
	return 1;
}

/* The check is over, and its connection ends as others do. */
static void leave(struct es_server_check *check)
{
	es_server_check_rest_end(check);
	check->rest_fd = check->fd;
	check->rest_left = ES_SERVER_CHECK_REST_BYTES;
	forget(check);
	es_server_check_rest(check);
}

static enum es_server_check_result is_over(struct es_server_check *check)
{
	reset(check->fd);
	forget(check);
	return ES_SERVER_CHECK_FAILED;
}

__attribute__((format(printf, 2, 3))) static enum es_server_check_result failed(struct es_server_check *check,
										const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(check->why, sizeof(check->why), format, args);
	va_end(args);
	return is_over(check);
}

static enum es_server_check_result passed(struct es_server_check *check)
{
	check->why[0] = 0;
	check->speaks = ES_SERVER_CHECK_SPEAKS_UNKNOWN;
	leave(check);
	return ES_SERVER_CHECK_PASSED;
}

static void connect_it(struct es_server_check *check)
{
	const union es_sockaddr to = es_sockaddr_of(&check->address, check->port);

	check->fd = socket(to.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (check->fd < 0) {
		failed(check, "no socket: %s", strerror(errno));
	} else if (connect(check->fd, &to.sa, es_sockaddr_len(&to)) && errno != EINPROGRESS) {
		check->is_refused = errno == ECONNREFUSED && check->is_own_port;
		failed(check, "%s", strerror(errno));
	}
}

void es_server_check_begin(struct es_server_check *check, unsigned long long now_ns)
{
	es_server_check_rest_end(check);
	check->looked_ns = now_ns;
	if (check->fd >= 0) {
		if (!check->is_overdue)
			check->elapsed_ms =
				0; /* it is in a queue that moves, and is watched for as long again */
		return;
	}
	check->began_ns = now_ns;
	check->is_refused = 0;
	connect_it(check);
}

/* Returns 1 if nobody has accepted the connection, else as es_sock_diag_is_waiting(). */
static int is_waiting(const struct es_server_check *check)
{
	union es_sockaddr own = {};
	socklen_t len = sizeof(own);
	struct es_addr address;
	int rc;

	if (getsockname(check->fd, &own.sa, &len))
		return -errno;
	rc = es_sockaddr_addr(&own.sa, len, &address);
	return rc ? rc
		  : es_sock_diag_is_waiting(&check->address, check->port, &address, es_sockaddr_port(&own));
}

/* Both: bytes, 0 when the connection has ended, -EAGAIN, or another -errno and why. */
static ssize_t tell(struct es_server_check *check, const char *bytes, size_t len)
{
	ssize_t sent;

	if (check->tls.ssl)
		return es_tls_send(&check->tls, bytes, len, check->why);
	sent = send(check->fd, bytes, len, MSG_NOSIGNAL);
	if (sent >= 0)
		return sent;
	snprintf(check->why, sizeof(check->why), "the request could not be sent: %s", strerror(errno));
	return -errno;
}

static ssize_t hear(struct es_server_check *check, char *bytes, size_t size)
{
	ssize_t got;

	if (check->tls.ssl)
		return es_tls_recv(&check->tls, bytes, size, check->why);
	got = recv(check->fd, bytes, size, 0);
	if (got >= 0)
		return got;
	if (errno == EAGAIN || errno == EINTR)
		return -EAGAIN;
	snprintf(check->why, sizeof(check->why), "%s", strerror(errno));
	return -errno;
}

/* It fits into the buffer of a new socket, and into one record of TLS: all of it goes at once. */
static ssize_t send_request(struct es_server_check *check)
{
	char request[2 * ES_CONF_PATH_SIZE + 128], address[INET6_ADDRSTRLEN], in_url[INET6_ADDRSTRLEN + 2];
	const char *host = check->conf.host;
	int len;

	if (!host[0]) {
		es_conf_addr_text(&check->address, address);
		snprintf(in_url, sizeof(in_url), es_addr_is_v4(&check->address) ? "%s" : "[%s]", address);
		host = in_url;
	}
	len = snprintf(
		request, sizeof(request),
		"GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: earshot-check\r\nConnection: close\r\n\r\n",
		check->conf.path, host);
	return tell(check, request, (size_t)len);
}

_Static_assert(sizeof(((struct es_server_check *)0)->why) == ES_TLS_WHY_SIZE, "tls.h says why in its place");
_Static_assert(sizeof(((struct es_server_check *)0)->why) == ES_ANSWER_WHY_SIZE, "and so does answer.h");

/* To @why, which is there already. */
static void tell_tls(struct es_server_check *check)
{
	size_t used = strlen(check->why);

	if (check->speaks == ES_SERVER_CHECK_SPEAKS_TLS)
		snprintf(check->why + used, sizeof(check->why) - used,
			 ": it looks like TLS; expected type = https");
}

/* It has failed, perhaps since the server speaks TLS: so it is asked, once. */
static enum es_server_check_result doubt(struct es_server_check *check)
{
	char text[ES_TLS_WHY_SIZE];

	if (check->speaks != ES_SERVER_CHECK_SPEAKS_UNKNOWN) {
		tell_tls(check);
		return is_over(check);
	}
	reset(check->fd);
	forget(check);
	memcpy(text, check->why, sizeof(text));
	connect_it(check);
	memcpy(check->why, text, sizeof(text));
	check->is_refused = 0;
	check->is_asking = 1;
	return check->fd < 0 ? ES_SERVER_CHECK_FAILED : ES_SERVER_CHECK_PENDING;
}

/* The first answer to what a client of TLS begins with decides. */
static enum es_server_check_result ask_for_tls(struct es_server_check *check)
{
	char unwanted[ES_TLS_WHY_SIZE];
	int rc = check->tls.ssl ? 0 : es_tls_open(&check->tls, check->fd, "", check->conf.host, unwanted);

	if (rc)
		return is_over(check);
	rc = es_tls_shake(&check->tls, unwanted);
	if (rc == -EAGAIN && !check->tls.is_spoken)
		return ES_SERVER_CHECK_PENDING;
	check->speaks = check->tls.is_spoken ? ES_SERVER_CHECK_SPEAKS_TLS : ES_SERVER_CHECK_SPEAKS_NO_TLS;
	tell_tls(check);
	return is_over(check);
}

static enum es_server_check_result shake_hands(struct es_server_check *check)
{
	int rc = check->tls.ssl ? 0
				: es_tls_open(&check->tls, check->fd, check->conf.ca_file, check->conf.host,
					      check->why);

	if (!rc)
		rc = es_tls_shake(&check->tls, check->why);
	if (rc == -EAGAIN)
		return ES_SERVER_CHECK_PENDING;
	if (rc)
		return is_over(check);
	check->is_shaken = 1;
	return ES_SERVER_CHECK_PASSED; /* so far */
}

static enum es_server_check_result is_wrong(struct es_server_check *check)
{
	if (check->conf.type == ES_CONF_CHECK_HTTP && check->answer.status == 400)
		return doubt(check);
	leave(check);
	return ES_SERVER_CHECK_FAILED;
}

static enum es_server_check_result read_answer(struct es_server_check *check)
{
	enum es_answer_result result = ES_ANSWER_MORE;
	char bytes[1024];

	while (result == ES_ANSWER_MORE) { /* which the bounds of struct es_answer end */
		ssize_t got = hear(check, bytes, sizeof(bytes));

		if (got == -EAGAIN)
			return ES_SERVER_CHECK_PENDING;
		if (!got)
			es_answer_ended(&check->answer, &check->conf, 0, check->why);
		if (got <= 0)
			return check->conf.type == ES_CONF_CHECK_HTTP && !check->answer.status
				       ? doubt(check)
				       : is_over(check);
		result = es_answer_read(&check->answer, &check->conf, bytes, (size_t)got, check->why);
	}
	return result == ES_ANSWER_RIGHT ? passed(check) : is_wrong(check);
}

static void on_listener(void *ctx, const struct es_sock_diag_listener *l)
{
	struct es_server_check *check = ctx;
	struct es_server_check_queue *queue = &check->queue;
	unsigned int i = 0;

	if (!es_sock_diag_takes(l, &check->address, check->port))
		return;
	while (i < queue->count && memcmp(queue->of[i].cookie, l->cookie, sizeof(l->cookie)) != 0)
		i++;
	if (i == ES_SERVER_CHECK_LISTENERS) {
		queue->is_over = 1;
		return;
	}
	if (i == queue->count) {
		queue->count++;
		memcpy(queue->of[i].cookie, l->cookie, sizeof(l->cookie));
		queue->of[i].moves = 0;
	} else if (l->waiting < queue->of[i].waiting) {
		queue->of[i].moves = 1;
	}
	queue->of[i].waiting = l->waiting;
}

/*
 * Has the queue moved since the check began, or since this was asked last? It may be in any that is not
 * empty: of several processes that listen, those that work say nothing of one that hangs.
 */
static int queue_moves(struct es_server_check *check)
{
	struct es_server_check_queue *queue = &check->queue;
	int some = 0, all = !queue->is_over;

	for (unsigned int i = 0; i < queue->count; i++) {
		if (queue->of[i].waiting)
			all &= queue->of[i].moves;
		some |= queue->of[i].moves;
		queue->of[i].moves = 0;
	}
	return some && all;
}

/* By TCP: it is over when the server has accepted. */
static enum es_server_check_result look_accepted(struct es_server_check *check)
{
	struct pollfd fd = {.fd = check->fd, .events = POLLIN};
	int waits = is_waiting(check);

	if (waits == 1) {
		es_sock_diag_listeners(on_listener, check);
		/*
		 * Its listening socket was closed. One that was accepted and closed since that look has no
		 * error.
		 */
		if (poll(&fd, 1, 0) > 0 && (fd.revents & POLLERR))
			return failed(check, "the connection was ended before it was accepted");
		return ES_SERVER_CHECK_PENDING;
	}
	if (waits < 0 && waits != -ENOENT)
		return failed(check, "whether it accepts cannot be seen: %s", strerror(-waits));
	/* Accepted; or ended already by who accepted it; or by the end of a server that had not. */
	if (waits == -ENOENT && check->is_overdue)
		return failed(check, "the connection was ended before it was accepted");
	return passed(check);
}

/* By HTTP. */
static enum es_server_check_result converse(struct es_server_check *check, unsigned long long now_ns)
{
	enum es_server_check_result result;
	ssize_t sent;

	if (!check->is_accepted && is_waiting(check) == 1) {
		es_sock_diag_listeners(on_listener, check);
	} else if (!check->is_accepted) {
		check->is_accepted = 1;
		check->accepted_ms = check->elapsed_ms;
	}
	if (check->is_asking)
		return ask_for_tls(check);
	if (check->conf.type == ES_CONF_CHECK_HTTPS && !check->is_shaken) {
		result = shake_hands(check);
		if (result != ES_SERVER_CHECK_PASSED)
			return result;
	}
	if (!check->is_sent) {
		sent = send_request(check);
		if (sent == -EAGAIN)
			return ES_SERVER_CHECK_PENDING;
		if (sent <= 0)
			return is_over(check);
		check->is_sent = 1;
	}
	result = read_answer(check);
	if (result == ES_SERVER_CHECK_PASSED)
		check->duration_s = (double)(now_ns - check->began_ns) / 1e9;
	return result;
}

static enum es_server_check_result go_on(struct es_server_check *check, unsigned long long now_ns)
{
	struct pollfd fd = {.fd = check->fd, .events = POLLOUT};
	socklen_t len = sizeof(int);
	int error = 0;

	if (!check->is_connected) {
		if (poll(&fd, 1, 0) <= 0)
			return ES_SERVER_CHECK_PENDING;
		getsockopt(check->fd, SOL_SOCKET, SO_ERROR, &error, &len);
		if (error && check->is_asking)
			return is_over(check);
		check->is_refused = error == ECONNREFUSED && check->is_own_port;
		if (error)
			return failed(check, "no connection: %s", strerror(error));
		check->is_connected = 1;
		/* Whoever accepts it finds its end, and waits for nothing: nobody looks here at that very
		 * moment. By HTTP a server might take it for the client's going away. */
		if (!es_conf_check_is_http(&check->conf))
			shutdown(check->fd, SHUT_WR);
		check->duration_s = (double)(now_ns - check->began_ns) / 1e9;
	}
	return es_conf_check_is_http(&check->conf) ? converse(check, now_ns) : look_accepted(check);
}

static enum es_server_check_result time_out(struct es_server_check *check)
{
	if (check->is_asking)
		return is_over(check);
	if (!check->is_connected)
		return failed(check, "no connection within %u ms: the accept queue is full",
			      check->conf.timeout_ms);
	if (check->is_accepted || is_waiting(check) != 1) {
		es_answer_ended(&check->answer, &check->conf, check->conf.timeout_ms, check->why);
		return is_over(check);
	}
	check->is_overdue = !queue_moves(check);
	if (!check->is_overdue)
		return ES_SERVER_CHECK_QUEUED;
	snprintf(check->why, sizeof(check->why), "it accepts no connection within %u ms",
		 check->conf.timeout_ms);
	return ES_SERVER_CHECK_FAILED; /* and goes on */
}

enum es_server_check_result es_server_check_step(struct es_server_check *check, unsigned long long now_ns)
{
	unsigned long long since_ms = (now_ns - check->looked_ns) / 1000000;
	enum es_server_check_result result;

	if (check->fd < 0)
		return ES_SERVER_CHECK_FAILED; /* it did not even begin */
	check->looked_ns += since_ms * 1000000;
	check->elapsed_ms += since_ms < ES_LOOK_MAX_MS ? (unsigned int)since_ms : ES_LOOK_MAX_MS;
	result = go_on(check, now_ns);
	if (result != ES_SERVER_CHECK_PENDING ||
	    check->elapsed_ms - check->accepted_ms < check->conf.timeout_ms)
		return result;
	return time_out(check);
}
