/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_ASK_H
#define ES_SERVE_ASK_H

/*
 * Questions to this machine's earshotd, by inspector/ask/wire.h. Nobody waits long: without an answer a
 * request is served here.
 */
#include <ev.h>
#include <stddef.h>
#include "inspector/ask/wire.h"

#define ES_ASK_WAIT_S 0.1

struct es_asker;
struct es_question;

/**
 * es_asker_new() - connects when there is something to ask
 * @path: of the daemon's socket
 * @news: called when this node is drained of a service, or not any more; with NULL: of no service, as long as
 * nothing else is said
 * Returns 0 or -errno.
 */
typedef void es_news_fn(void *ctx, const char *service, int is_drained);
int es_asker_new(struct ev_loop *loop, const char *path, es_news_fn *news, void *ctx,
		 struct es_asker **ret_asker);
void es_asker_free(struct es_asker **asker);

/* es_asker_listen() - connect, so that news can come; who asks need not call it */
void es_asker_listen(struct es_asker *asker);

/**
 * es_question_new() - ask
 * @ask: its kind, flow, first, moves and TLS version; @ret_id: the number that the question has got
 * @answered: called once, later, with the answer and @len bytes of @body; with NULL if none comes
 * Returns NULL if it cannot be asked now.
 */
typedef void es_question_fn(void *ctx, const struct es_ask_answer *answer, const uint8_t *body, size_t len);
struct es_question *es_question_new(struct es_asker *asker, const struct es_ask *ask, const char *text,
				    size_t len, es_question_fn *answered, void *ctx, uint64_t *ret_id);

/*
 * es_asker_take() - tell of a request that another node has sent here (ES_ASK_TAKEN), with the same
 * parameters. Returns 0, or -errno: it does not know.
 */
int es_asker_take(struct es_asker *asker, const struct es_ask *ask, const char *text, size_t len,
		  uint64_t *ret_id);

/* es_question_free() - the answer is not needed any more */
void es_question_free(struct es_question **question);

/* es_asker_tell() - what became of it; lost if the daemon is not there or does not read */
void es_asker_tell(struct es_asker *asker, const struct es_ask *ask);

#endif
