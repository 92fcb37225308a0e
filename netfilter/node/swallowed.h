/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_SWALLOWED_H
#define ES_NETFILTER_NODE_SWALLOWED_H

/*
 * Requests of which the kernel makes no socket, though one listens that has room, and of which it is certain that it has made none.
 * That may be chance, as on a machine that is too busy: then the request's next copy is another attempt. But where a rule takes the
 * packets, or there is no way back to the client, none succeeds. So after a second the next copy is not one, and another node may
 * have the request.
 *
 * Bounded: of two that have the same place, the later one is tried for longer.
 */
#include "kmod/core/settled.h"

#define ES_NF_SWALLOWED 256

/* struct es_nf_swallowed - @request: es_settled_request(), 0: none; @since_ms: of the first attempt, monotonic */
struct es_nf_swallowed {
	__u64 request;
	__u32 since_ms;
	__u32 pad;
};

static inline struct es_nf_swallowed *es_nf_swallowed_place(struct es_nf_swallowed table[ES_NF_SWALLOWED],
							    __u64 request)
{
	return &table[request >> 24 & (ES_NF_SWALLOWED - 1)];
}

/* es_nf_swallowed_note() - an attempt has come to nothing, for certain. A client that does not repeat its request loses its place. */
static inline void es_nf_swallowed_note(struct es_nf_swallowed table[ES_NF_SWALLOWED], __u64 request,
					__u32 now_ms)
{
	struct es_nf_swallowed *s = es_nf_swallowed_place(table, request);

	if (!s->request || (s->request != request && now_ms - s->since_ms >= ES_SETTLED_MADE_MS))
		*s = (struct es_nf_swallowed){.request = request, .since_ms = now_ms};
}

/* es_nf_swallowed_forget() - that is over: it was given back, or something has come of it */
static inline void es_nf_swallowed_forget(struct es_nf_swallowed table[ES_NF_SWALLOWED], __u64 request)
{
	struct es_nf_swallowed *s = es_nf_swallowed_place(table, request);

	if (s->request == request)
		*s = (struct es_nf_swallowed){};
}

/* es_nf_swallowed_is() - has nothing come of it for so long that it was no chance? */
static inline int es_nf_swallowed_is(struct es_nf_swallowed table[ES_NF_SWALLOWED], __u64 request,
				     __u32 now_ms)
{
	const struct es_nf_swallowed *s = es_nf_swallowed_place(table, request);

	return s->request == request && now_ms - s->since_ms >= ES_SETTLED_VANISHED_MS;
}

#endif
