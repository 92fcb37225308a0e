/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_TARGET_H
#define ES_BPF_TARGET_H

/*
 * What a node does with an authentic, fresh handover message: rebuild, deliver, refuse, and for its own
 * later requests stay and end.
 */
#include "answer.h"
#include "heard.h"
#include "inner.h"
#include "opened.h"
#include "message.h"
#include "other.h"
#include "queue.h"
#include "rebuild.h"
#include "socket.h"
#include "strays.h"
#include "tracks.h"
#include "kmod/core/target.h"

/* What the target knows about the packet in a message. */
static __always_inline void es_handover_view_socket(struct bpf_sock *sk, const struct es_handover *h,
						    struct es_handover_view *v, __u32 *ret_old_rcv_nxt)
{
	struct tcp_sock *tp;

	v->socket = es_socket_classify(sk, ret_old_rcv_nxt, &v->listening);
	if (!sk)
		return;
	if (v->listening) {
		v->accept_full = (__u8)es_listener_is_full(sk);
	} else if (v->socket == ES_SOCKET_ESTABLISHED) {
		tp = bpf_skc_to_tcp_sock(sk);
		if (tp) {
			es_handover_view_received(v, tp->rcv_nxt);
			es_handover_view_window(v, h, tp->rcv_wup + tp->rcv_wnd);
			/* Whether a FIN counts as a received byte differs between kernels. */
			v->first_seq = tp->rcv_nxt - (__u32)tp->bytes_received - 1;
			*ret_old_rcv_nxt = tp->rcv_nxt;
		}
	}
}

/* es_challenge_look() about a flow. This and the next are global functions, so that each is verified once. */
__noinline int es_challenge_find(__u64 flow_hash, __u32 heard)
{
	const struct es_challenge *slot = es_challenge_slot(flow_hash);

	if (!slot)
		return ES_CHALLENGE_NONE;
	return (int)es_challenge_look(slot, flow_hash, heard, es_ns_to_ms(bpf_ktime_get_ns()));
}

/* es_challenge_note(), or es_challenge_forget() with ES_CHALLENGE_NONE */
__noinline int es_challenge_set(__u64 flow_hash, __u32 challenged)
{
	struct es_challenge *slot = es_challenge_slot(flow_hash);

	if (!slot)
		return -1;
	if (challenged == ES_CHALLENGE_NONE)
		es_challenge_forget(slot);
	else
		es_challenge_note(slot, flow_hash, challenged, (__u32)bpf_jiffies64(),
				  es_ns_to_ms(bpf_ktime_get_ns()));
	return 0;
}

/* Was the client of that socket asked for it? Returns an enum es_challenged. */
static __always_inline int es_challenge_state(struct bpf_sock *sk, __u64 flow_hash)
{
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : (void *)0;

	return tp ? es_challenge_find(flow_hash, tp->rcv_tstamp) : ES_CHALLENGE_NONE;
}

/* The inspector left a later request on this connection where it is. Returns -1 if its socket is leaving. */
static __always_inline int es_stay(struct bpf_sock *sk, const struct es_handover *h,
				   const struct es_segment *seg)
{
	struct es_track *t = sk ? es_track_of(sk) : (void *)0;

	if (!t)
		return 0;
	/* Otherwise it has come again: the socket has it already. */
	if (es_track_has_queued(t, seg->seq) && es_track_step(t, ES_TRACK_QUEUED, ES_TRACK_SERVED))
		es_track_pin(t, es_track_stay(t, seg, h, bpf_ktime_get_ns()));
	return es_track_is_leaving(t) ? -1 : 0;
}

/*
 * What es_handover_view wants to know for ES_HANDOVER_END and _GONE. A connection that may leave is
 * ES_TRACK_LEAVING then.
 */
static __noinline int es_leave_begin(struct __sk_buff *skb, struct bpf_sock *sk, struct es_handover_view *v)
{
	struct es_track_socket socket = {};
	struct es_track *t;

	if (!sk || !v)
		return 0;
	t = es_track_of(sk);
	if (!t)
		return 0;
	if (v->kind == ES_HANDOVER_GONE) {
		v->leaving = t->state == ES_TRACK_ENDING;
		return 0;
	}
	/* A packet that is writable as a whole becomes a RST without fail. */
	if (bpf_skb_pull_data(skb, skb->len))
		return 0;
	if (!es_track_step(t, ES_TRACK_QUEUED, ES_TRACK_LEAVING)) {
		v->leaving = (__u8)es_track_is_leaving(t);
		return 0;
	}
	es_track_socket_read(sk, &socket);
	v->may_leave = (__u8)es_track_may_leave(t, &v->seg, &socket);
	if (!v->may_leave)
		t->state = ES_TRACK_QUEUED;
	return 0;
}

