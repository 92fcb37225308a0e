/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_TRACK_H
#define ES_CORE_TRACK_H

/*
 * Request boundaries on a connection whose socket is here, for services that inspect every request. One
 * struct es_track lives with each such socket and dies with it. A segment may go to the inspector only if it
 * begins a request beyond doubt: the request before it is complete (the inspector said where it ends), its
 * response is complete (read on the way out) and this very segment acknowledges its last byte. Whatever
 * cannot be proven pins the connection: it stays on this node, uninspected, until it ends.
 */
#include "flow.h"
#include "handover.h"
#include "pins.h"
#include "response.h"
#include "tcp.h"

enum es_track_state {
	ES_TRACK_SERVED = 0, /* the server has the request; its response is read */
	ES_TRACK_QUEUED,     /* the inspector has the beginning of the next request */
};

#define ES_REQUEST_F_HEAD    0x01 /* its response has no body */
#define ES_REQUEST_F_MEASURE 0x02 /* the inspector wants to know how long its response is */

/**
 * struct es_track - one connection
 * @next_request_seq: the client's sequence number at which the next request starts
 * @response_seq: our sequence number of the next response byte to be read
 * @requests, @moves: over the connection's life, on all nodes
 * @cost, @content, @request_flags: of the request that is served, as its handover message said
 * @response_bytes: of its response so far, head included; stays at 2^32 - 1
 * @pin: an enum es_pin; with one, nothing else matters
 */
struct es_track {
	struct es_response response;
	struct es_tcp_options options;
	__u32 next_request_seq;
	__u32 response_seq;
	__u32 requests;
	__u16 moves;
	__u8 state;
	__u8 pin;
	__u8 service;
	__u8 request_flags;
	__u16 cost;
	__u32 response_bytes;
	__u64 content;
};
_Static_assert(sizeof(struct es_track) == 64, "es_track is ABI between datapath and daemon");

/**
 * struct es_track_entry - one connection as the datapath lists it
 * @tcp_state: the kernel's number (TCP_ESTABLISHED is 1)
 */
struct es_track_entry {
	struct es_flow flow;
	struct es_track track;
	__u8 tcp_state;
	__u8 pad[7];
};

enum es_track_verdict {
	ES_TRACK_DELIVER,
	ES_TRACK_QUEUE_FIRST, /* begins a request */
	ES_TRACK_QUEUE_LATER, /* continues one that the inspector has */
	ES_TRACK_PIN,	      /* deliver; @ret_pin says why nothing is inspected any more */
};

/* A request was given to the server here, as @h says; its response begins at @ack. */
static __always_inline void es_track_serve(struct es_track *t, __u32 ack, const struct es_handover *h)
{
	es_response_init(&t->response, h->request_flags & ES_REQUEST_F_HEAD);
	t->response_seq = ack;
	t->response_bytes = 0;
	t->next_request_seq = es_ntohl(h->next_request_seq);
	t->request_flags = h->request_flags;
	t->cost = es_ntohs(h->cost);
	t->content = es_cpu_be64((__u64)h->content);
	t->requests++;
	t->state = ES_TRACK_SERVED;
}

/* @bytes more of the response were read. Returns 1 if it is complete now and the inspector asked for that. */
static __always_inline int es_track_answered(struct es_track *t, __u32 bytes)
{
	t->response_bytes = t->response_bytes + bytes < bytes ? ~0u : t->response_bytes + bytes;
	if (t->response.phase != ES_RESPONSE_DONE || !(t->request_flags & ES_REQUEST_F_MEASURE))
		return 0;
	t->request_flags &= (__u8)~ES_REQUEST_F_MEASURE;
	return 1;
}

/**
 * es_track_skip() - bytes of the response up to @seq went out unread; those of a body only count
 * Bytes are unread when something ahead of the datapath, such as a queue that waits for a neighbour's
 * address, dropped a packet: it is read when it is sent again, but those behind it need not come again.
 * Returns 1 as es_track_answered() does. What must be read stays, and @t->response_seq with it.
 */
