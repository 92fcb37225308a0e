/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_TLS_H
#define ES_DAEMON_TLS_H

#include "inspector/ask/ledger.h"

struct es_daemon;

/**
 * es_daemon_tls_read() - what earshot-tls of this node has done
 * Returns 0, the caller frees it, and all is 0 if there is none; -ENOENT: no service of this node has tls
 * { }; or -ENOMEM.
 */
int es_daemon_tls_read(const struct es_daemon *daemon, struct es_ledger **ret_ledger);

#endif
