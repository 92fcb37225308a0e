/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_DECIDE_H
#define ES_CORE_DECIDE_H

/*
 * The decision function. A datapath (BPF, module, test) makes a view of one packet, calls es_decide() and
 * carries the verdict out; nothing here calls a kernel or keeps state, so the same object code is
 * table-tested and fuzzed.
 */
#include "abi.h"
#include "cookie.h"
#include "counters.h"
#include "decisions.h"
#include "firsts.h"
#include "handover.h"
#include "strays.h"
#include "syns.h"
#include "track.h"

enum es_socket {
	ES_SOCKET_NONE = 0, /* no socket for the 4-tuple, or only a listening one */
	ES_SOCKET_ESTABLISHED,
	ES_SOCKET_TIME_WAIT,
	ES_SOCKET_FIN_WAIT2, /* the kernel keeps it as a TIME_WAIT socket that still expects a FIN */
};

enum es_action {
	ES_DROP = 0,
	ES_DELIVER,
	ES_QUEUE_FIRST, /* to the inspector, kind ES_RECORD_FIRST */
	ES_QUEUE_LATER,
	ES_QUEUE_STRAY,
	ES_SYNACK,
	ES_END_OLD,	       /* feed the local socket a RST with seq = old_rcv_nxt */
	ES_END_OLD_AND_SYNACK, /* that, and answer the SYN */
	ES_ANSWER_ACK,
	ES_ANSWER_RST,
	ES_REBUILD,	/* make the socket here, from this packet */
	ES_NACK,	/* send the message back to its source */
	ES_LEAVE,	/* tell the inspector ES_RECORD_ENDING, then end the local socket */
	ES_LEAVE_AGAIN, /* end the local socket, which is still there */
	ES_GONE,	/* tell the inspector ES_RECORD_ENDED */
	ES_KEEP,	/* tell the inspector ES_RECORD_KEPT */
	ES_DOUBT,	/* as ES_NACK, and what is noted of the request stays as it is */
	ES_ASK,		/* tell the inspector ES_RECORD_OPEN, and note that (challenges.h) */
	ES_MADE,	/* tell the sender that the socket is here, or was */
};

/**
 * struct es_view - what the datapath knows about a TCP segment to a service
 * @flow_hash, @mine, @decision: needed unless there is an established socket
 * @track: what es_track_inbound() says, of an established socket
 * @old_rcv_nxt: of a TIME_WAIT socket
 * @waits: the ring names this node, but not yet, or not any more, for requests (kmod/core/ring.h)
 * @ended: without a socket: this node has ended the connection with a RST, see es_reset_is_of()
 * @silent: this node's lease is over; @unproven: of an established socket then, see es_socket_is_unproven()
 * and es_track_is_ceded()
 * @inspect: the service's enum es_inspect; @inspector_alive: the flow's worker has a fresh heartbeat
 * @again_ms: for how long the client has been sending a segment with payload or FIN, see es_stray_note()
 * @survives: of its service, struct es_service_entry's; @orphaned, @kept_tells: it is ES_KEPT_SAYS_MINE,
 * ES_KEPT_SAYS_TELL
 * @heard: this node has heard a SYN with the ISN es_syn_isn() of the segment; needed where that has no
 * timestamps
 * @heard_all: it would have, if its cookie is still good
 * @many_guesses: see es_guesses_are_many(); needed where @heard is
 * @unsafe: the service's enum es_unsafe
 * @has_doubts: this node is a member where one was lost lately; @doubtful: that may have had this request,
 * see es_view_is_doubtful()
 * @may_give: its service is one whose requests nobody reads (layer 4), and its connections may go to another
 * node;
 * @gives: the inspector says whose they are, an enum es_gives
 * @slot: wall-clock cookie slot; @slot_before: by the clock before it was set (wall.h), else the same;
 * @now_ms: monotonic milliseconds
 */
