// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One stream's request and response. Which streams there are, and what the connection does, is streams.c's;
 * where a request is served was decided before.
 */
#include <errno.h>
#include <stdio.h>
#include "inspector/base/clock.h"
#include "tls/http/request.h"
#include "tls/serve/errand.h"
#include "tls/serve/refuse.h"
#include "tls/serve/stream.h"

#define LINES_MAX 65536 /* of a response's head, or of its trailers */

static void count(const struct es_stream *st, enum es_serve_counter which)
{
	es_serve_count(st->client->service->counters, which);
}

static void due(void *ctx)
{
	struct es_stream *st = ctx;

	st->is_due = 1;
	st->changed(st->ctx);
}

/* --- ends */

/* @len bytes of the request's body are not here any more: the client may send as many. */
static void consumed(const struct es_stream *st, size_t len)
{
	nghttp2_session_consume(st->session, st->id, len);
}

/* The server is not given any of it. */
static void drop_body(struct es_stream *st)
{
	size_t len = es_buffer_len(&st->body);

	if (len)
		consumed(st, len);
	es_buffer_fini(&st->body);
}

void es_stream_stop(struct es_stream *st)
{
	st->phase = ES_STREAM_OVER;
	es_question_free(&st->question);
	es_upstream_free(&st->upstream);
	ev_timer_stop(st->client->serve->loop, &st->timer);
	drop_body(st);
}

void es_stream_reset(struct es_stream *st, uint32_t error)
{
	if (st->phase == ES_STREAM_OVER)
		return;
	es_stream_stop(st);
	st->is_ours = 1;
	nghttp2_submit_rst_stream(st->session, NGHTTP2_FLAG_NONE, st->id, error);
}

/* The server has not done its part. */
static void wrong(struct es_stream *st, unsigned int status)
{
	count(st, ES_SERVE_upstream_failed);
	es_upstream_free(&st->upstream);
	if (st->is_headed)
		es_stream_reset(st, NGHTTP2_INTERNAL_ERROR);
	else
		es_stream_refuse(st, status);
}

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct es_stream *st = timer->data;

	(void)loop;
	(void)events;
	if (st->phase == ES_STREAM_READS)
		st->is_late = 1; /* no other frame can come before the rest */
	else if (st->wait == ES_STREAM_REQUEST && !st->is_headed)
		es_stream_refuse(st, 408);
	else if (st->wait == ES_STREAM_REQUEST || st->wait == ES_STREAM_READER)
		es_stream_reset(st, NGHTTP2_CANCEL);
	else
		wrong(st, 504);
	due(st);
}

void es_stream_init(struct es_stream *st, struct es_client *client, nghttp2_session *session, int32_t id,
		    void (*changed)(void *ctx), void *ctx)
{
	*st = (struct es_stream){
		.client = client, .session = session, .id = id, .changed = changed, .ctx = ctx};
	ev_timer_init(&st->timer, on_timer, ES_SERVE_HEAD_S, 0.0);
	st->timer.data = st;
	ev_timer_start(client->serve->loop, &st->timer);
}

void es_stream_fini(struct es_stream *st)
{
	ev_timer_stop(st->client->serve->loop, &st->timer);
	es_question_free(&st->question);
	es_upstream_free(&st->upstream);
	es_fields_fini(&st->fields);
	free(st->text);
	free(st->head);
	es_buffer_fini(&st->for_server);
	es_buffer_fini(&st->body);
	es_buffer_fini(&st->lines);
	es_buffer_fini(&st->out);
}

/* --- the request */

static int is_connect(const struct es_fields *f)
{
	return f->method.len == 7 && !memcmp(f->bytes.bytes + f->method.off, "CONNECT", 7);
}

