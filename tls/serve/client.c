// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A client's connection, as bytes: how it begins, and what comes on it; client_out.c has what it is sent. It
 * decides nothing: what requests are, and what becomes of them, is exchange.c's.
 *
 * A connection can move only with the record in which a request begins, so what was read of a record stays
 * in @in until the last byte of its text is taken. At most one record is read at a time, and only when there
 * is too little text: all but the last one then belong to the head that is being read.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <unistd.h>
#include "inspector/base/clock.h"
#include "inspector/base/wall.h"
#include "libearshot/wire.h"
#include "tls/serve/client_internal.h"
#include "tls/serve/window.h"

/* As much as may move, and one more record. */
#define IN_MAX	    (ES_PROGRAM_BYTES_MAX + ES_TLS12_RECORD_MAX)
#define SEALED_ROOM (ES_PROGRAM_BYTES_MAX - ES_CLIENT_PACK_MAX)
#define HOLD_S	    0.2 /* for a client that waits for its tickets, and asks nothing */

static void on_io(struct ev_loop *loop, ev_io *io, int events)
{
	struct es_client *c = io->data;

	(void)loop;
	if (events & EV_READ)
		c->is_drained = 0;
	c->changed(c->ctx);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct es_client *c = timer->data;

	(void)loop;
	(void)events;
	c->expired(c->ctx);
}

static void on_soon(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct es_client *c = timer->data;

	(void)loop;
	(void)events;
	/* A request that is on its way to another node takes them along. OpenSSL is not kept for it. */
	es_client_name_home(c, c->serve->self_number);
	if (!es_buffer_len(&c->text))
		es_client_release(c);
	c->changed(c->ctx);
}

void es_client_init(struct es_client *c, struct es_serve *serve, struct es_serve_service *service, int fd,
		    const struct es_flow *flow)
{
	int one = 1;

	*c = (struct es_client){
		.serve = serve, .service = service, .fd = fd, .flow = *flow, .text_max = ES_TLS_TEXT_MAX};
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	ev_io_init(&c->io, on_io, fd, 0);
	c->io.data = c;
	ev_init(&c->timer, on_timer);
	ev_timer_init(&c->soon, on_soon, 0.0, 0.0);
	c->timer.data = c->soon.data = c;
	es_serve_count(service->counters, ES_SERVE_accepted);
}

void es_client_fini(struct es_client *c, int is_reset)
{
	static const struct linger at_once = {.l_onoff = 1, .l_linger = 0};

	ev_io_stop(c->serve->loop, &c->io);
	ev_timer_stop(c->serve->loop, &c->timer);
	ev_timer_stop(c->serve->loop, &c->soon);
	if (is_reset)
		setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(c->fd);
	es_tls_handshake_free(&c->handshake);
	es_tls_records_free(&c->records);
	es_offload_free(&c->offload);
	es_tls_state_wipe(&c->start);
	es_tls_state_wipe(&c->last);
	es_buffer_fini(&c->in);
	es_buffer_fini(&c->text);
	es_buffer_fini(&c->out);
	es_serve_count(c->service->counters, ES_SERVE_ended);
}

void es_client_soon(struct es_client *c)
{
	if (!ev_is_active(&c->soon)) {
		ev_timer_set(&c->soon, 0.0, 0.0);
		ev_timer_start(c->serve->loop, &c->soon);
	}
}

/* Read what has come. Returns the bytes, or 0: nothing now, or no more. */
static size_t receive(struct es_client *c)
{
	size_t there = es_buffer_len(&c->in), len = ES_CLIENT_READ_SIZE;
	uint8_t *room;
	ssize_t got;

	if (c->is_fin || c->is_drained || c->over == ES_CLIENT_BROKEN || there >= IN_MAX)
		return 0;
	if (len > IN_MAX - there)
		len = IN_MAX - there;
	room = es_buffer_room(&c->in, len);
	if (!room) {
		es_client_break_off(c, "no memory");
		return 0;
	}
	do
		got = recv(c->fd, room, len, 0);
	while (got < 0 && errno == EINTR);
	if (got > 0) {
		c->is_drained = (size_t)got < len;
		es_buffer_added(&c->in, (size_t)got);
		es_serve_count_by(c->service->counters, ES_SERVE_bytes_in, (uint64_t)got);
		return (size_t)got;
	}
	es_buffer_rest(&c->in);
	if (!got)
		c->is_fin = 1;
	else if (errno == EAGAIN)
		c->is_drained = 1;
	else
		es_client_break_off(c, "the connection has ended");
	return 0;
}

