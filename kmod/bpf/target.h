/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_TARGET_H
#define ES_BPF_TARGET_H

/*
 * Acts on authentic, fresh handover messages: rebuild, deliver, refuse, and for this node's own later
 * requests stay and end.
 */
#include "answer.h"
#include "download.h"
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
#include "kmod/core/plan.h"

/* Fill in the view's facts about @sk, the socket that was found for the packet in the message; NULL: none. */
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

/* Was the client asked whether it still has the connection of @sk? Returns an enum es_challenged. */
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
	/* Otherwise the request has come again: the socket has it already. */
	if (es_track_has_queued(t, seg->seq) && es_track_step(t, ES_TRACK_QUEUED, ES_TRACK_SERVED))
		es_track_pin(t, es_track_stay(t, seg, h, bpf_ktime_get_ns()));
	return es_track_is_leaving(t) ? -1 : 0;
}

/* Fill in the view for ES_HANDOVER_END and _GONE: may the connection leave, or is it leaving already? */
static __noinline int es_leave_begin(struct __sk_buff *skb, struct bpf_sock *sk, struct es_handover_view *v)
{
	struct es_track_socket socket = {};
	struct es_track *t;

	if (!sk || !v)
		return 0;
	t = es_track_of(sk);
	/* A packet that is writable as a whole becomes a RST without fail. */
	if (!t || (v->kind == ES_HANDOVER_END && bpf_skb_pull_data(skb, skb->len)) || !es_leave_begins(v, t))
		return 0;
	es_track_socket_read(sk, &socket);
	es_leave_looked(v, t, &socket);
	return 0;
}

/* The CPU that has made the track ES_TRACK_LEAVING settles it. */
static __noinline int es_leave_settle(struct bpf_sock *sk, __u32 state)
{
	struct es_track *t = sk ? es_track_of(sk) : (void *)0;

	if (t)
		*(volatile __u8 *)&t->state = (__u8)state;
	return 0;
}

/* A node that takes no new flow takes none from others either. */
static __always_inline int es_handover_is_silent(void)
{
	const struct es_state *state = es_state_get();

	return state && es_lease_refuses(state->lease_ns, state->attached, bpf_ktime_get_coarse_ns());
}

static __always_inline int es_handover_lease_is_over(void)
{
	const struct es_state *state = es_state_get();

	return state && es_lease_is_over(state->lease_ns, bpf_ktime_get_ns());
}

/* es_handover_is_stale() by the ring here; a global function, so that it is verified once. */
__noinline int es_handover_is_stale_here(const struct es_handover *h, __u64 flow_hash)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_node_ring *ring = state ? es_ring_get(state) : (void *)0;

	return cfg && ring && h && es_handover_is_stale(cfg, &ring->table, h, flow_hash);
}

/*
 * es_decide_handover(), and the plan of its verdict; a global function, so that it is verified once, and the
 * code after it for no view in particular.
 */
__noinline int es_handover_decide(struct es_handover_view *view, struct es_handover_plan *plan)
{
	struct es_verdict verdict = {};

	if (!view || !plan)
		return -1;
	es_decide_handover(view, &verdict);
	es_plan_handover(view, &verdict, ES_WAY_AGAIN, plan);
	return 0;
}

/*
 * struct es_received - a message about a client's segment: @sk is held; with its plan, and @rc, the program's
 * verdict
 */
struct es_received {
	struct __sk_buff *skb;
	struct es_config *cfg;
	struct es_handover *h;
	struct es_handover_view view;
	struct es_packet pkt;
	struct es_handover_plan plan;
	struct bpf_sock *sk;
	__u64 hash;
	__u32 old_rcv_nxt;
	__u32 service;
	int rc;
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

/* Fill in the rest of the view. */
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
	/* A node that has left in order takes nothing from others, but goes on with what it has. */
	if (v->kind == ES_HANDOVER_STAY && v->silent && v->socket == ES_SOCKET_ESTABLISHED &&
	    es_handover_lease_is_over())
		v->ceded = (__u8)es_socket_is_ceded(in->sk);
}

/* What has become of a request here? Returns an enum es_nack_reason. */
static __always_inline __u32 es_handover_fate(const struct es_config *cfg, const struct es_received *in)
{
	struct es_settled_answer settled = es_settled_unpack(
		es_settle(es_handover_flow(cfg, &in->pkt), in->view.seg.seq, ES_SETTLED_LOOK, 0));

	return es_fate_reason(&settled, &in->pkt, 0);
}

/*
 * The steps of a plan (kmod/core/plan.h). Each returns 0 or -1; those that are not inlined need a stack of
 * their own.
 */
static __noinline int es_handover_settle(struct es_received *in)
{
	struct es_settled_answer settled;

	settled = es_settled_unpack(es_settle(in->hash, in->view.seg.seq, in->plan.settle, in->h->attempt));
	return es_handover_is_settled(in->plan.settle, &settled, 0, in->h) ? 0 : -1;
}

static __always_inline int es_handover_stay(struct es_received *in)
{
	return es_stay(in->sk, in->h, &in->view.seg);
}

static __always_inline int es_handover_retry(struct es_received *in)
{
	if (es_message_nack(in->skb, in->cfg, in->h, ES_NACK_RETRY) == TC_ACT_SHOT)
		return -1;
	bpf_clone_redirect(in->skb, in->skb->ifindex, in->h->target == in->cfg->self ? BPF_F_INGRESS : 0);
	return 0;
}

static __always_inline int es_handover_first(struct es_received *in)
{
	return es_first_note(in->hash, in->view.seg.seq, bpf_ktime_get_coarse_ns());
}