struct es_view {
	struct es_segment seg;
	__u64 flow_hash;
	__u64 decision;
	__u32 old_rcv_nxt;
	__u32 slot;
	__u32 slot_before;
	__u32 now_ms;
	__u32 again_ms;
	__u8 socket;
	__u8 mine;
	__u8 inspect;
	__u8 inspector_alive;
	__u8 track;
	__u8 waits;
	__u8 silent;
	__u8 unproven;
	__u8 ended;
	__u8 heard;
	__u8 heard_all;
	__u8 many_guesses;
	__u8 unsafe;
	__u8 has_doubts;
	__u8 doubtful;
	__u8 may_give;
	__u8 gives;
	__u8 survives;
	__u8 orphaned;
	__u8 kept_tells;
};

/**
 * struct es_verdict
 * @counter: the reason; @cookie, @tsval, @options: of an answered SYN or, for ES_REBUILD, of the handshake
 * @ack: what ES_ANSWER_ACK acknowledges
 * @proven: of ES_QUEUE_STRAY: the connection did exist, for the segment has a cookie of the flow, or is of a
 * request that this node has decided; @earlier: it may also be a first request, of a connection that began
 * before this node listened; @guess: without timestamps, it had to be a cookie of ours, and is not
 */
struct es_verdict {
	__u32 action;
	__u32 counter;
	__u32 proven;
	__u32 earlier;
	__u32 guess;
	__u32 cookie;
	__u32 tsval;
	__u32 ack;
	struct es_tcp_options options;
};

#define ES_VERDICT(ret, a, c)                                                                                \
	do {                                                                                                 \
		(ret)->action = (a);                                                                         \
		(ret)->counter = ES_COUNT_##c;                                                               \
		return;                                                                                      \
	} while (0)

/*
 * Without timestamps, few bits say that a segment proves its client's ISN: without the SYN it does not. Only
 * where this node was not there to hear it, a request is worth asking the others (es_decide_is_earlier()); a
 * RST for somebody's connection is not worth the risk.
 */
static __always_inline enum es_cookie_state es_decide_heard(const struct es_view *v,
							    enum es_cookie_state state)
{
	if (v->seg.has_ts || v->heard)
		return state;
	if (state == ES_COOKIE_EXPIRED)
		return ES_COOKIE_INVALID;
	return state == ES_COOKIE_VALID && v->heard_all ? ES_COOKIE_FLOW : state;
}

/*
 * es_cookie_check() under the current key and, during a rotation, the other one. The flow tag alone is 10
 * bits: one in 1,024 first segments of the other key looks like a later segment of this one, so only a whole
 * match settles it.
 */
static __always_inline enum es_cookie_state
es_decide_cookie_in(const struct es_config *cfg, const struct es_view *v, __u32 slot, __u32 client_isn)
{
	const __u32 *tsecr = v->seg.has_ts ? &v->seg.tsecr : (const __u32 *)0;
	__u32 cookie = v->seg.ack - 1;
	enum es_cookie_state state, other;

	state = es_decide_heard(
		v, es_cookie_check(&cfg->cookie_key[0], v->flow_hash, slot, cookie, client_isn, tsecr));
	if (state == ES_COOKIE_VALID || state == ES_COOKIE_EXPIRED || cfg->key_count < 2)
		return state;
	other = es_decide_heard(
		v, es_cookie_check(&cfg->cookie_key[1], v->flow_hash, slot, cookie, client_isn, tsecr));
	return other == ES_COOKIE_INVALID ? state : other;
}

/*
 * By the clock, and for a while after it was set by the one before: the cookie may have been made by either.
 */
ES_VERIFIED_ONCE enum es_cookie_state es_decide_cookie(const struct es_config *cfg, const struct es_view *v,
						       __u32 client_isn)
{
	enum es_cookie_state state = ES_COOKIE_INVALID, now;
	__u32 slot;

	if (!cfg || !v)
		return state;
	slot = v->slot;
	/* A loop, lest BPF have it twice. */
	for (int i = 0; i < 2; i++) {
		now = es_decide_cookie_in(cfg, v, slot, client_isn);
		/* Only a whole match settles it, as above. */
		if (state == ES_COOKIE_INVALID || now == ES_COOKIE_VALID || now == ES_COOKIE_EXPIRED)
			state = now;
		if (state == ES_COOKIE_VALID || slot == v->slot_before)
			break;
		slot = v->slot_before;
	}
	return state;
}

