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
#include "counters.h"
#include "flow.h"
#include "handover.h"
#include "pins.h"
#include "response.h"
#include "tcp.h"

enum es_track_state {
	ES_TRACK_SERVED = 0, /* the server has the request; its response is read */
	ES_TRACK_QUEUED,     /* the inspector has the beginning of the next request */
	ES_TRACK_LEAVING,    /* it leaves for another node, if it may: es_track_may_leave() */
	ES_TRACK_ENDING,     /* it does: the socket is being ended, and whoever finds it ends it */
};

#define ES_REQUEST_F_HEAD    0x01 /* its response has no body */
#define ES_REQUEST_F_MEASURE 0x02 /* the inspector wants to know how long its response is */
#define ES_REQUEST_F_STATUS  0x04 /* with MEASURE: only its status; what the daemon reads */
#define ES_REQUEST_F_TELL    0x08 /* other nodes are to know its response, if that is long (download.h) */
#define ES_REQUEST_F_LONG    0x10 /* of a track only: it is, and the daemon was told */

/* union es_track_word - what of a track changes in one step (es_track_step()) */
union es_track_word {
	struct {
		__u16 moves;
		__u8 state;
		__u8 pin;
	};
	__u32 word;
};

/**
 * struct es_track - one connection
 * @next_request_seq: the client's sequence number at which the next request starts
 * @response_seq: our sequence number of the next response byte to be read
 * @requests, @moves: over the connection's life, on all nodes
 * @cost, @url_key, @request_flags: of the request that is served, as its handover message said
 * @response_bytes: of its response so far, head included; stays at 2^32 - 1
 * @state: an enum es_track_state; @pin: an enum es_pin; with one, nothing else matters
 */
struct es_track {
	struct es_response response;
	struct es_tcp_options options;
	__u32 next_request_seq;
	__u32 response_seq;
	__u32 requests;
	union { /* an es_track_word */
		struct {
			__u16 moves;
			__u8 state;
			__u8 pin;
		};
		__u32 word;
	};
	__u8 service;
	__u8 request_flags;
	__u16 cost;
	__u32 response_bytes;
	__u64 url_key;
};
_Static_assert(sizeof(struct es_track) == 64, "es_track is ABI between datapath and daemon");

/**
 * struct es_track_entry - one connection as the datapath lists it
 * @tcp_state: the kernel's number (TCP_ESTABLISHED is 1)
 * @is_unacknowledged: the client has not acknowledged all that the server has written; @tsval: the timestamp
 * that the socket would send now, in ms. BPF alone tells these two; else 0
 */
struct es_track_entry {
	struct es_flow flow;
	struct es_track track;
	__u8 tcp_state;
	__u8 is_unacknowledged;
	__u8 pad[2];
	__u32 tsval;
};

enum es_track_verdict {
	ES_TRACK_DELIVER,
	ES_TRACK_QUEUE_FIRST, /* begins a request */
	ES_TRACK_QUEUE_LATER, /* continues one that the inspector has */
	ES_TRACK_PIN,	      /* deliver; @ret_pin says why nothing is inspected any more */
};

/*
 * es_track_step() - from one state to another, unless another CPU was first or has pinned the connection
 * Returns 1 if that is done; it is a full barrier then.
 */
static __always_inline int es_track_step(struct es_track *t, __u8 from, __u8 to)
{
	union es_track_word before = {.moves = t->moves, .state = from, .pin = ES_PIN_none};
	union es_track_word after = {.moves = t->moves, .state = to, .pin = ES_PIN_none};

	return __sync_val_compare_and_swap(&t->word, before.word, after.word) == before.word;
}

/* Is the socket being ended, or just about to be? It gets nothing new, and says nothing new. */
static __always_inline int es_track_is_leaving(const struct es_track *t)
{
	return *(const volatile __u8 *)&t->state >= ES_TRACK_LEAVING;
}

/* Times of a track are in units of 2^14 ns, about 16 us: 32 bits have room for 19 hours. 0: not known. */
#define ES_TRACK_TICK_SHIFT 14

static __always_inline __u32 es_track_tick(__u64 now_ns)
{
	__u32 tick = (__u32)(now_ns >> ES_TRACK_TICK_SHIFT);

	return tick ? tick : 1;
}

/* es_track_took_ns() - since the request was given to the server, to half a tick; 0: not known */
static __always_inline __u64 es_track_took_ns(const struct es_track *t, __u64 now_ns)
{
	__u32 ticks = es_track_tick(now_ns) - t->response.began;

	if (!t->response.began)
		return 0;
	return ((__u64)ticks << ES_TRACK_TICK_SHIFT) + (1u << (ES_TRACK_TICK_SHIFT - 1));
}

