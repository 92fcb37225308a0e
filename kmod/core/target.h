/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_TARGET_H
#define ES_CORE_TARGET_H

/*
 * The decision about a handover message at its target: one that is about a client's segment, authentic and
 * fresh (message.h). As in decide.h: a view in, a verdict out.
 */
#include "challenges.h"
#include "decide.h"
#include "packet.h"
#include "ring.h"
#include "settled.h"

/**
 * struct es_handover_view - what the target knows about an authentic, fresh handover message
 * @first_seq, @rcv_nxt: of an established socket: its first payload byte (or one before) and the next it
 * expects
 * @listening: a listening socket was found; @accept_full: its accept queue has no place
 * @rebuilt: this very request was rebuilt here (settled.h); for ES_HANDOVER_STRAY, a moment ago
 * @built: for sure: that socket has spoken
 * @refused: this attempt of it was refused here
 * @doubtful: it was rebuilt here, ended unheard, and must not be executed twice
 * @vanished: it was to be rebuilt here, and nothing was heard of its socket (es_settled_answer)
 * @may_leave: what es_track_may_leave() says, for ES_HANDOVER_END
 * @leaving: for that, the connection was leaving before; for ES_HANDOVER_GONE: it is ES_TRACK_ENDING
 * @stale: a first request from a node that the ring here does not name: another may have it by now
 * @on_its_way: for ES_HANDOVER_STRAY, see es_stray_is_on_its_way()
 * @silent: this node's lease is over
 * @received: an established socket has all of the segment, see es_handover_view_received(); @beyond: it drops
 * it, and the sender can wait, see es_handover_view_window()
 * @challenged: an enum es_challenged, of an established socket
 * @ceded: without a lease, of an established socket: for ES_HANDOVER_STAY, see es_track_is_ceded(); for
 * ES_HANDOVER_STRAY, the connection is being ended, since another node may go on with it
 * (es_track_may_cede())
 */
struct es_handover_view {
	struct es_segment seg;
	__u32 first_seq;
	__u32 rcv_nxt;
	__u8 kind;
	__u8 socket;
	__u8 listening;
	__u8 accept_full;
	__u8 rebuilt;
	__u8 built;
	__u8 refused;
	__u8 doubtful;
	__u8 vanished;
	__u8 may_leave;
	__u8 leaving;
	__u8 stale;
	__u8 on_its_way;
	__u8 silent;
	__u8 received;
	__u8 beyond;
	__u8 challenged;
	__u8 ceded;
};

/*
 * es_handover_view_received() - @rcv_nxt: the next byte, or FIN, that the established socket expects, if that
 * is certain
 */
static __always_inline void es_handover_view_received(struct es_handover_view *v, __u32 rcv_nxt)
{
	__u32 end = v->seg.seq + v->seg.len + !!(v->seg.flags & ES_TCP_FIN);

	v->rcv_nxt = rcv_nxt;
	v->received = !es_seq_before(rcv_nxt, end);
}

/* es_handover_view_window() - @end: of what the socket's window has room for */
static __always_inline void es_handover_view_window(struct es_handover_view *v, const struct es_handover *h,
						    __u32 end)
{
	v->beyond = (h->request_flags & ES_FOLLOW_F_BACK) && es_seq_before(end, v->seg.seq + v->seg.len);
}

/**
 * es_handover_is_stale() - is this a first request whose sender the ring here does not name, and which
 * another node may have?
 * @table: the ring in force here, with @cfg
 */
static __always_inline int es_handover_is_stale(const struct es_config *cfg,
						const struct es_ring_table *table,
						const struct es_handover *h, __u64 flow_hash)
{
	if (!cfg->leased || h->kind != ES_HANDOVER_REQUEST || (h->flags & ES_HANDOVER_F_MOVED) ||
	    h->epoch == es_htonl(cfg->epoch))
		return 0;
	return (es_ring_table_lookup(table, flow_hash) & ES_RING_NODE) != h->source;
}

/**
 * es_handover_view_settled() - fill in what was noted of the request in @pkt: @s, which ES_SETTLED_LOOK has
 * found
 * The stack drops what has an option of IPv6 that it does not like (RFC 8200, 4.2), and clients choose those:
 * that a request with any has made no socket says nothing of the node.
 */
