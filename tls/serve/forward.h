/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_FORWARD_H
#define ES_SERVE_FORWARD_H

/*
 * One request on its way to the server behind, and its response on the way back; after 101 whatever both
 * sides say.
 */
#include "tls/http/request.h"
#include "tls/http/response.h"
#include "tls/serve/client.h"
#include "tls/serve/upstream.h"

/* Things that are waited for; each has a time of its own. */
enum es_forward_wait {
	ES_FORWARD_NOTHING,
	ES_FORWARD_CONNECTION, /* the server's kernel */
	ES_FORWARD_RESPONSE,   /* the server */
	ES_FORWARD_REQUEST,    /* the client, for the request's body */
	ES_FORWARD_READER,     /* the client, to read */
	ES_FORWARD_FOREVER,    /* both sides of a tunnel */
};

/**
 * struct es_forward
 * @upstream: also between two requests, if the server is told of clients by the PROXY protocol
 * @head: as the server reads it, as long as it may have to be sent again
 * @status, @bytes, @began_ns: of the response, and when the request was given to the server
 * @is_cut: the server takes no more of the request
 */
struct es_forward {
	struct es_client *client;
	struct es_upstream *upstream;
	struct es_tls_body body;
	struct es_tls_response response;
	struct es_buffer head;
	unsigned int status;
	uint64_t bytes;
	unsigned long long began_ns;
	int is_head;
	int may_upgrade;
	int client_keeps;
	int may_repeat;
	int is_request_over;
	int is_response_over;
	int is_response_whole;
	int is_cut;
	int is_last;
	int is_tunnel;
	int is_shut; /* the server has been told that the client sends no more */
	enum es_forward_wait wait;
	int has_moved; /* since the last look */
	void (*changed)(void *ctx);
	void *ctx;
};

enum es_forward_result {
	ES_FORWARD_GOES_ON,
	ES_FORWARD_OVER,  /* the next request may be read */
	ES_FORWARD_LAST,  /* the connection ends in the orderly way */
	ES_FORWARD_LOST,  /* it ends, and nobody shall take what was sent for a whole response */
	ES_FORWARD_WRONG, /* answer with @status */
};

/* es_forward_begin() - a request whose whole head is in the client's text. Returns as es_forward_run(). */
enum es_forward_result es_forward_begin(struct es_forward *forward, const struct es_http_head *head);

/* es_forward_run() - do what can be done now, and watch for what else can */
enum es_forward_result es_forward_run(struct es_forward *forward);

/* es_forward_expired() - what was waited for did not happen in time */
enum es_forward_result es_forward_expired(struct es_forward *forward);

/* es_forward_end() - give it up: the server's connection is closed */
void es_forward_end(struct es_forward *forward);

#endif
