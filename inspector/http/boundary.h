/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_BOUNDARY_H
#define ES_BOUNDARY_H

/*
 * Where the next request on a connection starts, as far as the bytes of this one prove it.
 */
#include <stddef.h>
#include <stdint.h>
#include "inspector/http/head.h"
#include "kmod/core/pins.h"

/**
 * struct es_boundary - the end of a request
 * @len_bytes: of head and body, if @pin is ES_PIN_none
 * @pin: why it is unknown, and nothing on this connection will be inspected after this request
 * @is_head: the response has no body
 */
struct es_boundary {
	uint32_t len_bytes;
	enum es_pin pin;
	int is_head;
};

/**
 * es_boundary_find() - judge a request whose head has been read
 * @text, @len: what there is of it, from its first byte on
 * A boundary is never guessed: what is not proven pins.
 */
void es_boundary_find(const struct es_http_head *head, const char *text, size_t len, struct es_boundary *ret);

/**
 * es_boundary_is_reached() - does the client send nothing more before it hears something from the server?
 * That is so after the end of a request, and after a head with Expect: 100-continue. A text that does not
 * tell may go on. Once 1, it is 1 for all longer texts.
 */
int es_boundary_is_reached(const struct es_http_head *head, const char *text, size_t len);

#endif