static __always_inline int es_handover_open(struct es_received *in)
{
	return es_message_open(in->skb, &in->pkt);
}

static __noinline int es_handover_probe(struct es_received *in)
{
	struct es_answer next;
	struct tcp_sock *tp;

	if (!in->sk)
		return -1;
	tp = bpf_skc_to_tcp_sock(in->sk);
	if (!tp)
		return -1;
	/* By the socket's own clock: Linux says nothing to an acknowledgement from the past. */
	es_answer_next(&in->pkt, tp->rcv_nxt, tp->snd_una, !!tp->rx_opt.ts_recent, tp->rx_opt.ts_recent,
		       es_ns_to_ms(bpf_ktime_get_ns()) + tp->tsoffset, &next);
	if (es_answer_put_any(in->skb, &next))
		return -1;
	in->h->packet_len = es_htons((__u16)(in->skb->len - ETH_HLEN));
	return 0;
}

static __always_inline int es_handover_ask(struct es_received *in)
{
	return es_challenge_set(in->hash, in->view.challenged);
}

static __noinline int es_handover_note(struct es_received *in)
{
	struct es_rebuilt rebuilt = {};

	rebuilt.at_ns = bpf_ktime_get_coarse_ns();
	rebuilt.source = in->h->source;
	rebuilt.is_pending = 1;
	es_track_begin(&rebuilt.track, in->view.seg.ack, in->h, bpf_ktime_get_ns());
	return es_rebuilt_note(in->hash, in->view.seg.seq, &rebuilt);
}

/* Tell the inspector; the packet goes along. */
static __noinline int es_handover_tell(struct es_received *in)
{
	struct es_record record = {.flow = ES_FLOW_HERE};

	record.flow_hash = in->hash;
	record.kind = in->plan.record;
	record.len = es_ntohs(in->h->packet_len);
	record.service = in->h->service;
	return es_queue_push_and_wake(in->skb, &record,
				      es_worker_of(in->hash, in->cfg->workers) & (ES_WORKERS_MAX - 1));
}

static __always_inline int es_handover_leave(struct es_received *in)
{
	return es_leave_settle(in->sk, ES_TRACK_ENDING);
}

static __always_inline int es_handover_deliver(struct es_received *in)
{
	return es_opened_send(in->skb, in->plan.mark);
}

static __always_inline int es_handover_end(struct es_received *in)
{
	if (es_answer_end_old(in->skb, &in->pkt, in->old_rcv_nxt))
		es_count(ES_COUNT_answer_failed);
	else
		in->rc = TC_ACT_OK;
	return 0;
}

static __always_inline int es_handover_answer(struct es_received *in)
{
	in->rc = es_message_nack(in->skb, in->cfg, in->h, in->plan.reason);
	return 0;
}

/* es_handover_failed(); a global function, so that it is verified once. */
__noinline int es_handover_failure(struct es_handover_plan *plan, __u32 step)
{
	return plan ? (int)es_handover_failed(plan, step) : 0;
}

/* A function of its own, for its stack. */
static __noinline int es_handover_undo(struct es_received *in, __u32 step)
{
	struct es_rebuilt_key key = {};
	__u32 undo;

	undo = (__u32)es_handover_failure(&in->plan, step);
	if (undo & ES_HANDOVER_UNDO_MADE) {
		key.flow_hash = in->hash;
		key.seq = in->view.seg.seq;
		bpf_map_delete_elem(&es_rebuilts, &key);
		es_settle(in->hash, in->view.seg.seq, in->plan.undo, 0);
	}
	if (undo & ES_HANDOVER_UNDO_ASKED)
		es_challenge_set(in->hash, ES_CHALLENGE_NONE);
	if (undo & ES_HANDOVER_UNDO_LEFT)
		es_leave_settle(in->sk, ES_TRACK_QUEUED);
	return 0;
}

#define ES_HANDOVER_TAKE_ALL(name)                                                                           \
	if ((in->plan.steps & ES_HANDOVER_STEP(name)) && es_handover_##name(in))                             \
		return ES_HANDOVER_STEP(name);
#define ES_HANDOVER_TAKE_PACKET ES_HANDOVER_TAKE_ALL
#define ES_HANDOVER_TAKE_HANDS(name)
#define ES_HANDOVER_TAKE(name, ways) ES_HANDOVER_TAKE_##ways(name)

/* Take the steps of the plan. Returns the one that has failed, or 0. */
static __always_inline __u32 es_handover_carry_out(struct es_received *in)
{
	ES_HANDOVER_STEPS(ES_HANDOVER_TAKE)
	return 0;
}

/*
 * es_handover_message() - a message about a client's segment. Returns the program's verdict.
 * A function of its own, for its stack.
 */
static __noinline int es_handover_message(struct __sk_buff *skb, struct es_config *cfg, struct es_handover *h)
{
	struct es_received in = {.skb = skb, .cfg = cfg, .h = h, .rc = TC_ACT_SHOT};
	__u32 counter, failed;

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
	if ((h->request_flags & ES_REQUEST_F_TELL) &&
	    (in.view.kind == ES_HANDOVER_REQUEST || in.view.kind == ES_HANDOVER_STAY))
		es_download_asked(skb, h, &in.pkt, in.hash, in.view.seg.len);
	es_handover_decide(&in.view, &in.plan);
	failed = es_handover_carry_out(&in);
	if (failed)
		es_handover_undo(&in, failed);
	if (in.sk)
		bpf_sk_release(in.sk);
	if (in.plan.counter != ES_COUNTER_COUNT)
		es_count(in.plan.counter);
	return in.rc;
}

#endif
