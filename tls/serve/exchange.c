// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The way of a connection through its phases. Each step does what can be done without waiting, and says
 * whether the next one can be done; what is waited for calls es_exchange_run() again.
 *
 * A request moves as bytes, and only before anything was done with it: the head is scanned, the daemon
 * asked, all that was sent acknowledged; then the other node gets the state from before the head's first
 * record, and these records. Whatever is in the way, the request is served here.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include "inspector/base/clock.h"
#include "tls/serve/exchange_internal.h"
#include "tls/serve/refuse.h"

#define SETTLE_STEP_S 0.002
/* In all longer than a grace period of the kernel (5 to 20 ms), which some old sockets outlive. */
#define AGAIN_S	      0.001 /* at first, then twice as long each time */
#define TRIES	      6
#define SETTLE_MIN_US 10000
#define SETTLE_MAX_US 300000 /* a client further away than that does not move while an answer is on its way */

/* Answers of a step. */
enum step { WAITS, GOES_ON, IS_GONE };

/* --- what the daemon is told */

static void tell(struct es_exchange *x, enum es_ask_kind kind)
{
	const struct es_forward *f = &x->forward;
	struct es_ask ask = {.kind = kind, .id = x->ask_id, .flow = x->client.flow};

	if (!x->is_asked)
		return;
	if (kind == ES_ASK_DONE && f->is_response_whole) {
		ask.status = f->status;
		ask.bytes = f->bytes;
		ask.duration_us = (es_clock_now_ns() - f->began_ns) / 1000;
	}
	es_asker_tell(x->serve->asker, &ask);
	if (kind == ES_ASK_MOVED || kind == ES_ASK_DONE)
		x->is_asked = 0;
}

/* --- ends */

void es_exchange_end(struct es_exchange *x, int is_reset)
{
	es_places_leave(&x->client.service->places, &x->place);
	tell(x, ES_ASK_DONE);
	es_question_free(&x->question);
	es_handing_free(&x->handing);
	es_forward_end(&x->forward);
	es_streams_free(&x->streams);
	es_client_fini(&x->client, is_reset);
	if (x->previous)
		x->previous->next = x->next;
	else
		x->all->first = x->next;
	if (x->next)
		x->next->previous = x->previous;
	x->serve->clients--;
	free(x->head);
	free(x);
}

static enum step leave(struct es_exchange *x)
{
	tell(x, ES_ASK_DONE);
	es_forward_end(&x->forward);
	es_streams_free(&x->streams);
	free(x->head);
	x->head = NULL;
	es_client_leave(&x->client);
	x->phase = ES_EXCHANGE_LEAVES;
	return GOES_ON;
}

static enum step reset(struct es_exchange *x)
{
	es_exchange_end(x, 1);
	return IS_GONE;
}

static enum step refuse(struct es_exchange *x, unsigned int status, int is_head)
{
	char text[ES_REFUSE_MAX];

	if (es_client_send(&x->client, text, es_refuse_text(status, is_head, text)))
		return reset(x);
	return leave(x);
}

/* --- serving it */

static enum step forwarded(struct es_exchange *x, enum es_forward_result result)
{
	switch (result) {
	case ES_FORWARD_GOES_ON:
		return WAITS;
	case ES_FORWARD_OVER:
		tell(x, ES_ASK_DONE);
		x->phase = ES_EXCHANGE_READS;
		es_client_within(&x->client, ES_SERVE_IDLE_S);
		return GOES_ON;
	case ES_FORWARD_LAST:
		return leave(x);
	case ES_FORWARD_WRONG:
		return refuse(x, x->forward.status, x->forward.is_head);
	default:
		return reset(x);
	}
}

static enum step serve(struct es_exchange *x)
{
	struct es_http_head *head = x->head;
	enum step step;

	es_asker_listen(x->serve->asker); /* for a drain: where nobody is asked, it would not be heard of */
	x->head = NULL;
	x->phase = ES_EXCHANGE_SERVES;
	step = forwarded(x, es_forward_begin(&x->forward, head));
	free(head);
	return step;
}

/* --- moving it */

static enum step stay(struct es_exchange *x, enum es_serve_counter why)
{
	es_exchange_count(x, why);
	es_client_within(&x->client, 0);
	if (x->streams) {
		es_streams_stay(x->streams);
		x->phase = ES_EXCHANGE_STREAMS;
		return GOES_ON;
	}
	tell(x, ES_ASK_STAYED);
	return serve(x);
}

