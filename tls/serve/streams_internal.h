/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_STREAMS_INTERNAL_H
#define ES_SERVE_STREAMS_INTERNAL_H

/*
 * Shared by the files of a connection of HTTP/2: frames.c has its session of nghttp2 and the list of
 * streams, placing.c decides about requests, streams.c moves bytes and ends it.
 */
#include "tls/serve/ask.h"
#include "tls/serve/stream.h"
#include "tls/serve/streams.h"

enum es_streams_state {
	ES_STREAMS_HOLDS, /* no request has come, and nothing was sent */
	ES_STREAMS_ASKS,  /* where the first one belongs */
	ES_STREAMS_OPEN,
};

/* The client's timer is set for one of these. */
enum es_streams_due { ES_STREAMS_DUE_NEVER, ES_STREAMS_DUE_HOLD, ES_STREAMS_DUE_IDLE, ES_STREAMS_DUE_GRACE };

/* So many of something at once, and so many a second. */
struct es_bucket {
	unsigned long long last_ns;
	double left;
};

/**
 * struct es_streams
 * @first, @last: its streams, in the order in which they came, @count of them
 * @fed: bytes of the client's text that @session has read, and that are kept
 * @asked: whose request decides; @node: where it belongs
 * @requests: how many were read
 * @frames: that are to be protected
 * @left_ns: when the client was told to leave; 0: it was not
 */
struct es_streams {
	struct es_client *client;
	nghttp2_session *session;
	struct es_stream *first, *last;
	unsigned int count;
	enum es_streams_state state;
	enum es_streams_due due;
	size_t fed;
	struct es_stream *asked;
	char node[ES_ASK_NODE_SIZE];
	uint64_t requests;
	struct es_buffer frames;
	struct es_bucket resets;
	struct es_bucket idles;
	unsigned long long left_ns;
	int moves;
	int is_lost;
	int is_bad;
	int is_calm;
	void (*changed)(void *ctx);
	void *ctx;
};

static inline void es_streams_count(const struct es_streams *s, enum es_serve_counter which)
{
	es_serve_count(s->client->service->counters, which);
}

/* frames.c */

/* es_streams_session_new() - with this side's SETTINGS as the first frame to send. Returns 0 or -ENOMEM. */
int es_streams_session_new(struct es_streams *streams);

/* es_streams_tell() - tell the daemon what has become of a stream's request */
void es_streams_tell(struct es_streams *streams, struct es_stream *stream, enum es_ask_kind kind);

/* es_streams_remove() - a stream of which nghttp2 does not know any more */
void es_streams_remove(struct es_streams *streams, struct es_stream *stream);

/* placing.c */

/* es_streams_open() - what the client has sent is read for good: from now on the connection stays */
void es_streams_open(struct es_streams *streams);

/* es_streams_place() - requests that wait have their turn, unless another one decides first */
void es_streams_place(struct es_streams *streams);

#endif