static __always_inline void es_decide_syn(const struct es_config *cfg, const struct es_view *v,
					  struct es_verdict *ret)
{
	const struct es_segment *seg = &v->seg;
	struct es_tcp_options *o = &ret->options;

	o->mss = seg->mss ? seg->mss : seg->is_v6 ? ES_TCP_MSS_MIN_V6 : ES_TCP_MSS_MIN;
	o->wscale_ok = seg->has_wscale && cfg->offer_wscale;
	o->snd_wscale = o->wscale_ok ? seg->wscale : 0;
	o->rcv_wscale = o->wscale_ok ? cfg->rcv_wscale : 0;
	o->tstamp_ok = seg->has_ts && cfg->offer_ts;
	o->sack_ok = seg->sack_permitted && cfg->offer_sack;
	/* RFC 3168 section 6.1.1: the client asks with ECE and CWR both. */
	o->ecn_ok = (seg->flags & (ES_TCP_ECE | ES_TCP_CWR)) == (ES_TCP_ECE | ES_TCP_CWR) && cfg->offer_ecn;
	ret->cookie = es_cookie_make_packed(
		&cfg->cookie_key[0], v->flow_hash, v->slot, seg->seq,
		seg->is_v6 ? es_cookie_options_pack6(o) : es_cookie_options_pack(o), &ret->tsval);
}

static __always_inline void es_decide_options(const struct es_config *cfg, const struct es_segment *seg,
					      struct es_tcp_options *ret)
{
	if (seg->is_v6)
		es_cookie_options_unpack6(seg->ack - 1, ret);
	else
		es_cookie_options_unpack(seg->ack - 1, ret);
	ret->rcv_wscale = ret->wscale_ok ? cfg->rcv_wscale : 0;
	ret->tstamp_ok = seg->has_ts;
}

/*
 * Without timestamps only 11 bits tell a first segment from a later one, and a long upload has many. A
 * decision for this cookie that was made for another first byte settles it: this segment belongs to that
 * request.
 */
static __always_inline int es_decide_is_later(const struct es_view *v)
{
	return !v->seg.has_ts && v->decision && es_decision_isn(v->decision) != v->seg.seq - 1;
}

/*
 * Few bits say that this is a first request, and this node was not there to hear its SYN: it may as well be a
 * later segment of a connection that another node has. All are asked before it is believed
 * (inspect/earlier.c). A segment that this node has decided as such before was believed then.
 */
static __always_inline int es_decide_is_earlier(const struct es_view *v)
{
	return !v->seg.has_ts && !v->heard && !v->decision;
}

/*
 * Before there is a socket, no window lets a client send more than this: neither the SYN-ACK's window nor the
 * inspector's (es_ip_packet_sack()) is wider.
 */
#define ES_UNHEARD_MAX 65535

/*
 * Has the client of a request that is decided heard its socket? Then that hears this segment, as all nodes
 * do, and whoever sent it there would do so for the second time.
 */
static __always_inline int es_decide_has_heard(const struct es_config *cfg, const struct es_view *v)
{
	__u32 isn = es_decision_isn(v->decision);

	return v->seg.seq + v->seg.len - (isn + 1) > ES_UNHEARD_MAX ||
	       (v->seg.has_ts && es_decide_cookie(cfg, v, isn) == ES_COOKIE_FLOW);
}

/*
 * A segment that nobody takes, though its client repeats it: perhaps the connection is nobody's. One byte may
 * ask whether a closed window has opened; its node answers that, but does not take it. That of an orphan
 * (kept.h) need not be repeated.
 */
static __always_inline int es_decide_is_repeated(const struct es_view *v, __u32 again_ms)
{
	return (v->orphaned || v->again_ms >= again_ms) && v->mine && !v->silent && !v->waits &&
	       v->inspector_alive;
}

static __always_inline int es_decide_is_stray(const struct es_view *v, __u32 again_ms)
{
	return es_decide_is_repeated(v, again_ms) && v->seg.len != 1;
}