unsigned int es_stream_read(struct es_stream *st, int has_body)
{
	long len;

	ev_timer_stop(st->client->serve->loop, &st->timer);
	st->is_request_over = !has_body;
	if (is_connect(&st->fields) && !st->fields.is_bad)
		return 405;
	len = es_fields_head(&st->fields, has_body, &st->text);
	es_fields_fini(&st->fields);
	if (len == -EMSGSIZE)
		return 431;
	if (len < 0)
		return len == -EBADMSG ? 400 : 503;
	st->text_len = (size_t)len;
	st->head = malloc(sizeof(*st->head));
	if (!st->head)
		return 503;
	es_http_head_init(st->head);
	/* It may be all that HTTP/1.1 may be, and nothing else. */
	if (es_http_head_scan(st->head, st->text, st->text_len) != ES_HTTP_DONE ||
	    st->head->head_len_bytes != st->text_len)
		return 400;
	st->is_chunked = st->head->body == ES_HTTP_BODY_CHUNKED;
	return 0;
}

int es_stream_body(struct es_stream *st, const uint8_t *bytes, size_t len)
{
	st->is_due = 1;
	return es_buffer_add(&st->body, bytes, len);
}

static struct es_errand errand_of(struct es_stream *st)
{
	return (struct es_errand){.client = st->client,
				  .head = &st->for_server,
				  .may_repeat = st->may_repeat,
				  .changed = due,
				  .ctx = st};
}

void es_stream_serve(struct es_stream *st)
{
	struct es_errand errand;
	int rc;

	st->phase = ES_STREAM_SERVES;
	st->is_due = 1;
	st->began_ns = es_clock_now_ns();
	st->is_request_sent = st->head->body == ES_HTTP_BODY_NONE;
	st->may_repeat = st->is_request_sent && es_errand_may_repeat(st->head->method);
	es_tls_response_init(&st->response, st->head->method == ES_HTTP_METHOD_HEAD, 0);
	rc = es_errand_head(st->client, st->head, st->text, &st->for_server);
	free(st->text);
	free(st->head);
	st->text = NULL;
	st->head = NULL;
	errand = errand_of(st);
	if (rc || es_errand_begin(&errand, &st->upstream))
		wrong(st, 502);
}

/* As much of the body as the server's connection has room for. Returns 0 or -ENOMEM. */
static int give_body(struct es_stream *st)
{
	struct es_buffer *out = &st->upstream->out;
	char size[24];
	int rc = 0;

	while (!rc && es_buffer_len(&st->body) && es_buffer_len(out) < ES_SERVE_BUFFER) {
		size_t len = es_buffer_len(&st->body);

		len = len < ES_TLS_TEXT_MAX ? len : ES_TLS_TEXT_MAX;
		if (st->is_chunked)
			rc = es_buffer_add(out, size, (size_t)snprintf(size, sizeof(size), "%zx\r\n", len));
		if (!rc)
			rc = es_buffer_add(out, es_buffer_front(&st->body), len);
		if (!rc && st->is_chunked)
			rc = es_buffer_add(out, "\r\n", 2);
		es_buffer_take(&st->body, len);
		consumed(st, len);
		st->has_moved = 1;
	}
	if (!rc && st->is_request_over && !st->is_request_sent && !es_buffer_len(&st->body)) {
		st->is_request_sent = 1;
		es_buffer_rest(&st->body);
		if (st->is_chunked)
			rc = es_buffer_add(out, "0\r\n\r\n", 5);
	}
	return rc;
}

static void send_request(struct es_stream *st)
{
	size_t had;

	if (st->is_cut || give_body(st)) {
		drop_body(st);
		return;
	}
	had = es_buffer_len(&st->upstream->out);
	if (es_upstream_flush(st->upstream)) {
		/* It may have answered before, and then that is to be read. */
		st->is_cut = 1;
		es_buffer_fini(&st->upstream->out);
		st->upstream->is_connecting = 0;
		drop_body(st);
		st->has_moved = 1;
	} else if (es_buffer_len(&st->upstream->out) < had) {
		st->has_moved = 1;
	}
}