/* A request was given to the server here at @now_ns, as @h says; its response begins at @ack. */
static __always_inline void es_track_serve(struct es_track *t, __u32 ack, const struct es_handover *h,
					   __u64 now_ns)
{
	es_response_init(&t->response, h->request_flags & ES_REQUEST_F_HEAD);
	t->response.began = es_track_tick(now_ns);
	t->response_seq = ack;
	t->response_bytes = 0;
	t->next_request_seq = es_ntohl(h->next_request_seq);
	t->request_flags = h->request_flags;
	t->cost = es_ntohs(h->cost);
	t->url_key = es_cpu_be64((__u64)h->url_key);
	t->requests++;
	t->state = ES_TRACK_SERVED;
}

/*
 * A track's set-up, all of it zero before: what is known of a connection when its socket is made.
 *
 * es_track_begin() - from a request that was handed over, as @h says, at @now_ns; its response begins at @ack
 */
static __always_inline void es_track_begin(struct es_track *t, __u32 ack, const struct es_handover *h,
					   __u64 now_ns)
{
	es_handover_options_get(h, &t->options);
	t->requests = es_ntohl(h->requests);
	es_track_serve(t, ack, h, now_ns);
	t->moves = es_ntohs(h->moves);
	/* A service that inspects first requests only does not say where they end,
	 * and may be changed later. */
	t->pin = !h->pin && !h->next_request_seq ? ES_PIN_unknown : h->pin;
	t->service = h->service;
}

/* es_track_begin_program() - from a program's connection (program.h) */
static __always_inline void es_track_begin_program(struct es_track *t, const struct es_handover *h)
{
	es_handover_options_get(h, &t->options);
	t->requests = 1;
	t->pin = ES_PIN_program;
	t->service = h->service;
}

/* es_track_begin_uninspected() - from a request that no inspector has seen */
static __always_inline void es_track_begin_uninspected(struct es_track *t,
						       const struct es_tcp_options *options)
{
	t->options = *options;
	t->pin = ES_PIN_uninspected;
}

/* es_track_begin_unknown() - of a socket that was made otherwise, or so long ago that it is forgotten */
static __always_inline void es_track_begin_unknown(struct es_track *t)
{
	t->pin = ES_PIN_unknown;
}

/* es_track_counter() - the reason by which a track's pin is counted; ES_COUNTER_COUNT if it has none */
static __always_inline __u32 es_track_counter(const struct es_track *t)
{
	return t->pin ? ES_COUNT_pin_pipelined + (__u32)t->pin - ES_PIN_pipelined : ES_COUNTER_COUNT;
}

