// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Common log format: client ident user [time] "request" status size. What follows, as in the combined format,
 * is not looked at. Names of users may have spaces, as some servers write them; a virtual host with its port
 * may stand first. Within quotes a backslash protects the next character.
 */
#include <ctype.h>
#include <string.h>
#include <sys/types.h>
#include "sim/trace.h"

/* A piece of the line; nothing here needs a terminating 0. */
struct es_span {
	const char *at;
	size_t len;
};

static struct es_span es_span_rest(struct es_span span, size_t skip)
{
	return (struct es_span){span.at + skip, span.len - skip};
}

static struct es_span es_skip_space(struct es_span span)
{
	while (span.len && (*span.at == ' ' || *span.at == '\t'))
		span = es_span_rest(span, 1);
	return span;
}

static size_t es_token_len(struct es_span span)
{
	size_t len = 0;

	while (len < span.len && span.at[len] != ' ' && span.at[len] != '\t')
		len++;
	return len;
}

/* Digits at the start of @span, which moves behind them; -1 if there are none, or too many. */
static __s64 es_take_number(struct es_span *span)
{
	__s64 value = 0;
	size_t digits = 0;

	while (digits < span->len && isdigit((unsigned char)span->at[digits])) {
		if (++digits > 18)
			return -1;
		value = value * 10 + (span->at[digits - 1] - '0');
	}
	*span = es_span_rest(*span, digits);
	return digits ? value : -1;
}

static int es_take_char(struct es_span *span, char c)
{
	if (!span->len || *span->at != c)
		return 0;
	*span = es_span_rest(*span, 1);
	return 1;
}

static __s64 es_days_from_civil(__s64 year, unsigned int month, unsigned int day)
{
	/* Years that begin in March, in eras of 400. */
	__s64 y = year - (month <= 2);
	__s64 era = y / 400;
	__s64 of_era = y - era * 400;
	__s64 of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static unsigned int es_take_month(struct es_span *span)
{
	static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

	if (span->len < 3)
		return 0;
	for (unsigned int i = 0; i < 12; i++) {
		if (!strncasecmp(span->at, names + 3 * (size_t)i, 3)) {
			*span = es_span_rest(*span, 3);
			return i + 1;
		}
	}
	return 0;
}

/* 10/Oct/2000:13:55:36 -0700; returns 0 if it is no time. */
static int es_parse_time(struct es_span text, __s64 *ret_time_s)
{
	__s64 day, year, hour, minute, second, zone = 0;
	unsigned int month;
	int sign = 1;

	day = es_take_number(&text);
	if (!es_take_char(&text, '/'))
		return 0;
	month = es_take_month(&text);
	if (!es_take_char(&text, '/'))
		return 0;
	year = es_take_number(&text);
	if (!es_take_char(&text, ':'))
		return 0;
	hour = es_take_number(&text);
	if (!es_take_char(&text, ':'))
		return 0;
	minute = es_take_number(&text);
	if (!es_take_char(&text, ':'))
		return 0;
	second = es_take_number(&text);
	text = es_skip_space(text);
	if (text.len && (*text.at == '+' || *text.at == '-')) {
		sign = *text.at == '-' ? -1 : 1;
		text = es_span_rest(text, 1);
		zone = es_take_number(&text);
	}
	if (day < 1 || day > 31 || !month || year < 1970 || year > 9999 || hour < 0 || hour > 23 ||
	    minute < 0 || minute > 59 || second < 0 || second > 60 || zone < 0 || zone > 2359)
		return 0;
	*ret_time_s = es_days_from_civil(year, month, (unsigned int)day) * 86400 + hour * 3600 + minute * 60 +
		      second - sign * (zone / 100 * 3600 + zone % 100 * 60);
	return 1;
}

static int es_ends_with_port(struct es_span token)
{
	size_t len = token.len;

	while (len && isdigit((unsigned char)token.at[len - 1]))
		len--;
	return len > 1 && len < token.len && token.at[len - 1] == ':';
}

/* Who asked: the first word before the time, or the second of four if the first one is a virtual host. */
static struct es_span es_parse_client(struct es_span before)
{
	struct es_span first, second = {}, rest;
	unsigned int words = 0;

	before = es_skip_space(before);
	first = (struct es_span){before.at, es_token_len(before)};
	for (rest = before; rest.len; rest = es_skip_space(rest)) {
		size_t len = es_token_len(rest);

		if (++words == 2)
			second = (struct es_span){rest.at, len};
		rest = es_span_rest(rest, len);
	}
	return words == 4 && es_ends_with_port(first) ? second : first;
}

/* The length of what is between the quotes; -1 if they do not end. */
static ssize_t es_quoted_len(struct es_span text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.at[i] == '\\')
			i++;
		else if (text.at[i] == '"')
			return (ssize_t)i;
	}
	return -1;
}

/* Drops "http://host" before a path; a URI without a path is that of "/". */
static struct es_span es_strip_host(struct es_span uri)
{
	const char *colon = memmem(uri.at, uri.len, "://", 3);
	const char *slash, *query;
	size_t skip;

