// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads heads of responses, and writes the request for the rest of one. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "inspector/http/text.h"
#include "inspector/resume/heads.h"

struct text {
	const char *at;
	size_t len;
};

/**
 * struct answer - what the head of a response says
 * @has_range: Content-Range names one part of content whose length is known
 * @is_own: it is for one client, or not to be kept, or depends on more than the encoding
 */
struct answer {
	unsigned int status;
	int has_length;
	int has_range;
	int has_coding;
	int closes;
	int is_own;
	uint64_t length;
	uint64_t first;
	uint64_t last;
	uint64_t total;
	struct text etag;
};

static int is(struct text t, const char *word)
{
	return t.len == strlen(word) && es_http_equals_nocase(t.at, word, t.len);
}

/* Takes digits off the front of @t. Returns 0, or -1 if there are none, or too many. */
static int number_take(struct text *t, uint64_t *ret)
{
	uint64_t n = 0;
	size_t at = 0;

	for (; at < t->len && es_http_is_digit(t->at[at]); at++) {
		if (at == 18)
			return -1;
		n = n * 10 + (uint64_t)(t->at[at] - '0');
	}
	if (!at)
		return -1;
	t->at += at;
	t->len -= at;
	*ret = n;
	return 0;
}

static int char_take(struct text *t, char c)
{
	if (!t->len || *t->at != c)
		return -1;
	t->at++;
	t->len--;
	return 0;
}

/* "bytes 0-9/10": RFC 9110, 14.4. */
static int range_read(struct text t, struct answer *ret)
{
	if (t.len < 6 || !es_http_equals_nocase(t.at, "bytes ", 6))
		return -1;
	t.at += 6;
	t.len -= 6;
	ret->has_range = 1;
	return number_take(&t, &ret->first) || char_take(&t, '-') || number_take(&t, &ret->last) ||
			       char_take(&t, '/') || number_take(&t, &ret->total) || t.len ||
			       ret->first > ret->last || ret->last >= ret->total
		       ? -1
		       : 0;
}

/* Is @word one of the list? An argument, as in no-cache="set-cookie", belongs to its word. */
static int list_has(struct text t, const char *word)
{
	struct es_http_span list = es_http_span_make(0, t.len), element;

	while (es_http_span_next(t.at, ',', &list, &element)) {
		struct text one = {t.at + element.off, element.len};
		const char *argument = memchr(one.at, '=', one.len);

		if (argument)
			one.len = (size_t)(argument - one.at);
		if (is(one, word))
			return 1;
	}
	return 0;
}

/* RFC 9110, 8.8.3: one that begins with W/ says nothing of bytes. */
static int is_strong(struct text t)
{
	return t.len >= 2 && t.len < ES_DOWNLOAD_ETAG_SIZE && t.at[0] == '"' && t.at[t.len - 1] == '"' &&
	       !memchr(t.at + 1, '"', t.len - 2);
}

/* Returns -1 if the line says twice what may be said once, or something that has no sense. */
static int line_read(struct text name, struct text value, struct answer *ret)
{
	if (is(name, "content-length")) {
		if (ret->has_length || number_take(&value, &ret->length) || value.len)
			return -1;
		ret->has_length = 1;
	} else if (is(name, "content-range")) {
		return ret->has_range ? -1 : range_read(value, ret);
	} else if (is(name, "etag")) {
		if (ret->etag.len || !value.len)
			return -1;
		ret->etag = value;
	} else if (is(name, "transfer-encoding")) {
		ret->has_coding = 1;
	} else if (is(name, "connection")) {
		ret->closes |= list_has(value, "close");
	} else if (is(name, "set-cookie")) {
		ret->is_own = 1;
	} else if (is(name, "vary")) {
		ret->is_own |= !is(value, "accept-encoding");
	} else if (is(name, "cache-control")) {
		ret->is_own |= list_has(value, "private") || list_has(value, "no-store");
	}
	return 0;
}

size_t es_resume_head_len(const char *text, size_t len)
{
	const char *end = memmem(text, len, "\r\n\r\n", 4);

	return end ? (size_t)(end - text) + 4 : 0;
}

/* Returns 0, or -1 for a head that is not whole, or no such head. */
static int answer_read(const char *text, size_t len, struct answer *ret)
{
	size_t end = es_resume_head_len(text, len), at, next;

	memset(ret, 0, sizeof(*ret));
	if (end < 17 || memcmp(text, "HTTP/1.", 7) != 0 || text[8] != ' ')
		return -1;
	for (at = 9; at < 12; at++) {
		if (!es_http_is_digit(text[at]))
			return -1;
		ret->status = ret->status * 10 + (unsigned int)(text[at] - '0');
	}
	ret->closes = text[7] == '0';
	for (at = (size_t)((const char *)memchr(text, '\n', end) - text) + 1; at < end - 2; at = next) {
		const char *eol = memmem(text + at, end - at, "\r\n", 2);
		const char *colon = memchr(text + at, ':', (size_t)(eol - text) - at);
		struct es_http_span value;

		if (!colon)
			return -1;
		next = (size_t)(eol - text) + 2;
		value = es_http_span_trim(text, (size_t)(colon - text) + 1, next - 2);
		if (line_read((struct text){text + at, (size_t)(colon - text) - at},
			      (struct text){text + value.off, value.len}, ret))
			return -1;
	}
	return 0;
}

/* Lines of a request that speak for one client. */
static const char *const credentials[] = {"cookie", "authorization", "proxy-authorization"};

/* Lines that are about the client's connection, its cache or its range: the node that goes on has its own. */
static const char *const left_out[] = {"connection",	  "keep-alive",	       "te",
				       "trailer",	  "upgrade",	       "expect",
				       "range",		  "if-range",	       "if-match",
				       "if-none-match",	  "if-modified-since", "if-unmodified-since",
				       "proxy-connection"};

