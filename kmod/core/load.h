/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_LOAD_H
#define ES_CORE_LOAD_H

/*
 * The requests that this node has in hand, read from its connections themselves and never counted up and
 * down: what a connection contributes follows from its socket and its track, so it cannot drift, whatever
 * becomes of a request.
 *
 * A request is active until the last byte of its response has left, not until the client has acknowledged it:
 * from then on it costs this node nothing but some memory, and a node whose clients are far away would look
 * busy. One that still waits in the accept queue is active. A connection that the server has closed is not,
 * except that what it wrote before must be sent. Where requests cannot be told apart (only the first one is
 * inspected, or the connection is pinned), it counts as one of cost 1 until the server closes it.
 *
 * That is what policies go by: who holds a connection sends more on it. Whether a request is in hand at this
 * moment (admit_low, admit_normal), such a connection does not say, but its socket tells whether anything
 * goes on: es_load_is_idle().
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

/**
 * struct es_load_sums - of all services, as one walk over the sockets found them
 * @idle: of the active ones, connections on which nothing goes on; a datapath of the version before does not
 * tell
 */
struct es_load_sums {
	struct es_load_sum service[ES_SERVICES_MAX];
	__u32 idle[ES_SERVICES_MAX];
};
_Static_assert(sizeof(struct es_load_sums) == 20 * ES_SERVICES_MAX, "sums are ABI");

#define ES_LOAD_IDLE_US 1000000 /* nothing came or went for so long */
#define ES_LOAD_SILENT_US                                                                                    \
	60000000 /* and for so long, though the client spoke last: no answer comes any more */

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

/**
 * es_load_is_idle() - of a connection that counts as one request: is there none in hand?
 * @has_open: something is unsent, unacknowledged or unread
 * @said_last: the server has said something, and nothing came from the client since
 * @quiet_us: since a segment came or went
 * A request on which the server works for long is in hand all the while: the client has said the last word
 * then. A connection that has changed its protocol (101) is not expected to say such a word.
 */
static __always_inline int es_load_is_idle(const struct es_track *t, int has_open, int said_last,
					   __u64 quiet_us)
{
	int is_upgraded = t && (t->pin == ES_PIN_upgrade || t->response.phase == ES_RESPONSE_UPGRADED);

	if (has_open || quiet_us < ES_LOAD_IDLE_US || (t && t->pin == ES_PIN_none && !is_upgraded))
		return 0;
	return said_last || is_upgraded || quiet_us >= ES_LOAD_SILENT_US;
}

/* One more connection, whose active request costs @cost, 0 if it has none. */
static __always_inline void es_load_add(struct es_load_sum *sum, __u32 cost)
{
	sum->flows++;
	sum->active += cost != 0;
	sum->load += cost;
}

#endif
