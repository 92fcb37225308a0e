// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads times. A text with something after the time, or with a day that the month does not have, is none. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "inspector/base/when.h"

#define DAY_S 86400

int es_when_span(const char *text, double *ret_s)
{
	static const struct {
		char unit;
		double s;
	} units[] = {{'d', DAY_S}, {'h', 3600}, {'m', 60}, {'s', 1}};
	size_t unit = 0;
	double sum = 0;

	if (!*text)
		return -EINVAL;
	while (*text) {
		char *end;
		double number;

		/* Only this of all that strtod() takes. */
		number = strtod(text, &end);
		if (end != text + strspn(text, "0123456789."))
			return -EINVAL;
		while (unit < sizeof(units) / sizeof(units[0]) && units[unit].unit != *end)
			unit++;
		if (end == text || unit == sizeof(units) / sizeof(units[0]))
			return -EINVAL;
		sum += number * units[unit++].s;
		text = end + 1;
	}
	*ret_s = sum;
	return 0;
}

/* @least to @most digits, a number up to @max; moves *@at behind them. */
static int read_number(const char **at, size_t least, size_t most, int max, int *ret)
{
	size_t len = strspn(*at, "0123456789");
	int number = 0;

	if (len < least || len > most)
		return 0;
	for (size_t i = 0; i < len; i++)
		number = number * 10 + (*at)[i] - '0';
	if (number > max)
		return 0;
	*at += len;
	*ret = number;
	return 1;
}

static int read_date(const char **at, struct tm *tm)
{
	int year, month, day;

	if (!read_number(at, 4, 4, 9999, &year) || *(*at)++ != '-' || !read_number(at, 1, 2, 12, &month) ||
	    *(*at)++ != '-' || !read_number(at, 1, 2, 31, &day) || !month || !day)
		return 0;
	tm->tm_year = year - 1900;
	tm->tm_mon = month - 1;
	tm->tm_mday = day;
	return 1;
}

static int read_clock(const char **at, struct tm *tm, int *ret_ms)
{
	size_t digits;

	if (!read_number(at, 1, 2, 23, &tm->tm_hour) || *(*at)++ != ':' ||
	    !read_number(at, 2, 2, 59, &tm->tm_min))
		return 0;
	if (**at != ':')
		return 1;
	(*at)++;
	if (!read_number(at, 2, 2, 60, &tm->tm_sec))
		return 0;
	if (**at != '.' && **at != ',')
		return 1;
	(*at)++;
	digits = strspn(*at, "0123456789");
	for (size_t i = 0, unit = 100; i < digits; i++, unit /= 10)
		*ret_ms += (int)((size_t)((*at)[i] - '0') * unit);
	*at += digits;
	return digits > 0;
}

/* Z, +0100 or +01:00; returns 0 for something else. @ret_s: east of Greenwich */
static int read_zone(const char **at, int *ret_s)
{
	int sign = **at == '-' ? -1 : 1, hours, minutes;
	char digits[3] = {0};
	const char *text = digits;

	if (**at == 'Z') {
		(*at)++;
		*ret_s = 0;
		return 1;
	}
	if (strspn(*at + 1, "0123456789") < 2)
		return 0;
	memcpy(digits, *at + 1, 2);
	*at += 3;
	*at += **at == ':';
	if (!read_number(&text, 2, 2, 14, &hours) || !read_number(at, 2, 2, 59, &minutes))
		return 0;
	*ret_s = sign * (hours * 3600 + minutes * 60);
	return 1;
}

/* The date that was meant may be none, as the 31st of February. */
static int seconds_of(const struct tm *meant, int has_zone, int zone_s, time_t *ret_s)
{
	struct tm tm = *meant;
	time_t s = has_zone ? timegm(&tm) - zone_s : mktime(&tm);

	if (s < 0 || tm.tm_mday != meant->tm_mday || tm.tm_mon != meant->tm_mon)
		return 0;
	*ret_s = s;
	return 1;
}

/* Today's, or yesterday's where that is to come. */
static int since_clock(const char *text, unsigned long long now_ms, unsigned long long *ret_ms)
{
	time_t now_s = (time_t)(now_ms / 1000), s;
	struct tm now, tm;
	int ms = 0;

	if (!localtime_r(&now_s, &now))
		return -EINVAL;
	tm = (struct tm){
		.tm_year = now.tm_year, .tm_mon = now.tm_mon, .tm_mday = now.tm_mday, .tm_isdst = -1};
	if (!read_clock(&text, &tm, &ms) || *text)
		return -EINVAL;
	for (int back = 0; back < 2; back++) {
		struct tm day = tm;

		day.tm_mday -= back;
		s = mktime(&day);
		if (s >= 0 && (unsigned long long)s * 1000 + (unsigned int)ms <= now_ms) {
			*ret_ms = (unsigned long long)s * 1000 + (unsigned int)ms;
			return 0;
		}
	}
	return -EINVAL;
}

int es_when_since(const char *text, unsigned long long now_ms, unsigned long long *ret_ms)
{
	struct tm tm = {.tm_isdst = -1};
	int ms = 0, zone_s = 0, has_zone = 0;
	const char *at = text;
	double span_s;
	time_t s;

	if (!es_when_span(text, &span_s)) {
		if (span_s * 1000 >= (double)now_ms)
			return -EINVAL;
		*ret_ms = now_ms - (unsigned long long)(span_s * 1000);
		return 0;
	}
	if (!read_date(&at, &tm))
		return since_clock(text, now_ms, ret_ms);
	if (*at) {
		if ((*at != ' ' && *at != 'T') || (at++, !read_clock(&at, &tm, &ms)))
			return -EINVAL;
		has_zone = *at != 0;
		if (has_zone && (!strchr("Z+-", *at) || !read_zone(&at, &zone_s) || *at))
			return -EINVAL;
	}
	if (!seconds_of(&tm, has_zone, zone_s, &s))
		return -EINVAL;
	*ret_ms = (unsigned long long)s * 1000 + (unsigned int)ms;
	return 0;
}
