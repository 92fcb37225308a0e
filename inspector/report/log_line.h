/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_REPORT_LOG_LINE_H
#define ES_REPORT_LOG_LINE_H

/*
 * A decision as a line of the request log (docs/operating.md): in the Common Log Format, which usual
 * analysers read, or as an object of JSON, as `earshot trace` has it.
 */
#include "inspector/inspect/trace.h"

#define ES_LOG_LINE_SIZE 8192 /* each byte of a request may become six */

/**
 * es_report_log_line() - the line of @entry, with its newline
 * @node: this one; @to_wall_ns: from CLOCK_MONOTONIC to the time since 1970
 * Returns its length; 0 if the format has none of such: the same request once more.
 */
size_t es_report_log_line(const struct es_trace_entry *entry, enum es_conf_log_format format,
			  const char *node, unsigned long long to_wall_ns, char line[ES_LOG_LINE_SIZE]);

#endif
