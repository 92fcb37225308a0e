// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * All that a client is sent, by whom its records are written, and how the connection ends in the orderly way.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include "inspector/base/clock.h"
#include "tls/serve/client_internal.h"

#define LEAVE_NS 30000000000ULL /* at most, for a client that sends and does not read */
#define REST_MAX (1 << 20)	/* read at once of what nobody wants */
#define OUT_S	 0.01
#define STUCK_NS ((unsigned long long)ES_SERVE_STUCK_S * 1000000000ULL)

int es_client_queue(struct es_client *c, const uint8_t *bytes, size_t len)
{
	int rc = es_buffer_add(&c->out, bytes, len);

	if (rc)
		es_client_break_off(c, "no memory");
	return rc;
}

void es_client_queue_handshake(struct es_client *c)
{
	const uint8_t *bytes;
	size_t len;

	while ((len = es_tls_handshake_pending(c->handshake, &bytes)) != 0) {
		if (es_client_queue(c, bytes, len))
			return;
		es_tls_handshake_sent(c->handshake, len);
	}
}

int es_client_say(struct es_client *c, const uint8_t *bytes, size_t len)
{
	if (!c->offload)
		return es_client_queue(c, bytes, len);
	es_offload_alert(c->offload, bytes, len);
	return 0;
}

int es_client_send(struct es_client *c, const void *text, size_t len)
{
	size_t records = (len + c->text_max - 1) / c->text_max;
	const uint8_t *from = text;

	es_client_name_home(c, c->serve->self_number); /* tickets come first, as their numbers do */
	if (c->offload)
		return es_buffer_add(&c->out, text, len);
	if (len && !es_buffer_room(&c->out, len + records * es_tls_records_write_room(0)))
		return -ENOMEM;
	while (len) {
		size_t part = len < c->text_max ? len : c->text_max;
		long written = es_tls_records_write(c->records, from, part, c->out.bytes + c->out.end);

		if (written < 0)
			return (int)written;
		es_buffer_added(&c->out, (size_t)written);
		from += part;
		len -= part;
	}
	return 0;
}

/* Give TCP some of it. Returns 0 or -errno. */
static int push(struct es_client *c)
{
	ssize_t sent;

	if (c->offload)
		return es_offload_push(c->offload, &c->out);
	sent = send(c->fd, es_buffer_front(&c->out), es_buffer_len(&c->out), MSG_NOSIGNAL);
	if (sent < 0)
		return -errno;
	es_buffer_take(&c->out, (size_t)sent);
	return 0;
}

int es_client_flush(struct es_client *c)
{
	while (es_client_queued(c) && !c->is_unwritable && !c->is_holding) {
		size_t had = es_client_queued(c);
		int rc = push(c);

		es_serve_count_by(c->service->counters, ES_SERVE_bytes_out, had - es_client_queued(c));
		if (rc == -EAGAIN)
			return 0;
		if (rc && rc != -EINTR)
			c->is_unwritable = 1;
	}
	if (c->is_unwritable)
		return -EPIPE;
	es_buffer_rest(&c->out);
	return 0;
}

/* Let the kernel write its records, if that pays. */
static void offload(struct es_client *c, uint64_t left)
{
	const struct es_ktls *ktls = c->serve->ktls;
	const struct es_tls_suite *suite;
	struct es_tls_state state;
	int rc;

	if (!ktls || !c->service->has_ktls || c->is_not_offloaded || c->text_max < ES_TLS_TEXT_MAX ||
	    left < ES_SERVE_KTLS_MIN || es_client_flush(c) || es_client_queued(c))
		return;
	es_tls_records_state(c->records, &state);
	suite = es_tls_suite_find(state.version, state.suite);
	/* The kernel cannot be given another key later, and records may be as short as a page. */
	rc = !(c->serve->ktls_has & es_ktls_bit(suite)) ||
	     (suite->record_limit && state.server.number + left / 4096 >= suite->record_limit / 2);
	es_tls_state_wipe(&state);
	if (!rc) {
		rc = es_offload_new(ktls, c->fd, c->records, &c->offload);
		es_serve_count(c->service->counters, rc ? ES_SERVE_ktls_refused : ES_SERVE_ktls);
	}
	c->is_not_offloaded = rc != 0;
}

ssize_t es_client_pass(struct es_client *c, int fd, uint64_t left)
{
	if (!c->offload)
		offload(c, left);
	/* A short end is read with what follows it, into one record. */
	if (!c->offload || left < ES_TLS_TEXT_MAX || es_buffer_len(&c->out))
		return -EOPNOTSUPP;
	return es_offload_take(c->offload, fd, left < SIZE_MAX ? (size_t)left : SIZE_MAX);
}

