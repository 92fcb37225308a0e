/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_STREAM_H
#define ES_SERVE_STREAM_H

/*
 * A stream of HTTP/2: one request as HTTP/1.1 to the server behind, and its response back as frames. Each has
 * a connection of its own to the server while it lasts, and in each direction little in memory: who does not
 * read a stream stops its other side, and no other stream.
 */
#include <nghttp2/nghttp2.h>
#include "inspector/http/head.h"
#include "tls/http/fields.h"
#include "tls/http/response.h"
#include "tls/serve/ask.h"
#include "tls/serve/client.h"
#include "tls/serve/upstream.h"

enum es_stream_phase {
	ES_STREAM_READS,  /* its fields are coming */
	ES_STREAM_WAITS,  /* for the connection's first request to be decided */
	ES_STREAM_ASKS,	  /* the daemon */
	ES_STREAM_SERVES, /* by the server behind */
	ES_STREAM_TELLS,  /* an answer that was made here */
	ES_STREAM_OVER,	  /* the client has been told to end it, or it has ended */
};

/* Things that are waited for; each has a time of its own. */
enum es_stream_wait {
	ES_STREAM_NOTHING,
	ES_STREAM_CONNECTION, /* the server's kernel */
	ES_STREAM_RESPONSE,   /* the server */
	ES_STREAM_REQUEST,    /* the client, for the request's body */
	ES_STREAM_READER,     /* the client, to read */
};

/**
 * struct es_stream
 * @text, @head: the request as HTTP/1.1, and as it was scanned; @refuse_with: a status, if it may not be one
 * @is_first: it is the connection's first request
 * @is_asked, @ask_id: the daemon knows of it; @question: and is being asked
 * @for_server: the head as the server reads it, as long as it may have to be sent again
 * @body: of the request: what the server has not been given yet; the client may send more when it has
 * @lines: of the response: a head, or the trailers, until they are whole
 * @out: of its body: what the client has not been given yet
 * @status, @bytes, @took_us: of the response, when it is whole
 * @is_headed: the client has its head; @is_response_over: the server has said all; @is_whole: of its own
 * @is_cut: the server takes no more of the request
 * @is_deferred: nghttp2 waits for @out; @is_told: the last byte has been given to it
 * @is_ours: it ends early, and that is not the client's doing
 * @is_late: its fields have not come to an end in time
 * @is_due: there may be something to do
 */
struct es_stream {
	struct es_client *client;
	nghttp2_session *session;
	struct es_stream *next, *previous;
	int32_t id;
	enum es_stream_phase phase;
	struct es_fields fields;
	char *text;
	size_t text_len;
	struct es_http_head *head;
	unsigned int refuse_with;
	int is_first;
	int is_asked;
	uint64_t ask_id;
	struct es_question *question;
	struct es_upstream *upstream;
	struct es_buffer for_server;
	struct es_buffer body;
	struct es_buffer lines;
	struct es_buffer out;
	struct es_tls_response response;
	unsigned int status;
	uint64_t bytes;
	unsigned long long began_ns;
	uint64_t took_us;
	ev_timer timer;
	enum es_stream_wait wait;
	uint8_t is_chunked;
	uint8_t may_repeat;
	uint8_t is_request_over;
	uint8_t is_request_sent;
	uint8_t is_headed;
	uint8_t is_response_over;
	uint8_t is_whole;
	uint8_t is_upstream_last;
	uint8_t is_cut;
	uint8_t is_deferred;
	uint8_t is_told;
	uint8_t is_ours;
	uint8_t is_late;
	uint8_t is_due;
	uint8_t has_moved; /* since the last look */
	void (*changed)(void *ctx);
	void *ctx;
};

/* es_stream_init() - of a request whose fields begin; @changed: there is something to do for it */
void es_stream_init(struct es_stream *stream, struct es_client *client, nghttp2_session *session, int32_t id,
		    void (*changed)(void *ctx), void *ctx);
void es_stream_fini(struct es_stream *stream);

/* es_stream_stop() - whatever it was doing ends */
void es_stream_stop(struct es_stream *stream);

/*
 * es_stream_read() - all fields are there. Returns 0, or the status that the request is to be refused with;
 * @has_body: more of it is to come
 */
unsigned int es_stream_read(struct es_stream *stream, int has_body);

/* es_stream_body() - more of the request's body has come. Returns 0 or -ENOMEM. */
int es_stream_body(struct es_stream *stream, const uint8_t *bytes, size_t len);

/* es_stream_serve() - give it to the server behind */
void es_stream_serve(struct es_stream *stream);

/* es_stream_answer() - with @text, a whole response of HTTP/1.1 */
void es_stream_answer(struct es_stream *stream, const uint8_t *text, size_t len);
/* es_stream_refuse() - with a response that says no more than @status */
void es_stream_refuse(struct es_stream *stream, unsigned int status);
/* es_stream_reset() - without one; @error: of RFC 9113 section 7 */
void es_stream_reset(struct es_stream *stream, uint32_t error);

/* es_stream_run() - do what can be done now, and watch for what else can. Returns 1 if anything has moved. */
int es_stream_run(struct es_stream *stream);

#endif
