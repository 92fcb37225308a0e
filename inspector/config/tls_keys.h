/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_KEYS_H
#define ES_TLS_KEYS_H

/*
 * The part of the key file that earshot-tls has: no key of the ring, of cookies or of handovers, and nothing
 * from which these follow. It keeps this for as long as it runs, since each day has its own keys for tickets.
 */
#include "inspector/config/keyfile.h"

#define ES_TLS_KEY_BYTES	32
#define ES_TLS_TICKET_KEY_BYTES 80 /* 16 of a name, 32 for AES-256, 32 for HMAC-SHA256 */

/**
 * struct es_tls_key - of a `key` line
 * @handover: seals the state of connections that move (tls/record/sealed.h)
 * @tickets: es_tls_ticket_key() makes each day's key from it
 * @home: hides the home in a ticket (http/tls_home.h), as the daemon's does (struct es_key)
 */
struct es_tls_key {
	unsigned int id;
	unsigned char handover[ES_TLS_KEY_BYTES];
	unsigned char tickets[ES_TLS_KEY_BYTES];
	struct es_sipkey home;
};

/* struct es_tls_keys - @key[0] makes, all @count are taken */
struct es_tls_keys {
	unsigned int count;
	struct es_tls_key key[ES_KEYS_MAX];
};

/**
 * es_tls_keys_read() - read a key file, and derive these keys
 * As es_keys_read(), with info "earshot tls handover" and "earshot tls tickets", 32 bytes each, and
 * "earshot tls homes".
 */
int es_tls_keys_read(const char *path, struct es_tls_keys *ret_keys, struct es_conf_error *err);

void es_tls_keys_wipe(struct es_tls_keys *keys);

/**
 * es_tls_ticket_key() - the key of one day's tickets, the same on all nodes
 * HKDF-SHA256 of @key->tickets; info is "earshot tls ticket", a zero byte, the service's name, a zero byte,
 * and the day in network order, 8 bytes.
 * @day: since 1970-01-01, UTC. Returns 0 or -EIO.
 */
int es_tls_ticket_key(const struct es_tls_key *key, const char *service, unsigned long long day,
		      unsigned char ret_key[ES_TLS_TICKET_KEY_BYTES]);

#endif