/* es_track_set_pin() - for good: what is pinned stays so. Returns the reason to count if it is new. */
static __always_inline __u32 es_track_set_pin(struct es_track *t, __u32 pin)
{
	if (t->pin != ES_PIN_none || pin == ES_PIN_none || pin >= ES_PIN_COUNT)
		return ES_COUNTER_COUNT;
	t->pin = (__u8)pin;
	return es_track_counter(t);
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
 * Returns 1 as es_track_answered() does. Bytes that must be read stay, and @t->response_seq with them.
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

/* es_track_reads() - has a client's segment a meaning for what es_track_inbound() says? */
static __always_inline int es_track_reads(const struct es_segment *seg)
{
	return seg->len || (seg->flags & (ES_TCP_FIN | ES_TCP_URG));
}

/*
 * What is to become of a segment for a socket that is leaving? The inspector knows who gets what is new; a
 * FIN that claims the place of the request's first byte is new, too.
 */
static __always_inline enum es_track_verdict es_track_left(const struct es_track *t,
							   const struct es_segment *seg)
{
	int is_fin = seg->flags & ES_TCP_FIN;

	if (!es_seq_before(t->next_request_seq, seg->seq + seg->len) &&
	    (!is_fin || es_seq_before(seg->seq + seg->len, t->next_request_seq)))
		return ES_TRACK_DELIVER;
	return seg->len && seg->seq == t->next_request_seq ? ES_TRACK_QUEUE_FIRST : ES_TRACK_QUEUE_LATER;
}

/**
 * struct es_track_socket - what a socket must look like for its connection to leave it, and what it may take
 * @write_seq: behind the last byte that the server has written; @copied_seq: behind the last it has read
 * @rcv_wnd: how wide its window is, at the most; @max_wnd: how wide the client's was, at the most
 */
struct es_track_socket {
	__u32 rcv_nxt;
	__u32 copied_seq;
	__u32 snd_una;
	__u32 write_seq;
	__u32 rcv_wnd;
	__u32 max_wnd;
	__u8 is_established;
};

/*
 * May the socket take anything of the segment? TCP drops what is outside of its window, and what acknowledges
 * bytes that were never sent, or long ago (RFC 5961, 5.2): so who knows neither of the numbers does not get
 * by here with a few guesses. A window's right edge does not move back, so all that the stack takes is within
 * one window of what it expects.
 */
static __always_inline int es_track_is_in_window(const struct es_track_socket *s,
						 const struct es_segment *seg)
{
	return !es_seq_before(s->rcv_nxt + s->rcv_wnd, seg->seq) &&
	       !es_seq_before(seg->seq + seg->len, s->rcv_nxt - s->rcv_wnd) &&
	       !es_seq_before(s->write_seq, seg->ack) && !es_seq_before(seg->ack, s->snd_una - s->max_wnd);
}

/**
 * es_track_inbound() - what to do with a client's segment
 * @s: its socket; @alive: the flow's worker is there
 * Changes nothing but the state; the caller stores a pin, and then asks es_track_pinned().
 */
static __always_inline enum es_track_verdict es_track_inbound(struct es_track *t,
							      const struct es_segment *seg,
							      const struct es_track_socket *s, int alive,
							      __u8 *ret_pin)
{
	int is_fin = seg->flags & ES_TCP_FIN;
	int is_behind = (seg->len || is_fin) && es_seq_before(t->next_request_seq, seg->seq);
	__u32 end = seg->seq + seg->len;

	if (!es_track_reads(seg) || (seg->flags & ES_TCP_RST))
		return ES_TRACK_DELIVER;
	if (es_track_is_leaving(t) && es_track_left(t, seg) != ES_TRACK_DELIVER)
		return es_track_left(t, seg);
	if (t->pin != ES_PIN_none || !es_track_is_in_window(s, seg))
		return ES_TRACK_DELIVER;
	/* The server reads it apart from the rest, or not at all; and it may be in the next request. */
	if (seg->flags & ES_TCP_URG) {
		*ret_pin = ES_PIN_ambiguous;
		return ES_TRACK_PIN;
	}
	/*
	 * The client closes its side behind a request that the socket has not got yet: that goes where the
	 * request goes. The socket would keep it out of order, and leave without it.
	 */
	if (t->state == ES_TRACK_QUEUED && is_fin && is_behind && alive)
		return ES_TRACK_QUEUE_LATER;
	if (!seg->len)
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
	if (seg->ack != t->response_seq || s->rcv_nxt != t->next_request_seq) {
		*ret_pin = ES_PIN_pipelined;
		return ES_TRACK_PIN;
	}
	if (seg->flags & (ES_TCP_FIN | ES_TCP_SYN)) {
		*ret_pin = ES_PIN_half_closed;
		return ES_TRACK_PIN;
	}
	if (!alive) {
		*ret_pin = ES_PIN_uninspected;
		return ES_TRACK_PIN;
	}
	/* Or another CPU was first; and what that has begun since must not be undone. */
	es_track_step(t, ES_TRACK_SERVED, ES_TRACK_QUEUED);
	return seg->seq == t->next_request_seq ? ES_TRACK_QUEUE_FIRST : ES_TRACK_QUEUE_LATER;
}

/**
 * es_track_pinned() - may a segment get to the socket whose verdict was ES_TRACK_PIN, now that this is
 * stored? On another CPU the connection may have begun to leave since the verdict. Here the pin is stored,
 * then the state is looked at; there the state is changed only if there is no pin (es_track_step()). Both
 * have a full barrier in between, so one of the two sees the other: what brings the socket something new
 * keeps it here, or does not get there, however long it was on its way.
 */
static __always_inline enum es_track_verdict es_track_pinned(struct es_track *t, const struct es_segment *seg)
{
	__sync_fetch_and_add(&t->word, 0); /* the full barrier */
	return es_track_is_leaving(t) ? es_track_left(t, seg) : ES_TRACK_DELIVER;
}

/* Has the inspector a request of this connection that begins at @seq? */
static __always_inline int es_track_has_queued(const struct es_track *t, __u32 seq)
{
	return t->pin == ES_PIN_none && t->state == ES_TRACK_QUEUED && t->next_request_seq == seq;
}

/**
 * es_track_may_leave() - may the local socket be ended, and the request @seg be served elsewhere?
 * Asked when the inspector's decision comes back, since server and client went on meanwhile. They still do,
 * on other CPUs. So first the state is made ES_TRACK_LEAVING, and then @s is read, with a full barrier in
 * between: what the server writes from then on, or closes, does not leave this node (es_track_holds()); what
 * it did before is seen here. The client's packets from then on do not get into the socket, and if something
 * new of them was on its way there, the track is pinned (es_track_pinned()). If the answer is no, the state
 * is ES_TRACK_QUEUED again, else ES_TRACK_ENDING, and the socket gets a RST; which may have to wait for a
 * server that is in the middle of a system call, or be dropped on its way. So nobody else gets the request
 * before a look-up has found no socket (ES_HANDOVER_GONE). In the meantime, all that the socket could do is
 * acknowledge again what the client knows to have arrived.
 */
static __always_inline int es_track_may_leave(const struct es_track *t, const struct es_segment *seg,
					      const struct es_track_socket *s)
{
	return t->pin == ES_PIN_none && t->state == ES_TRACK_LEAVING && seg->seq == t->next_request_seq &&
	       t->response.phase == ES_RESPONSE_DONE && s->is_established && s->rcv_nxt == seg->seq &&
	       s->copied_seq == seg->seq && s->write_seq == seg->ack && t->response_seq == seg->ack &&
	       !es_seq_before(seg->ack, s->snd_una);
}

/*
 * Is nothing going on: the request before is complete and answered, and the client has all of the answer?
 */
static __always_inline int es_track_is_idle(const struct es_track *t, __u32 snd_una)
{
	return t->pin == ES_PIN_none && t->response.phase == ES_RESPONSE_DONE && snd_una == t->response_seq;
}

/**
 * es_track_is_ceded() - may another node go on with the connection, if this one is no member any more?
 * For a service whose idle connections others know (struct es_service_entry's @survives). That node makes the
 * connection once more from the client's next request, or from its last one if the client repeats that: as
 * long as it has acknowledged nothing of the answer, it may not have heard that this node has it. So without
 * a lease such a connection stands still here, in both directions, as one that is unproven.
 * A connection that was pinned when its next request came has that one's number still.
 * With a long response, too: that node goes on with it, or tells its client that it ends.
 */
static __always_inline int es_track_is_ceded(const struct es_track *t, __u32 snd_una)
{
	if (t->request_flags & ES_REQUEST_F_LONG)
		return 1;
	if (t->pin == ES_PIN_uninspected)
		return t->requests && snd_una == t->response_seq;
	return t->pin == ES_PIN_none &&
	       (es_track_is_idle(t, snd_una) || snd_una == t->response_seq - t->response_bytes);
}

/*
 * es_track_may_cede() - may it leave for good, as it has nothing of its own that another node lacks?
 */
static __always_inline int es_track_may_cede(const struct es_track *t, const struct es_track_socket *s)
{
	return es_track_is_idle(t, s->snd_una) && t->state == ES_TRACK_SERVED && s->is_established &&
	       s->rcv_nxt == t->next_request_seq && s->copied_seq == s->rcv_nxt &&
	       s->write_seq == t->response_seq;
}

/*
 * es_track_cede() - this node never goes on with the connection again, as another one may have it. Returns 1
 * if that is so now: whoever finds its socket ends it.
 */
static __always_inline int es_track_cede(struct es_track *t, const struct es_track_socket *s)
{
	return t->state == ES_TRACK_ENDING ||
	       (es_track_may_cede(t, s) && es_track_step(t, ES_TRACK_SERVED, ES_TRACK_ENDING));
}

/*
 * es_track_goes_on() - does the client of a connection that is ceded lose nothing? It is idle, or others know
 * its long response.
 */
static __always_inline int es_track_goes_on(const struct es_track *t, __u32 snd_una)
{
	return (t->request_flags & ES_REQUEST_F_LONG) || es_track_is_idle(t, snd_una);
}

/*
 * Must this segment of the server's not leave the node? The next node's answer has the same sequence numbers:
 * the client would read a mixture of both, or take the connection for closed.
 */
static __always_inline int es_track_holds(const struct es_track *t, const struct es_segment *seg)
{
	return es_track_is_leaving(t) && (seg->len || (seg->flags & (ES_TCP_FIN | ES_TCP_RST)));
}

/**
 * es_track_stay() - the request at @seg is delivered to the socket here after all, at @now_ns, as @h says
 * Returns the pin, with which nothing is read any more: what the server has said since the request came is no
 * answer to it.
 */
static __always_inline __u8 es_track_stay(struct es_track *t, const struct es_segment *seg,
					  const struct es_handover *h, __u64 now_ns)
{
	if (t->response.phase != ES_RESPONSE_DONE || t->response_seq != seg->ack)
		return ES_PIN_response_unclear;
	es_track_serve(t, seg->ack, h, now_ns);
	return h->pin;
}

#endif
