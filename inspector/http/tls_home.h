/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_HOME_H
#define ES_TLS_HOME_H

/*
 * The home in a session ticket: the node that served the session last, for whoever routes the ClientHello
 * that brings the ticket back. A ticket is as OpenSSL makes it (RFC 5077 section 4): a name of its key, 16
 * bytes, the IV, 16 bytes, what is encrypted, and a MAC.
 *
 * The home is in the IV: 11 random bytes R, then the home and four zero bytes, exclusive-ored with the
 * first five bytes, little endian, of SipHash(name, R) under a key that has no other use. Without that key
 * the IV is random, as CBC needs it, and says nothing. The zero bytes tell an IV with a home from one
 * without: of a node of an older version, or of somebody who makes one up, one in 2^32 seems to have a
 * home.
 */
#include <stdint.h>
#include "kmod/core/siphash.h"

#define ES_TLS_TICKET_NAME   16
#define ES_TLS_TICKET_IV     16
#define ES_TLS_TICKET_RANDOM 11

/* es_tls_home_put() - complete an IV whose first ES_TLS_TICKET_RANDOM bytes are random */
void es_tls_home_put(const struct es_sipkey *key, const uint8_t name[ES_TLS_TICKET_NAME], uint8_t home,
		     uint8_t iv[ES_TLS_TICKET_IV]);

/* es_tls_home_get() - the home in a ticket that begins with these bytes, or -1 */
int es_tls_home_get(const struct es_sipkey *key, const uint8_t front[ES_TLS_TICKET_NAME + ES_TLS_TICKET_IV]);

#endif