/* Has the inspector given its connection to another node? */
static __always_inline int es_decide_is_elsewhere(const struct es_config *cfg, const struct es_view *v)
{
	return v->decision && es_decision_node(v->decision) != cfg->self;
}

/* At layer 4: is it for the inspector to say whose the connection is? It repeats what it has said once. */
static __always_inline int es_decide_is_given(const struct es_config *cfg, const struct es_view *v)
{
	return v->may_give && v->inspector_alive && (v->gives || es_decide_is_elsewhere(cfg, v));
}

/* Payload, a FIN or a RST of a flow that has no socket here, on the flow's ring node. */
static __always_inline void es_decide_request(const struct es_config *cfg, const struct es_view *v,
					      struct es_verdict *ret)
{
	const struct es_segment *seg = &v->seg;
	int blind = v->inspect == ES_INSPECT_NEVER;
	enum es_cookie_state state = es_decide_cookie(cfg, v, seg->seq - 1);
	int earlier = state == ES_COOKIE_VALID && es_decide_is_earlier(v);

	if (earlier)
		state = ES_COOKIE_FLOW;
	if ((state == ES_COOKIE_VALID || state == ES_COOKIE_EXPIRED) && es_decide_is_later(v))
		state = ES_COOKIE_FLOW;
	if (seg->flags & ES_TCP_RST) {
		/* A part of the request may lie with the inspector: no server needs it any more. */
		if (state == ES_COOKIE_FLOW && !blind && v->inspector_alive)
			ES_VERDICT(ret, ES_QUEUE_LATER, request_later_queued);
		ES_VERDICT(ret, ES_DROP, drop_no_flow);
	}
	switch (state) {
	case ES_COOKIE_VALID:
		/* Without its daemon a node cannot know that another has taken its share. */
		if (cfg->leased && !v->inspector_alive)
			ES_VERDICT(ret, ES_DROP, drop_silent);
		es_decide_options(cfg, seg, &ret->options);
		if (blind && seg->len && v->doubtful && !v->decision && v->unsafe == ES_UNSAFE_ALL)
			ES_VERDICT(ret, ES_ANSWER_RST, reset_doubtful);
		if (blind && es_decide_is_given(cfg, v))
			ES_VERDICT(ret, ES_QUEUE_FIRST, layer4_queued);
		if (!seg->len) {
			/* Is it a FIN behind a request that the worker has but did not
			 * decide yet? It knows. */
			if (!seg->has_ts && !blind && v->inspector_alive)
				ES_VERDICT(ret, ES_QUEUE_FIRST, request_later_queued);
			/* A program has handed it over. */
			if (es_decide_is_elsewhere(cfg, v))
				ES_VERDICT(ret, ES_DROP, drop_decided);
			/* Nothing is to be inspected or served: what comes of it is for a server to say. */
			ES_VERDICT(ret, ES_REBUILD, fin_before_request);
		}
		/* It was handed over; there, its socket answers the repeated segment. */
		if (blind && es_decide_is_elsewhere(cfg, v))
			ES_VERDICT(ret, ES_DROP, drop_decided);
		if (blind)
			ES_VERDICT(ret, ES_REBUILD, request_blind);
		if (v->inspector_alive && v->doubtful)
			ES_VERDICT(ret, ES_QUEUE_FIRST, request_doubtful);
		if (v->inspector_alive)
			ES_VERDICT(ret, ES_QUEUE_FIRST, request_queued);
		if (es_decide_is_elsewhere(cfg, v))
			ES_VERDICT(ret, ES_DROP, drop_fallback_elsewhere);
		ES_VERDICT(ret, ES_REBUILD, request_fallback);
	case ES_COOKIE_FLOW:
		/*
		 * A keep-alive probe may carry one byte of garbage (RFC 9293 section 3.8.4). Acknowledging a
		 * byte that was none of it would lose it, so timestamps must prove it.
		 */
		if (seg->len == 1 && seg->has_ts && es_decide_cookie(cfg, v, seg->seq) == ES_COOKIE_VALID) {
			ret->ack = seg->seq + 1;
			ES_VERDICT(ret, ES_ANSWER_ACK, keepalive_answered);
		}
		ret->proven = 1;
		/*
		 * So many segments come that one of them will be like this by chance: then nobody is
		 * believed.
		 */
		ret->earlier = earlier && !v->many_guesses;
		if (ret->earlier && es_decide_is_repeated(v, ES_STRAY_AGAIN_MS))
			ES_VERDICT(ret, ES_QUEUE_STRAY, stray_queued);
		if (es_decide_is_stray(v, v->decision ? ES_STRAY_AGAIN_MS : ES_STRAY_AGAIN_LATER_MS))
			ES_VERDICT(ret, ES_QUEUE_STRAY, stray_queued);
		if (earlier)
			ES_VERDICT(ret, blind || !v->inspector_alive ? ES_DROP : ES_QUEUE_LATER,
				   request_unheard);
		if (!v->inspector_alive || (blind && !es_decide_is_given(cfg, v)))
			ES_VERDICT(ret, ES_DROP, drop_no_flow);
		if (v->decision && (es_decision_age_ms(v->decision, v->now_ms) > cfg->race_window_ms ||
				    es_decide_has_heard(cfg, v)))
			ES_VERDICT(ret, ES_DROP, drop_decided);
		ES_VERDICT(ret, ES_QUEUE_LATER, request_later_queued);
	case ES_COOKIE_EXPIRED:
		ES_VERDICT(ret, ES_ANSWER_RST, cookie_expired);
	default:
		ret->proven = v->decision != 0;
		ret->guess = !seg->has_ts && !v->decision;
		if (es_decide_is_stray(v, ES_STRAY_AGAIN_MS))
			ES_VERDICT(ret, ES_QUEUE_STRAY, stray_queued);
		ES_VERDICT(ret, ES_DROP, cookie_invalid);
	}
}

