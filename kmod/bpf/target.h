/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_TARGET_H
#define ES_BPF_TARGET_H

/*
 * What a node does with an authentic, fresh handover message: rebuild, deliver, refuse, and for its own
 * later requests stay and end.
 */
#include "answer.h"
#include "heard.h"
#include "message.h"
#include "other.h"
#include "queue.h"
#include "rebuild.h"
#include "socket.h"
#include "strays.h"
#include "tracks.h"
#include "kmod/core/decide.h"

/* What the target knows about the packet in a message. */
static __always_inline void es_handover_view_socket(struct bpf_sock *sk, struct es_handover_view *v,
						    __u32 *ret_old_rcv_nxt)
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
			v->rcv_nxt = tp->rcv_nxt;
			/* Whether a FIN counts as a received byte differs between kernels. */
			v->first_seq = tp->rcv_nxt - (__u32)tp->bytes_received - 1;
			*ret_old_rcv_nxt = tp->rcv_nxt;
		}
	}
}

/* Take the envelope off: what is left is the client's packet behind our Ethernet header. */
static __always_inline int es_message_open(struct __sk_buff *skb)
{
	return (int)bpf_skb_adjust_room(skb, -(__s32)(ES_MESSAGE_PACKET_OFF - ETH_HLEN), BPF_ADJ_ROOM_MAC, 0);
}

/*
 * Make the socket from the packet (its envelope is off), and note what it shall know once it exists. A
 * function of its own, for its stack.
 */
