// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes between a client and the server behind, with little in memory in each direction: who does not read
 * stops the other side.
 */
#include <errno.h>
#include <sys/socket.h>
#include "inspector/base/clock.h"
#include "tls/serve/errand.h"
#include "tls/serve/forward.h"

#define TURNS 16 /* of ES_SERVE_BUFFER bytes, before other connections have theirs */

void es_forward_end(struct es_forward *f)
{
	es_upstream_free(&f->upstream);
	es_buffer_fini(&f->head);
}

static enum es_forward_result wrong(struct es_forward *f, unsigned int status)
{
	es_serve_count(f->client->service->counters, ES_SERVE_upstream_failed);
	f->status = status;
	return f->bytes ? ES_FORWARD_LOST : ES_FORWARD_WRONG;
}

static struct es_errand errand_of(const struct es_forward *f)
{
	return (struct es_errand){.client = f->client,
				  .head = &f->head,
				  .may_repeat = f->may_repeat,
				  .changed = f->changed,
				  .ctx = f->ctx};
}

/* The server's connection was an old one, and has ended without a word. */
static int try_again(struct es_forward *f)
{
	const struct es_errand errand = errand_of(f);

	if (!es_errand_again(&errand, &f->upstream))
		return 0;
	f->may_repeat = 0;
	f->is_cut = 0;
	return 1;
}

enum es_forward_result es_forward_begin(struct es_forward *f, const struct es_http_head *head)
{
	struct es_client *c = f->client;
	struct es_errand errand;

	es_client_release(c);
	f->is_head = head->method == ES_HTTP_METHOD_HEAD;
	f->may_upgrade = head->upgrade;
	f->client_keeps = head->keep_alive;
	f->status = 0;
	f->bytes = 0;
	f->began_ns = es_clock_now_ns();
	f->is_response_over = f->is_response_whole = f->is_cut = f->is_last = f->is_tunnel = f->is_shut = 0;
	f->wait = ES_FORWARD_NOTHING;
	es_tls_body_init(&f->body, head);
	f->is_request_over = f->body.kind == ES_TLS_BODY_NONE;
	f->may_repeat = f->is_request_over && es_errand_may_repeat(head->method) && !head->upgrade;
	es_tls_response_init(&f->response, f->is_head, 0);
	if (es_errand_head(c, head, (const char *)es_buffer_front(&c->text), &f->head))
		return ES_FORWARD_LOST;
	es_client_take(c, head->head_len_bytes);
	errand = errand_of(f);
	if (es_errand_begin(&errand, &f->upstream))
		return wrong(f, 502);
	return es_forward_run(f);
}

/* The client's text to the server. Returns 0; -EBADMSG: no body; -EPIPE: the client has ended within it. */
static int take_request(struct es_forward *f)
{
	struct es_client *c = f->client;
	struct es_upstream *up = f->upstream;
	size_t len, pass;
	long belongs;

	while ((!f->is_request_over || (f->is_tunnel && !f->is_shut)) && !f->is_cut &&
	       es_buffer_len(&up->out) < ES_SERVE_BUFFER) {
		if (!es_buffer_len(&c->text)) {
			int rc = es_client_read(c);

			if (!rc)
				break;
			if (rc < 0 && f->is_tunnel && c->over == ES_CLIENT_CLOSED) {
				f->is_shut = 1;
				break;
			}
			if (rc < 0)
				return -EPIPE;
		}
		len = es_buffer_len(&c->text);
		belongs = (long)len;
		pass = len;
		if (!f->is_tunnel) {
			belongs = es_tls_body_take(&f->body, es_buffer_front(&c->text), len,
						   &f->is_request_over);
			pass = f->body.pass;
		}
		if (belongs < 0)
			return -EBADMSG;
		if (es_buffer_add(&up->out, es_buffer_front(&c->text), pass) ||
		    (f->body.ends_with_line && f->is_request_over && !f->is_tunnel &&
		     es_buffer_add(&up->out, "\r\n", 2)))
			return -ENOMEM;
		es_client_take(c, (size_t)belongs);
		f->has_moved = 1;
	}
	return 0;
}

