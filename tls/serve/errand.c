// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A request's head, given to a connection of the server behind. All that follows is forward.c's and
 * stream.c's.
 */
#include <errno.h>
#include "tls/http/proxy_v2.h"
#include "tls/serve/errand.h"

int es_errand_may_repeat(enum es_http_method method)
{
	return method == ES_HTTP_METHOD_GET || method == ES_HTTP_METHOD_HEAD ||
	       method == ES_HTTP_METHOD_OPTIONS;
}

int es_errand_head(const struct es_client *c, const struct es_http_head *head, const char *text,
		   struct es_buffer *ret_head)
{
	uint8_t *room = es_buffer_room(ret_head, head->head_len_bytes + ES_TLS_HEAD_EXTRA);
	struct es_tls_state state;

	if (!room)
		return -ENOMEM;
	es_tls_records_state(c->records, &state);
	es_buffer_added(ret_head,
			es_tls_request_head(head, text, c->service->tell, &c->flow, &state, (char *)room));
	es_tls_state_wipe(&state);
	return 0;
}

/* Give the server's connection the head, and before that the client's addresses. Returns 0 or -errno. */
static int queue_head(const struct es_errand *e, struct es_upstream *up)
{
	struct es_client *c = e->client;
	struct es_tls_state state;
	uint8_t *room;

	if (c->service->tell == ES_TLS_TELL_PROXY && !up->has_told) {
		room = es_buffer_room(&up->out, ES_TLS_PROXY_V2_MAX);
		if (!room)
			return -ENOMEM;
		es_tls_records_state(c->records, &state);
		es_buffer_added(&up->out, es_tls_proxy_v2_put(&c->flow, &state, room));
		es_tls_state_wipe(&state);
		up->has_told = 1;
	}
	return es_buffer_add(&up->out, es_buffer_front(e->head), es_buffer_len(e->head));
}

/*
 * A connection that has served before may end at any moment, and what was sent on it then may have been
 * executed or not: such a one is only for requests that may be sent again.
 */
int es_errand_begin(const struct es_errand *e, struct es_upstream **upstream)
{
	struct es_client *c = e->client;
	int rc = 0;

	if (*upstream && (!e->may_repeat || !es_upstream_is_alive(*upstream)))
		es_upstream_free(upstream);
	if (!*upstream && e->may_repeat && c->service->tell != ES_TLS_TELL_PROXY)
		*upstream = es_upstream_take(c->service, e->changed, e->ctx);
	if (*upstream)
		es_serve_count(c->service->counters, ES_SERVE_upstream_reused);
	else
		rc = es_upstream_new(c->serve, c->service, e->changed, e->ctx, upstream);
	return rc ? rc : queue_head(e, *upstream);
}

int es_errand_again(const struct es_errand *e, struct es_upstream **upstream)
{
	if (!e->may_repeat || !(*upstream)->is_reused)
		return 0;
	es_serve_count(e->client->service->counters, ES_SERVE_upstream_repeated);
	es_upstream_free(upstream);
	if (es_upstream_new(e->client->serve, e->client->service, e->changed, e->ctx, upstream))
		return 0;
	return !queue_head(e, *upstream);
}
