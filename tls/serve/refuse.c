// SPDX-License-Identifier: GPL-2.0-or-later
/* The few responses that this process makes by itself. */
#include <stdio.h>
#include <string.h>
#include "tls/serve/refuse.h"

static const char *words_of(unsigned int status)
{
	switch (status) {
	case 400:
		return "Bad Request";
	case 405:
		return "Method Not Allowed";
	case 408:
		return "Request Timeout";
	case 431:
		return "Request Header Fields Too Large";
	case 502:
		return "Bad Gateway";
	case 504:
		return "Gateway Timeout";
	default:
		return "Service Unavailable";
	}
}

size_t es_refuse_text(unsigned int status, int is_head, char ret_text[ES_REFUSE_MAX])
{
	const char *words = words_of(status);
	int len = snprintf(ret_text, ES_REFUSE_MAX,
			   "HTTP/1.1 %u %s\r\n"
			   "%s"
			   "Content-Type: text/plain; charset=utf-8\r\n"
			   "Content-Length: %zu\r\n"
			   "Connection: close\r\n"
			   "\r\n"
			   "%s%s",
			   status, words,
			   status == 405 ? "Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH\r\n" : "",
			   strlen(words) + 1, is_head ? "" : words, is_head ? "" : "\n");

	return len > 0 ? (size_t)len : 0;
}