static void send_request(struct es_forward *f)
{
	size_t had = es_buffer_len(&f->upstream->out);

	if (es_upstream_flush(f->upstream)) {
		/* It may have answered before, and then that is to be read. */
		f->is_cut = 1;
		es_buffer_fini(&f->upstream->out);
		f->upstream->is_connecting = 0;
		f->has_moved = 1;
		return;
	}
	if (es_buffer_len(&f->upstream->out) < had)
		f->has_moved = 1;
	if (f->is_tunnel && f->is_shut == 1 && !es_buffer_len(&f->upstream->out)) {
		shutdown(f->upstream->fd, SHUT_WR);
		f->is_shut = 2;
	}
}

/* The server's connection has ended, or failed. */
static enum es_forward_result upstream_ended(struct es_forward *f, int is_orderly)
{
	if (!f->status && !f->bytes) {
		if (try_again(f)) {
			f->has_moved = 1;
			return ES_FORWARD_GOES_ON;
		}
		return wrong(f, 502);
	}
	if (is_orderly && (f->is_tunnel || f->is_last)) {
		f->is_response_over = f->is_response_whole = 1;
		return ES_FORWARD_GOES_ON;
	}
	es_serve_count(f->client->service->counters, ES_SERVE_upstream_bad);
	return wrong(f, 502);
}

/* Bytes of the server: how many of them are for the client? */
static enum es_forward_result judge(struct es_forward *f, const uint8_t *bytes, size_t len, size_t *ret_used)
{
	enum es_tls_response_end end;

	*ret_used = len;
	if (f->is_tunnel)
		return ES_FORWARD_GOES_ON;
	end = es_tls_response_take(&f->response, bytes, len, ret_used);
	if (f->response.status)
		f->status = f->response.status;
	if (end == ES_TLS_RESPONSE_TUNNEL && f->may_upgrade) {
		/* All that follows has nothing to do with HTTP any more. */
		es_serve_count(f->client->service->counters, ES_SERVE_tunnels);
		f->is_tunnel = 1;
		*ret_used = len;
	} else if (end == ES_TLS_RESPONSE_BAD || end == ES_TLS_RESPONSE_TUNNEL) {
		es_serve_count(f->client->service->counters, ES_SERVE_upstream_bad);
		return wrong(f, 502);
	} else if (end == ES_TLS_RESPONSE_AT_CLOSE) {
		f->is_last = 1;
	} else if (end == ES_TLS_RESPONSE_OVER) {
		f->is_response_over = f->is_response_whole = 1;
		if (!f->response.keeps || *ret_used < len)
			f->is_last = 1;
	}
	return ES_FORWARD_GOES_ON;
}

static enum es_forward_result take_response(struct es_forward *f)
{
	uint8_t *scratch = f->client->serve->scratch;
	enum es_forward_result result;
	int is_passed;
	ssize_t got;
	size_t used;

	while (!f->is_response_over && es_client_has_room(f->client)) {
		got = es_client_pass(f->client, f->upstream->fd, es_tls_response_left(&f->response));
		is_passed = got != -EOPNOTSUPP;
		if (!is_passed)
			got = es_upstream_receive(f->upstream, scratch, ES_SERVE_BUFFER);
		if (got == -EAGAIN)
			break;
		if (got <= 0)
			return upstream_ended(f, !got);
		f->has_moved = 1;
		f->may_repeat = 0;
		es_buffer_fini(&f->head);
		result = judge(f, scratch, (size_t)got, &used);
		if (result)
			return result;
		if (!is_passed && es_client_send(f->client, scratch, used))
			return ES_FORWARD_LOST;
		f->bytes += used;
	}
	return ES_FORWARD_GOES_ON;
}

/* Both directions are over: what becomes of the two connections? */
static enum es_forward_result over(struct es_forward *f)
{
	int is_clean = f->is_request_over && !f->is_cut && !f->is_last && !f->is_tunnel;

