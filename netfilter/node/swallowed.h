/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_SWALLOWED_H
#define ES_NETFILTER_NODE_SWALLOWED_H

/*
 * Requests from which the kernel has certainly made no socket, although one listens that has room. That may
 * be chance, on a busy machine; then the next copy of the request is another attempt. But if a rule drops the
 * packets, or there is no route back to the client, no attempt succeeds. So after a second, the next copy is
 * not tried, and another node may have the request. If two requests share a place, the later one is tried for
 * longer.
 */
#include "kmod/core/settled.h"

#define ES_NF_SWALLOWED 256

/*
 * struct es_nf_swallowed - @request: es_settled_request(), 0: none; @since_ms: monotonic, of the first
 * attempt
 */
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

/*
 * es_nf_swallowed_note() - an attempt has certainly failed. If the client does not repeat its request, it
 * loses its place.
 */
static inline void es_nf_swallowed_note(struct es_nf_swallowed table[ES_NF_SWALLOWED], __u64 request,
					__u32 now_ms)
{
	struct es_nf_swallowed *s = es_nf_swallowed_place(table, request);

	if (!s->request || (s->request != request && now_ms - s->since_ms >= ES_SETTLED_MADE_MS))
		*s = (struct es_nf_swallowed){.request = request, .since_ms = now_ms};
}

/* es_nf_swallowed_forget() - the request was given back, or an attempt has succeeded */
static inline void es_nf_swallowed_forget(struct es_nf_swallowed table[ES_NF_SWALLOWED], __u64 request)
{
	struct es_nf_swallowed *s = es_nf_swallowed_place(table, request);

	if (s->request == request)
		*s = (struct es_nf_swallowed){};
}

/* es_nf_swallowed_is() - have attempts failed for so long that it cannot be chance? */
static inline int es_nf_swallowed_is(struct es_nf_swallowed table[ES_NF_SWALLOWED], __u64 request,
				     __u32 now_ms)
{
	const struct es_nf_swallowed *s = es_nf_swallowed_place(table, request);

	return s->request == request && now_ms - s->since_ms >= ES_SETTLED_VANISHED_MS;
}

#endif