static void handed(void *ctx, int result)
{
	struct es_exchange *x = ctx;

	x->handing = NULL;
	if (!result || es_handing_is_lost(result)) {
		es_exchange_count(x, result ? ES_SERVE_moves_lost : ES_SERVE_moved);
		tell(x, result ? ES_ASK_DONE : ES_ASK_MOVED);
		if (x->streams && !result)
			es_streams_moved(x->streams);
		es_exchange_end(x, 0);
		return;
	}
	/* Where it has just come from, its old socket may still be there. */
	if ((result == -ECONNREFUSED || result == -EAGAIN) && ++x->tries < TRIES) {
		x->phase = ES_EXCHANGE_SETTLES;
		es_client_within(&x->client, AGAIN_S * (1 << (x->tries - 1)));
		return;
	}
	if (stay(x, ES_SERVE_stayed_refused) != IS_GONE)
		es_exchange_run(x);
}

static enum step move(struct es_exchange *x)
{
	uint8_t pack[ES_CLIENT_PACK_MAX];
	const uint8_t *kept;
	size_t kept_len = es_client_kept(&x->client, &kept);
	long len = es_client_pack(&x->client, x->node, pack);

	if (len < 0)
		return stay(x, ES_SERVE_stayed_unsealable);
	es_client_unwatch(&x->client);
	es_client_within(&x->client, 0);
	if (es_handing_new(x->serve->loop, x->serve->handover, x->client.fd, x->node, pack, (size_t)len, kept,
			   kept_len, handed, x, &x->handing))
		return stay(x, ES_SERVE_stayed_refused);
	x->phase = ES_EXCHANGE_MOVES;
	return WAITS;
}