static __always_inline void es_handover_view_settled(struct es_handover_view *v, const struct es_handover *h,
						     const struct es_packet *pkt,
						     const struct es_settled_answer *s)
{
	v->rebuilt = (__u8)es_settled_is_built(s);
	v->built = s->as == ES_SETTLED_BUILT;
	v->vanished = s->has_vanished && !es_packet_has_extensions(pkt);
	v->refused = s->as == ES_SETTLED_REFUSED && h->attempt <= s->attempt;
	v->doubtful = s->as == ES_SETTLED_ENDED && (h->flags & ES_HANDOVER_F_UNSAFE);
}

/**
 * es_fate_reason() - the answer to ES_HANDOVER_FATE
 * @s: what ES_SETTLED_LOOK has found of the request; @is_swallowed: the datapath knows itself that its
 * attempts come to nothing
 * That a request with IPv6 extension headers has made no socket says nothing of the node:
 * es_handover_view_settled().
 */
static __always_inline enum es_nack_reason es_fate_reason(const struct es_settled_answer *s,
							  const struct es_packet *pkt, int is_swallowed)
{
	if (s->as == ES_SETTLED_BUILT)
		return ES_NACK_HEARD;
	return (s->has_vanished || is_swallowed) && !es_packet_has_extensions(pkt) ? ES_NACK_UNHEARD
										   : ES_NACK_UNKNOWN;
}

/*
 * Is the segment's connection not here, and not on its way from here either? A node knows that of itself with
 * a lease or without.
 */
static __always_inline int es_handover_is_nobodys(const struct es_handover_view *v)
{
	if (v->on_its_way || v->rebuilt)
		return 0;
	if (v->socket == ES_SOCKET_TIME_WAIT)
		return !(v->seg.flags & ES_TCP_FIN); /* which it may still acknowledge */
	return v->socket == ES_SOCKET_NONE || v->ceded;
}

/* Is it the ACK of a handshake, and nothing else? Its client does not repeat it, so its sender does. */
static __always_inline int es_handover_is_handshake(const struct es_handover_view *v)
{
	return v->kind == ES_HANDOVER_REQUEST && !v->seg.len && !(v->seg.flags & ES_TCP_FIN);
}

/* Why a message goes back, for the verdicts ES_NACK and ES_DOUBT. */
static __always_inline enum es_nack_reason es_handover_nack_reason(const struct es_handover_view *v)
{
	if (v->kind == ES_HANDOVER_STRAY)
		return es_handover_is_nobodys(v) ? ES_NACK_NOT_HERE : ES_NACK_HERE;
	if (v->doubtful)
		return ES_NACK_DOUBTFUL;
	if (v->kind == ES_HANDOVER_FOLLOW)
		return ES_NACK_BEYOND;
	if (v->silent)
		return ES_NACK_SILENT;
	if (v->vanished && v->socket == ES_SOCKET_NONE)
		return ES_NACK_VANISHED;
	return v->socket == ES_SOCKET_NONE && !v->listening ? ES_NACK_NO_LISTENER : ES_NACK_RETRY;
}

/* The record that tells the inspector of the verdict ES_LEAVE, ES_KEEP or ES_GONE. */
static __always_inline enum es_record_kind es_leave_record(__u32 action)
{
	if (action == ES_GONE)
		return ES_RECORD_ENDED;
	return action == ES_LEAVE ? ES_RECORD_ENDING : ES_RECORD_KEPT;
}

/*
 * es_leave_begins() - fill in the view for ES_HANDOVER_END and _GONE; @t: the connection's track
 * Returns 1 if its socket is to be looked at as well, for which the track is ES_TRACK_LEAVING now
 * (es_track_may_leave() says why). Then es_leave_looked() follows.
 */
static __always_inline int es_leave_begins(struct es_handover_view *v, struct es_track *t)
{
	if (v->kind == ES_HANDOVER_GONE) {
		v->leaving = t->state == ES_TRACK_ENDING;
		return 0;
	}
	if (es_track_step(t, ES_TRACK_QUEUED, ES_TRACK_LEAVING))
		return 1;
	v->leaving = (__u8)es_track_is_leaving(t);
	return 0;
}

