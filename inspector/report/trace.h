/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_REPORT_TRACE_H
#define ES_REPORT_TRACE_H

#include <json-c/json.h>
#include "inspector/inspect/trace.h"

/*
 * es_report_trace() - a decision, as `trace` shows it; @to_wall_ns: what its time lacks to nanoseconds since
 * 1970
 */
struct json_object *es_report_trace(const struct es_trace_entry *entry, unsigned long long to_wall_ns);

#endif
