/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_WHEN_H
#define ES_WHEN_H

/* Times as people write them, and as this program and others show them. */

/*
 * es_when_span() - "90s", "1.5h", "1h30m": numbers with units, the largest first, each once. Returns 0 or
 * -EINVAL.
 */
int es_when_span(const char *text, double *ret_s);

/**
 * es_when_since() - a time that is not to come: a span ago, or a local time
 * A date, with a time of day after it or without, as the log and `earshot events` show them: "2026-11-25
 * 09:30:12.481", with a T between them, with Z or +0100 behind them. A time of day alone is the last one
 * before @now_ms, milliseconds since 1970 as
 * @ret_ms. Returns 0, or -EINVAL for what is no time, or was none.
 */
int es_when_since(const char *text, unsigned long long now_ms, unsigned long long *ret_ms);

#endif