static void open_with(struct es_client *c, struct es_tls_state *state)
{
	c->skip = state->consumed;
	state->consumed = 0;
	if (es_tls_records_new(state, &c->records))
		es_client_break_off(c, "a cipher suite that is not known");
	else
		c->phase = ES_CLIENT_OPEN;
	es_tls_state_wipe(state);
}

/* Bytes that were held back; SIZE_MAX: not known yet. */
static size_t held_len(const struct es_client *c)
{
	const uint8_t *at = es_buffer_front(&c->in) + ES_TLS_SEALED_BYTES;

	if (es_buffer_len(&c->in) < ES_TLS_SEALED_BYTES + 2)
		return SIZE_MAX;
	return (size_t)at[0] << 8 | at[1];
}

static void arrive(struct es_client *c)
{
	static const enum es_serve_counter counter[] = {
		[ES_TLS_OPENED] = ES_SERVE_arrived,
		[ES_TLS_SEALED_BAD] = ES_SERVE_arrived_bad,
		[ES_TLS_SEALED_LATE] = ES_SERVE_arrived_late,
		[ES_TLS_SEALED_REPEATED] = ES_SERVE_arrived_repeated,
		[ES_TLS_SEALED_UNKNOWN] = ES_SERVE_arrived_unknown,
		[ES_TLS_SEALED_FULL] = ES_SERVE_arrived_full,
	};
	struct es_tls_state state;
	enum es_tls_opened opened;
	size_t held;

	while ((held = held_len(c)) == SIZE_MAX || es_buffer_len(&c->in) < ES_TLS_SEALED_BYTES + 2 + held)
		if (!receive(c)) {
			if (c->is_fin && !c->over)
				es_client_break_off(c, "it ended before its state was here");
			return;
		}
	if (held > ES_CLIENT_HELD_MAX) {
		es_serve_count(c->service->counters, ES_SERVE_arrived_bad);
		es_client_break_off(c, "a state that was not taken");
		return;
	}
	opened = es_tls_unseal(c->serve->seal, c->serve->taken, &c->flow, c->serve->self, es_wall_ns(),
			       es_buffer_front(&c->in), &state);
	es_serve_count(c->service->counters, counter[opened]);
	if (opened != ES_TLS_OPENED) {
		es_client_break_off(c, "a state that was not taken");
		return;
	}
	if (c->serve->peers)
		es_peers_note(c->serve->peers, state.from, es_clock_now_ns());
	if (state.text_max)
		c->text_max = state.text_max;
	if (state.window)
		es_window_set(c->fd, state.window);
	es_buffer_take(&c->in, ES_TLS_SEALED_BYTES + 2);
	if (es_buffer_add(&c->out, es_buffer_front(&c->in), held))
		es_client_break_off(c, "no memory");
	es_buffer_take(&c->in, held);
	c->is_arrived = 1;
	open_with(c, &state);
}

static void shaken(struct es_client *c)
{
	static const enum es_serve_counter kind[2][2] = {{ES_SERVE_full_12, ES_SERVE_resumed_12},
							 {ES_SERVE_full_13, ES_SERVE_resumed_13}};
	struct es_tls_state state;
	int is_resumed;
	uint8_t home;

	if (es_tls_handshake_state(c->handshake, &state)) {
		es_client_break_off(c, "no state after the handshake");
		return;
	}
	is_resumed = es_tls_handshake_resumed(c->handshake, &home);
	es_serve_count(c->service->counters, ES_SERVE_handshakes);
	if (is_resumed)
		es_serve_count(c->service->counters, ES_SERVE_handshakes_resumed);
	es_serve_count(c->service->counters, kind[state.version == ES_TLS_1_3][is_resumed]);
	c->text_max = es_tls_handshake_text_max(c->handshake);
	if (state.version == ES_TLS_1_3) {
		c->is_holding = 1;
		ev_timer_set(&c->soon, HOLD_S, 0.0);
		ev_timer_start(c->serve->loop, &c->soon);
	} else {
		es_tls_handshake_free(&c->handshake);
	}
	open_with(c, &state);
}

static void shake_failed(struct es_client *c, enum es_serve_counter how, const char *why)
{
	es_serve_count(c->service->counters, ES_SERVE_handshakes_failed);
	es_serve_count(c->service->counters, how);
	es_client_break_off(c, why);
}

