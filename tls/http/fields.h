/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_FIELDS_H
#define ES_TLS_FIELDS_H

/*
 * HTTP/2's fields (RFC 9113 section 8) as an HTTP/1.1 head, and back: a request of HTTP/2 becomes one that
 * rules, plugins and the server behind read like any other, and a response's head becomes fields.
 */
#include <stddef.h>
#include <stdint.h>

/**
 * struct es_fields - the fields of a request, as they come; zero it
 * @bytes: the four pseudo-header fields, in the order in which they came, then lines of a head
 * @method, @scheme, @authority, @path: where they are in @bytes; a @len of 0: it was not there
 * @lines: where the lines begin
 * @cookie: all cookies, which may come in pieces (section 8.2.3)
 * @is_bad: there was something that HTTP/1 has no room for; @is_long: there was too much, and no more is kept
 */
struct es_fields_text {
	char *bytes;
	size_t len;
	size_t size;
};
struct es_fields_span {
	size_t off;
	size_t len;
};
struct es_fields {
	struct es_fields_text bytes;
	struct es_fields_text cookie;
	struct es_fields_span method, scheme, authority, path;
	size_t lines;
	int has_host;
	int has_length;
	int has_line;
	int is_bad;
	int is_long;
};

void es_fields_fini(struct es_fields *fields);

/* es_fields_add() - one more field. Returns 0 or -ENOMEM. */
int es_fields_add(struct es_fields *fields, const char *name, size_t name_len, const char *value,
		  size_t value_len);

/**
 * es_fields_head() - the head of an HTTP/1.1 request, with its empty line
 * @has_body: more is to come; without Content-Length it is told to be chunked
 * Returns its length, and *@ret_text, which the caller frees; -EBADMSG: no head may be made of them;
 * -EMSGSIZE: it would be longer than ES_TLS_HEAD_MAX; or -ENOMEM. The caller scans it
 * (inspector/http/head.h): only what all servers read alike may be used.
 */
long es_fields_head(const struct es_fields *fields, int has_body, char **ret_text);

/* struct es_field - of a response; the bytes are those of the text that was read */
struct es_field {
	char *name;
	size_t name_len;
	char *value;
	size_t value_len;
};

#define ES_FIELDS_MAX 256 /* of a response */

/**
 * es_fields_of_head() - the fields of a response's head, or of a trailer section, which ends with its empty
 * line
 * @text: names become lower case in it
 * @is_trailer: there is no status line
 * Fields that are about the server's connection are left out, and in trailers those that nobody looks for
 * there.
 * Returns how many there are; -EBADMSG: it has something that HTTP/2 must not carry, or too much.
 */
long es_fields_of_head(char *text, size_t len, int is_trailer, struct es_field ret_fields[ES_FIELDS_MAX]);

#endif