/* Who has made it ES_TRACK_LEAVING settles it: ES_TRACK_ENDING, unless the inspector could not be told. */
static __noinline int es_leave_settle(struct bpf_sock *sk, int failed)
{
	struct es_track *t = sk ? es_track_of(sk) : (void *)0;

	if (t)
		*(volatile __u8 *)&t->state = failed ? ES_TRACK_QUEUED : ES_TRACK_ENDING;
	return !failed;
}

/* Tell the inspector something of a connection here, an enum es_record_kind; the packet goes along. */
static __noinline int es_handover_tell(struct __sk_buff *skb, const struct es_handover *h, __u64 flow_hash,
				       __u32 kind)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_record record = {
		.flow_hash = flow_hash,
		.kind = (__u8)kind,
		.flow = ES_FLOW_HERE,
	};

	if (!cfg || !h)
		return -1;
	record.len = es_ntohs(h->packet_len);
	record.service = h->service;
	return es_queue_push_and_wake(skb, &record,
				      es_worker_of(flow_hash, cfg->workers) & (ES_WORKERS_MAX - 1));
}

/* A node that takes no new flow takes none from others either. */
static __always_inline int es_handover_is_silent(void)
{
	const struct es_state *state = es_state_get();

	return state && es_lease_refuses(state->lease_ns, state->attached, bpf_ktime_get_coarse_ns());
}

/* es_handover_is_stale() by the ring here; a global function, so that it is verified once. */
__noinline int es_handover_is_stale_here(const struct es_handover *h, __u64 flow_hash)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_node_ring *ring = state ? es_ring_get(state) : (void *)0;

	return cfg && ring && h && es_handover_is_stale(cfg, &ring->table, h, flow_hash);
}

/* Note what is about to become of a request. Returns es_handover_is_settled(). */
__noinline int es_handover_settle(struct es_handover *h, __u64 flow_hash, __u32 seq, __u32 action)
{
	struct es_settled_answer settled;
	enum es_settled_step step;

	if (!h)
		return 1;
	step = es_handover_step(h->kind, action);
	if (step == ES_SETTLED_LOOK)
		return 1;
	settled = es_settled_unpack(es_settle(flow_hash, seq, step, h->attempt));
	return es_handover_is_settled(step, &settled, 0, h);
}

/* es_decide_handover(); a global function, so that it is verified once, and what follows for no view in particular. */
__noinline int es_handover_decide(struct es_handover_view *view, struct es_verdict *verdict)
{
	if (!view || !verdict)
		return -1;
	es_decide_handover(view, verdict);
	return 0;
}

/* struct es_received - a message about a client's segment: @sk is held; with its verdict */
struct es_received {
	struct es_handover_view view;
	struct es_packet pkt;
	struct es_verdict verdict;
	struct bpf_sock *sk;
	__u64 hash;
	__u32 old_rcv_nxt;
	__u32 service;
};

/* Read the packet in the message. Returns the counter to drop it by, ES_COUNTER_COUNT if it may be taken. */
static __always_inline __u32 es_handover_read(struct __sk_buff *skb, const struct es_handover *h,
					      struct es_received *in)
{
	int service;

	if (es_inner_read(skb, h, &in->pkt, &in->view.seg) || !es_handover_is_about(h->kind, &in->view.seg))
		return ES_COUNT_handover_malformed;
	service = es_service_of(&in->pkt);
	if (service < 0)
		return ES_COUNT_handover_wrong_target;
	in->service = (__u32)service;
	return ES_COUNTER_COUNT;
}

/* All else that the decision wants to know. */
static __always_inline void es_handover_look(struct __sk_buff *skb, const struct es_config *cfg,
					     const struct es_handover *h, struct es_received *in)
{
	struct es_handover_view *v = &in->view;
	struct es_settled_answer settled;

	in->hash = es_handover_flow(cfg, &in->pkt);
	v->silent = (__u8)es_handover_is_silent();
	v->stale = (__u8)es_handover_is_stale_here(h, in->hash);
	settled = es_settled_unpack(es_settle(in->hash, v->seg.seq, ES_SETTLED_LOOK, 0));
	es_handover_view_settled(v, h, &in->pkt, &settled);
	in->sk = es_socket_lookup(skb, &in->pkt);
	es_handover_view_socket(in->sk, h, v, &in->old_rcv_nxt);
	if (v->kind == ES_HANDOVER_REQUEST && v->socket == ES_SOCKET_ESTABLISHED)
		v->challenged = (__u8)es_challenge_state(in->sk, in->hash);
	if (es_service_is_refused(in->service, in->pkt.is_v6))
		v->listening = 0;
	if (v->kind == ES_HANDOVER_END || v->kind == ES_HANDOVER_GONE)
		es_leave_begin(skb, in->sk, v);
}

