/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_REJECTION_H
#define ES_REJECTION_H

#include <stddef.h>

#include "inspector/http/head.h"

/**
 * struct es_rejection - what to answer a request that no node shall serve
 * @retry_after_s: 0 for none; @is_head: the answer has no body; @protocol: an enum es_http_result: what the
 * client understands
 * @by: who refuses it, an enum es_rules_by or beyond
 * @body: text of the answer (rules/rules.h); NULL: the status in words; @type: its Content-Type, and it is
 * sent as it is; NULL: it is one line, without its end
 * @at_s: when it was refused, in seconds since 1970: the answer is the same each time
 * @more_bytes: with ES_ROUTE_MORE instead: ask again when the request has so many
 */
struct es_rejection {
	size_t more_bytes;
	unsigned long long at_s;
	enum es_http_result protocol;
	unsigned int status;
	unsigned int retry_after_s;
	unsigned int by;
	int is_head;
	const char *body;
	const char *type;
};

#endif
