/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_LOAD_H
#define ES_CORE_LOAD_H

/*
 * What this node has in hand, read from its connections themselves and never counted up and down: what a
 * connection contributes follows from its socket and its track, so it cannot drift, whatever becomes of a
 * request.
 *
 * A request is active until the last byte of its response has left, not until the client has acknowledged it:
 * from then on it costs this node nothing but some memory, and a node whose clients are far away would look
 * busy. One that still waits in the accept queue is active. A connection that the server has closed is not,
 * except that what it wrote before must be sent. Where requests cannot be told apart (only the first one is
 * inspected, or the connection is pinned), it counts as one of cost 1 until the server closes it.
 */
#include "abi.h"
#include "track.h"

/* The kernel's numbers, include/net/tcp_states.h. */
enum es_tcp_state {
	ES_TCP_STATE_ESTABLISHED = 1,
	ES_TCP_STATE_FIN_WAIT1 = 4,
	ES_TCP_STATE_FIN_WAIT2 = 5,
	ES_TCP_STATE_TIME_WAIT = 6,
	ES_TCP_STATE_CLOSE = 7,
	ES_TCP_STATE_CLOSE_WAIT = 8,
	ES_TCP_STATE_LAST_ACK = 9,
	ES_TCP_STATE_LISTEN = 10,
	ES_TCP_STATE_CLOSING = 11,
};

/**
 * struct es_load_sum - of one service
 * @flows: sockets, those that are closing included; @active: requests; @load: their costs, in response
 * packets
 */
struct es_load_sum {
	__u32 flows;
	__u32 active;
	__u64 load;
};

/* struct es_load_sums - of all services, as one walk over the sockets found them */
struct es_load_sums {
	struct es_load_sum service[ES_SERVICES_MAX];
};
_Static_assert(sizeof(struct es_load_sums) == 16 * ES_SERVICES_MAX, "sums are ABI");

/**
 * es_load_cost() - the cost of the request that is active on a connection, 0 if none is
 * @t: NULL if its requests are not told apart
 * @has_unsent: the server has written bytes that have not been sent yet
 */
static __always_inline __u32 es_load_cost(const struct es_track *t, __u8 tcp_state, int has_unsent)
{
	int is_open = tcp_state == ES_TCP_STATE_ESTABLISHED || tcp_state == ES_TCP_STATE_CLOSE_WAIT;

	if (!t || t->pin != ES_PIN_none)
		return is_open ? 1 : 0;
	if (t->response.phase == ES_RESPONSE_DONE || (!is_open && !has_unsent))
		return 0;
	return t->cost ? t->cost : 1;
}

/* One more connection, whose active request costs @cost, 0 if it has none. */
static __always_inline void es_load_add(struct es_load_sum *sum, __u32 cost)
{
	sum->flows++;
	sum->active += cost != 0;
	sum->load += cost;
}

#endif