/* A refusal is not old: see ES_REJECT_LINGER_MS. */
static __always_inline int es_decide_lingers(const struct es_view *v)
{
	return es_decision_age_ms(v->decision, v->now_ms) < ES_REJECT_LINGER_MS;
}

/*
 * A request that moved its connection away from this node, come again: its target may not have got it. No
 * other node knows of it.
 */
static __always_inline void es_decide_moved(const struct es_config *cfg, const struct es_view *v,
					    struct es_verdict *ret)
{
	int is_first = es_decision_isn(v->decision) == v->seg.seq - 1;

	if (!v->inspector_alive || (is_first && !v->seg.len))
		ES_VERDICT(ret, ES_DROP, drop_moved);
	if (is_first)
		ES_VERDICT(ret, ES_QUEUE_FIRST, moved_queued);
	/* Its client has not heard the refusal: it is told again, whatever part this is of what it sends. */
	if (es_decision_node(v->decision) == ES_NODE_REJECT && es_decide_lingers(v))
		ES_VERDICT(ret, ES_QUEUE_LATER, moved_queued);
	ret->proven = 1;
	if (es_decide_is_stray(v, ES_STRAY_AGAIN_MS))
		ES_VERDICT(ret, ES_QUEUE_STRAY, stray_queued);
	if (es_decision_age_ms(v->decision, v->now_ms) > cfg->race_window_ms)
		ES_VERDICT(ret, ES_DROP, drop_moved);
	ES_VERDICT(ret, ES_QUEUE_LATER, moved_queued);
}

/*
 * The handshake's ACK where nobody reads what the client sends: it makes the socket, as with any stack, so
 * that its server may speak first. It does not come again: where it makes none, the client's first bytes
 * will. One from before a node was lost could belong to a connection of that node's.
 */
static __always_inline void es_decide_handshake(const struct es_config *cfg, const struct es_view *v,
						struct es_verdict *ret)
{
	if (v->waits)
		ES_VERDICT(ret, ES_DROP, drop_ring_change);
	if (cfg->leased && !v->inspector_alive)
		ES_VERDICT(ret, ES_DROP, drop_silent);
	if (es_decide_is_earlier(v))
		ES_VERDICT(ret, ES_DROP, request_unheard);
	if (v->unsafe == ES_UNSAFE_ALL && v->has_doubts && !v->heard)
		ES_VERDICT(ret, ES_DROP, drop_handshake_ack);
	es_decide_options(cfg, &v->seg, &ret->options);
	if (es_decide_is_given(cfg, v))
		ES_VERDICT(ret, ES_QUEUE_FIRST, layer4_queued);
	if (es_decide_is_elsewhere(cfg, v))
		ES_VERDICT(ret, ES_DROP, drop_decided);
	ES_VERDICT(ret, ES_REBUILD, handshake_blind);
}

