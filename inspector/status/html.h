/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_HTML_H
#define ES_HTML_H

/* The status page's text: what comes from outside (names, paths) gets into it here only, escaped. */
#include <stdio.h>

/* es_html_text() - for between tags and within quoted attributes; control characters become spaces */
void es_html_text(FILE *file, const char *text);

/* es_html_count() - a whole number, a thousand at a time apart: 12 345 */
void es_html_count(FILE *file, unsigned long long number);

/* es_html_clock() - the time of day in UTC of @seconds since 1970 */
void es_html_clock(FILE *file, unsigned long long seconds);

/* es_html_date() - likewise, with the day before it */
void es_html_date(FILE *file, unsigned long long seconds);

#endif
