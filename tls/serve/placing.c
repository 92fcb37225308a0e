// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where the requests of a connection of HTTP/2 are served: the first one decides, with all that was sent so
 * far; the daemon is asked about each later one, too, and may refuse it, but it stays.
 */
#include "tls/serve/streams_internal.h"

/* All that the client has sent is read for good: from now on the connection stays. */
void es_streams_open(struct es_streams *s)
{
	if (s->state == ES_STREAMS_OPEN)
		return;
	s->state = ES_STREAMS_OPEN;
	s->asked = NULL;
	es_client_release(s->client);
	es_client_take(s->client, s->fed);
	s->fed = 0;
}

/* The daemon's word on a request of a connection that stays. */
static void decided(struct es_streams *s, struct es_stream *st, const struct es_ask_answer *answer,
		    const uint8_t *body, size_t len)
{
	int is_here = !answer || answer->word != ES_ASK_MOVE || !strcmp(answer->node, s->client->serve->self);

	if (!answer)
		es_streams_count(s, ES_SERVE_asked_in_vain);
	if (!answer || !is_here)
		es_streams_tell(s, st, ES_ASK_STAYED);
	if (!is_here)
		es_streams_count(s, st->is_first ? ES_SERVE_stayed_waited : ES_SERVE_stayed_pinned);
	if (answer && (answer->word == ES_ASK_REJECT || answer->word == ES_ASK_RESET)) {
		es_streams_count(s, ES_SERVE_refused);
		st->is_asked = 0;
		if (answer->word == ES_ASK_REJECT)
			es_stream_answer(st, body, len);
		else
			es_stream_reset(st, NGHTTP2_REFUSED_STREAM);
		return;
	}
	es_stream_serve(st);
}

static void answered(void *ctx, const struct es_ask_answer *answer, const uint8_t *body, size_t len)
{
	struct es_stream *st = ctx;
	struct es_streams *s = st->ctx;

	st->question = NULL;
	if (s->state == ES_STREAMS_ASKS && answer && answer->word == ES_ASK_MOVE &&
	    strcmp(answer->node, s->client->serve->self) != 0) {
		memcpy(s->node, answer->node, sizeof(s->node));
		s->moves = 1;
	} else {
		es_streams_open(s);
		decided(s, st, answer, body, len);
	}
	s->changed(s->ctx);
}

/* The head, and of a body that is no chunks what is there. */
static const char *text_of(const struct es_stream *st, struct es_buffer *room, size_t *ret_len)
{
	size_t body = es_buffer_len(&st->body), most = ES_ASK_TEXT_MAX - st->text_len;

	*ret_len = st->text_len;
	if (st->is_chunked || !body || es_buffer_add(room, st->text, st->text_len))
		return st->text;
	body = body < most ? body : most;
	if (es_buffer_add(room, es_buffer_front(&st->body), body))
		return st->text;
	*ret_len += body;
	return (const char *)es_buffer_front(room);
}

/* Returns whether its answer is awaited. */
static int ask(struct es_streams *s, struct es_stream *st)
{
	struct es_client *c = s->client;
	int is_taken = st->is_first && c->is_arrived;
	struct es_buffer room = {};
	struct es_tls_state state;
	size_t len;
	const char *text = text_of(st, &room, &len);
	struct es_ask question = {
		.flow = c->flow, .moves = (uint16_t)c->is_arrived, .first = st->is_first && !is_taken};

	question.kind = is_taken ? ES_ASK_TAKEN : ES_ASK_REQUEST;
	es_tls_records_state(c->records, &state);
	question.tls_version = state.version == ES_TLS_1_3 ? 3 : 2;
	es_tls_state_wipe(&state);
	if (is_taken) {
		st->is_asked = !es_asker_take(c->serve->asker, &question, text, len, &st->ask_id);
	} else {
		es_streams_count(s, ES_SERVE_asked);
		st->question =
			es_question_new(c->serve->asker, &question, text, len, answered, st, &st->ask_id);
		if (st->question)
			st->is_asked = 1;
		else
			es_streams_count(s, ES_SERVE_asked_in_vain);
	}
	es_buffer_fini(&room);
	return !!st->question;
}

static void place(struct es_streams *s, struct es_stream *st)
{
	enum es_inspect inspect = s->client->service->inspect;
	int is_taken = st->is_first && s->client->is_arrived;

	if ((is_taken || inspect == ES_INSPECT_EVERY || (inspect == ES_INSPECT_FIRST && st->is_first)) &&
	    ask(s, st)) {
		st->phase = ES_STREAM_ASKS;
		if (s->state == ES_STREAMS_HOLDS) {
			s->state = ES_STREAMS_ASKS;
			s->asked = st;
		}
		return;
	}
	es_streams_open(s);
	es_stream_serve(st);
}

/* Those that wait have their turn, unless another one decides first. */
void es_streams_place(struct es_streams *s)
{
	struct es_stream *next;

	for (struct es_stream *st = s->first; st && s->state != ES_STREAMS_ASKS; st = next) {
		next = st->next;
		if (st->phase == ES_STREAM_WAITS && st->refuse_with) {
			es_streams_count(s, ES_SERVE_requests_bad);
			es_streams_open(s);
			es_stream_refuse(st, st->refuse_with);
		} else if (st->phase == ES_STREAM_WAITS) {
			place(s, st);
		}
	}
}
