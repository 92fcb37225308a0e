// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fields of HTTP/2 and heads of HTTP/1.1. nghttp2 has judged a request's fields before; here nothing depends
 * on that: whatever could end a line, or be read as another field, makes the request a bad one.
 */
#include "tls/http/fields.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/http/text.h"
#include "tls/http/request.h"

#define IS(name, len, literal) ((len) == sizeof(literal) - 1 && !memcmp(name, literal, sizeof(literal) - 1))

/* --- of a request */

static int put(struct es_fields_text *t, const char *bytes, size_t len)
{
	if (t->size - t->len < len) {
		size_t size = 2 * (t->len + len);
		char *grown = realloc(t->bytes, size);

		if (!grown)
			return -ENOMEM;
		t->bytes = grown;
		t->size = size;
	}
	if (len)
		memcpy(t->bytes + t->len, bytes, len);
	t->len += len;
	return 0;
}

static int put_line(struct es_fields_text *t, const char *name, size_t name_len, const char *value,
		    size_t value_len)
{
	int rc = put(t, name, name_len);

	if (!rc)
		rc = put(t, ": ", 2);
	if (!rc)
		rc = put(t, value, value_len);
	return rc ? rc : put(t, "\r\n", 2);
}

void es_fields_fini(struct es_fields *f)
{
	free(f->bytes.bytes);
	free(f->cookie.bytes);
	*f = (struct es_fields){};
}

static int is_value(const char *value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)value[i] < 0x20 && value[i] != '\t') || value[i] == 0x7f)
			return 0;
	return !len || (!es_http_is_ows(value[0]) && !es_http_is_ows(value[len - 1]));
}

/* Section 8.2: names are lower case. */
static int is_name(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!es_http_is_tchar(name[i]) || es_http_lower(name[i]) != name[i])
			return 0;
	return len > 0;
}

/* Those of the request line end at white space. */
static int is_word(const char *value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (es_http_is_outside_vchar(value[i]))
			return 0;
	return len > 0;
}

/* Section 8.2.2: they have no meaning in HTTP/2, and one that they would have in HTTP/1. */
static int is_of_connection(const char *name, size_t len)
{
	return IS(name, len, "connection") || IS(name, len, "keep-alive") ||
	       IS(name, len, "proxy-connection") || IS(name, len, "transfer-encoding") ||
	       IS(name, len, "upgrade");
}

static int add_pseudo(struct es_fields *f, const char *name, size_t name_len, const char *value,
		      size_t value_len)
{
	struct es_fields_span *span = NULL;

	if (IS(name, name_len, ":method"))
		span = &f->method;
	else if (IS(name, name_len, ":scheme"))
		span = &f->scheme;
	else if (IS(name, name_len, ":authority"))
		span = &f->authority;
	else if (IS(name, name_len, ":path"))
		span = &f->path;
	if (!span || span->len || f->has_line || !is_word(value, value_len)) {
		f->is_bad = 1;
		return 0;
	}
	*span = (struct es_fields_span){.off = f->bytes.len, .len = value_len};
	return put(&f->bytes, value, value_len);
}

static int add_cookie(struct es_fields *f, const char *value, size_t value_len)
{
	int rc = f->cookie.len ? put(&f->cookie, "; ", 2) : 0;

	return rc ? rc : put(&f->cookie, value, value_len);
}

/* :authority goes before Host, and they should be one (section 8.3.1). */
static int add_host(struct es_fields *f, const char *value, size_t value_len)
{
	f->is_bad |= f->has_host;
	f->has_host = 1;
	if (!f->authority.len)
		return put_line(&f->bytes, "Host", 4, value, value_len);
	f->is_bad |= f->authority.len != value_len ||
		     memcmp(f->bytes.bytes + f->authority.off, value, value_len) != 0;
	return 0;
}

int es_fields_add(struct es_fields *f, const char *name, size_t name_len, const char *value, size_t value_len)
{
	/* With the four bytes that a line takes beside them. */
	if (f->bytes.len + f->cookie.len + name_len + value_len + 4 > ES_TLS_HEAD_MAX)
		f->is_long = 1;
	if (f->is_bad || f->is_long)
		return 0;
	if (name_len && *name == ':')
		return add_pseudo(f, name, name_len, value, value_len);
	if (!f->has_line)
		f->lines = f->bytes.len;
	f->has_line = 1;
	if (!is_name(name, name_len) || !is_value(value, value_len) || is_of_connection(name, name_len)) {
		f->is_bad = 1;
		return 0;
	}
	if (IS(name, name_len, "te"))
		return 0; /* it is about this connection */
	if (IS(name, name_len, "cookie"))
		return add_cookie(f, value, value_len);
	if (IS(name, name_len, "host"))
		return add_host(f, value, value_len);
	if (IS(name, name_len, "content-length")) {
		f->is_bad |= f->has_length;
		f->has_length = 1;
	}
	return put_line(&f->bytes, name, name_len, value, value_len);
}

