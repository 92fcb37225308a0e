/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SIM_TRACE_SPAN_H
#define ES_SIM_TRACE_SPAN_H

/*
 * Pieces of a log's line, and what its readers share: words, numbers, times and clients. Nothing here needs a
 * terminating 0.
 */
#include <stddef.h>
#include <linux/types.h>

struct es_span {
	const char *at;
	size_t len;
};

static inline struct es_span es_span_rest(struct es_span span, size_t skip)
{
	return (struct es_span){span.at + skip, span.len - skip};
}

static inline struct es_span es_skip_space(struct es_span span)
{
	while (span.len && (*span.at == ' ' || *span.at == '\t'))
		span = es_span_rest(span, 1);
	return span;
}

static inline size_t es_token_len(struct es_span span)
{
	size_t len = 0;

	while (len < span.len && span.at[len] != ' ' && span.at[len] != '\t')
		len++;
	return len;
}

/* es_take_token() - the next word of @span, which moves behind it; empty if there is none */
static inline struct es_span es_take_token(struct es_span *span)
{
	struct es_span token = es_skip_space(*span);

	*span = es_span_rest(token, es_token_len(token));
	token.len = es_token_len(token);
	return token;
}

static inline int es_take_char(struct es_span *span, char c)
{
	if (!span->len || *span->at != c)
		return 0;
	*span = es_span_rest(*span, 1);
	return 1;
}

/* es_take_number() - digits at the start of @span, which moves behind them; -1 if there are none, or more
 * than 18 */
__s64 es_take_number(struct es_span *span);

/**
 * es_trace_find_time() - the time of a line, and what stands around it
 * A time in brackets is preferred: "[10/Oct/2000:13:55:36 -0700]", ISO 8601, or seconds since 1970, each also
 * with a fraction. Without brackets it is ISO 8601's, before the first quotation mark.
 * Returns 1, or 0 if there is none.
 */
int es_trace_find_time(struct es_span line, struct es_span *ret_before, struct es_span *ret_after,
		       __s64 *ret_time_s);

/* es_trace_is_iso_time() - all of @text is a time in ISO 8601 */
int es_trace_is_iso_time(struct es_span text);

/**
 * es_trace_find_client() - who asked
 * @before: the line before the time, without the prefix of a log collector
 * @ret_host: the site's name that stands before the client, without port; empty if there is none
 * Returns the client: an address without brackets and port, or a name; empty if there is none.
 */
struct es_span es_trace_find_client(struct es_span before, struct es_span *ret_host);

/* es_trace_skip_prefix() - @line without what syslog, docker or Kubernetes put before each line */
struct es_span es_trace_skip_prefix(struct es_span line);

#endif