/* Make the packet es_answer_next() of the connection. A function of its own, for its stack. Returns 0 or -1. */
static __noinline int es_handover_put_next(struct __sk_buff *skb, const struct es_received *in)
{
	struct es_answer next;
	struct tcp_sock *tp;

	if (!in || !in->sk)
		return -1;
	tp = bpf_skc_to_tcp_sock(in->sk);
	if (!tp)
		return -1;
	/* By the socket's own clock: Linux says nothing to an acknowledgement from the past. */
	es_answer_next(&in->pkt, tp->rcv_nxt, tp->snd_una, !!tp->rx_opt.ts_recent, tp->rx_opt.ts_recent,
		       es_ns_to_ms(bpf_ktime_get_ns()) + tp->tsoffset, &next);
	return es_answer_put_any(skb, &next);
}

/* ES_ASK. Returns 0 or -1. */
static __noinline int es_handover_ask(struct __sk_buff *skb, struct es_handover *h,
				      const struct es_received *in)
{
	if (!h || !in || es_message_open(skb, &in->pkt) || es_handover_put_next(skb, in))
		return -1;
	/* Before it is asked. */
	if (es_challenge_set(in->hash, in->view.challenged))
		return -1;
	h->packet_len = es_htons((__u16)(skb->len - ETH_HLEN));
	if (!es_handover_tell(skb, h, in->hash, ES_RECORD_OPEN))
		return 0;
	es_challenge_set(in->hash, ES_CHALLENGE_NONE);
	return -1;
}

/* What has become of a request here? Returns an enum es_nack_reason. */
static __always_inline __u32 es_handover_fate(const struct es_config *cfg, const struct es_received *in)
{
	struct es_settled_answer settled = es_settled_unpack(
		es_settle(es_handover_flow(cfg, &in->pkt), in->view.seg.seq, ES_SETTLED_LOOK, 0));

	return es_fate_reason(&settled, &in->pkt, 0);
}

/* ES_DELIVER. This and what follows carry a verdict out, and return the program's. */
static __always_inline int es_handover_deliver(struct __sk_buff *skb, const struct es_handover *h,
					       struct es_received *in)
{
	if (in->view.kind == ES_HANDOVER_STAY && es_stay(in->sk, h, &in->view.seg)) {
		in->verdict.counter = ES_COUNT_stay_lost;
		return TC_ACT_SHOT;
	}
	if (es_message_open(skb, &in->pkt) || es_opened_send(skb, ES_OPENED_DELIVER_MARK))
		in->verdict.counter = ES_COUNT_opened_lost;
	return TC_ACT_SHOT;
}

/* ES_HANDOVER_FOLLOW: if what it follows is on its way, the socket is there when both have arrived. */
static __always_inline int es_handover_follow(struct __sk_buff *skb, struct es_received *in)
{
	in->verdict.counter = es_message_open(skb, &in->pkt) || es_opened_send(skb, ES_OPENED_FOLLOW_MARK)
				      ? ES_COUNT_opened_lost
				      : ES_COUNTER_COUNT;
	return TC_ACT_SHOT;
}

static __always_inline int es_handover_end_old(struct __sk_buff *skb, const struct es_received *in)
{
	return es_message_open(skb, &in->pkt) ? TC_ACT_SHOT
					      : es_answer_end_old(skb, &in->pkt, in->old_rcv_nxt);
}

/* ES_LEAVE, ES_KEEP and ES_GONE: the inspector is told; with the first, the socket ends. */
static __always_inline int es_handover_leave(struct __sk_buff *skb, const struct es_handover *h,
					     struct es_received *in)
{
	int failed = es_message_open(skb, &in->pkt) ||
		     es_handover_tell(skb, h, in->hash, es_leave_record(in->verdict.action));

	if (failed)
		in->verdict.counter = ES_COUNT_drop_queue_full;
	if (in->verdict.action != ES_LEAVE || !es_leave_settle(in->sk, failed))
		return TC_ACT_SHOT;
	return es_answer_end_old(skb, &in->pkt, in->old_rcv_nxt);
}

