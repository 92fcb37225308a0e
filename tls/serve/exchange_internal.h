/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_EXCHANGE_INTERNAL_H
#define ES_SERVE_EXCHANGE_INTERNAL_H

/*
 * One exchange, as exchange.c leads it on its way, for exchanges.c, which has all of a worker's.
 */
#include "tls/serve/ask.h"
#include "tls/serve/exchange.h"
#include "tls/serve/forward.h"
#include "tls/serve/handover.h"
#include "tls/serve/streams.h"

enum es_exchange_phase {
	ES_EXCHANGE_SHAKES,
	ES_EXCHANGE_READS,
	ES_EXCHANGE_ASKS,
	ES_EXCHANGE_SETTLES,
	ES_EXCHANGE_MOVES,
	ES_EXCHANGE_SERVES,
	ES_EXCHANGE_STREAMS,
	ES_EXCHANGE_LEAVES
};

/**
 * struct es_exchange
 * @head: of the request that is being read, from its first byte until it is served; @requests: how many were
 * @is_asked: the daemon knows of it, by @ask_id; @question: and is being asked
 * @node: that it is to move to; @settle_until_ns: that long it is waited for acknowledgements; @tries: how
 * often it was given to @node in vain
 * @streams: of HTTP/2, which have requests of their own; NULL: it speaks HTTP/1
 */
struct es_exchange {
	struct es_place place; /* the first, so that it leads here */
	struct es_exchanges *all;
	struct es_exchange *next, *previous;
	struct es_serve *serve;
	struct es_client client;
	enum es_exchange_phase phase;
	struct es_http_head *head;
	uint64_t requests;
	int is_asked;
	uint64_t ask_id;
	struct es_question *question;
	char node[ES_ASK_NODE_SIZE];
	unsigned long long settle_until_ns;
	unsigned int tries;
	struct es_handing *handing;
	struct es_forward forward;
	struct es_streams *streams;
};

static inline void es_exchange_count(const struct es_exchange *x, enum es_serve_counter which)
{
	es_serve_count(x->client.service->counters, which);
}

/* es_exchange_run() - go on as far as can be without waiting. It may have ended then. */
void es_exchange_run(struct es_exchange *x);

/* es_exchange_expired() - what was waited for did not happen in time */
void es_exchange_expired(struct es_exchange *x);

/* es_exchange_leave() - end it in the orderly way, with no request under way. It may have ended then. */
void es_exchange_leave(struct es_exchange *x);

/* es_exchange_end() - at once */
void es_exchange_end(struct es_exchange *x, int is_reset);

#endif
