/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_REPORT_TLS_H
#define ES_REPORT_TLS_H

#include <json-c/json.h>
#include "inspector/ask/ledger.h"

/* es_report_tls() - the member `tls` of `status`: what earshot-tls of this node has done until @wall_ns */
struct json_object *es_report_tls(const struct es_ledger *ledger, unsigned long long wall_ns);

/* es_report_tls_counters() - add its counters, of all services together, to those of `counters` */
void es_report_tls_counters(struct json_object *report, const struct es_ledger *ledger);

#endif