static int is_one_of(struct text name, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is(name, words[i]))
			return 1;
	return 0;
}

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static int head_read(struct es_http_head *head, const char *text, size_t len)
{
	es_http_head_init(head);
	return es_http_head_scan(head, text, len) == ES_HTTP_DONE && head->method == ES_HTTP_METHOD_GET &&
			       head->body == ES_HTTP_BODY_NONE && head->has_host &&
			       es_http_head_headers(head) == head->header_count
		       ? 0
		       : -1;
}

static struct text name_of(const struct es_http_head *head, const char *text, uint32_t i)
{
	return (struct text){text + head->headers[i].name.off, head->headers[i].name.len};
}

/* Can any server be asked for it in the client's name? Keeps its head then. */
static int request_describe(const char *text, size_t len, struct es_download *ret)
{
	struct es_http_head head;

	if (head_read(&head, text, len))
		return 0;
	for (uint32_t i = 0; i < head.header_count; i++)
		if (is_one_of(name_of(&head, text, i), credentials, COUNT(credentials)))
			return 0;
	ret->request_len = (__u16)head.head_len_bytes;
	memcpy(ret->request, text, head.head_len_bytes);
	return 1;
}

/* Is the answer such that its rest is known by length and validator? */
static int answer_describe(const struct answer *answer, struct es_download *ret)
{
	ret->first = answer->has_range ? answer->first : 0;
	ret->total = answer->has_range ? answer->total : answer->length;
	if (!is_strong(answer->etag) || answer->has_coding || answer->is_own ||
	    answer->length > ES_RESUME_LENGTH_MAX)
		return 0;
	memcpy(ret->etag, answer->etag.at, answer->etag.len);
	return answer->status == 206 ? answer->has_range && answer->last - answer->first + 1 == answer->length
				     : answer->status == 200 && !answer->has_range;
}

void es_resume_describe(const struct es_download_entry *entry, unsigned int self, struct es_download *ret)
{
	struct answer answer;

	memset(ret, 0, sizeof(*ret));
	ret->flow = entry->flow;
	ret->options = entry->track.options;
	ret->next_request_seq = entry->track.next_request_seq;
	ret->response_seq = entry->response_seq;
	ret->head_len = entry->track.response.head;
	/* The track stands somewhere in the body. */
	ret->length = entry->track.response.left +
		      (__u32)(entry->track.response_seq - entry->response_seq - ret->head_len);
	ret->requests = entry->track.requests;
	ret->tsval = entry->tsval;
	ret->moves = entry->track.moves;
	ret->service = entry->track.service;
	ret->owner = (__u8)self;
	if (entry->len > ES_DOWNLOAD_HEAD_MAX || entry->request.len > ES_DOWNLOAD_HEAD_MAX ||
	    answer_read((const char *)entry->response, entry->len, &answer) || !answer.has_length ||
	    answer.length != ret->length)
		return;
	if (answer.closes)
		ret->flags |= ES_DOWNLOAD_F_CLOSES;
	if (answer_describe(&answer, ret) &&
	    request_describe((const char *)entry->request.head, entry->request.len, ret))
		ret->flags |= ES_DOWNLOAD_F_RESUMES;
}

/* Adds to what is in @text, up to ES_RESUME_REQUEST_MAX; what has no room makes @used longer than that. */
__attribute__((format(printf, 3, 4))) static void add(char *text, size_t *used, const char *format, ...)
{
	size_t room = *used < ES_RESUME_REQUEST_MAX ? ES_RESUME_REQUEST_MAX - *used : 0;
	va_list arguments;

	va_start(arguments, format);
	*used += (size_t)vsnprintf(room ? text + *used : NULL, room, format, arguments);
	va_end(arguments);
}

size_t es_resume_request(const struct es_download *d, uint64_t from, char *text)
{
	struct es_http_head head;
	size_t used = 0;

	if (head_read(&head, d->request, d->request_len))
		return 0;
	add(text, &used, "GET %.*s HTTP/1.1\r\n", (int)head.target.len, d->request + head.target.off);
	for (uint32_t i = 0; i < head.header_count; i++) {
		struct text name = name_of(&head, d->request, i);
		const struct es_http_span *value = &head.headers[i].value;

		if (!is_one_of(name, left_out, COUNT(left_out)))
			add(text, &used, "%.*s: %.*s\r\n", (int)name.len, name.at, (int)value->len,
			    d->request + value->off);
	}
	add(text, &used, "Range: bytes=%llu-%llu\r\nIf-Range: %s\r\nConnection: close\r\n\r\n",
	    (unsigned long long)(d->first + from), (unsigned long long)(d->first + d->length - 1), d->etag);
	return used < ES_RESUME_REQUEST_MAX ? used : 0;
}

enum es_resume_why es_resume_judge(const struct es_download *d, uint64_t from, const char *text, size_t len)
{
	struct answer answer;

	if (answer_read(text, len, &answer))
		return ES_RESUME_WHY_unreadable;
	if (answer.status != 206)
		return ES_RESUME_WHY_status;
	if (!answer.etag.len || answer.etag.len != strlen(d->etag) ||
	    memcmp(answer.etag.at, d->etag, answer.etag.len) != 0)
		return ES_RESUME_WHY_validator;
	if (!answer.has_range || answer.has_coding || answer.first != d->first + from ||
	    answer.last != d->first + d->length - 1 || answer.total != d->total || !answer.has_length ||
	    answer.length != d->length - from)
		return ES_RESUME_WHY_range;
	return ES_RESUME_WHY_none;
}