/*
 * A bare ACK: the one that completes the handshake (seq = client ISN + 1), or a keep-alive probe (seq =
 * client ISN). An ACK that could be either is taken for the first: it needs no answer.
 */
static __always_inline void es_decide_bare_ack(const struct es_config *cfg, const struct es_view *v,
					       struct es_verdict *ret)
{
	enum es_cookie_state probe = es_decide_cookie(cfg, v, v->seg.seq), first;
	int blind = v->inspect == ES_INSPECT_NEVER;

	if (probe == ES_COOKIE_INVALID) {
		/* Each one that is none of ours brings who tries them all nearer to a socket. */
		ret->guess = blind && !v->seg.has_ts && !v->decision && v->socket == ES_SOCKET_NONE;
		ES_VERDICT(ret, ES_DROP, drop_no_flow);
	}
	if (probe == ES_COOKIE_FLOW && !blind)
		ES_VERDICT(ret, ES_DROP, drop_handshake_ack);
	first = es_decide_cookie(cfg, v, v->seg.seq - 1);
	if (blind && first == ES_COOKIE_VALID && (probe != ES_COOKIE_VALID || v->heard)) {
		es_decide_handshake(cfg, v, ret);
		return;
	}
	if (probe == ES_COOKIE_FLOW || first == probe)
		ES_VERDICT(ret, ES_DROP, drop_handshake_ack);
	if (probe == ES_COOKIE_VALID) {
		ret->ack = v->seg.seq + 1;
		ES_VERDICT(ret, ES_ANSWER_ACK, keepalive_answered);
	}
	/* Its client will hear of it when it sends a request;
	 * an acknowledgment in a download looks the same. */
	if (!v->seg.has_ts)
		ES_VERDICT(ret, ES_DROP, drop_no_flow);
	ES_VERDICT(ret, ES_ANSWER_RST, cookie_expired);
}

/* es_view_tells() - is the inspector to know of a segment that is dropped (kept.h)? */
static __always_inline int es_view_tells(const struct es_view *v)
{
	return v->kept_tells && v->inspector_alive;
}

/**
 * es_is_anothers() - is @v of a flow that this node has nothing to do with?
 * es_decide() then drops it and counts drop_not_mine. A datapath may ask this first and spare itself the
 * rest: it is what a node hears most.
 */
static __always_inline int es_is_anothers(const struct es_view *v)
{
	return v->socket == ES_SOCKET_NONE && !v->mine && !v->silent && !v->decision && !v->ended &&
	       !es_view_tells(v);
}

/* es_view_needs_heard() - does the verdict depend on @heard and @heard_all?
 * Asked when the options are read. */
static __always_inline int es_view_needs_heard(const struct es_view *v)
{
	return v->socket != ES_SOCKET_ESTABLISHED && v->mine && !(v->seg.flags & ES_TCP_SYN) &&
	       (!v->seg.has_ts || (v->has_doubts && (v->seg.len || v->inspect == ES_INSPECT_NEVER)));
}

/*
 * es_view_is_overheard() - may this be a first request, and is it another node's to take? Then this node must
 * know later on that it was heard.
 */
static __always_inline int es_view_is_overheard(const struct es_view *v)
{
	return v->socket != ES_SOCKET_ESTABLISHED && v->seg.len && !(v->seg.flags & ES_TCP_SYN) &&
	       (!v->mine || v->waits || v->silent);
}

/* es_view_is_doubtful() - @was_overheard: its first byte is noted */
static __always_inline int es_view_is_doubtful(const struct es_view *v, int was_overheard)
{
	return v->has_doubts && v->seg.len && (!v->heard || was_overheard);
}

