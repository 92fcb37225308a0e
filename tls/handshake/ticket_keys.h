/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_TICKET_KEYS_H
#define ES_TLS_TICKET_KEYS_H

#include "inspector/config/tls_keys.h"
#include "tls/handshake/handshake.h"

/**
 * es_tls_ticket_keys_of() - a service's keys for tickets on @day, since 1970-01-01, UTC
 * Those of the day before are read for who comes back, and those of the next one as the nodes' clocks differ;
 * likewise those of the key file's second line. Returns 0 or -EIO.
 */
int es_tls_ticket_keys_of(const struct es_tls_keys *keys, const char *service, unsigned long long day,
			  struct es_tls_ticket_keys *ret_keys);

#endif
