/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_COUNTERS_H
#define ES_SERVE_COUNTERS_H

/*
 * A worker's counters, in memory that it shares with its parent alone. New ones are appended.
 */
#include <stdint.h>

#define ES_SERVE_COUNTERS(X)                                                                                 \
	X(accepted, "connections of clients")                                                                \
	X(ended, "connections that have ended here")                                                         \
	X(handshakes, "handshakes that were completed")                                                      \
	X(handshakes_resumed, "handshakes that were completed with a ticket")                                \
	X(handshakes_failed, "handshakes that failed")                                                       \
	X(handshakes_late, "handshakes that took too long")                                                  \
	X(arrived, "connections that another node has moved here")                                           \
	X(arrived_bad, "sealed states that no node of this cluster has made for this connection and node")   \
	X(arrived_late, "sealed states that came too late")                                                  \
	X(arrived_repeated, "sealed states that came again")                                                 \
	X(arrived_unknown, "sealed states of a layout that this version does not know")                      \
	X(arrived_full, "sealed states that could not be remembered: too many at a time")                    \
	X(requests, "requests that were read")                                                               \
	X(requests_bad, "requests that were refused: malformed, ambiguous, too long, CONNECT")               \
	X(asked, "questions to the daemon")                                                                  \
	X(asked_in_vain, "questions without an answer in time: served here")                                 \
	X(refused, "requests that the daemon has refused")                                                   \
	X(moved, "connections that were moved to another node")                                              \
	X(stayed_unsealable,                                                                                 \
	  "connections that could not be moved: a head that is too long, or a key update")                   \
	X(stayed_unacknowledged, "connections that could not be moved: the client has not acknowledged all") \
	X(stayed_ended, "connections that could not be moved: the client has closed its side")               \
	X(stayed_refused, "connections that could not be moved: the handover was refused")                   \
	X(moves_lost, "connections that were lost in a handover")                                            \
	X(upstream_connected, "connections to the server behind")                                            \
	X(upstream_reused, "requests on a connection to the server behind that was there")                   \
	X(upstream_repeated, "requests that were sent again, since that connection had ended")               \
	X(upstream_failed, "requests that the server behind has not answered: 502 or 504")                   \
	X(upstream_bad, "responses that are none, or that ended too early")                                  \
	X(tunnels, "connections that were upgraded (101)")                                                   \
	X(records_bad, "connections that ended with an alert for what the client has sent")                  \
	X(ktls, "connections whose records the kernel writes, since a long response")                        \
	X(ktls_refused, "connections for which the kernel did not do that, though it had seemed to")         \
	X(ktls_ended, "such connections that ended since a new key was needed")

enum es_serve_counter {
#define X(name, text) ES_SERVE_##name,
	ES_SERVE_COUNTERS(X)
#undef X
		ES_SERVE_COUNTER_COUNT
};

/* of one worker, which alone writes them */
struct es_serve_counters {
	uint64_t count[ES_SERVE_COUNTER_COUNT];
};

static inline void es_serve_count(struct es_serve_counters *counters, enum es_serve_counter which)
{
	__atomic_store_n(&counters->count[which], counters->count[which] + 1, __ATOMIC_RELAXED);
}

#endif