int es_client_is_used_up(const struct es_client *c)
{
	return c->offload && (es_tls_records_is_used_up(c->records) || es_offload_is_late(c->offload));
}

void es_client_name_home(struct es_client *c, unsigned int home)
{
	struct es_tls_state state;
	int count;

	if (!c->handshake || c->phase != ES_CLIENT_OPEN)
		return;
	es_tls_records_state(c->records, &state);
	count = es_tls_handshake_tickets(c->handshake, (uint8_t)home, state.server.number);
	es_tls_state_wipe(&state);
	es_tls_records_pass(c->records, count);
	if (count < 0)
		es_client_break_off(c, "tickets that nobody has counted");
	else
		es_client_queue_handshake(c);
	es_tls_handshake_free(&c->handshake);
}

void es_client_release(struct es_client *c)
{
	es_client_name_home(c, c->serve->self_number);
	if (c->is_holding)
		ev_timer_stop(c->serve->loop, &c->soon);
	c->is_holding = 0;
}

int es_client_is_settled(const struct es_client *c)
{
	int bytes = 0;

	if (c->offload)
		return !es_buffer_len(&c->out) && es_offload_settle(c->offload, c->records);
	return (!es_buffer_len(&c->out) || c->is_holding) && !ioctl(c->fd, SIOCOUTQ, &bytes) && !bytes;
}

/* Bytes that are left for it, here and in TCP. */
static size_t unread(const struct es_client *c)
{
	int bytes = 0;

	return es_client_queued(c) + (ioctl(c->fd, SIOCOUTQ, &bytes) ? 0 : (unsigned int)bytes);
}

void es_client_leave(struct es_client *c)
{
	uint8_t bye[64];

	if (c->phase == ES_CLIENT_LEAVES)
		return;
	es_client_release(c);
	/* The farewell below is not worth waiting for: it may be to one that has vanished. */
	if (c->over != ES_CLIENT_BROKEN && unread(c))
		c->read_ns = es_clock_now_ns();
	/* After an alert nothing is said. */
	if (c->phase == ES_CLIENT_OPEN && c->over != ES_CLIENT_BROKEN)
		es_client_say(c, bye, es_tls_records_close(c->records, bye));
	c->phase = ES_CLIENT_LEAVES;
	c->leaves_ns = es_clock_now_ns() + LEAVE_NS;
	es_buffer_fini(&c->in);
	es_buffer_fini(&c->text);
	es_client_within(c, ES_SERVE_LINGER_S);
}

/* Has TCP all of it? It is asked again soon, since nothing else tells. */
static int is_out(struct es_client *c)
{
	unsigned int unacknowledged;

	if (!c->offload || es_offload_is_out(c->offload, &unacknowledged))
		return 1;
	ev_timer_set(&c->soon, OUT_S, 0.0);
	ev_timer_start(c->serve->loop, &c->soon);
	return 0;
}

int es_client_is_left(struct es_client *c)
{
	size_t had = es_client_queued(c), dropped = 0;
	ssize_t got = 0;

	if (es_client_flush(c))
		return 1;
	if (es_client_queued(c)) {
		/* The client may take its time as long as it reads. */
		if (es_client_queued(c) < had)
			es_client_within(c, ES_SERVE_STUCK_S);
		return 0;
	}
	if (!c->is_shut && is_out(c)) {
		shutdown(c->fd, SHUT_WR);
		c->is_shut = 1;
		es_client_within(c, ES_SERVE_LINGER_S);
	}
	/* A RST for what nobody reads could overtake the last bytes. */
	while (!c->is_fin && dropped < REST_MAX) {
		got = recv(c->fd, NULL, ES_CLIENT_READ_SIZE, MSG_TRUNC);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		dropped += (size_t)got;
	}
	if (dropped && es_clock_now_ns() < c->leaves_ns)
		es_client_within(c, ES_SERVE_LINGER_S);
	if (!got)
		c->is_fin = 1;
	return (c->is_fin && c->is_shut) || (got < 0 && errno != EAGAIN);
}

int es_client_lingers(struct es_client *c)
{
	unsigned long long now_ns = es_clock_now_ns();
	size_t left = unread(c);

	/* To TCP, FIN is a byte. */
	if (!c->read_ns || (c->is_shut && left <= 1))
		return 0;
	if (left != c->unread)
		c->read_ns = now_ns;
	c->unread = left;
	if (now_ns - c->read_ns >= STUCK_NS)
		return 0;
	c->is_lingering = 1;
	es_client_within(c, ES_SERVE_LINGER_S);
	return 1;
}