/* --- the response */

static void put_status(uint8_t value[3], unsigned int status)
{
	value[0] = (uint8_t)('0' + status / 100 % 10);
	value[1] = (uint8_t)('0' + status / 10 % 10);
	value[2] = (uint8_t)('0' + status % 10);
}

/*
 * nghttp2's names and values for what has been read into @st->lines; @ret_count of them. Returns 0 or
 * -EBADMSG.
 */
static int fields_of(struct es_stream *st, unsigned int status, uint8_t value[3],
		     nghttp2_nv nv[ES_FIELDS_MAX + 1], size_t *ret_count)
{
	static uint8_t name[] = ":status";
	struct es_field fields[ES_FIELDS_MAX];
	long count = es_fields_of_head((char *)es_buffer_front(&st->lines), es_buffer_len(&st->lines),
				       !status, fields);
	size_t at = 0;

	if (count < 0)
		return -EBADMSG;
	if (status) {
		put_status(value, status);
		nv[at++] = (nghttp2_nv){.name = name, .value = value, .namelen = 7, .valuelen = 3};
	}
	for (long i = 0; i < count; i++)
		nv[at++] = (nghttp2_nv){.name = (uint8_t *)fields[i].name,
					.value = (uint8_t *)fields[i].value,
					.namelen = fields[i].name_len,
					.valuelen = fields[i].value_len};
	*ret_count = at;
	return 0;
}

static int tell_trailers(struct es_stream *st)
{
	nghttp2_nv nv[ES_FIELDS_MAX + 1];
	size_t count;
	int rc = fields_of(st, 0, NULL, nv, &count);

	/* It had none, or none that may be told. */
	if (rc || !count)
		return 0;
	return nghttp2_submit_trailer(st->session, st->id, nv, count) ? 0 : 1;
}

/*
 * A response may be over before the request is. With its end the stream could end at any moment, so the
 * client does not get that before the server has had the rest.
 */
static int may_end(const struct es_stream *st)
{
	return st->is_response_over && !st->upstream;
}

/* nghttp2 asks for the next bytes of the body. */
static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *bytes, size_t len, uint32_t *flags,
			 nghttp2_data_source *source, void *ctx)
{
	struct es_stream *st = source->ptr;
	size_t there = es_buffer_len(&st->out);

	(void)session;
	(void)id;
	(void)ctx;
	if (!there && !may_end(st)) {
		st->is_deferred = 1;
		return NGHTTP2_ERR_DEFERRED;
	}
	len = len < there ? len : there;
	if (len)
		memcpy(bytes, es_buffer_front(&st->out), len);
	es_buffer_take(&st->out, len);
	st->has_moved = 1;
	st->is_due = 1;
	if (len < there || !may_end(st))
		return (ssize_t)len;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	st->is_told = 1;
	if (es_buffer_len(&st->lines) && tell_trailers(st))
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
	return (ssize_t)len;
}

/* A whole head is in @st->lines. @is_over: no body follows. Returns 0 or -EBADMSG. */
static int tell_head(struct es_stream *st, unsigned int status, int is_over)
{
	nghttp2_data_provider body = {.source = {.ptr = st}, .read_callback = read_body};
	nghttp2_nv nv[ES_FIELDS_MAX + 1];
	int is_last =
		is_over && (!st->upstream || (st->is_request_sent && !es_buffer_len(&st->upstream->out)));
	uint8_t value[3];
	size_t count_nv;
	int rc = fields_of(st, status, value, nv, &count_nv);

	if (!rc && status < 200)
		rc = nghttp2_submit_headers(st->session, NGHTTP2_FLAG_NONE, st->id, NULL, nv, count_nv, NULL);
	else if (!rc)
		rc = nghttp2_submit_response(st->session, st->id, nv, count_nv, is_last ? NULL : &body);
	es_buffer_fini(&st->lines);
	if (!rc && status >= 200) {
		st->is_headed = 1;
		st->is_told = (uint8_t)is_last;
	}
	return rc ? -EBADMSG : 0;
}

