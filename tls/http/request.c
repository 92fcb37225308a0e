// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rewrites the head of a request that inspector/http/ has found to be beyond doubt, line by line: so a line
 * is what stands between two CR LF, and a name what stands before the first colon.
 */
#include "tls/http/request.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "inspector/http/text.h"

/* Folded, as fold() does. */
static const char *const about_client[] = {"forwarded", "x-real-ip"};
static const char *const about_client_begin[] = {"x-forwarded", "client-cert", "x-client-cert", "ssl-client",
						 "x-ssl"};

#define FOLDED_MAX 16 /* longer than the longest of them */

/* The characters of names that servers make variables of are one if they are no letters and no digits. */
static char fold(char c)
{
	return es_http_is_alpha(c) || es_http_is_digit(c) ? es_http_lower(c) : '-';
}

static int is_about_client(const char *name, size_t len)
{
	char folded[FOLDED_MAX + 1];
	size_t i;

	for (i = 0; i < len && i < FOLDED_MAX; i++)
		folded[i] = fold(name[i]);
	folded[i] = '\0';
	for (i = 0; i < sizeof(about_client) / sizeof(about_client[0]); i++)
		if (len <= FOLDED_MAX && !strcmp(folded, about_client[i]))
			return 1;
	for (i = 0; i < sizeof(about_client_begin) / sizeof(about_client_begin[0]); i++)
		if (!strncmp(folded, about_client_begin[i], strlen(about_client_begin[i])))
			return 1;
	return 0;
}

static char *copy(char *out, const char *text, size_t len)
{
	memcpy(out, text, len);
	return out + len;
}

/* An option of Connection may stay if it is a token, which all servers read alike, and no header of ours. */
static int may_stay(const char *option, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!es_http_is_tchar(option[i]))
			return 0;
	return !is_about_client(option, len);
}

/*
 * Connection without options that may not stay; the line is gone if nothing is left. It never becomes
 * longer: a client may send thousands of options.
 */
static char *put_connection(char *out, const char *line, const char *value, const char *end)
{
	struct es_http_span list = es_http_span_make((size_t)(value - line), (size_t)(end - line)), option;
	int is_whole = 1;
	char *at = copy(out, "Connection:", 11);
	char *first = at;

	while (es_http_span_next(line, ',', &list, &option)) {
		if (!may_stay(line + option.off, option.len)) {
			is_whole = 0;
			continue;
		}
		if (!option.len)
			continue;
		at = copy(at, at == first ? " " : ",", 1);
		at = copy(at, line + option.off, option.len);
	}
	if (is_whole)
		return copy(out, line, (size_t)(end - line) + 2);
	return at == first ? out : copy(at, "\r\n", 2);
}

/* One line of the client's, of which @end is the CR. */
static char *put_line(char *out, const char *line, const char *end)
{
	const char *colon = memchr(line, ':', (size_t)(end - line));
	size_t name_len = colon ? (size_t)(colon - line) : 0;

	if (is_about_client(line, name_len))
		return out;
	if (name_len == 10 && es_http_equals_nocase(line, "connection", 10))
		return put_connection(out, line, colon + 1, end);
	return copy(out, line, (size_t)(end - line) + 2);
}

static void address_text(const struct es_addr *address, char ret_text[INET6_ADDRSTRLEN])
{
	if (es_addr_is_v4(address))
		inet_ntop(AF_INET, &address->w[3], ret_text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, address, ret_text, INET6_ADDRSTRLEN);
}

static char *put_forwarded(char *out, const struct es_flow *flow)
{
	char client[INET6_ADDRSTRLEN], service[INET6_ADDRSTRLEN];
	unsigned int port = es_ntohs(flow->service_port);
	int is_v4 = es_addr_is_v4(&flow->service);

	address_text(&flow->client, client);
	address_text(&flow->service, service);
	out += sprintf(out, es_addr_is_v4(&flow->client) ? "Forwarded: for=%s" : "Forwarded: for=\"[%s]\"",
		       client);
	return out + sprintf(out, is_v4 ? ";by=\"%s:%u\";proto=https\r\n" : ";by=\"[%s]:%u\";proto=https\r\n",
			     service, port);
}

