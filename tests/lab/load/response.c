// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads a response and compares it with its object. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "tests/lab/load/response.h"

int es_response_init(struct es_response *response)
{
	memset(response, 0, sizeof(*response));
	response->digest = EVP_MD_CTX_new();
	return response->digest ? 0 : -ENOMEM;
}

void es_response_fini(struct es_response *response)
{
	EVP_MD_CTX_free(response->digest);
	response->digest = NULL;
}

void es_response_begin(struct es_response *response, const struct es_load_object *object)
{
	response->object = object;
	response->head_len = 0;
	response->in_body = 0;
	response->left = 0;
	response->node[0] = '\0';
	response->problem[0] = '\0';
	EVP_DigestInit_ex(response->digest, EVP_sha256(), NULL);
}

static enum es_response_state __attribute__((format(printf, 2, 3)))
bad(struct es_response *response, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(response->problem, sizeof(response->problem), format, arguments);
	va_end(arguments);
	return ES_RESPONSE_BAD;
}

/* The value of a header field, up to the end of its line; NULL if there is none. */
static const char *field(const char *head, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = strstr(head, "\r\n"); line; line = strstr(line, "\r\n")) {
		line += 2;
		if (!strncasecmp(line, name, len) && line[len] == ':')
			return line + len + 1 + strspn(line + len + 1, " \t");
	}
	return NULL;
}

/* The head is complete and ends with a NUL. */
static enum es_response_state check_head(struct es_response *response)
{
	const char *length = field(response->head, "Content-Length");
	const char *node = field(response->head, "X-Node");
	uint64_t size;
	char *end;

	if (strncmp(response->head, "HTTP/1.1 200 ", 13) != 0)
		return bad(response, "status line \"%.*s\"", (int)strcspn(response->head, "\r\n"),
			   response->head);
	if (!length)
		return bad(response, "no Content-Length");
	size = strtoull(length, &end, 10);
	if (end == length || *end != '\r' || size != response->object->size)
		return bad(response, "Content-Length %.*s instead of %" PRIu64, (int)strcspn(length, "\r\n"),
			   length, response->object->size);
	if (!node)
		return bad(response, "no X-Node");
	snprintf(response->node, sizeof(response->node), "%.*s", (int)strcspn(node, "\r\n"), node);
	response->left = size;
	response->in_body = 1;
	return ES_RESPONSE_MORE;
}

static enum es_response_state check_digest(struct es_response *response)
{
	unsigned char digest[EVP_MAX_MD_SIZE];

	EVP_DigestFinal_ex(response->digest, digest, NULL);
	if (memcmp(digest, response->object->digest, ES_LOAD_DIGEST) != 0)
		return bad(response, "%" PRIu64 " bytes, but wrong ones", response->object->size);
	return ES_RESPONSE_DONE;
}

/* Takes bytes of the head and sets @ret_taken to their number; goes on to the body with the rest. */
static enum es_response_state feed_head(struct es_response *response, const char *bytes, size_t len,
					size_t *ret_taken)
{
	size_t before = response->head_len, room = ES_LOAD_HEAD_MAX - before;
	size_t take = len < room ? len : room;
	const char *end;

	memcpy(response->head + before, bytes, take);
	response->head[before + take] = '\0';
	end = strstr(response->head + (before > 3 ? before - 3 : 0), "\r\n\r\n");
	*ret_taken = take;
	response->head_len = before + take;
	if (!end && take < len)
		return bad(response, "no end of the head");
	if (!end)
		return ES_RESPONSE_MORE;
	response->head_len = (size_t)(end + 4 - response->head);
	response->head[response->head_len] = '\0';
	*ret_taken = response->head_len - before;
	return check_head(response);
}

enum es_response_state es_response_feed(struct es_response *response, const void *bytes, size_t len)
{
	const char *at = bytes;
	size_t taken;

	if (!response->in_body) {
		enum es_response_state state = feed_head(response, at, len, &taken);

		if (state != ES_RESPONSE_MORE || !response->in_body)
			return state;
		at += taken;
		len -= taken;
	}
	if (len > response->left)
		return bad(response, "%zu bytes behind the response", (size_t)(len - response->left));
	EVP_DigestUpdate(response->digest, at, len);
	response->left -= len;
	return response->left ? ES_RESPONSE_MORE : check_digest(response);
}

void es_response_progress(const struct es_response *response, char *text, size_t room)
{
	if (response->in_body)
		snprintf(text, room, "%" PRIu64 " of %" PRIu64 " bytes of the body from %s",
			 response->object->size - response->left, response->object->size, response->node);
	else
		snprintf(text, room, "%zu bytes of the head", response->head_len);
}
