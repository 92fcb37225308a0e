// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Times as access logs have them: that of the common log format, ISO 8601, and seconds since 1970.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>
#include "sim/trace_span.h"

/* A fraction, a zone's colon: an ISO time with all of it is shorter. */
#define ES_ISO_TIME_MAX 40

__s64 es_take_number(struct es_span *span)
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

static __s64 es_days_from_civil(__s64 year, unsigned int month, unsigned int day)
{
	/* Years that begin in March, in eras of 400. */
	__s64 y = year - (month <= 2);
	__s64 era = y / 400;
	__s64 of_era = y - era * 400;
	__s64 of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static __s64 es_take_month(struct es_span *span)
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

/* ".123" or ",123", of any length; what is below a second does not matter here. */
static int es_skip_fraction(struct es_span *text)
{
	size_t digits = 0;

	if (!es_take_char(text, '.') && !es_take_char(text, ','))
		return 1;
	while (digits < text->len && isdigit((unsigned char)text->at[digits]))
		digits++;
	*text = es_span_rest(*text, digits);
	return digits > 0;
}

/* "Z", "-0700", "+05:30", "+01", or nothing, which is UTC; sets seconds east of Greenwich. */
static int es_take_zone(struct es_span *text, __s64 *ret_east_s)
{
	int sign = 1;
	__s64 zone;
	size_t digits;

	*ret_east_s = 0;
	*text = es_skip_space(*text);
	if (!text->len || es_take_char(text, 'Z') || es_take_char(text, 'z'))
		return 1;
	if (es_take_char(text, '-'))
		sign = -1;
	else if (!es_take_char(text, '+'))
		return 1;
	digits = text->len;
	zone = es_take_number(text);
	digits -= text->len;
	if (es_take_char(text, ':'))
		zone = zone * 100 + es_take_number(text);
	else if (digits <= 2)
		zone *= 100;
	if (zone < 0 || zone > 2359 || zone % 100 > 59)
		return 0;
	*ret_east_s = sign * (zone / 100 * 3600 + zone % 100 * 60);
	return 1;
}

/* "13:55:36", with a fraction and a zone, and then the end. */
static int es_parse_clock(struct es_span text, __s64 year, __s64 month, __s64 day, __s64 *ret_time_s)
{
	__s64 hour, minute, second, east_s;

	hour = es_take_number(&text);
	if (!es_take_char(&text, ':'))
		return 0;
	minute = es_take_number(&text);
	if (!es_take_char(&text, ':'))
		return 0;
	second = es_take_number(&text);
	if (!es_skip_fraction(&text) || !es_take_zone(&text, &east_s) || es_skip_space(text).len)
		return 0;
	if (day < 1 || day > 31 || month < 1 || month > 12 || year < 1970 || year > 9999 || hour < 0 ||
	    hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
		return 0;
	*ret_time_s = es_days_from_civil(year, (unsigned int)month, (unsigned int)day) * 86400 + hour * 3600 +
		      minute * 60 + second - east_s;
	return 1;
}

/* 10/Oct/2000:13:55:36 -0700 */
static int es_parse_clf_time(struct es_span text, __s64 *ret_time_s)
{
	__s64 day, month, year;

	day = es_take_number(&text);
	if (!es_take_char(&text, '/'))
		return 0;
	month = es_take_month(&text);
	if (!es_take_char(&text, '/'))
		return 0;
	year = es_take_number(&text);
	return es_take_char(&text, ':') && es_parse_clock(text, year, month, day, ret_time_s);
}

/* 2000-10-10T13:55:36-07:00; a space may stand for the T */
static int es_parse_iso_time(struct es_span text, __s64 *ret_time_s)
{
	__s64 day, month, year;

	year = es_take_number(&text);
	if (!es_take_char(&text, '-'))
		return 0;
	month = es_take_number(&text);
	if (!es_take_char(&text, '-'))
		return 0;
	day = es_take_number(&text);
	if (!es_take_char(&text, 'T') && !es_take_char(&text, 't') && !es_take_char(&text, ' '))
		return 0;
	return es_parse_clock(text, year, month, day, ret_time_s);
}

/* 971211336.123: nginx's $msec; of 9 to 11 digits, so that not every number is a time. */
static int es_parse_seconds(struct es_span text, __s64 *ret_time_s)
{
	size_t digits = text.len;

	*ret_time_s = es_take_number(&text);
	digits -= text.len;
	return digits >= 9 && digits <= 11 && es_skip_fraction(&text) && !text.len;
}

static int es_parse_time(struct es_span text, __s64 *ret_time_s)
{
	return es_parse_clf_time(text, ret_time_s) || es_parse_iso_time(text, ret_time_s) ||
	       es_parse_seconds(text, ret_time_s);
}

int es_trace_is_iso_time(struct es_span text)
{
	__s64 time_s;

	return text.len <= ES_ISO_TIME_MAX && es_parse_iso_time(text, &time_s);
}

/* A bracket may also belong to an IPv6 address or to a user's name. */
static int es_find_in_brackets(struct es_span line, struct es_span *ret_before, struct es_span *ret_after,
			       __s64 *ret_time_s)
{
	struct es_span rest = line;
	const char *open, *close;

	while ((open = memchr(rest.at, '[', rest.len)) != NULL) {
		rest = es_span_rest(rest, (size_t)(open - rest.at) + 1);
		close = memchr(rest.at, ']', rest.len < ES_ISO_TIME_MAX ? rest.len : ES_ISO_TIME_MAX);
		if (!close ||
		    !es_parse_time((struct es_span){rest.at, (size_t)(close - rest.at)}, ret_time_s))
			continue;
		*ret_before = (struct es_span){line.at, (size_t)(open - line.at)};
		*ret_after = es_span_rest(line, (size_t)(close - line.at) + 1);
		return 1;
	}
	return 0;
}

/* The length of the ISO time that @text begins with: one word, or a date, a clock and perhaps a zone. */
static size_t es_iso_time_len(struct es_span text, __s64 *ret_time_s)
{
	struct es_span rest = text;
	size_t len = 0;

	if (!text.len || !isdigit((unsigned char)*text.at))
		return 0;
	for (int words = 0; words < 3; words++) {
		struct es_span token = es_take_token(&rest);
		size_t end = (size_t)(token.at - text.at) + token.len;
		__s64 time_s;

		if (!token.len || end > ES_ISO_TIME_MAX)
			break;
		if (es_parse_iso_time((struct es_span){text.at, end}, &time_s)) {
			*ret_time_s = time_s;
			len = end;
		}
	}
	return len;
}

static int es_find_bare(struct es_span line, struct es_span *ret_before, struct es_span *ret_after,
			__s64 *ret_time_s)
{
	const char *quote = memchr(line.at, '"', line.len);
	struct es_span rest = {line.at, quote ? (size_t)(quote - line.at) : line.len};

	for (rest = es_skip_space(rest); rest.len; rest = es_skip_space(rest)) {
		size_t len = es_iso_time_len(rest, ret_time_s);

		if (len) {
			*ret_before = (struct es_span){line.at, (size_t)(rest.at - line.at)};
			*ret_after = es_span_rest(line, (size_t)(rest.at - line.at) + len);
			return 1;
		}
		rest = es_span_rest(rest, es_token_len(rest));
	}
	return 0;
}

int es_trace_find_time(struct es_span line, struct es_span *ret_before, struct es_span *ret_after,
		       __s64 *ret_time_s)
{
	return es_find_in_brackets(line, ret_before, ret_after, ret_time_s) ||
	       es_find_bare(line, ret_before, ret_after, ret_time_s);
}
