/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_TRACK_VIEW_H
#define ES_TESTS_TRACK_VIEW_H

/* A connection, and its client's next request, for the tests of kmod/core/track.h. */
#include "kmod/core/track.h"

#define NEXT 5000u /* where the next request starts */
#define ACK  9000u /* after the last byte of the response */

/* A connection on which one request is answered. */
static inline struct es_track track(void)
{
	struct es_track t = {.requests = 1, .next_request_seq = NEXT, .response_seq = ACK};

	t.response.phase = ES_RESPONSE_DONE;
	return t;
}

#define WND 65535u

/* The connection's socket, which expects @rcv_nxt, and all of whose bytes the client has acknowledged. */
static inline struct es_track_socket socket_of(__u32 rcv_nxt)
{
	struct es_track_socket s = {
		.rcv_nxt = rcv_nxt,
		.copied_seq = rcv_nxt,
		.snd_una = ACK,
		.write_seq = ACK,
		.rcv_wnd = WND,
		.max_wnd = WND,
		.is_established = 1,
	};

	return s;
}

static inline struct es_segment segment(void)
{
	struct es_segment seg = {.seq = NEXT, .ack = ACK, .len = 100, .flags = ES_TCP_ACK | ES_TCP_PSH};

	return seg;
}

#endif