/* One part of the response. Returns 0 or -errno: it can be given to nobody. */
static int take_part(struct es_stream *st, const uint8_t *bytes, size_t len, enum es_tls_response_part part)
{
	switch (part) {
	case ES_TLS_PART_BODY:
		return es_buffer_add(&st->out, bytes, len);
	case ES_TLS_PART_CODING:
		return 0;
	default:
		if (es_buffer_len(&st->lines) + len > LINES_MAX)
			return -EMSGSIZE;
		return es_buffer_add(&st->lines, bytes, len);
	}
}

/* Bytes of HTTP/1.1 that are the response. Returns 0; 1: it is over; -errno: they are none. */
static int read_response(struct es_stream *st, const uint8_t *bytes, size_t len)
{
	size_t used = 0, part_len;
	int rc = 0;

	while (!rc && used < len) {
		unsigned int heads = st->response.heads;
		enum es_tls_response_part part;
		enum es_tls_response_end end =
			es_tls_response_part(&st->response, bytes + used, len - used, &part_len, &part);
		int is_over = end == ES_TLS_RESPONSE_OVER;

		if (end == ES_TLS_RESPONSE_BAD || end == ES_TLS_RESPONSE_TUNNEL)
			return -EBADMSG;
		rc = take_part(st, bytes + used, part_len, part);
		used += part_len;
		st->bytes += part_len;
		if (!rc && st->response.heads != heads)
			rc = tell_head(st, st->response.status, is_over);
		if (end == ES_TLS_RESPONSE_AT_CLOSE)
			st->is_upstream_last = 1;
		if (!rc && is_over) {
			if (!st->response.keeps || used < len)
				st->is_upstream_last = 1;
			return 1;
		}
	}
	return rc;
}

static void response_over(struct es_stream *st)
{
	st->is_response_over = 1;
	st->is_whole = st->phase == ES_STREAM_SERVES;
	st->status = st->response.status;
	st->took_us = (es_clock_now_ns() - st->began_ns) / 1000;
}

/* The server's connection has ended, or failed. */
static void upstream_ended(struct es_stream *st, int is_orderly)
{
	struct es_errand errand = errand_of(st);

	st->has_moved = 1;
	if (!st->bytes) {
		if (es_errand_again(&errand, &st->upstream)) {
			st->may_repeat = 0;
			st->is_cut = 0;
			return;
		}
		wrong(st, 502);
		return;
	}
	if (is_orderly && st->is_upstream_last) {
		response_over(st);
		return;
	}
	count(st, ES_SERVE_upstream_bad);
	wrong(st, 502);
}

static void take_response(struct es_stream *st)
{
	uint8_t *scratch = st->client->serve->scratch;
	ssize_t got;
	int rc;

	while (st->phase == ES_STREAM_SERVES && !st->is_response_over &&
	       es_buffer_len(&st->out) < ES_SERVE_BUFFER) {
		got = es_upstream_receive(st->upstream, scratch, ES_TLS_TEXT_MAX);
		if (got == -EAGAIN)
			return;
		if (got <= 0) {
			upstream_ended(st, !got);
			return;
		}
		st->has_moved = 1;
		st->may_repeat = 0;
		es_buffer_fini(&st->for_server);
		rc = read_response(st, scratch, (size_t)got);
		if (rc == 1) {
			response_over(st);
		} else if (rc) {
			count(st, ES_SERVE_upstream_bad);
			wrong(st, 502);
		}
	}
}

/* Nobody needs the server's connection any more. */
static void let_go(struct es_stream *st)
{
	int is_clean = st->is_request_sent && !st->is_cut && !st->is_upstream_last &&
		       !es_buffer_len(&st->upstream->out);

	if (is_clean && st->client->service->tell != ES_TLS_TELL_PROXY)
		es_upstream_keep(&st->upstream);
	else
		es_upstream_free(&st->upstream);
	st->is_cut |= !st->is_request_sent;
	es_buffer_fini(&st->for_server);
}

