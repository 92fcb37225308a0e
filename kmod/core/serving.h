/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_SERVING_H
#define ES_CORE_SERVING_H

/*
 * A connection that is made for a service whose address is gone from this node, or whose packets the kernel
 * drops on their way to the server, is never heard of again. The daemon looks, each second, and says which
 * services this node does not serve: for these nothing listens here, whatever does. It says so for a few
 * seconds, so that a datapath without a daemon tries again.
 */
#include "abi.h"

#define ES_SERVING_REFUSED_NS 5000000000ULL

/* es_serving_refuses() - does this node make no connection for @service, with clients of that family? */
static __always_inline int es_serving_refuses(const struct es_state *state, __u32 service, int is_v6,
					      __u64 now_ns)
{
	const struct es_worker_state *first = &state->worker[0];
	__u64 refused = first->refused_services | first->refused_of[is_v6 ? 1 : 0];

	return (refused >> (service & (ES_SERVICES_MAX - 1)) & 1) &&
	       (__s64)(first->refused_until_ns - now_ns) > 0;
}

enum es_gives {
	ES_GIVES_NOTHING = 0,
	ES_GIVES,	   /* as the configuration says, or because this node drains */
	ES_GIVES_UNSERVED, /* it does not serve them */
};

/* es_serving_gives() - is it for the inspector to say which node gets @service's connections, though nobody
 * reads them?
 * Without an inspector, this node has them as ever. */
static __always_inline enum es_gives es_serving_gives(const struct es_state *state,
						      const struct es_service_entry *entry, __u32 service,
						      int is_v6, __u64 now_ns)
{
	const struct es_worker_state *first = &state->worker[0];

	if (es_serving_refuses(state, service, is_v6, now_ns))
		return ES_GIVES_UNSERVED;
	if (entry->gives || ((first->given_services >> (service & (ES_SERVICES_MAX - 1)) & 1) &&
			     (__s64)(first->refused_until_ns - now_ns) > 0))
		return ES_GIVES;
	return ES_GIVES_NOTHING;
}

#endif