	if (!uri.len || *uri.at == '/' || !colon)
		return uri;
	for (const char *c = uri.at; c < colon; c++)
		if (!isalnum((unsigned char)*c) && *c != '+' && *c != '-' && *c != '.')
			return uri;
	skip = (size_t)(colon - uri.at) + 3;
	uri = es_span_rest(uri, skip);
	slash = memchr(uri.at, '/', uri.len);
	query = memchr(uri.at, '?', uri.len);
	if (!slash || (query && query < slash))
		return (struct es_span){"/", 1};
	return es_span_rest(uri, (size_t)(slash - uri.at));
}

static int es_has_suffix(struct es_span path, const char *suffix)
{
	size_t len = strlen(suffix);

	return path.len >= len && !strncasecmp(path.at + path.len - len, suffix, len);
}

/* By its name: with a query, or a program's suffix, or below cgi-bin. */
static int es_uri_is_dynamic(struct es_span uri)
{
	static const char *const suffixes[] = {".php", ".cgi", ".pl", ".asp", ".aspx", ".jsp", ".do"};

	if (memchr(uri.at, '?', uri.len) || memmem(uri.at, uri.len, "/cgi-bin/", 9))
		return 1;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (es_has_suffix(uri, suffixes[i]))
			return 1;
	return 0;
}

/* "GET /path HTTP/1.1"; older clients leave the protocol out, careless ones have spaces in the path. */
static int es_parse_request(struct es_span text, struct es_trace_record *record)
{
	size_t method_len = es_token_len(text);
	struct es_span uri = es_skip_space(es_span_rest(text, method_len));
	const char *protocol = NULL, *fragment;

	if (!method_len)
		return 0;
	for (size_t i = 0; i < method_len; i++)
		if (!isalpha((unsigned char)text.at[i]))
			return 0;
	for (size_t i = 0; i + 6 <= uri.len; i++)
		if (!memcmp(uri.at + i, " HTTP/", 6))
			protocol = uri.at + i;
	if (protocol)
		uri.len = (size_t)(protocol - uri.at);
	while (uri.len && uri.at[uri.len - 1] == ' ')
		uri.len--;
	uri = es_strip_host(uri);
	fragment = memchr(uri.at, '#', uri.len);
	if (fragment)
		uri.len = (size_t)(fragment - uri.at);
	if (!uri.len || *uri.at != '/')
		return 0;
	record->uri = uri.at;
	record->uri_len = uri.len;
	record->is_get = method_len == 3 && !memcmp(text.at, "GET", 3);
	record->is_dynamic = es_uri_is_dynamic(uri);
	return 1;
}

enum es_trace_skip es_trace_log_line(const char *line, size_t len, struct es_trace_record *ret_record)
{
	struct es_span text = {line, len}, client;
	struct es_trace_record record = {};
	const char *open, *close, *quote;
	__s64 number;
	ssize_t quoted;

	while (text.len && isspace((unsigned char)text.at[text.len - 1]))
		text.len--;
	text = es_skip_space(text);
	if (!text.len)
		return ES_SKIP_EMPTY;
	open = memchr(text.at, '[', text.len);
	client = es_parse_client((struct es_span){text.at, open ? (size_t)(open - text.at) : text.len});
	if (!client.len || *client.at == '"')
		return ES_SKIP_NO_CLIENT;
	close = open ? memchr(open, ']', text.len - (size_t)(open - text.at)) : NULL;
	if (!close || !es_parse_time((struct es_span){open + 1, (size_t)(close - open) - 1}, &record.time_s))
		return ES_SKIP_NO_TIME;
	record.client = es_target_hash(client.at, client.len);
	text = es_span_rest(text, (size_t)(close - text.at) + 1);
	quote = memchr(text.at, '"', text.len);
	if (!quote)
		return ES_SKIP_NO_REQUEST;
	text = es_span_rest(text, (size_t)(quote - text.at) + 1);
	quoted = es_quoted_len(text);
	if (quoted < 0)
		return ES_SKIP_NO_REQUEST;
	if (!es_parse_request((struct es_span){text.at, (size_t)quoted}, &record))
		return ES_SKIP_BAD_REQUEST;
	text = es_skip_space(es_span_rest(text, (size_t)quoted + 1));
	number = es_take_number(&text);
	if (number < 100 || number > 999 || (text.len && *text.at != ' ' && *text.at != '\t'))
		return ES_SKIP_BAD_STATUS;
	record.status = (int)number;
	text = es_skip_space(text);
	if (!es_take_char(&text, '-')) {
		number = es_take_number(&text);
		if (number < 0)
			return ES_SKIP_BAD_SIZE;
		record.size = (__u64)number;
		record.has_size = 1;
	}
	if (text.len && *text.at != ' ' && *text.at != '\t')
		return ES_SKIP_BAD_SIZE;
	*ret_record = record;
	return ES_TRACE_USED;
}
