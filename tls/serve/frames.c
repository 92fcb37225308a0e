// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The session of nghttp2 behind a connection: streams come and go, requests are read, and a client that makes
 * this side work for nothing is found out.
 */
#include <errno.h>
#include "inspector/base/clock.h"
#include "tls/serve/streams_internal.h"

#define NS_PER_S 1000000000ULL

static int take_one(struct es_bucket *b, double most, double per_s)
{
	unsigned long long now_ns = es_clock_now_ns();

	b->left += b->last_ns ? (double)(now_ns - b->last_ns) / (double)NS_PER_S * per_s : most;
	b->left = b->left < most ? b->left : most;
	b->last_ns = now_ns;
	b->left -= 1;
	return b->left >= 0;
}

/* --- what the daemon is told */

void es_streams_tell(struct es_streams *s, struct es_stream *st, enum es_ask_kind kind)
{
	struct es_ask ask = {.kind = kind, .id = st->ask_id, .flow = s->client->flow};

	if (!st->is_asked)
		return;
	if (kind == ES_ASK_DONE && st->is_whole && st->is_told) {
		ask.status = st->status;
		ask.bytes = st->bytes;
		ask.duration_us = st->took_us;
	}
	es_asker_tell(s->client->serve->asker, &ask);
	if (kind == ES_ASK_MOVED || kind == ES_ASK_DONE)
		st->is_asked = 0;
}

/* --- streams come and go */

static void stream_changed(void *ctx)
{
	struct es_streams *s = ctx;

	s->changed(s->ctx);
}

static int stream_new(struct es_streams *s, int32_t id)
{
	struct es_stream *st = malloc(sizeof(*st));

	if (!st)
		return -ENOMEM;
	es_stream_init(st, s->client, s->session, id, stream_changed, s);
	st->previous = s->last;
	if (s->last)
		s->last->next = st;
	else
		s->first = st;
	s->last = st;
	s->count++;
	s->client->service->places.streams++;
	return nghttp2_session_set_stream_user_data(s->session, id, st) ? -ENOMEM : 0;
}

/* nghttp2 knows it no more. */
void es_streams_remove(struct es_streams *s, struct es_stream *st)
{
	es_stream_stop(st);
	es_streams_tell(s, st, ES_ASK_DONE);
	if (st->previous)
		st->previous->next = st->next;
	else
		s->first = st->next;
	if (st->next)
		st->next->previous = st->previous;
	else
		s->last = st->previous;
	s->count--;
	s->client->service->places.streams--;
	if (s->asked == st)
		s->asked = NULL;
	es_stream_fini(st);
	free(st);
}

/* --- frames */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
	struct es_streams *s = ctx;

	(void)session;
	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	return stream_new(s, frame->hd.stream_id) ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags, void *ctx)
{
	struct es_stream *st = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	(void)flags;
	(void)ctx;
	/* Fields behind a request's body are given to nobody. */
	if (!st || st->phase != ES_STREAM_READS)
		return 0;
	return es_fields_add(&st->fields, (const char *)name, name_len, (const char *)value, value_len)
		       ? NGHTTP2_ERR_CALLBACK_FAILURE
		       : 0;
}

/* nghttp2 would leave it out. */
static int on_bad_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
			 size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags, void *ctx)
{
	struct es_stream *st = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	(void)name;
	(void)name_len;
	(void)value;
	(void)value_len;
	(void)flags;
	(void)ctx;
	if (st)
		st->fields.is_bad = 1;
	return 0;
}

static int on_body(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes, size_t len,
		   void *ctx)
{
	struct es_stream *st = nghttp2_session_get_stream_user_data(session, id);

	(void)flags;
	(void)ctx;
	if (!st) {
		nghttp2_session_consume(session, id, len);
		return 0;
	}
	return es_stream_body(st, bytes, len) ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static void request_read(struct es_streams *s, struct es_stream *st, int is_over)
{
	es_streams_count(s, ES_SERVE_requests);
	st->is_first = !s->requests++;
	if (!st->is_first && es_places_are_in_use(&s->client->service->places)) {
		es_streams_count(s, ES_SERVE_streams_refused);
		es_stream_reset(st, NGHTTP2_REFUSED_STREAM);
		return;
	}
	st->refuse_with = es_stream_read(st, !is_over);
	st->phase = ES_STREAM_WAITS;
}

/* Frames that ask for nothing are free of charge only in small numbers. */
static int is_of_use(const nghttp2_frame *frame)
{
	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
	case NGHTTP2_RST_STREAM:
	case NGHTTP2_WINDOW_UPDATE:
	case NGHTTP2_GOAWAY:
		return 1;
	case NGHTTP2_DATA:
		return frame->hd.length > frame->data.padlen || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
	default:
		return 0;
	}
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
	struct es_stream *st = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	int is_over = !!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM);
	struct es_streams *s = ctx;

	if (!is_of_use(frame) && !take_one(&s->idles, ES_STREAMS_IDLES, ES_STREAMS_IDLES_S))
		s->is_calm = 1;
	if (!st || (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
		return 0;
	if (st->phase == ES_STREAM_READS) {
		request_read(s, st, is_over);
	} else if (is_over) {
		st->is_request_over = 1;
		st->is_due = 1;
	}
	return 0;
}

/* A client that makes this side do things, and end them at once, is not to go on for ever. */
static void one_reset(struct es_streams *s)
{
	if (!take_one(&s->resets, ES_STREAMS_RESETS, ES_STREAMS_RESETS_S))
		s->is_calm = 1;
}

static int on_bad_frame(nghttp2_session *session, const nghttp2_frame *frame, int error, void *ctx)
{
	struct es_stream *st = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	(void)error;
	one_reset(ctx);
	if (st)
		st->is_ours = 1; /* it ends, and that has been counted */
	return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *ctx)
{
	struct es_stream *st = nghttp2_session_get_stream_user_data(session, id);
	struct es_streams *s = ctx;

	if (!st)
		return 0;
	if (error != NGHTTP2_NO_ERROR && !st->is_ours)
		one_reset(s);
	nghttp2_session_set_stream_user_data(session, id, NULL);
	es_streams_remove(s, st);
	return 0;
}

int es_streams_session_new(struct es_streams *s)
{
	static const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, ES_STREAMS_MAX},
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, ES_STREAMS_WINDOW},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, ES_TLS_HEAD_MAX},
	};
	nghttp2_session_callbacks *callbacks = NULL;
	nghttp2_option *option = NULL;
	int rc = nghttp2_session_callbacks_new(&callbacks);

	if (!rc)
		rc = nghttp2_option_new(&option);
	if (!rc) {
		nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
		nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
		nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, on_bad_header);
		nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_body);
		nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
		nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_bad_frame);
		nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
		nghttp2_option_set_no_auto_window_update(option, 1);
		nghttp2_option_set_no_closed_streams(option, 1);
		rc = nghttp2_session_server_new2(&s->session, callbacks, s, option);
	}
	if (!rc)
		rc = nghttp2_submit_settings(s->session, NGHTTP2_FLAG_NONE, settings,
					     sizeof(settings) / sizeof(settings[0]));
	if (!rc)
		rc = nghttp2_session_set_local_window_size(s->session, NGHTTP2_FLAG_NONE, 0,
							   ES_STREAMS_WINDOWS);
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	return rc ? -ENOMEM : 0;
}