/* Take what has come. Returns 0 if more is needed. */
static int step(struct es_client *c)
{
	static const enum es_serve_counter failed[ES_TLS_FAILURES] = {
		[ES_TLS_FAILED_OTHER] = ES_SERVE_failed_other,
		[ES_TLS_FAILED_NO_TLS] = ES_SERVE_failed_no_tls,
		[ES_TLS_FAILED_NOTHING_COMMON] = ES_SERVE_failed_nothing_common,
		[ES_TLS_FAILED_ALERT] = ES_SERVE_failed_alert,
		[ES_TLS_FAILED_CERTIFICATE] = ES_SERVE_failed_certificate,
	};
	enum es_tls_progress progress;
	size_t used = 0;

	progress = es_tls_handshake_step(c->handshake, es_buffer_front(&c->in), es_buffer_len(&c->in), &used);
	es_buffer_take(&c->in, used);
	es_client_queue_handshake(c);
	if (progress == ES_TLS_SHAKEN) {
		shaken(c);
	} else if (progress == ES_TLS_SHAKE_BAD) {
		shake_failed(c, failed[es_tls_handshake_failure(c->handshake)],
			     es_tls_handshake_why(c->handshake));
	}
	return progress != ES_TLS_SHAKING || used;
}

void es_client_shake(struct es_client *c)
{
	if (c->phase == ES_CLIENT_BEGINS) {
		if (!es_buffer_len(&c->in) && !receive(c)) {
			if (c->is_fin && !c->over)
				es_client_break_off(c, "nothing came");
			return;
		}
		c->phase = ES_CLIENT_SHAKES;
		if (*es_buffer_front(&c->in) == ES_TLS_SEALED_FIRST)
			c->phase = ES_CLIENT_ARRIVES;
		else if (es_tls_handshake_new(c->service->context, &c->handshake))
			es_client_break_off(c, "no memory");
	}
	if (c->phase == ES_CLIENT_ARRIVES && !c->over)
		arrive(c);
	while (c->phase == ES_CLIENT_SHAKES && !c->over) {
		if (es_buffer_len(&c->in) && step(c))
			continue;
		if (c->over || receive(c))
			continue;
		if (c->is_fin && !c->over) {
			shake_failed(c, ES_SERVE_failed_left, "it ended within the handshake");
		}
		return;
	}
}

/* Bytes of which the text is taken need not be kept. */
static void forget(struct es_client *c)
{
	es_buffer_take(&c->in, c->decoded);
	c->decoded = c->start_taken = 0;
	c->is_kept = 1;
}

/* The record was text, behind what is in @text already. */
static void has_text(struct es_client *c, const struct es_tls_state *before, const struct es_tls_got *got)
{
	size_t skip = c->skip;

	if (!es_buffer_len(&c->text))
		c->start = *before;
	c->last = *before;
	c->last_at = c->decoded;
	c->last_len = got->text_len;
	c->decoded += got->used;
	es_buffer_added(&c->text, got->text_len);
	c->skip = 0;
	if (skip > got->text_len)
		es_client_break_off(c, "a state that is not of this record");
	else
		es_client_take(c, skip);
}

/* The record was no text: an alert, or about keys. */
static void has_none(struct es_client *c, const struct es_tls_got *got)
{
	/* The answer has the number that a ticket would have had. */
	if (got->reply_len)
		es_tls_handshake_free(&c->handshake);
	c->decoded += got->used;
	if (!es_buffer_len(&c->text))
		forget(c);
	else if (got->reply_len)
		c->is_kept = 0; /* what this side has answered since the head began would be answered again */
	if (got->reply_len && es_client_say(c, got->reply, got->reply_len))
		return;
	if (got->event == ES_TLS_EVENT_CLOSE) {
		c->over = ES_CLIENT_CLOSED;
	} else if (got->event == ES_TLS_EVENT_END || got->event == ES_TLS_EVENT_ERROR) {
		es_serve_count(c->service->counters, ES_SERVE_records_bad);
		es_client_break_off(c, got->why);
	}
}

/* Returns as es_client_read(), or 2: a record without text. */
static int decode(struct es_client *c)
{
	struct es_tls_state before;
	struct es_tls_got got;
	uint8_t *room;

	if (!es_buffer_len(&c->text))
		forget(c);
	room = es_buffer_room(&c->text, ES_TLS_TEXT_MAX);
	if (!room) {
		es_client_break_off(c, "no memory");
		return -1;
	}
	es_tls_records_state(c->records, &before);
	es_tls_records_read(c->records, es_buffer_front(&c->in) + c->decoded,
			    es_buffer_len(&c->in) - c->decoded, es_clock_now_ns(), room, &got);
	if (got.event == ES_TLS_EVENT_TEXT && got.text_len)
		has_text(c, &before, &got);
	else if (got.event != ES_TLS_EVENT_MORE)
		has_none(c, &got);
	es_tls_state_wipe(&before);
	if (c->over)
		return -1;
	if (got.event == ES_TLS_EVENT_MORE)
		return 0;
	return got.event == ES_TLS_EVENT_TEXT && got.text_len && es_buffer_len(&c->text) ? 1 : 2;
}

