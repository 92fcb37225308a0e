// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads the answer to a check, byte by byte, and keeps no more of it than it must. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "inspector/health/answer.h"

__attribute__((format(printf, 2, 3))) static enum es_answer_result is_wrong(char *why, const char *format,
									    ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, ES_ANSWER_WHY_SIZE, format, args);
	va_end(args);
	return ES_ANSWER_WRONG;
}

/* "HTTP/1.1 200": so much of an answer is needed. */
#define STATUS_BYTES 12

static enum es_answer_result judge_status(struct es_answer *a, const struct es_conf_check *conf, char *why)
{
	unsigned int status;

	a->start[STATUS_BYTES] = 0;
	if (strncmp(a->start, "HTTP/1.", 7) != 0 || a->start[8] != ' ')
		return is_wrong(why, "the answer is not HTTP/1.x");
	status = (unsigned int)strtoul(a->start + 9, NULL, 10);
	/* RFC 9110, 15.2: any number of these may come before the answer. 101 is one itself. */
	if (status >= 100 && status < 200 && status != 101) {
		a->is_interim = a->is_line = 1;
		a->started = 0;
		return ES_ANSWER_MORE;
	}
	a->status = status;
	if (!es_conf_status_is_right(conf, status))
		return is_wrong(why, "the answer to GET %.60s is %u", conf->path, status);
	a->passed = 0;
	return conf->body[0] ? ES_ANSWER_MORE : ES_ANSWER_RIGHT;
}

/* Pass over an answer 1xx, up to its empty line. */
static enum es_answer_result pass_over(struct es_answer *a, char byte, char *why)
{
	if (++a->passed > ES_ANSWER_INTERIM_BYTES)
		return is_wrong(why, "more than %u bytes of informational answers come before the answer",
				ES_ANSWER_INTERIM_BYTES);
	if (byte == '\n') {
		a->is_interim = a->is_line;
		a->is_line = 0;
	} else if (byte != '\r') {
		a->is_line = 1;
	}
	return ES_ANSWER_MORE;
}

/* Its line of the status ends first. */
static enum es_answer_result read_head(struct es_answer *a, char byte, char *why)
{
	static const char coding[] = "transfer-encoding:";

	if (++a->passed > ES_ANSWER_HEAD_BYTES)
		return is_wrong(why, "the head of the answer has more than %u bytes", ES_ANSWER_HEAD_BYTES);
	if (byte == '\r')
		return ES_ANSWER_MORE;
	if (byte != '\n') {
		if (a->line_len < sizeof(a->line) - 1)
			a->line[a->line_len++] = byte;
		return ES_ANSWER_MORE;
	}
	a->line[a->line_len] = 0;
	if (!strncasecmp(a->line, coding, sizeof(coding) - 1) && strcasestr(a->line, "chunked"))
		a->is_chunked = 1;
	/*
	 * At least a blank is left of the line of the status, or nothing where it has no reason: then it is
	 * the first one.
	 */
	a->is_body = !a->line_len && a->is_line;
	a->is_line = 1;
	a->line_len = 0;
	if (a->is_body)
		es_http_chunked_init(&a->chunked);
	return ES_ANSWER_MORE;
}

static int has_text(struct es_answer *a, char byte, const char *text)
{
	unsigned int len = (unsigned int)strlen(text);

	if (a->window_len == sizeof(a->window)) {
		memmove(a->window, a->window + a->window_len - len, len);
		a->window_len = len;
	}
	a->window[a->window_len++] = byte;
	return a->window_len >= len && !memcmp(a->window + a->window_len - len, text, len);
}

static enum es_answer_result lacks_text(const struct es_conf_check *conf, const char *where, char *why)
{
	return is_wrong(why, "the answer to GET %.40s does not have \"%.40s\" %s", conf->path, conf->body,
			where);
}

static enum es_answer_result read_body(struct es_answer *a, const struct es_conf_check *conf, char byte,
				       char *why)
{
	if (a->is_chunked) {
		uint64_t before = a->chunked.body_bytes;
		size_t used;

		switch (es_http_chunked_scan(&a->chunked, &byte, 1, &used)) {
		case ES_HTTP_CHUNKED_ERROR:
			return is_wrong(why, "the answer's chunks are not those of HTTP/1.1");
		case ES_HTTP_CHUNKED_DONE:
			return lacks_text(conf, "in its body", why);
		case ES_HTTP_CHUNKED_MORE:
			break;
		}
		if (a->chunked.body_bytes == before)
			return ES_ANSWER_MORE;
	}
	if (has_text(a, byte, conf->body))
		return ES_ANSWER_RIGHT;
	return ++a->body_bytes < ES_ANSWER_BODY_BYTES ? ES_ANSWER_MORE
						      : lacks_text(conf, "in its first 64 KiB", why);
}

static enum es_answer_result read_byte(struct es_answer *a, const struct es_conf_check *conf, char byte,
				       char *why)
{
	if (a->is_interim)
		return pass_over(a, byte, why);
	if (a->is_body)
		return read_body(a, conf, byte, why);
	if (a->status)
		return read_head(a, byte, why);
	a->start[a->started++] = byte;
	return a->started < STATUS_BYTES ? ES_ANSWER_MORE : judge_status(a, conf, why);
}

enum es_answer_result es_answer_read(struct es_answer *a, const struct es_conf_check *conf, const char *bytes,
				     size_t len, char *why)
{
	enum es_answer_result result = ES_ANSWER_MORE;

	for (size_t i = 0; i < len && result == ES_ANSWER_MORE; i++)
		result = read_byte(a, conf, bytes[i], why);
	return result;
}

void es_answer_ended(const struct es_answer *a, const struct es_conf_check *conf, unsigned int within_ms,
		     char *why)
{
	char where[64] = "in its body";

	if (within_ms)
		snprintf(where, sizeof(where), "within %u ms", within_ms);
	if (a->status)
		lacks_text(conf, where, why);
	else if (within_ms)
		is_wrong(why, "no answer within %u ms", within_ms);
	else
		is_wrong(why, "the connection was closed without an answer");
}
