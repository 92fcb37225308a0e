/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_REPLY_H
#define ES_CORE_REPLY_H

/*
 * Decides about the packets that a node's stack sends to a client: may one leave, who is told if it may not,
 * and which part of it is yet to be read for the connection's track? As in decide.h: a view in, a verdict
 * out.
 */
#include "abi.h"
#include "counters.h"
#include "lease.h"
#include "track.h"

/*
 * A client whose request was acknowledged by a node that then lost its lease: it does not repeat the request,
 * so nobody else is asked, and this node may not answer. It may not know of the acknowledgement, though, and
 * repeat: so first there is time for the lease to begin anew, or for another node to answer. Then this RST
 * means nothing to it.
 */
#define ES_REPLY_TELL_NS 1000000000ULL

enum es_reply_action {
	ES_REPLY_LEAVES,
	ES_REPLY_STAYS,
	ES_REPLY_TELLS, /* it stays, and the client is sent es_reply_resets() */
};

/**
 * struct es_reply_view - what the datapath knows about a segment that the stack sends
 * @lease_ns, @firm_ns: struct es_state's
 * @len: of its payload; @flags: ES_TCP_*
 * @unproven: of a connection whose client has acknowledged nothing that was sent here, or that is ceded
 * (es_track_is_ceded()); needed where es_reply_needs_proof()
 * @acknowledged: such a connection's request was acknowledged before: its client does not repeat it. Not of
 * an idle one, nor of one whose response others know (download.h)
 */
struct es_reply_view {
	__u64 now_ns;
	__u64 lease_ns;
	__u64 firm_ns;
	__u32 len;
	__u8 flags;
	__u8 unproven;
	__u8 acknowledged;
};

/**
 * struct es_reply_verdict
 * @counter: the reason, ES_COUNTER_COUNT if there is none
 * @acknowledges: remember that the request is acknowledged by this
 */
struct es_reply_verdict {
	__u32 action;
	__u32 counter;
	__u8 acknowledges;
};

/* An acknowledgement and nothing else. */
static __always_inline int es_reply_is_bare(__u32 len, __u8 flags)
{
	return !len && !(flags & (ES_TCP_SYN | ES_TCP_FIN | ES_TCP_RST));
}

/* es_reply_needs_proof() - does the verdict depend on @unproven and @acknowledged? */
static __always_inline int es_reply_needs_proof(const struct es_reply_view *v)
{
	return v->lease_ns &&
	       (es_lease_is_over(v->lease_ns, v->now_ns) || es_reply_is_bare(v->len, v->flags));
}

/**
 * es_decide_reply() - may it leave?
 * Everything of a connection that is not proven may leave while the lease holds, and nothing when it is over.
 * In between, nothing leaves that would keep the client from repeating its request; and a client that was
 * kept from it is told.
 */
static __always_inline void es_decide_reply(const struct es_reply_view *v, struct es_reply_verdict *ret)
{
	ret->action = ES_REPLY_LEAVES;
	ret->counter = ES_COUNTER_COUNT;
	ret->acknowledges = 0;
	if (!v->unproven || !es_reply_needs_proof(v))
		return;
	if (!es_lease_is_over(v->lease_ns, v->now_ns)) {
		if ((__s64)(v->now_ns - v->firm_ns) >= 0) {
			ret->action = ES_REPLY_STAYS;
			ret->counter = ES_COUNT_reply_unsure;
		} else {
			ret->acknowledges = 1;
		}
		return;
	}
	if (v->acknowledged && ((v->flags & ES_TCP_RST) || v->now_ns - v->lease_ns >= ES_REPLY_TELL_NS)) {
		ret->action = ES_REPLY_TELLS;
		return;
	}
	ret->action = ES_REPLY_STAYS;
	ret->counter = ES_COUNT_reply_silent;
}

/**
 * es_reply_resets() - the sequence numbers of the RSTs that tell a client; returns how many
 * A client takes one whose sequence number is the very byte that it expects next (RFC 5961, 3.2). That is the
 * first one that it has not acknowledged, @snd_una, if nothing of the answer has arrived; and the first one
 * that was not sent, @snd_nxt, if all has and its acknowledgement came too late. A client that has a part of
 * it takes neither. Nor does one that another node has answered, because our acknowledgement was lost, too;
 * unless that answer is just as long: then its connection ends behind it.
 */
static __always_inline __u32 es_reply_resets(__u32 snd_una, __u32 snd_nxt, __u32 ret_seq[2])
{
	ret_seq[0] = snd_una;
	ret_seq[1] = snd_nxt;
	return snd_nxt == snd_una ? 1 : 2;
}

/**
 * es_reply_unread() - from which byte of its payload on is a segment of the server's to be read?
 * @t: its connection's, not pinned, behind es_track_skip() to @seg; @snd_una: what the client has
 * acknowledged Returns the offset; @seg->len if nothing is to be read. Sets @ret_pin if it never can be: what
 * lies before it was not seen, and does not come again.
 */
static __always_inline __u32 es_reply_unread(const struct es_track *t, const struct es_segment *seg,
					     __u32 snd_una, __u8 *ret_pin)
{
	__u32 known = t->response_seq - seg->seq;

	if (es_seq_before(t->response_seq, seg->seq)) {
		if (es_seq_before(t->response_seq, snd_una))
			*ret_pin = ES_PIN_response_unclear; /* acknowledged, so gone */
		return seg->len;
	}
	return known < seg->len ? known : seg->len; /* else a retransmission */
}

/* es_reply_read() - a segment was read, @from that byte on. Returns 1 as es_track_answered() does. */
static __always_inline int es_reply_read(struct es_track *t, const struct es_segment *seg, __u32 from)
{
	t->response_seq = seg->seq + seg->len;
	return es_track_answered(t, seg->len - from);
}

/* es_reply_entry() - what the daemon is told of a response that is complete at @now_ns */
static __always_inline void es_reply_entry(const struct es_track *t, __u64 now_ns,
					   struct es_response_entry *ret)
{
	ret->url_key = t->url_key;
	ret->bytes = t->response_bytes;
	ret->status = t->response.status;
	ret->service = t->service;
	ret->request_flags = t->request_flags;
	ret->took_ns = es_track_took_ns(t, now_ns);
}

#endif