static __always_inline int es_track_skip(struct es_track *t, __u32 seq)
{
	__u32 skipped;

	if (!es_seq_before(t->response_seq, seq) || es_response_reads(&t->response))
		return 0;
	skipped = es_response_skip(&t->response, seq - t->response_seq);
	t->response_seq += skipped;
	return es_track_answered(t, skipped);
}

/**
 * es_track_inbound() - what to do with a client's segment
 * @rcv_nxt: what the socket expects next; @alive: the flow's worker is there
 * Changes nothing but the state; the caller stores a pin.
 */
static __always_inline enum es_track_verdict
es_track_inbound(struct es_track *t, const struct es_segment *seg, __u32 rcv_nxt, int alive, __u8 *ret_pin)
{
	__u32 end = seg->seq + seg->len;

	if (t->pin != ES_PIN_none || !seg->len || (seg->flags & ES_TCP_RST))
		return ES_TRACK_DELIVER;
	if (es_seq_before(seg->seq, t->next_request_seq)) {
		if (!es_seq_before(t->next_request_seq, end))
			return ES_TRACK_DELIVER; /* body, or a retransmission */
		*ret_pin = ES_PIN_overlap;
		return ES_TRACK_PIN;
	}
	switch (t->response.phase) {
	case ES_RESPONSE_DONE:
		break;
	case ES_RESPONSE_UPGRADED:
		*ret_pin = ES_PIN_upgrade;
		return ES_TRACK_PIN;
	case ES_RESPONSE_UNTIL_CLOSE:
		*ret_pin = ES_PIN_until_close;
		return ES_TRACK_PIN;
	case ES_RESPONSE_UNCLEAR:
		*ret_pin = ES_PIN_response_unclear;
		return ES_TRACK_PIN;
	default:
		*ret_pin = ES_PIN_pipelined;
		return ES_TRACK_PIN;
	}
	/* All of the request before must be here, and all of its response be there. */
	if (seg->ack != t->response_seq || rcv_nxt != t->next_request_seq) {
		*ret_pin = ES_PIN_pipelined;
		return ES_TRACK_PIN;
	}
	if (seg->flags & (ES_TCP_FIN | ES_TCP_URG | ES_TCP_SYN)) {
		*ret_pin = ES_PIN_half_closed;
		return ES_TRACK_PIN;
	}
	if (!alive) {
		*ret_pin = ES_PIN_uninspected;
		return ES_TRACK_PIN;
	}
	t->state = ES_TRACK_QUEUED;
	return seg->seq == t->next_request_seq ? ES_TRACK_QUEUE_FIRST : ES_TRACK_QUEUE_LATER;
}

/**
 * struct es_track_socket - what a socket must look like for its connection to leave it
 * @write_seq: behind the last byte that the server has written; @copied_seq: behind the last it has read
 */
struct es_track_socket {
	__u32 rcv_nxt;
	__u32 copied_seq;
	__u32 snd_una;
	__u32 write_seq;
	__u8 is_established;
};

/**
 * es_track_may_leave() - may the local socket be ended, and the request @seg be served elsewhere?
 * Asked when the inspector's decision comes back, since server and client went on meanwhile.
 */
static __always_inline int es_track_may_leave(const struct es_track *t, const struct es_segment *seg,
					      const struct es_track_socket *s)
{
	return t->pin == ES_PIN_none && t->state == ES_TRACK_QUEUED && seg->seq == t->next_request_seq &&
	       t->response.phase == ES_RESPONSE_DONE && s->is_established && s->rcv_nxt == seg->seq &&
	       s->copied_seq == seg->seq && s->write_seq == seg->ack && t->response_seq == seg->ack &&
	       !es_seq_before(seg->ack, s->snd_una);
}

#endif