/**
 * es_decide() - the verdict for one inbound TCP segment to a service
 * Never fails; every path sets action and counter.
 */
static __always_inline void es_decide(const struct es_config *cfg, const struct es_view *v,
				      struct es_verdict *ret)
{
	const struct es_segment *seg = &v->seg;
	__u8 type = seg->flags & (ES_TCP_SYN | ES_TCP_ACK | ES_TCP_RST | ES_TCP_FIN);

	if (v->socket == ES_SOCKET_ESTABLISHED) {
		if (v->silent && v->unproven)
			ES_VERDICT(ret, ES_DROP, drop_silent);
		if (type == ES_TCP_SYN)
			ES_VERDICT(ret, ES_DELIVER, deliver_syn_established);
		if (v->track == ES_TRACK_QUEUE_FIRST)
			ES_VERDICT(ret, ES_QUEUE_FIRST, owned_queued);
		if (v->track == ES_TRACK_QUEUE_LATER)
			ES_VERDICT(ret, ES_QUEUE_LATER, owned_later_queued);
		ES_VERDICT(ret, ES_DELIVER, deliver_established);
	}
	if (v->socket != ES_SOCKET_NONE) {
		if (type == ES_TCP_SYN) {
			if (!v->mine || v->silent)
				ES_VERDICT(ret, ES_END_OLD, syn_time_wait);
			es_decide_syn(cfg, v, ret);
			ES_VERDICT(ret, ES_END_OLD_AND_SYNACK, syn_time_wait);
		}
		if (v->socket == ES_SOCKET_FIN_WAIT2)
			ES_VERDICT(ret, ES_DELIVER, deliver_established);
		if ((type & ES_TCP_FIN) && es_seq_before(seg->seq, v->old_rcv_nxt))
			ES_VERDICT(ret, ES_DELIVER, deliver_time_wait);
	}
	if ((seg->len || (type & ES_TCP_FIN)) && (type & ~ES_TCP_FIN) == ES_TCP_ACK &&
	    es_decision_is_moved(v->decision)) {
		es_decide_moved(cfg, v, ret);
		return;
	}
	if (v->silent)
		ES_VERDICT(ret, ES_DROP, drop_silent);
	if (v->ended && v->socket == ES_SOCKET_NONE && (type & ~ES_TCP_FIN) == ES_TCP_ACK)
		ES_VERDICT(ret, ES_ANSWER_RST, reset_repeated);
	/* It follows the answer that the inspector gave and closed with: nothing is left to be said, but the
	 * client may have to send all that it has before it reads that. */
	if ((seg->len || (type & ES_TCP_FIN)) && (type & ~ES_TCP_FIN) == ES_TCP_ACK &&
	    es_decision_node(v->decision) == ES_NODE_REJECT && !es_decision_is_moved(v->decision)) {
		if (!es_decide_lingers(v))
			ES_VERDICT(ret, ES_ANSWER_RST, reset_after_reject);
		ret->ack = seg->seq + seg->len + !!(type & ES_TCP_FIN);
		ES_VERDICT(ret, ES_ANSWER_ACK, reject_dropped);
	}
	if (!v->mine)
		ES_VERDICT(ret, ES_DROP, drop_not_mine);
	if (type == ES_TCP_SYN) {
		es_decide_syn(cfg, v, ret);
		ES_VERDICT(ret, ES_SYNACK, syn_answered);
	}
	if ((type & ES_TCP_RST) && type != (ES_TCP_RST | ES_TCP_ACK))
		ES_VERDICT(ret, ES_DROP, drop_no_flow);
	if ((type & ES_TCP_SYN) || !(type & ES_TCP_ACK))
		ES_VERDICT(ret, ES_DROP, drop_bad_flags);
	if (seg->len || (type & (ES_TCP_FIN | ES_TCP_RST))) {
		if (v->waits)
			ES_VERDICT(ret, ES_DROP, drop_ring_change);
		es_decide_request(cfg, v, ret);
		return;
	}
	es_decide_bare_ack(cfg, v, ret);
}

#endif