/* ES_END_OLD: a NACK asks the sender to try here again; the packet itself ends the old socket. */
static __always_inline int es_handover_retry(struct __sk_buff *skb, struct es_config *cfg,
					     struct es_handover *h, struct es_received *in)
{
	if (es_message_nack(skb, cfg, h, ES_NACK_RETRY) == TC_ACT_SHOT)
		return TC_ACT_SHOT;
	bpf_clone_redirect(skb, skb->ifindex, h->target == cfg->self ? BPF_F_INGRESS : 0);
	return es_handover_end_old(skb, in);
}

/* Have the socket made, and note what it shall know once it exists. A function of its own, for its stack. */
static __noinline int es_handover_rebuild(struct __sk_buff *skb, const struct es_handover *h,
					  const struct es_received *in)
{
	struct es_rebuilt rebuilt = {};

	struct es_rebuilt_key key = {};

	if (!h || !in)
		return -1;
	key.flow_hash = in->hash;
	key.seq = in->view.seg.seq;
	rebuilt.at_ns = bpf_ktime_get_coarse_ns();
	rebuilt.source = h->source;
	rebuilt.is_pending = 1;
	es_track_begin(&rebuilt.track, in->view.seg.ack, h, bpf_ktime_get_ns());
	/* It may have come here before its first packet on the public network did. */
	es_first_note(in->hash, in->view.seg.seq, rebuilt.at_ns);
	return es_opened_make(skb, &in->pkt, &key, &rebuilt);
}

/* ES_REBUILD */
static __always_inline int es_handover_make(struct __sk_buff *skb, const struct es_handover *h,
					    struct es_received *in)
{
	in->verdict.counter = ES_COUNTER_COUNT; /* where the socket is made */
	if (es_handover_rebuild(skb, h, in))
		es_settle(in->hash, in->view.seg.seq, ES_SETTLED_UNDO, 0);
	return TC_ACT_SHOT;
}

static __always_inline int es_handover_carry_out(struct __sk_buff *skb, struct es_config *cfg,
						 struct es_handover *h, struct es_received *in)
{
	if (in->view.kind == ES_HANDOVER_FOLLOW &&
	    (in->verdict.action == ES_DELIVER || in->verdict.counter == ES_COUNT_handover_follow_lost))
		return es_handover_follow(skb, in);
	switch (in->verdict.action) {
	case ES_DELIVER:
		return es_handover_deliver(skb, h, in);
	case ES_LEAVE:
	case ES_KEEP:
	case ES_GONE:
		return es_handover_leave(skb, h, in);
	case ES_LEAVE_AGAIN:
		return es_handover_end_old(skb, in);
	case ES_NACK:
	case ES_DOUBT:
		return es_message_nack(skb, cfg, h, es_handover_nack_reason(&in->view));
	case ES_MADE:
		return es_message_nack(skb, cfg, h, ES_NACK_MADE);
	case ES_END_OLD:
		return es_handover_retry(skb, cfg, h, in);
	case ES_ASK:
		if (es_handover_ask(skb, h, in))
			in->verdict.counter = ES_COUNT_drop_queue_full;
		return TC_ACT_SHOT;
	case ES_REBUILD:
		return es_handover_make(skb, h, in);
	default:
		return TC_ACT_SHOT;
	}
}

/*
 * es_handover_message() - a message about a client's segment. Returns the program's verdict.
 * A function of its own, for its stack.
 */
static __noinline int es_handover_message(struct __sk_buff *skb, struct es_config *cfg, struct es_handover *h)
{
	struct es_received in = {};
	__u32 counter;
	int rc;

	if (!cfg || !h)
		return TC_ACT_SHOT;
	in.view.kind = h->kind;
	counter = es_handover_read(skb, h, &in);
	if (counter != ES_COUNTER_COUNT) {
		es_count(counter);
		return TC_ACT_SHOT;
	}
	if (in.view.kind == ES_HANDOVER_STRAY)
		return es_message_nack(skb, cfg, h, (__u32)es_stray_look(skb, &in.pkt, &in.view.seg));
	if (in.view.kind == ES_HANDOVER_FATE) {
		es_count(ES_COUNT_fate_asked);
		return es_message_nack(skb, cfg, h, es_handover_fate(cfg, &in));
	}
	es_handover_look(skb, cfg, h, &in);
	es_handover_decide(&in.view, &in.verdict);
	if (!es_handover_settle(h, in.hash, in.view.seg.seq, in.verdict.action))
		es_handover_unsettled(&in.verdict);
	rc = es_handover_carry_out(skb, cfg, h, &in);
	if (in.sk)
		bpf_sk_release(in.sk);
	if (in.verdict.counter != ES_COUNTER_COUNT)
		es_count(in.verdict.counter);
	return rc;
}

#endif
