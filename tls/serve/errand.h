/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_ERRAND_H
#define ES_SERVE_ERRAND_H

/*
 * A request's head on its way to the server behind: as the server reads it, on a connection that has served
 * before or on a new one, and once more if such a one has ended without a word.
 */
#include "inspector/http/head.h"
#include "tls/serve/client.h"
#include "tls/serve/upstream.h"

/**
 * struct es_errand - of a request
 * @head: as the server reads it
 * @may_repeat: it may be sent again if nobody knows whether the server has had it
 * @changed, @ctx: of its connection to the server
 */
struct es_errand {
	struct es_client *client;
	const struct es_buffer *head;
	int may_repeat;
	void (*changed)(void *ctx);
	void *ctx;
};

/* es_errand_may_repeat() - has this method no effect but its response? */
int es_errand_may_repeat(enum es_http_method method);

/* es_errand_head() - write the head as the server reads it into @ret_head. Returns 0 or -ENOMEM. */
int es_errand_head(const struct es_client *client, const struct es_http_head *head, const char *text,
		   struct es_buffer *ret_head);

/**
 * es_errand_begin() - find a connection, and give it the head
 * @upstream: one that the client has had before, or NULL; gets that which is used. Returns 0 or -errno.
 */
int es_errand_begin(const struct es_errand *errand, struct es_upstream **upstream);

/* es_errand_again() - the same on a new connection, as *@upstream has ended. Returns 0: it may not be. */
int es_errand_again(const struct es_errand *errand, struct es_upstream **upstream);

#endif
