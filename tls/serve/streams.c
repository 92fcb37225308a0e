// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A connection that speaks HTTP/2: its bytes, its time, and how it ends. A stream's own way is stream.c's.
 *
 * A session of nghttp2 cannot travel, the client's bytes can: all that has come stays in the client's text
 * until the first request is decided, and the session that has read it is thrown away if the connection
 * moves.
 */
#include <errno.h>
#include "inspector/base/clock.h"
#include "tls/serve/streams_internal.h"

#define TURNS	 16    /* of ES_SERVE_BUFFER bytes, before other connections have theirs */
#define HOLD_MAX 65536 /* bytes without a request, after which it is not waited for one */
#define NS_PER_S 1000000000ULL

int es_streams_new(struct es_client *client, void (*changed)(void *ctx), void *ctx,
		   struct es_streams **ret_streams)
{
	struct es_streams *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->client = client;
	s->changed = changed;
	s->ctx = ctx;
	if (es_streams_session_new(s)) {
		es_streams_free(&s);
		return -ENOMEM;
	}
	es_streams_count(s, ES_SERVE_http2);
	es_asker_listen(client->serve->asker);
	if (client->is_arrived || client->service->inspect == ES_INSPECT_NEVER)
		es_streams_open(s);
	*ret_streams = s;
	return 0;
}

void es_streams_free(struct es_streams **streams)
{
	struct es_streams *s = *streams;

	if (!s)
		return;
	while (s->first)
		es_streams_remove(s, s->first);
	nghttp2_session_del(s->session);
	es_buffer_fini(&s->frames);
	free(s);
	*streams = NULL;
}

const char *es_streams_node(const struct es_streams *s)
{
	return s->node;
}

int es_streams_has_asked(const struct es_streams *s)
{
	return s->requests > 0;
}

int es_streams_is_idle(const struct es_streams *s)
{
	return !s->count;
}

void es_streams_moved(struct es_streams *s)
{
	if (s->asked)
		es_streams_tell(s, s->asked, ES_ASK_MOVED);
}

void es_streams_stay(struct es_streams *s)
{
	struct es_stream *st = s->asked;

	es_streams_open(s);
	if (!st)
		return;
	es_streams_tell(s, st, ES_ASK_STAYED);
	es_stream_serve(st);
}

/* --- bytes */

static int wants_text(const struct es_streams *s)
{
	return s->state == ES_STREAMS_HOLDS ||
	       (s->state == ES_STREAMS_OPEN && es_buffer_len(&s->client->out) < ES_SERVE_BUFFER);
}

/* Returns whether there was any. */
static int take_text(struct es_streams *s)
{
	struct es_client *c = s->client;
	int has_moved = 0;

	while (wants_text(s) && !s->is_bad && !s->is_calm) {
		size_t len = es_buffer_len(&c->text) - s->fed;

		if (!len && es_client_read(c) <= 0)
			break;
		len = es_buffer_len(&c->text) - s->fed;
		if (nghttp2_session_mem_recv(s->session, es_buffer_front(&c->text) + s->fed, len) !=
		    (ssize_t)len) {
			s->is_bad = 1;
			break;
		}
		s->fed += len;
		has_moved = 1;
		if (s->state == ES_STREAMS_HOLDS && s->fed > HOLD_MAX)
			es_streams_open(s);
		if (s->state == ES_STREAMS_OPEN) {
			es_client_take(c, s->fed);
			s->fed = 0;
		}
		es_streams_place(s);
	}
	return has_moved;
}

/* Returns whether there were any, or -errno. */
static int send_frames(struct es_streams *s)
{
	const uint8_t *bytes;
	int has_moved = 0, rc = 0;
	ssize_t len = 1;

	while (!rc && len > 0 &&
	       es_buffer_len(&s->client->out) + es_buffer_len(&s->frames) < ES_SERVE_BUFFER) {
		len = nghttp2_session_mem_send(s->session, &bytes);
		if (len < 0)
			return -ENOMEM;
		rc = es_buffer_add(&s->frames, bytes, (size_t)len);
		has_moved |= len > 0;
	}
	if (!rc)
		rc = es_client_send(s->client, es_buffer_front(&s->frames), es_buffer_len(&s->frames));
	es_buffer_fini(&s->frames);
	return rc ? rc : has_moved;
}

/* Returns whether anything has moved. */
static int run_streams(struct es_streams *s)
{
	struct es_stream *next;
	int has_moved = 0;

	for (struct es_stream *st = s->first; st; st = next) {
		next = st->next;
		s->is_lost |= st->is_late;
		if (st->is_due)
			has_moved |= es_stream_run(st);
	}
	return has_moved;
}

/* --- ends */

static enum es_streams_result end_with(struct es_streams *s, uint32_t error)
{
	nghttp2_session_terminate_session(s->session, error);
	if (s->state != ES_STREAMS_OPEN)
		es_streams_open(s);
	send_frames(s);
	return ES_STREAMS_OVER;
}

