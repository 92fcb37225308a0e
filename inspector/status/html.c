// SPDX-License-Identifier: GPL-2.0-or-later
/* Text and numbers as HTML. */
#include <string.h>
#include <time.h>
#include "inspector/status/html.h"

void es_html_text(FILE *file, const char *text)
{
	for (const char *at = text; *at; at++)
		switch (*at) {
		case '&':
			fputs("&amp;", file);
			break;
		case '<':
			fputs("&lt;", file);
			break;
		case '>':
			fputs("&gt;", file);
			break;
		case '"':
			fputs("&quot;", file);
			break;
		case '\'':
			fputs("&#39;", file);
			break;
		default:
			fputc((unsigned char)*at < ' ' || *at == 0x7f ? ' ' : *at, file);
		}
}

void es_html_count(FILE *file, unsigned long long number)
{
	char digits[32];
	int len = snprintf(digits, sizeof(digits), "%llu", number);

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			fputs("\u202f", file); /* a narrow space that does not break */
		fputc(digits[i], file);
	}
}

static void put_time(FILE *file, unsigned long long seconds, const char *format)
{
	time_t at = (time_t)seconds;
	char text[48];
	struct tm tm;

	if (gmtime_r(&at, &tm) && strftime(text, sizeof(text), format, &tm))
		fputs(text, file);
}

void es_html_clock(FILE *file, unsigned long long seconds)
{
	put_time(file, seconds, "%H:%M:%S UTC");
}

void es_html_date(FILE *file, unsigned long long seconds)
{
	put_time(file, seconds, "%Y-%m-%d %H:%M:%S UTC");
}
