/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_CLIENT_INTERNAL_H
#define ES_SERVE_CLIENT_INTERNAL_H

/*
 * Shared by what comes from a client (client.c) and what it is sent (client_out.c).
 */
#include "tls/serve/client.h"

#define ES_CLIENT_READ_SIZE 16384

/* es_client_break_off() - no more text will come; @why is a literal */
static inline void es_client_break_off(struct es_client *c, const char *why)
{
	c->over = ES_CLIENT_BROKEN;
	c->why = why;
}

/* es_client_queue() - put bytes behind what TCP has not got yet. Returns 0; -ENOMEM: it is broken off. */
int es_client_queue(struct es_client *client, const uint8_t *bytes, size_t len);

/* es_client_queue_handshake() - OpenSSL's bytes for the client */
void es_client_queue_handshake(struct es_client *client);

/* es_client_say() - the records' own words: an alert, or an answer. Returns as es_client_queue(). */
int es_client_say(struct es_client *client, const uint8_t *bytes, size_t len);

#endif