/*
 * Whoever is not to come again is told so, and has what it has asked for; and what it asks until it has
 * heard.
 */
static void tell_to_leave(struct es_streams *s)
{
	struct es_client *c = s->client;

	if (s->state != ES_STREAMS_OPEN || s->left_ns || (!c->serve->is_ending && !c->service->is_drained))
		return;
	es_streams_count(s, ES_SERVE_http2_left);
	nghttp2_submit_shutdown_notice(s->session);
	s->left_ns = es_clock_now_ns() + (unsigned long long)(ES_STREAMS_GRACE_S * (double)NS_PER_S);
}

/* Without a client that sends, uploads do not come to an end. */
static void end_uploads(struct es_streams *s)
{
	for (struct es_stream *st = s->first; st; st = st->next)
		if (!st->is_request_over)
			es_stream_reset(st, NGHTTP2_CANCEL);
}

static enum es_streams_result end_of(struct es_streams *s)
{
	struct es_client *c = s->client;

	if (s->is_lost)
		return ES_STREAMS_LOST;
	if (c->over == ES_CLIENT_BROKEN)
		return ES_STREAMS_OVER;
	if (s->is_bad) {
		es_streams_count(s, ES_SERVE_http2_bad);
		return end_with(s, NGHTTP2_PROTOCOL_ERROR);
	}
	if (s->is_calm) {
		es_streams_count(s, ES_SERVE_http2_calm);
		return end_with(s, NGHTTP2_ENHANCE_YOUR_CALM);
	}
	if (s->moves) {
		s->moves = 0;
		es_client_within(c, 0);
		s->due = ES_STREAMS_DUE_NEVER;
		return ES_STREAMS_MOVE;
	}
	if (c->over == ES_CLIENT_CLOSED && !s->count)
		return end_with(s, NGHTTP2_NO_ERROR);
	if (s->left_ns && !s->count && es_clock_now_ns() >= s->left_ns)
		return end_with(s, NGHTTP2_NO_ERROR);
	if (s->state == ES_STREAMS_OPEN && !nghttp2_session_want_read(s->session) &&
	    !nghttp2_session_want_write(s->session))
		return ES_STREAMS_OVER;
	return ES_STREAMS_GO_ON;
}

static void watch(struct es_streams *s)
{
	static const double seconds[] = {
		[ES_STREAMS_DUE_NEVER] = 0,
		[ES_STREAMS_DUE_HOLD] = ES_STREAMS_HOLD_S,
		[ES_STREAMS_DUE_IDLE] = ES_SERVE_IDLE_S,
		[ES_STREAMS_DUE_GRACE] = ES_STREAMS_GRACE_S,
	};
	struct es_client *c = s->client;
	enum es_streams_due due = ES_STREAMS_DUE_NEVER;

	if (s->state == ES_STREAMS_HOLDS)
		due = ES_STREAMS_DUE_HOLD;
	else if (s->state == ES_STREAMS_OPEN && !s->count)
		due = s->left_ns ? ES_STREAMS_DUE_GRACE : ES_STREAMS_DUE_IDLE;
	if (due != s->due)
		es_client_within(c, seconds[due]);
	s->due = due;
	es_client_watch(c, !c->over && wants_text(s));
}

/* Returns whether anything has moved, or -errno. */
static int turn(struct es_streams *s)
{
	struct es_client *c = s->client;
	int has_moved, rc;
	size_t had;

	if (c->over == ES_CLIENT_NOT_OVER)
		take_text(s);
	if (c->over == ES_CLIENT_CLOSED)
		end_uploads(s);
	es_streams_place(s);
	tell_to_leave(s);
	has_moved = run_streams(s);
	rc = s->state == ES_STREAMS_OPEN ? send_frames(s) : 0;
	had = es_buffer_len(&c->out);
	if (rc < 0 || es_client_flush(c))
		return -EPIPE;
	return has_moved || rc || es_buffer_len(&c->out) < had;
}

enum es_streams_result es_streams_run(struct es_streams *s)
{
	enum es_streams_result result;
	int rc = 1;

	for (int i = 0; i < TURNS && rc > 0; i++) {
		rc = turn(s);
		if (rc < 0)
			return ES_STREAMS_LOST;
		result = end_of(s);
		if (result != ES_STREAMS_GO_ON)
			return result;
	}
	if (rc > 0)
		es_client_soon(s->client);
	watch(s);
	return ES_STREAMS_GO_ON;
}

enum es_streams_result es_streams_end(struct es_streams *s)
{
	return end_with(s, NGHTTP2_NO_ERROR);
}

enum es_streams_result es_streams_expired(struct es_streams *s)
{
	enum es_streams_due due = s->due;

	s->due = ES_STREAMS_DUE_NEVER;
	if (due == ES_STREAMS_DUE_IDLE)
		return es_streams_end(s);
	if (due == ES_STREAMS_DUE_HOLD)
		es_streams_open(s);
	return es_streams_run(s);
}