/* es_leave_looked() - @s: what its socket looks like. If it may not leave, it is ES_TRACK_QUEUED again. */
static __always_inline void es_leave_looked(struct es_handover_view *v, struct es_track *t,
					    const struct es_track_socket *s)
{
	v->may_leave = (__u8)es_track_may_leave(t, &v->seg, s);
	if (!v->may_leave)
		*(volatile __u8 *)&t->state = ES_TRACK_QUEUED;
}

/**
 * es_decide_handover() - the verdict for a handover message at its target
 * At most one socket is made from one request: the client's retransmission, repeated by the inspecting node,
 * finds the socket (the stack drops the duplicate) or the note that it was here, or was refused. The steps
 * that follow a verdict are in plan.h: ES_REBUILD, and a request's ES_NACK and ES_END_OLD, are noted before
 * they are carried out.
 */
static __always_inline void es_decide_handover(const struct es_handover_view *v, struct es_verdict *ret)
{
	const struct es_segment *seg = &v->seg;

	if (v->kind == ES_HANDOVER_END) {
		/* The inspector has been told, or is just being told, what came of it. */
		if (v->leaving)
			ES_VERDICT(ret, ES_DROP, end_again);
		if (v->socket == ES_SOCKET_ESTABLISHED && v->may_leave)
			ES_VERDICT(ret, ES_LEAVE, end_done);
		ES_VERDICT(ret, ES_KEEP, end_refused);
	}
	if (v->kind == ES_HANDOVER_GONE) {
		if (v->socket == ES_SOCKET_NONE)
			ES_VERDICT(ret, ES_GONE, end_seen);
		if (v->socket != ES_SOCKET_ESTABLISHED || v->leaving)
			ES_VERDICT(ret, ES_LEAVE_AGAIN, end_again);
		ES_VERDICT(ret, ES_DROP, end_refused); /* another connection of these ports by now */
	}
	if (v->kind == ES_HANDOVER_STAY) {
		if (v->ceded)
			ES_VERDICT(ret, ES_DROP, drop_silent);
		if (v->socket == ES_SOCKET_ESTABLISHED)
			ES_VERDICT(ret, ES_DELIVER, stay_delivered);
		ES_VERDICT(ret, ES_DROP, stay_lost);
	}
	if (v->kind == ES_HANDOVER_STRAY) {
		if (es_handover_is_nobodys(v))
			ES_VERDICT(ret, ES_NACK, stray_not_here);
		ES_VERDICT(ret, ES_NACK, stray_here);
	}
	if (v->stale)
		ES_VERDICT(ret, ES_DROP, handover_stale);
	if (v->socket == ES_SOCKET_ESTABLISHED) {
		/*
		 * A first request begins its connection, so another first byte means another connection of
		 * the same ports. Either the client forgot the one that is here (its RST was lost) and has
		 * opened a new one: sequence numbers only grow from one to the next (RFC 6528). Or this is a
		 * late duplicate. Or somebody has guessed the cookie, so the client is asked; where that
		 * cannot be, the new one goes first.
		 */
		if (v->kind == ES_HANDOVER_REQUEST && seg->seq - v->first_seq > 1) {
			if (v->rebuilt || es_seq_before(seg->seq, v->rcv_nxt))
				ES_VERDICT(ret, ES_DROP, handover_old);
			if (v->challenged == ES_CHALLENGE_DUE || v->challenged == ES_CHALLENGE_AGAIN)
				ES_VERDICT(ret, ES_ASK, handover_asked);
			if (v->challenged == ES_CHALLENGE_WAITS)
				ES_VERDICT(ret, ES_DROP, handover_waits);
			if (v->challenged == ES_CHALLENGE_ALIVE)
				ES_VERDICT(ret, ES_DROP, handover_alive);
			ES_VERDICT(ret, ES_END_OLD, handover_time_wait);
		}
		/* It was there in time to hear the segment itself. Its acknowledgement is on its way; should
		 * that be lost, the client's repetition comes here, too. */
		if (v->kind == ES_HANDOVER_FOLLOW && v->received)
			ES_VERDICT(ret, ES_DROP, handover_follow_heard);
		if (v->kind == ES_HANDOVER_FOLLOW && v->beyond)
			ES_VERDICT(ret, ES_NACK, handover_follow_beyond);
		if (v->kind == ES_HANDOVER_FOLLOW)
			ES_VERDICT(ret, ES_DELIVER, handover_follow);
		if (es_handover_is_handshake(v))
			ES_VERDICT(ret, ES_MADE, handover_duplicate);
		ES_VERDICT(ret, ES_DELIVER, handover_duplicate);
	}
	if (v->kind == ES_HANDOVER_FOLLOW)
		ES_VERDICT(ret, ES_DROP, handover_follow_lost);
	/* While the kernel may still make it, nobody else is given the request. */
	if (v->rebuilt && v->vanished && v->socket == ES_SOCKET_NONE)
		ES_VERDICT(ret, ES_DROP, handover_vanished);
	if (v->built && es_handover_is_handshake(v))
		ES_VERDICT(ret, ES_MADE, handover_old);
	if (v->rebuilt)
		ES_VERDICT(ret, ES_DROP, handover_old);
	/* With or without a lease: nobody is to be given it any more. */
	if (v->doubtful)
		ES_VERDICT(ret, ES_DOUBT, handover_doubtful);
	if (v->silent)
		ES_VERDICT(ret, ES_NACK, handover_silent);
	if (v->socket != ES_SOCKET_NONE)
		ES_VERDICT(ret, ES_END_OLD, handover_time_wait);
	/* Here it would vanish again. */
	if (v->vanished)
		ES_VERDICT(ret, ES_NACK, handover_vanished);
	if (!v->listening)
		ES_VERDICT(ret, ES_NACK, handover_nacked);
	/* The sender may be giving it to another node already;
	 * under the next number it may come here, too. */
	if (v->refused)
		ES_VERDICT(ret, ES_NACK, handover_refused);
	if (v->accept_full)
		ES_VERDICT(ret, ES_DROP, handover_accept_full);
	ES_VERDICT(ret, ES_REBUILD, handover_rebuilt);
}

