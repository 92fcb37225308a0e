/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_METRICS_TLS_H
#define ES_METRICS_TLS_H

#include "inspector/ask/ledger.h"
#include "inspector/status/exposition.h"

/* es_metrics_tls_put() - what earshot-tls has counted, by service */
void es_metrics_tls_put(struct es_exposition *exposition, const struct es_ledger *ledger);

#endif