void es_client_hear(struct es_client *c)
{
	if (!c->over && es_client_may_hear(c))
		receive(c);
}

int es_client_read(struct es_client *c)
{
	int rc;

	if (c->over)
		return -1;
	for (;;) {
		/* Without its first record nothing can move, so none of the others is kept. */
		if (c->decoded > SEALED_ROOM) {
			c->is_kept = 0;
			es_buffer_take(&c->in, c->decoded);
			c->last_at = c->decoded = 0;
		}
		rc = es_buffer_len(&c->in) - c->decoded < ES_TLS_RECORD_HEADER ? 0 : decode(c);
		if (rc == 1 || rc == -1)
			return rc;
		if (rc == 0 && !receive(c))
			break;
	}
	es_buffer_rest(&c->text);
	es_buffer_rest(&c->in);
	if (c->over)
		return -1;
	if (c->is_fin) {
		c->over = ES_CLIENT_CLOSED;
		return -1;
	}
	return 0;
}

void es_client_take(struct es_client *c, size_t len)
{
	size_t left;

	if (!len)
		return;
	es_buffer_take(&c->text, len);
	left = es_buffer_len(&c->text);
	if (!left) {
		forget(c);
	} else if (left <= c->last_len) {
		/* It is all of the last record. If that one is not there any more, nothing before it is. */
		if (c->last_at || !c->is_kept) {
			c->is_kept = c->last_at < c->decoded;
			es_buffer_take(&c->in, c->last_at);
			c->decoded -= c->last_at;
			c->last_at = 0;
		}
		c->start = c->last;
		c->start_taken = c->last_len - left;
	} else {
		c->is_kept = 0; /* no head ends within a record that is not the last */
	}
}

/* A client may want shorter records: then it goes to nodes alone that are known to heed it. */
static int may_be_short(const struct es_client *c, const char *node)
{
	return c->text_max == ES_TLS_TEXT_MAX ||
	       (c->serve->peers &&
		es_peers_can(c->serve->peers, es_tls_node_digest(node), es_clock_now_ns()));
}

long es_client_pack(struct es_client *c, const char *node, uint8_t ret_pack[ES_CLIENT_PACK_MAX])
{
	size_t held = es_buffer_len(&c->out);
	struct es_tls_state state, now;
	int rc;

	if (!may_be_short(c, node) || !c->is_kept || held > ES_CLIENT_HELD_MAX || es_client_is_used_up(c) ||
	    es_buffer_len(&c->in) > SEALED_ROOM || c->start_taken > UINT16_MAX)
		return -EMSGSIZE;
	es_tls_records_state(c->records, &now);
	state = c->start;
	state.server = now.server;
	state.text_max = c->text_max < ES_TLS_TEXT_MAX ? (uint16_t)c->text_max : 0;
	state.from = es_tls_node_digest(c->serve->self);
	state.consumed = (uint16_t)c->start_taken;
	state.window = (uint16_t)es_window_of(c->fd);
	rc = es_tls_seal(c->serve->seal, &c->flow, node, es_wall_ns(), &state, ret_pack);
	es_tls_state_wipe(&state);
	es_tls_state_wipe(&now);
	if (rc)
		return rc;
	ret_pack[ES_TLS_SEALED_BYTES] = (uint8_t)(held >> 8);
	ret_pack[ES_TLS_SEALED_BYTES + 1] = (uint8_t)held;
	if (held)
		memcpy(ret_pack + ES_TLS_SEALED_BYTES + 2, es_buffer_front(&c->out), held);
	return (long)(ES_TLS_SEALED_BYTES + 2 + held);
}

size_t es_client_kept(const struct es_client *c, const uint8_t **ret_bytes)
{
	*ret_bytes = es_buffer_front(&c->in);
	return es_buffer_len(&c->in);
}

void es_client_watch(struct es_client *c, int wants_more)
{
	int events = es_client_queued(c) && !c->is_unwritable && !c->is_holding ? EV_WRITE : 0;

	if (wants_more && !c->is_fin && (c->phase == ES_CLIENT_LEAVES || es_buffer_len(&c->in) < IN_MAX))
		events |= EV_READ;
	if ((c->io.events & (EV_READ | EV_WRITE)) == events && ev_is_active(&c->io) == !!events)
		return;
	ev_io_stop(c->serve->loop, &c->io);
	ev_io_modify(&c->io, events);
	if (events)
		ev_io_start(c->serve->loop, &c->io);
}

void es_client_unwatch(struct es_client *c)
{
	ev_io_stop(c->serve->loop, &c->io);
}