static int put_head(const struct es_fields *f, int has_body, struct es_fields_text *t)
{
	const char *bytes = f->bytes.bytes;
	int rc = put(t, bytes + f->method.off, f->method.len);

	if (!rc)
		rc = put(t, " ", 1);
	if (!rc)
		rc = put(t, bytes + f->path.off, f->path.len);
	if (!rc)
		rc = put(t, " HTTP/1.1\r\n", 11);
	if (!rc && f->authority.len)
		rc = put_line(t, "Host", 4, bytes + f->authority.off, f->authority.len);
	if (!rc && f->has_line)
		rc = put(t, bytes + f->lines, f->bytes.len - f->lines);
	if (!rc && f->cookie.len)
		rc = put_line(t, "Cookie", 6, f->cookie.bytes, f->cookie.len);
	if (!rc && has_body && !f->has_length)
		rc = put(t, "Transfer-Encoding: chunked\r\n", 28);
	return rc ? rc : put(t, "\r\n", 2);
}

long es_fields_head(const struct es_fields *f, int has_body, char **ret_text)
{
	struct es_fields_text text = {};
	int rc;

	if (f->is_bad || (!f->is_long && (!f->method.len || !f->scheme.len || !f->path.len ||
					  (!f->authority.len && !f->has_host))))
		return -EBADMSG;
	/* A whole URL could name another host than Host does. */
	if (!f->is_long && f->bytes.bytes[f->path.off] != '/' && f->bytes.bytes[f->path.off] != '*')
		return -EBADMSG;
	if (f->is_long)
		return -EMSGSIZE;
	rc = put_head(f, has_body, &text);
	if (!rc && text.len > ES_TLS_HEAD_MAX)
		rc = -EMSGSIZE;
	if (rc) {
		free(text.bytes);
		return rc;
	}
	*ret_text = text.bytes;
	return (long)text.len;
}

/* --- of a response */

/*
 * Is the field named by an option of Connection? Then it is of the server's connection (RFC 9110 section
 * 7.6.1).
 */
static int is_option(const struct es_field *field, const char *text, const struct es_http_span *options,
		     size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct es_http_span list = options[i], option;

		while (es_http_span_next(text, ',', &list, &option))
			if (option.len == field->name_len &&
			    es_http_equals_nocase(text + option.off, field->name, option.len))
				return 1;
	}
	return 0;
}

static int is_left_out(const struct es_field *field, int is_trailer)
{
	const char *name = field->name;
	size_t len = field->name_len;

	if (is_of_connection(name, len) || IS(name, len, "te"))
		return 1;
	/* RFC 9110 section 6.5.1: framing, and what has to be known before the body. */
	return is_trailer &&
	       (IS(name, len, "content-length") || IS(name, len, "trailer") || IS(name, len, "host") ||
		IS(name, len, "set-cookie") || IS(name, len, "content-encoding") ||
		IS(name, len, "content-type") || IS(name, len, "content-range"));
}

/* One line, of which @end is behind the last byte. Returns 0 or -EBADMSG. */
static int read_line(char *line, char *end, struct es_field *ret)
{
	char *colon = memchr(line, ':', (size_t)(end - line)), *value;

	if (!colon)
		return -EBADMSG;
	for (char *at = line; at < colon; at++)
		*at = es_http_lower(*at);
	value = colon + 1;
	while (value < end && es_http_is_ows(*value))
		value++;
	while (end > value && es_http_is_ows(end[-1]))
		end--;
	*ret = (struct es_field){.name = line,
				 .name_len = (size_t)(colon - line),
				 .value = value,
				 .value_len = (size_t)(end - value)};
	return is_name(ret->name, ret->name_len) && is_value(ret->value, ret->value_len) ? 0 : -EBADMSG;
}

long es_fields_of_head(char *text, size_t len, int is_trailer, struct es_field ret[ES_FIELDS_MAX])
{
	struct es_http_span options[8];
	size_t count = 0, option_count = 0, kept = 0;
	char *end = text + len, *next;

	for (char *line = text; line < end; line = next) {
		char *stop = memchr(line, '\n', (size_t)(end - line));

		if (!stop)
			return -EBADMSG;
		next = stop + 1;
		if (stop > line && stop[-1] == '\r')
			stop--;
		if (stop == line) /* the empty one */
			break;
		if (line == text && !is_trailer)
			continue;
		if (count == ES_FIELDS_MAX || read_line(line, stop, &ret[count]))
			return -EBADMSG;
		if (IS(ret[count].name, ret[count].name_len, "connection")) {
			if (option_count == sizeof(options) / sizeof(options[0]))
				return -EBADMSG;
			options[option_count++] =
				es_http_span_make((size_t)(ret[count].value - text),
						  (size_t)(ret[count].value - text) + ret[count].value_len);
		}
		count++;
	}
	for (size_t i = 0; i < count; i++)
		if (!is_left_out(&ret[i], is_trailer) && !is_option(&ret[i], text, options, option_count))
			ret[kept++] = ret[i];
	return (long)kept;
}
