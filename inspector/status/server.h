/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_STATUS_SERVER_H
#define ES_STATUS_SERVER_H

/*
 * The HTTP server of a node's metrics and of the cluster's view (libmicrohttpd). It has a thread of its own,
 * so that no client holds up any other part of the daemon, and bounds on what clients may have:
 * ES_CONNECTIONS_MAX connections, some of them for one address, a few kilobytes of head, and seconds for all
 * of a request. It reads and makes nothing itself: documents are asked for, and come from another thread; if
 * none comes, the client is told so.
 */
#include "inspector/config/list.h"
#include "inspector/status/exposition.h"

struct es_status_server;

#define ES_STATUS_ADDRESS_MAX 16 /* connections of one address */
#define ES_STATUS_HEAD_BYTES  16384
#define ES_STATUS_REQUEST_S   10

/*
 * The documents that can be asked for: the metrics, in each of their formats (enum es_exposition_format), and
 * the cluster as JSON.
 */
#define ES_STATUS_CLUSTER   ES_EXPOSITION_FORMATS
#define ES_STATUS_DOCUMENTS (ES_STATUS_CLUSTER + 1)

/* All who ask within so long get the same document. */
#define ES_STATUS_FRESH_MS 250

/* Nobody waits longer for one. */
#define ES_STATUS_WAIT_MS 2000

/**
 * struct es_status_params
 * @address: to listen on; @allow: networks that may ask, none: all
 * @node, @names: what the node is called, besides its address (host.h): other Hosts get 421
 * @allow, @names and @node are not needed any more afterwards
 * @ask: called when a document is wanted, on the server's thread: it wakes the one that makes documents,
 * which calls es_status_server_wants()
 */
struct es_status_params {
	struct es_addr address;
	unsigned int port;
	const struct es_conf_list *allow;
	const struct es_conf_list *names;
	const char *node;
	void (*ask)(void *ctx);
	void *ctx;
};

/*
 * es_status_server_new() - start to serve. Returns 0; or what socket(), bind() or listen() say; or -ENOMEM.
 */
int es_status_server_new(const struct es_status_params *params, struct es_status_server **ret_server);
void es_status_server_free(struct es_status_server **server);

/* Does it serve as @params say, but for functions? */
int es_status_server_is(const struct es_status_server *server, const struct es_status_params *params);

/* es_status_server_wants() - is this document asked for? One thread, which then gives it. */
int es_status_server_wants(struct es_status_server *server, unsigned int document);

/* es_status_server_give() - here it is; takes @text over. NULL: there is none at this moment. */
void es_status_server_give(struct es_status_server *server, unsigned int document, char *text, size_t len);

#endif