/* Two round trips: within one the client has acknowledged what was on its way to it. */
static unsigned long long settle_ns(const struct es_client *client)
{
	struct tcp_info info = {};
	socklen_t len = sizeof(info);
	unsigned long long us = SETTLE_MIN_US;

	if (!getsockopt(client->fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		us += 2ULL * info.tcpi_rtt;
	return (us < SETTLE_MAX_US ? us : SETTLE_MAX_US) * 1000;
}

static enum step settle(struct es_exchange *x)
{
	struct es_client *c = &x->client;

	if (c->is_fin || c->over)
		return stay(x, ES_SERVE_stayed_ended);
	if (es_client_is_settled(c))
		return move(x);
	if (es_clock_now_ns() >= x->settle_until_ns)
		return stay(x, ES_SERVE_stayed_unacknowledged);
	es_client_watch(c, 0);
	es_client_within(c, SETTLE_STEP_S);
	return WAITS;
}

/* --- asking where to */

/* The tickets say where the client's next connection shall begin. */
static void name_home(struct es_exchange *x)
{
	const struct es_conf *conf = x->serve->conf;

	for (unsigned int i = 0; i < conf->node_count; i++)
		if (!strcmp(conf->nodes[i].name, x->node))
			es_client_name_home(&x->client, i);
}

static enum step leave_for(struct es_exchange *x, const char *node)
{
	snprintf(x->node, sizeof(x->node), "%s", node);
	name_home(x);
	x->tries = 0;
	x->settle_until_ns = es_clock_now_ns() + settle_ns(&x->client);
	x->phase = ES_EXCHANGE_SETTLES;
	return GOES_ON;
}

static enum step decided(struct es_exchange *x, const struct es_ask_answer *answer, const uint8_t *body,
			 size_t len)
{
	switch (answer->word) {
	case ES_ASK_MOVE:
		if (!strcmp(answer->node, x->serve->self))
			return serve(x);
		return leave_for(x, answer->node);
	case ES_ASK_REJECT:
		es_exchange_count(x, ES_SERVE_refused);
		x->is_asked = 0;
		return es_client_send(&x->client, body, len) ? reset(x) : leave(x);
	case ES_ASK_RESET:
		es_exchange_count(x, ES_SERVE_refused);
		x->is_asked = 0;
		return reset(x);
	default:
		return serve(x);
	}
}

static void answered(void *ctx, const struct es_ask_answer *answer, const uint8_t *body, size_t len)
{
	struct es_exchange *x = ctx;

	x->question = NULL;
	if ((answer ? decided(x, answer, body, len) : stay(x, ES_SERVE_asked_in_vain)) != IS_GONE)
		es_exchange_run(x);
}

/* A little of that which comes meanwhile is taken: not to watch costs more than to hear. */
static enum step waits_for_answer(struct es_exchange *x)
{
	struct es_client *c = &x->client;

	es_client_hear(c);
	es_client_watch(c, !c->over && es_client_may_hear(c));
	return WAITS;
}

/* The head, and what is there of the body, but nothing of the next request. */
static size_t request_len(const struct es_exchange *x)
{
	const struct es_buffer *text = &x->client.text;
	size_t head = x->head->head_len_bytes, len = es_buffer_len(text);
	struct es_tls_body body;
	int is_over = 0;
	long belongs;

	if (len > ES_ASK_TEXT_MAX)
		len = ES_ASK_TEXT_MAX;
	if (len <= head || x->head->body == ES_HTTP_BODY_NONE)
		return head;
	es_tls_body_init(&body, x->head);
	belongs = es_tls_body_take(&body, es_buffer_front(text) + head, len - head, &is_over);
	return belongs > 0 ? head + (size_t)belongs : head;
}

static enum step place(struct es_exchange *x)
{
	struct es_client *c = &x->client;
	int is_first = x->requests == 1, is_taken = is_first && c->is_arrived;
	enum es_inspect inspect = c->service->inspect;
	struct es_tls_state state;
	struct es_ask ask = {
		.flow = c->flow, .moves = (uint16_t)c->is_arrived, .first = is_first && !is_taken};

	if (!is_taken && (inspect == ES_INSPECT_NEVER || (inspect == ES_INSPECT_FIRST && !ask.first)))
		return serve(x);
	ask.kind = is_taken ? ES_ASK_TAKEN : ES_ASK_REQUEST;
	es_tls_records_state(c->records, &state);
	ask.tls_version = state.version == ES_TLS_1_3 ? 3 : 2;
	es_tls_state_wipe(&state);
	if (is_taken) {
		x->is_asked = !es_asker_take(x->serve->asker, &ask, (const char *)es_buffer_front(&c->text),
					     request_len(x), &x->ask_id);
		return serve(x);
	}
	es_exchange_count(x, ES_SERVE_asked);
	x->question = es_question_new(x->serve->asker, &ask, (const char *)es_buffer_front(&c->text),
				      request_len(x), answered, x, &x->ask_id);
	if (!x->question) {
		es_exchange_count(x, ES_SERVE_asked_in_vain);
		return serve(x);
	}
	x->is_asked = 1;
	x->phase = ES_EXCHANGE_ASKS;
	es_client_within(c, 0);
	return waits_for_answer(x);
}

/* --- reading it */

/* Is its node drained, and would it stay there? Where each request is placed, the next one takes it along. */
static int is_to_go(const struct es_client *c)
{
	return c->service->is_drained && c->service->inspect != ES_INSPECT_EVERY;
}

static enum step read_over(struct es_exchange *x)
{
	int is_head = x->head->method == ES_HTTP_METHOD_HEAD;
	enum es_http_result result = x->head->result;

	es_exchange_count(x, ES_SERVE_requests);
	x->requests++;
	if (result == ES_HTTP_DONE && x->head->method != ES_HTTP_METHOD_CONNECT)
		return place(x);
	es_exchange_count(x, ES_SERVE_requests_bad);
	if (result == ES_HTTP_DONE)
		return refuse(x, 405, 0);
	return refuse(x, x->head->truncated ? 431 : 400, is_head);
}

static enum step read_head(struct es_exchange *x)
{
	struct es_client *c = &x->client;
	int rc;

	for (;;) {
		if (es_buffer_len(&c->text)) {
			if (!x->head) {
				x->head = malloc(sizeof(*x->head));
				if (!x->head)
					return reset(x);
				es_http_head_init(x->head);
				es_client_within(c, ES_SERVE_HEAD_S);
			}
			if (es_http_head_scan(x->head, (const char *)es_buffer_front(&c->text),
					      es_buffer_len(&c->text)) != ES_HTTP_MORE)
				return read_over(x);
		}
		rc = es_client_read(c);
		if (rc < 0)
			return leave(x);
		if (!rc)
			break;
	}
	/* Nobody has lost anything yet. */
	if (!x->head && x->requests && (x->serve->is_ending || is_to_go(&x->client)))
		return leave(x);
	if (!x->head && es_client_is_used_up(c)) {
		es_exchange_count(x, ES_SERVE_ktls_ended);
		return leave(x);
	}
	es_client_watch(c, 1);
	return WAITS;
}

/* --- HTTP/2 */

static enum step streamed(struct es_exchange *x, enum es_streams_result result)
{
	switch (result) {
	case ES_STREAMS_GO_ON:
		return WAITS;
	case ES_STREAMS_MOVE:
		return leave_for(x, es_streams_node(x->streams));
	case ES_STREAMS_OVER:
		return leave(x);
	default:
		return reset(x);
	}
}

static enum step begin_streams(struct es_exchange *x)
{
	if (es_streams_new(&x->client, x->client.changed, x, &x->streams))
		return reset(x);
	es_client_within(&x->client, 0);
	x->phase = ES_EXCHANGE_STREAMS;
	return GOES_ON;
}

static int is_http2(const struct es_client *c)
{
	struct es_tls_state state;
	int is;

	es_tls_records_state(c->records, &state);
	is = state.alpn == ES_TLS_ALPN_HTTP2;
	es_tls_state_wipe(&state);
	return is;
}

/* --- the beginning, and the end */

static enum step shake(struct es_exchange *x)
{
	struct es_client *c = &x->client;

	es_client_shake(c);
	if (c->over)
		return leave(x);
	if (c->phase == ES_CLIENT_OPEN && is_http2(c))
		return begin_streams(x);
	if (c->phase == ES_CLIENT_OPEN) {
		x->phase = ES_EXCHANGE_READS;
		es_client_within(c, ES_SERVE_HEAD_S);
		return GOES_ON;
	}
	es_client_flush(c);
	es_client_watch(c, 1);
	return WAITS;
}

static enum step left(struct es_exchange *x)
{
	if (es_client_is_left(&x->client)) {
		es_exchange_end(x, 0);
		return IS_GONE;
	}
	es_client_watch(&x->client, 1);
	return WAITS;
}

/* --- all of it */

static enum step step_of(struct es_exchange *x)
{
	switch (x->phase) {
	case ES_EXCHANGE_SHAKES:
		return shake(x);
	case ES_EXCHANGE_READS:
		return read_head(x);
	case ES_EXCHANGE_ASKS:
		return waits_for_answer(x);
	case ES_EXCHANGE_SETTLES:
		return settle(x);
	case ES_EXCHANGE_SERVES:
		return forwarded(x, es_forward_run(&x->forward));
	case ES_EXCHANGE_STREAMS:
		return streamed(x, es_streams_run(x->streams));
	case ES_EXCHANGE_LEAVES:
		return left(x);
	default: /* others have the word */
		return WAITS;
	}
}

static enum es_place_kind kind_of(const struct es_exchange *x)
{
	int is_known = x->requests || x->client.is_arrived;

	switch (x->phase) {
	case ES_EXCHANGE_SHAKES:
		return ES_PLACE_NEW;
	case ES_EXCHANGE_READS:
		if (!is_known)
			return ES_PLACE_NEW;
		return x->requests ? ES_PLACE_IDLE : ES_PLACE_BUSY;
	case ES_EXCHANGE_STREAMS:
		if (!es_streams_has_asked(x->streams))
			return is_known ? ES_PLACE_BUSY : ES_PLACE_NEW;
		return es_streams_is_idle(x->streams) ? ES_PLACE_IDLE : ES_PLACE_BUSY;
	case ES_EXCHANGE_LEAVES: /* what is left of it is the kernel's */
		return es_client_queued(&x->client) || x->client.is_lingering ? ES_PLACE_BUSY : ES_PLACE_NONE;
	default:
		return ES_PLACE_BUSY;
	}
}

static void take_place(struct es_exchange *x)
{
	es_places_put(&x->client.service->places, &x->place, kind_of(x));
}

void es_exchange_run(struct es_exchange *x)
{
	enum step step;

	do
		step = step_of(x);
	while (step == GOES_ON);
	if (step == IS_GONE)
		return;
	take_place(x);
	/* These phases have seen what they send, and wait accordingly. */
	if (x->phase == ES_EXCHANGE_MOVES || x->phase == ES_EXCHANGE_SERVES ||
	    x->phase == ES_EXCHANGE_STREAMS || x->phase == ES_EXCHANGE_LEAVES)
		return;
	/* Said while nothing is forwarded: tickets, an answered key update. */
	if (es_client_queued(&x->client) && !x->client.is_holding) {
		if (es_client_flush(&x->client)) {
			es_exchange_end(x, 1);
			return;
		}
		es_client_watch(&x->client, !!(x->client.io.events & EV_READ) && ev_is_active(&x->client.io));
	}
}

void es_exchange_expired(struct es_exchange *x)
{
	switch (x->phase) {
	case ES_EXCHANGE_SHAKES:
		if (x->client.phase == ES_CLIENT_SHAKES)
			es_exchange_count(x, ES_SERVE_handshakes_late);
		es_exchange_end(x, 1);
		return;
	case ES_EXCHANGE_READS:
		if ((x->head ? refuse(x, 408, 0) : leave(x)) != IS_GONE)
			es_exchange_run(x);
		return;
	case ES_EXCHANGE_SETTLES:
		es_exchange_run(x);
		return;
	case ES_EXCHANGE_SERVES:
		if (forwarded(x, es_forward_expired(&x->forward)) != IS_GONE)
			es_exchange_run(x);
		return;
	case ES_EXCHANGE_STREAMS:
		if (streamed(x, es_streams_expired(x->streams)) != IS_GONE)
			es_exchange_run(x);
		return;
	case ES_EXCHANGE_LEAVES:
		if (es_client_lingers(&x->client))
			take_place(x);
		else
			es_exchange_end(x, 1);
		return;
	default:
		es_exchange_end(x, 1);
		return;
	}
}

void es_exchange_leave(struct es_exchange *x)
{
	if ((x->streams ? streamed(x, es_streams_end(x->streams)) : leave(x)) != IS_GONE)
		es_exchange_run(x);
}