	if (!is_clean)
		es_upstream_free(&f->upstream);
	else if (f->client->service->tell == ES_TLS_TELL_PROXY)
		es_upstream_hold(f->upstream);
	else
		es_upstream_keep(&f->upstream);
	es_buffer_fini(&f->head);
	if (is_clean && f->client_keeps && es_client_is_used_up(f->client)) {
		es_serve_count(f->client->service->counters, ES_SERVE_ktls_ended);
		return ES_FORWARD_LAST;
	}
	return is_clean && f->client_keeps ? ES_FORWARD_OVER : ES_FORWARD_LAST;
}

static enum es_forward_result turn(struct es_forward *f)
{
	enum es_forward_result result;
	size_t had;
	int rc;

	if (f->client->over != ES_CLIENT_BROKEN && !(f->is_request_over && !f->is_tunnel)) {
		rc = take_request(f);
		if (rc == -EBADMSG)
			return f->bytes ? ES_FORWARD_LOST : (f->status = 400, ES_FORWARD_WRONG);
		if (rc)
			return ES_FORWARD_LOST;
	} else {
		es_client_hear(f->client);
	}
	if (f->client->over == ES_CLIENT_BROKEN)
		return ES_FORWARD_LOST;
	send_request(f);
	result = take_response(f);
	if (result)
		return result;
	had = es_client_queued(f->client);
	if (es_client_flush(f->client))
		return ES_FORWARD_LOST;
	if (es_client_queued(f->client) < had)
		f->has_moved = 1;
	return ES_FORWARD_GOES_ON;
}

static enum es_forward_wait waits_for(const struct es_forward *f)
{
	if (es_client_queued(f->client))
		return ES_FORWARD_READER;
	if (f->upstream->is_connecting)
		return ES_FORWARD_CONNECTION;
	if (f->is_tunnel)
		return ES_FORWARD_FOREVER;
	if (!f->is_request_over && !f->is_cut && !es_buffer_len(&f->upstream->out))
		return ES_FORWARD_REQUEST;
	return ES_FORWARD_RESPONSE;
}

static void watch(struct es_forward *f)
{
	static const double seconds[] = {
		[ES_FORWARD_CONNECTION] = ES_SERVE_CONNECT_S,
		[ES_FORWARD_RESPONSE] = ES_SERVE_RESPONSE_S,
		[ES_FORWARD_REQUEST] = ES_SERVE_STUCK_S,
		[ES_FORWARD_READER] = ES_SERVE_STUCK_S,
		[ES_FORWARD_FOREVER] = 0,
	};
	enum es_forward_wait wait = waits_for(f);
	int wants_text = (!f->is_request_over || (f->is_tunnel && !f->is_shut)) && !f->is_cut &&
			 es_buffer_len(&f->upstream->out) < ES_SERVE_BUFFER;

	if (f->has_moved || wait != f->wait)
		es_client_within(f->client, seconds[wait]);
	f->wait = wait;
	es_client_watch(f->client, !f->client->over && (wants_text || es_client_may_hear(f->client)));
	es_upstream_watch(f->upstream, !f->is_response_over && es_client_has_room(f->client));
}

enum es_forward_result es_forward_run(struct es_forward *f)
{
	enum es_forward_result result;
	int has_moved = 0;

	for (int i = 0; i < TURNS; i++) {
		f->has_moved = 0;
		result = turn(f);
		if (result) {
			es_forward_end(f);
			return result;
		}
		has_moved |= f->has_moved;
		if (f->is_response_over && (f->is_tunnel || f->is_last || f->is_cut))
			return over(f);
		if (f->is_response_over && f->is_request_over && !es_buffer_len(&f->upstream->out))
			return over(f);
		if (!f->has_moved)
			break;
	}
	if (f->has_moved)
		es_client_soon(f->client);
	f->has_moved = has_moved;
	watch(f);
	return ES_FORWARD_GOES_ON;
}

enum es_forward_result es_forward_expired(struct es_forward *f)
{
	enum es_forward_wait wait = f->wait;

	es_forward_end(f);
	if (wait == ES_FORWARD_READER || f->bytes)
		return ES_FORWARD_LOST;
	if (wait == ES_FORWARD_REQUEST) {
		f->status = 408;
		return ES_FORWARD_WRONG;
	}
	return wrong(f, 504);
}