/**
 * es_decide_stray() - has this node the connection of a segment that no node takes (strays.h)?
 * @v: with its segment, socket and @on_its_way, which is looked up after the socket: it is noted that a
 * connection is on its way before its socket leaves. @s: what ES_SETTLED_LOOK has found of the segment
 */
static __always_inline enum es_nack_reason
es_decide_stray(struct es_handover_view *v, const struct es_settled_answer *s, __u32 *ret_counter)
{
	struct es_verdict verdict = {};

	v->kind = ES_HANDOVER_STRAY;
	v->rebuilt = es_settled_is_built(s) && s->is_recent;
	es_decide_handover(v, &verdict);
	*ret_counter = verdict.counter;
	return es_handover_nack_reason(v);
}

/* es_handover_step() - what is noted of a request before the verdict is carried out; _LOOK: nothing */
static __always_inline enum es_settled_step es_handover_step(__u8 kind, __u32 action)
{
	if (kind != ES_HANDOVER_REQUEST)
		return ES_SETTLED_LOOK;
	if (action == ES_REBUILD)
		return ES_SETTLED_MAKE;
	return action == ES_NACK || action == ES_END_OLD ? ES_SETTLED_REFUSE : ES_SETTLED_LOOK;
}

/**
 * es_handover_is_settled() - may the verdict be carried out, now that es_handover_step() is noted?
 * @s: what came of that; @makes_again: a socket that was to be made may be tried again; @h: then says which
 * attempt a refusal answers. If not, another CPU has settled the request otherwise since it was looked at.
 */
static __always_inline int es_handover_is_settled(enum es_settled_step step,
						  const struct es_settled_answer *s, int makes_again,
						  struct es_handover *h)
{
	switch (step) {
	case ES_SETTLED_MAKE:
		return s->as == ES_SETTLED_NOT || (makes_again && s->as == ES_SETTLED_MADE);
	case ES_SETTLED_REFUSE:
		if (s->as != ES_SETTLED_REFUSED)
			return 0;
		/* The sender goes on behind all that was refused here, also if it does not know of it. */
		h->attempt = s->attempt;
		return 1;
	default:
		return 1;
	}
}

#endif