static char *put_x_forwarded(char *out, const struct es_flow *flow)
{
	char client[INET6_ADDRSTRLEN];

	address_text(&flow->client, client);
	return out + sprintf(out,
			     "X-Forwarded-For: %s\r\n"
			     "X-Forwarded-Proto: https\r\n"
			     "X-Forwarded-Port: %u\r\n",
			     client, es_ntohs(flow->service_port));
}

static char *put_digest(char *out, const struct es_tls_state *state)
{
	if (!state->has_client)
		return out;
	out = copy(out, "X-SSL-Client-Sha256: ", 21);
	for (size_t i = 0; i < ES_TLS_DIGEST_SIZE; i++)
		out += sprintf(out, "%02x", state->client_digest[i]);
	return copy(out, "\r\n", 2);
}

size_t es_tls_request_head(const struct es_http_head *head, const char *text, enum es_tls_tell tell,
			   const struct es_flow *flow, const struct es_tls_state *state, char *out)
{
	const char *line = text + head->method_name.off, *end = text + head->head_len_bytes, *next;
	char *at = out;

	/* All lines, also those that are too many to be in head->headers. */
	for (; end - line > 2; line = next) {
		next = (const char *)memchr(line, '\n', (size_t)(end - line)) + 1;
		at = at == out ? copy(at, line, (size_t)(next - line)) : put_line(at, line, next - 2);
	}
	if (tell == ES_TLS_TELL_X_FORWARDED)
		at = put_digest(put_x_forwarded(at, flow), state);
	else if (tell == ES_TLS_TELL_FORWARDED)
		at = put_digest(put_forwarded(at, flow), state);
	return (size_t)(copy(at, "\r\n", 2) - out);
}

void es_tls_body_init(struct es_tls_body *body, const struct es_http_head *head)
{
	memset(body, 0, sizeof(*body));
	es_http_chunked_init(&body->chunked);
	switch (head->body) {
	case ES_HTTP_BODY_NONE:
		body->kind = ES_TLS_BODY_NONE;
		break;
	case ES_HTTP_BODY_LENGTH:
		body->kind = ES_TLS_BODY_LENGTH;
		body->left = head->content_length_bytes;
		break;
	case ES_HTTP_BODY_CHUNKED:
		body->kind = ES_TLS_BODY_CHUNKED;
		break;
	default:
		body->kind = ES_TLS_BODY_TUNNEL;
		break;
	}
}

/* How many of these bytes, which reach into the trailer section, come before it? */
static size_t before_trailer(struct es_http_chunked chunked, const uint8_t *bytes, size_t len)
{
	size_t at = 0, used;

	for (; at < len && !es_http_chunked_in_trailer(&chunked); at += used)
		es_http_chunked_scan(&chunked, (const char *)bytes + at, 1, &used);
	return at;
}

static long take_chunked(struct es_tls_body *body, const uint8_t *bytes, size_t len, int *ret_is_over)
{
	const struct es_http_chunked before = body->chunked;
	enum es_http_chunked_result result;
	size_t used;

	result = es_http_chunked_scan(&body->chunked, (const char *)bytes, len, &used);
	body->pass = es_http_chunked_in_trailer(&body->chunked) ? before_trailer(before, bytes, used) : used;
	switch (result) {
	case ES_HTTP_CHUNKED_MORE:
		return (long)used;
	case ES_HTTP_CHUNKED_DONE:
		*ret_is_over = body->ends_with_line = 1;
		return (long)used;
	default:
		return -EBADMSG;
	}
}

long es_tls_body_take(struct es_tls_body *body, const uint8_t *bytes, size_t len, int *ret_is_over)
{
	*ret_is_over = 0;
	switch (body->kind) {
	case ES_TLS_BODY_CHUNKED:
		return take_chunked(body, bytes, len, ret_is_over);
	case ES_TLS_BODY_LENGTH:
		len = len < body->left ? len : (size_t)body->left;
		body->left -= len;
		*ret_is_over = !body->left;
		body->pass = len;
		return (long)len;
	case ES_TLS_BODY_TUNNEL:
		body->pass = len;
		return (long)len;
	default:
		*ret_is_over = 1;
		return 0;
	}
}
