/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_STREAMS_H
#define ES_SERVE_STREAMS_H

/*
 * A client's connection that speaks HTTP/2 (RFC 9113). Its first request decides which node has it: until
 * then nothing is sent, so that another node can begin anew with the client's own bytes. From then on it
 * stays, and each further request is only asked about: whether it may be served.
 */
#include "tls/serve/client.h"

struct es_streams;

#define ES_STREAMS_MAX	    100		/* at a time */
#define ES_STREAMS_WINDOW   (256 << 10) /* bytes of a request's body that a client may send ahead */
#define ES_STREAMS_WINDOWS  (1 << 20)	/* of all of them */
#define ES_STREAMS_HOLD_S   0.1 /* for clients that ask nothing before they have the server's SETTINGS */
#define ES_STREAMS_GRACE_S  0.5 /* from a first GOAWAY to the last: requests that are on their way */
#define ES_STREAMS_RESETS   200 /* that a client may send at once; and a second: */
#define ES_STREAMS_RESETS_S 20
#define ES_STREAMS_IDLES    1000 /* frames that are of no use, likewise */
#define ES_STREAMS_IDLES_S  50

/*
 * es_streams_new() - @client is open, and has agreed on h2; @changed: es_streams_run() has something to do.
 * Returns 0 or -ENOMEM.
 */
int es_streams_new(struct es_client *client, void (*changed)(void *ctx), void *ctx,
		   struct es_streams **ret_streams);
void es_streams_free(struct es_streams **streams);

enum es_streams_result {
	ES_STREAMS_GO_ON,
	ES_STREAMS_MOVE, /* to es_streams_node(); then es_streams_moved() or _stay() */
	ES_STREAMS_OVER, /* the connection ends in the orderly way */
	ES_STREAMS_LOST, /* it ends at once */
};

/* es_streams_run() - do what can be done now, and watch for what else can */
enum es_streams_result es_streams_run(struct es_streams *streams);

/* es_streams_has_asked() - has any request been read? */
int es_streams_has_asked(const struct es_streams *streams);

/* es_streams_is_idle() - is none of its streams open? */
int es_streams_is_idle(const struct es_streams *streams);

/* es_streams_end() - tell the client that it has to come anew. Returns ES_STREAMS_OVER. */
enum es_streams_result es_streams_end(struct es_streams *streams);

/* es_streams_expired() - the client's time is over */
enum es_streams_result es_streams_expired(struct es_streams *streams);

const char *es_streams_node(const struct es_streams *streams);
void es_streams_moved(struct es_streams *streams);
/* es_streams_stay() - it could not be moved */
void es_streams_stay(struct es_streams *streams);

#endif