static __noinline int es_handover_rebuild(struct __sk_buff *skb, struct bpf_sock *sk,
					  const struct es_handover *h, const struct es_segment *seg,
					  __u64 flow_hash)
{
	struct es_rebuilt rebuilt = {};

	if (!sk || !h || !seg)
		return -1;
	rebuilt.at_ns = bpf_ktime_get_coarse_ns();
	rebuilt.source = h->source;
	es_track_begin(&rebuilt.track, seg->ack, h);
	/* It may have come here before its first packet on the public network did. */
	es_first_note(flow_hash, seg->seq, rebuilt.at_ns);
	return es_rebuild(skb, sk, seg, flow_hash, &rebuilt);
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
		es_track_pin(t, es_track_stay(t, seg, h));
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

/* Tell the inspector what came of its ES_HANDOVER_END or _GONE; the packet goes along. */
static __noinline int es_handover_answer_end(struct __sk_buff *skb, const struct es_handover *h,
					     __u64 flow_hash, __u32 action)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_record record = {
		.flow_hash = flow_hash,
		.kind = (__u8)es_leave_record(action),
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

/* Is this a first request whose sender the ring here does not name, and which another node may have? */
__noinline int es_handover_is_stale(const struct es_handover *h, __u64 flow_hash)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_node_ring *ring = state ? es_ring_get(state) : (void *)0;

	if (!cfg || !ring || !h || !cfg->leased || h->kind != ES_HANDOVER_REQUEST ||
	    (h->flags & ES_HANDOVER_F_MOVED) || h->epoch == es_htonl(cfg->epoch))
		return 0;
	return (es_ring_table_lookup(&ring->table, flow_hash) & ES_RING_NODE) != h->source;
}

/*
 * Note what is about to become of a request. Returns -1 if another CPU has settled it otherwise since it was
 * looked at; its copy, if it is one, comes again.
 */
__noinline int es_handover_settle(struct es_handover *h, __u64 flow_hash, __u32 seq, __u32 action)
{
	int settled;

	if (!h || h->kind != ES_HANDOVER_REQUEST)
		return 0;
	switch (action) {
	case ES_REBUILD:
		return ES_SETTLED_AS(es_settle(flow_hash, seq, ES_SETTLED_MAKE, h->attempt)) == ES_SETTLED_NOT
			       ? 0
			       : -1;
	case ES_NACK:
	case ES_END_OLD:
		settled = es_settle(flow_hash, seq, ES_SETTLED_REFUSE, h->attempt);
		if (ES_SETTLED_AS(settled) != ES_SETTLED_REFUSED)
			return -1;
		/* The sender goes on behind all that was refused here, also if it does not know of it. */
		h->attempt = (__u8)ES_SETTLED_ATTEMPT(settled);
		return 0;
	default:
		return 0;
	}
}

/* A function of its own, for its stack. */
static __noinline __u64 es_handover_flow(const struct es_config *cfg, const struct es_packet *pkt)
{
	struct es_flow flow;

	if (!cfg || !pkt)
		return 0;
	es_packet_flow(pkt, &flow);
	return es_flow_hash(&cfg->ring_key, &flow);
}

/* A function of its own, for its stack. */
static __noinline int es_handover_request(struct __sk_buff *skb, struct es_config *cfg, struct es_handover *h)
{
	struct es_handover_view view = {};
	struct es_packet pkt = {.off = ES_MESSAGE_PACKET_OFF};
	struct es_verdict verdict = {};
	__u32 old_rcv_nxt = 0, counter, len;
	int service, settled, failed, rc = TC_ACT_SHOT;
	struct bpf_sock *sk;
	__u64 hash;
	struct iphdr ip;

	if (!cfg || !h)
		return TC_ACT_SHOT;
	view.kind = h->kind;
	len = es_ntohs(h->packet_len);
	if (bpf_skb_load_bytes(skb, ES_MESSAGE_PACKET_OFF, &ip, sizeof(ip)) || ip.ihl != 5 ||
	    ip.version != 4 || ip.protocol != IPPROTO_TCP || es_ntohs(ip.tot_len) != len ||
	    (ip.frag_off & es_htons(0x3fff))) {
		es_count(ES_COUNT_handover_malformed);
		return TC_ACT_SHOT;
	}
	pkt.saddr = ip.saddr;
	pkt.daddr = ip.daddr;
	if (es_packet_tcp(skb, &pkt, len, &view.seg) || es_packet_options(skb, &pkt, &view.seg)) {
		es_count(ES_COUNT_handover_malformed);
		return TC_ACT_SHOT;
	}
	if (!es_handover_is_about(h->kind, &view.seg)) {
		es_count(ES_COUNT_handover_malformed);
		return TC_ACT_SHOT;
	}
	service = es_service_find(pkt.daddr, pkt.dport);
	if (service < 0) {
		es_count(ES_COUNT_handover_wrong_target);
		return TC_ACT_SHOT;
	}
	if (view.kind == ES_HANDOVER_STRAY)
		return es_message_nack(skb, cfg, h, (__u32)es_stray_look(skb, &pkt, &view.seg));
	hash = es_handover_flow(cfg, &pkt);
	view.silent = (__u8)es_handover_is_silent();
	view.stale = (__u8)es_handover_is_stale(h, hash);
	settled = es_settle(hash, view.seg.seq, ES_SETTLED_LOOK, 0);
	view.rebuilt = (__u8)es_settled_is_built(settled);
	view.vanished = ES_SETTLED_VANISHED(settled);
	view.refused =
		ES_SETTLED_AS(settled) == ES_SETTLED_REFUSED && h->attempt <= ES_SETTLED_ATTEMPT(settled);
	sk = es_socket_lookup(skb, &pkt);
	es_handover_view_socket(sk, &view, &old_rcv_nxt);
	if (es_service_is_refused((__u32)service))
		view.listening = 0;
	if (view.kind == ES_HANDOVER_END || view.kind == ES_HANDOVER_GONE)
		es_leave_begin(skb, sk, &view);
	es_decide_handover(&view, &verdict);
	if (es_handover_settle(h, hash, view.seg.seq, verdict.action)) {
		verdict.action = ES_DROP;
		verdict.counter = ES_COUNT_handover_old;
	}
	counter = verdict.counter;

	switch (verdict.action) {
	case ES_DELIVER:
		if (view.kind == ES_HANDOVER_STAY && es_stay(sk, h, &view.seg)) {
			counter = ES_COUNT_stay_lost;
			break;
		}
		if (!es_message_open(skb))
			rc = es_socket_deliver(skb, sk);
		break;
	case ES_LEAVE:
	case ES_KEEP:
	case ES_GONE:
		failed = es_message_open(skb) || es_handover_answer_end(skb, h, hash, verdict.action);
		if (failed)
			counter = ES_COUNT_drop_queue_full;
		if (verdict.action == ES_LEAVE && es_leave_settle(sk, failed))
			rc = es_answer_end_old(skb, &pkt, old_rcv_nxt);
		break;
	case ES_LEAVE_AGAIN:
		if (!es_message_open(skb))
			rc = es_answer_end_old(skb, &pkt, old_rcv_nxt);
		break;
	case ES_NACK:
		rc = es_message_nack(skb, cfg, h, es_handover_nack_reason(&view));
		break;
	case ES_END_OLD:
		/* A NACK asks the sender to try here again; the packet itself ends the old socket. */
		if (es_message_nack(skb, cfg, h, ES_NACK_RETRY) == TC_ACT_SHOT)
			break;
		bpf_clone_redirect(skb, skb->ifindex, h->target == cfg->self ? BPF_F_INGRESS : 0);
		if (!es_message_open(skb))
			rc = es_answer_end_old(skb, &pkt, old_rcv_nxt);
		break;
	case ES_REBUILD:
		if (sk && !es_message_open(skb) && !es_handover_rebuild(skb, sk, h, &view.seg, hash)) {
			rc = ES_TC_NEXT;
			break;
		}
		counter = ES_COUNT_rebuild_refused;
		es_settle(hash, view.seg.seq, ES_SETTLED_UNDO, 0);
		break;
	default:
		break;
	}
	if (sk)
		bpf_sk_release(sk);
	es_count(counter);
	return rc;
}

#endif