static int is_head(const struct es_stream *st)
{
	return st->head ? st->head->method == ES_HTTP_METHOD_HEAD : st->response.is_head;
}

void es_stream_answer(struct es_stream *st, const uint8_t *text, size_t len)
{
	st->phase = ES_STREAM_TELLS;
	st->is_due = 1;
	st->bytes = 0;
	es_buffer_fini(&st->lines);
	es_tls_response_init(&st->response, is_head(st), 0);
	if (read_response(st, text, len) == 1)
		response_over(st);
	else
		es_stream_reset(st, NGHTTP2_INTERNAL_ERROR);
	drop_body(st);
}

void es_stream_refuse(struct es_stream *st, unsigned int status)
{
	char text[ES_REFUSE_MAX];
	size_t len = es_refuse_text(status, is_head(st), text);

	es_stream_answer(st, (const uint8_t *)text, len);
}

/* --- both */

static enum es_stream_wait waits_for(const struct es_stream *st)
{
	if (es_buffer_len(&st->out) || (st->is_response_over && !st->is_told))
		return ES_STREAM_READER;
	if (st->upstream && st->upstream->is_connecting)
		return ES_STREAM_CONNECTION;
	if (!st->is_request_over && !st->is_cut && (!st->upstream || !es_buffer_len(&st->upstream->out)))
		return ES_STREAM_REQUEST;
	return ES_STREAM_RESPONSE;
}

static void watch(struct es_stream *st)
{
	static const double seconds[] = {
		[ES_STREAM_CONNECTION] = ES_SERVE_CONNECT_S,
		[ES_STREAM_RESPONSE] = ES_SERVE_RESPONSE_S,
		[ES_STREAM_REQUEST] = ES_SERVE_STUCK_S,
		[ES_STREAM_READER] = ES_SERVE_STUCK_S,
	};
	enum es_stream_wait wait = waits_for(st);

	if (st->has_moved || wait != st->wait) {
		st->timer.repeat = seconds[wait];
		ev_timer_again(st->client->serve->loop, &st->timer);
	}
	st->wait = wait;
	if (st->upstream)
		es_upstream_watch(st->upstream,
				  !st->is_response_over && es_buffer_len(&st->out) < ES_SERVE_BUFFER);
}

/* The client has all, but goes on sending what nobody wants. */
static int is_done(const struct es_stream *st)
{
	return st->is_told && !es_buffer_len(&st->out) && !st->is_request_over &&
	       (st->is_cut || st->phase == ES_STREAM_TELLS);
}

int es_stream_run(struct es_stream *st)
{
	int has_moved;

	st->is_due = 0;
	if (st->phase != ES_STREAM_SERVES && st->phase != ES_STREAM_TELLS)
		return 0;
	if (st->phase == ES_STREAM_TELLS)
		drop_body(st);
	if (st->upstream)
		send_request(st);
	else
		drop_body(st);
	if (st->upstream)
		take_response(st);
	if (st->phase == ES_STREAM_OVER)
		return 1;
	if (st->upstream && st->is_response_over &&
	    (st->is_cut || st->is_upstream_last ||
	     (st->is_request_sent && !es_buffer_len(&st->upstream->out))))
		let_go(st);
	if (st->is_deferred && (es_buffer_len(&st->out) || may_end(st))) {
		st->is_deferred = 0;
		nghttp2_session_resume_data(st->session, st->id);
		st->has_moved = 1;
	}
	if (is_done(st)) {
		es_stream_reset(st, NGHTTP2_NO_ERROR);
		return 1;
	}
	has_moved = st->has_moved;
	watch(st);
	st->has_moved = 0;
	st->is_due |= has_moved;
	return has_moved;
}
