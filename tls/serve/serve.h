/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_H
#define ES_SERVE_H

/*
 * All that a worker's connections have in common.
 */
#include <ev.h>
#include "inspector/base/sockaddr.h"
#include "inspector/config/config.h"
#include "tls/handshake/handshake.h"
#include "tls/http/request.h"
#include "tls/record/record.h"
#include "tls/record/sealed.h"
#include "tls/serve/counters.h"
#include "tls/serve/ktls.h"
#include "tls/serve/peers.h"
#include "tls/serve/places.h"

#define ES_SERVE_HANDSHAKE_S 10.0 /* from the first byte that is awaited to the last of the handshake */
#define ES_SERVE_IDLE_S	     75.0 /* between two requests */
#define ES_SERVE_HEAD_S	     60.0 /* for a request's head */
#define ES_SERVE_STUCK_S     60.0 /* a client that neither reads nor sends what is awaited */
#define ES_SERVE_CONNECT_S   10.0
#define ES_SERVE_RESPONSE_S  300.0 /* a server that says nothing */
#define ES_SERVE_LINGER_S    5.0   /* for a client to end its side; es_client_lingers(): if it has read all */
/*
 * A body of which so much is still to come is the kernel's to protect: some calls, and a key schedule, that
 * must pay.
 */
#define ES_SERVE_KTLS_MIN 262144
#define ES_SERVE_BUFFER	  65536 /* bytes that wait in one direction, before the other side is not read */

struct es_asker;
struct es_upstream;

/**
 * struct es_serve_service - a service with tls { }
 * @node_service: its index in the configuration
 * @server, @server_len: of the server behind
 * @has_ktls: the kernel may write records of long responses
 * @number: in the ledger; @counters: this worker's, of this service
 * @is_drained: this node should lose its clients: the daemon says so
 * @places: of this worker: its clients
 * @idle: of this worker: connections to the server that wait for a request, the last used first
 */
struct es_serve_service {
	char name[ES_CONF_NAME_SIZE];
	struct es_addr address[ES_CONF_FAMILIES]; /* all zeros: none of that family */
	unsigned int port;
	enum es_inspect inspect;
	enum es_tls_tell tell;
	int has_ktls;
	struct es_tls_context *context;
	union {
		struct sockaddr sa;
		union es_sockaddr ip;
		struct sockaddr_storage any;
	} server;
	socklen_t server_len;
	unsigned int number;
	struct es_ledger_block *counters;
	int is_drained;
	struct es_places places;
	struct es_upstream *idle;
	unsigned int idle_count;
};

/**
 * struct es_serve - of a worker
 * @conf: the configuration; @self: this node's name, @self_number: where it is there
 * @seal: the keys of sealed states; @taken: those that were opened lately, on this node
 * @peers: nodes that can read a state with a client's limit; NULL: none are known
 * @handover: path of the daemon's socket for handovers
 * @clients: how many there are; @is_ending: no further request is waited for
 * @ktls: the kernel's record layer, NULL: none; @ktls_has: what it does, a mask of es_ktls_bit()
 * @scratch: for bytes on their way
 */
struct es_serve {
	struct ev_loop *loop;
	const struct es_conf *conf;
	const char *self;
	unsigned int self_number;
	const struct es_tls_seal_keys *seal;
	struct es_tls_taken *taken;
	struct es_peers *peers;
	struct es_asker *asker;
	const char *handover;
	const struct es_ktls *ktls;
	unsigned int ktls_has;
	unsigned int clients;
	int is_ending;
	uint8_t scratch[ES_SERVE_BUFFER];
};

#endif
