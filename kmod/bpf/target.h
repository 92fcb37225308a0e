/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_TARGET_H
#define ES_BPF_TARGET_H

/*
 * What a node does with an authentic, fresh handover message: rebuild, deliver, refuse, and for its own
 * later requests stay and end.
 */
#include "answer.h"
#include "message.h"
#include "other.h"
#include "queue.h"
#include "rebuild.h"
#include "socket.h"
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
	struct es_track *t = &rebuilt.track;

	if (!sk || !h || !seg)
		return -1;
	rebuilt.at_ns = bpf_ktime_get_coarse_ns();
	rebuilt.source = h->source;
	es_handover_options_get(h, &t->options);
	t->requests = es_ntohl(h->requests);
	es_track_serve(t, seg->ack, h);
	t->moves = es_ntohs(h->moves);
	/* A service that inspects first requests only does not say where they end, and may be changed later.
	 */
	t->pin = !h->pin && !h->next_request_seq ? ES_PIN_unknown : h->pin;
	t->service = h->service;
	return es_rebuild(skb, sk, seg, flow_hash, &rebuilt);
}

/* The inspector left a later request on this connection where it is. */
static __always_inline void es_stay(struct bpf_sock *sk, const struct es_handover *h,
				    const struct es_segment *seg)
{
	struct es_track *t = sk ? es_track_of(sk) : (void *)0;

	if (!t || t->pin || t->state != ES_TRACK_QUEUED || t->next_request_seq != seg->seq)
		return; /* come again: the socket has it already */
	es_track_serve(t, seg->ack, h);
	es_track_pin(t, h->pin);
}

static __noinline int es_may_leave(struct bpf_sock *sk, const struct es_segment *seg)
{
	struct es_track_socket socket = {};
	struct es_track *t;

	if (!sk || !seg)
		return 0;
	t = es_track_of(sk);
	if (!t)
		return 0;
	es_track_socket_read(sk, &socket);
	return es_track_may_leave(t, seg, &socket);
}

/* Tell the inspector what came of its ES_HANDOVER_END; the packet goes along. */
static __noinline int es_handover_answer_end(struct __sk_buff *skb, const struct es_handover *h,
					     __u64 flow_hash, __u32 kind)
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

	return state && state->lease_ns && (!state->attached || es_is_silent(state));
}

/* Is this a first request whose sender the ring here does not name, and which another node may have? */
static __noinline int es_handover_is_stale(const struct es_handover *h, __u64 flow_hash)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_node_ring *ring = state ? es_ring_get(state) : (void *)0;

	if (!cfg || !ring || !h || !cfg->leased || h->kind != ES_HANDOVER_REQUEST ||
	    (h->flags & ES_HANDOVER_F_MOVED) || h->epoch == es_htonl(cfg->epoch))
		return 0;
	return (es_ring_table_lookup(&ring->table, flow_hash) & ES_RING_NODE) != h->source;
}

static __noinline int es_stray_may_be_on_its_way(__u64 flow_hash, const struct es_segment *seg, __u64 now_ns)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_decision_set *decisions;
	__u32 set;

	if (!cfg || !seg || !cfg->decision_sets)
		return 0;
	set = es_decision_index(flow_hash, cfg->decision_sets);
	decisions = bpf_map_lookup_elem(&es_decisions, &set);
	return decisions &&
	       es_stray_is_on_its_way(es_decision_lookup(decisions, es_decision_key(flow_hash, seg->ack - 1)),
				      seg->seq, (__u32)(now_ns / 1000000));
}

/* A function of its own, for its stack. */
static __noinline int es_handover_request(struct __sk_buff *skb, struct es_config *cfg, struct es_handover *h)
{
	struct es_handover_view view = {};
	struct es_packet pkt = {.off = ES_MESSAGE_PACKET_OFF};
	struct es_verdict verdict = {};
	__u32 old_rcv_nxt = 0, counter, len;
	int service, rc = TC_ACT_SHOT;
	struct es_flow flow;
	struct bpf_sock *sk;
	__u64 hash, now_ns;
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
	/* Only a segment of an open connection makes, or meets, a socket. */
	if ((view.seg.flags & (ES_TCP_SYN | ES_TCP_RST | ES_TCP_ACK)) != ES_TCP_ACK ||
	    (!view.seg.len && !(es_handover_may_be_fin(h->kind) && (view.seg.flags & ES_TCP_FIN)))) {
		es_count(ES_COUNT_handover_malformed);
		return TC_ACT_SHOT;
	}
	service = es_service_find(pkt.daddr, pkt.dport);
	if (service < 0) {
		es_count(ES_COUNT_handover_wrong_target);
		return TC_ACT_SHOT;
	}
	now_ns = bpf_ktime_get_coarse_ns();
	es_packet_flow(&pkt, &flow);
	hash = es_flow_hash(&cfg->ring_key, &flow);
	view.silent = (__u8)es_handover_is_silent();
	view.stale = (__u8)es_handover_is_stale(h, hash);
	view.rebuilt = (__u8)es_rebuilt_lately(hash, view.seg.seq, now_ns);
	if (view.kind == ES_HANDOVER_STRAY)
		view.on_its_way = (__u8)es_stray_may_be_on_its_way(hash, &view.seg, now_ns);
	sk = es_socket_lookup(skb, &pkt);
	es_handover_view_socket(sk, &view, &old_rcv_nxt);
	if (view.kind == ES_HANDOVER_END)
		/* The inspector is told that it has ended before it has: that must not fail any more, and
		 * does not with a packet that is writable as a whole. */
		view.may_leave = (__u8)(es_may_leave(sk, &view.seg) && !bpf_skb_pull_data(skb, skb->len));
	es_decide_handover(&view, &verdict);
	counter = verdict.counter;

	switch (verdict.action) {
	case ES_DELIVER:
		if (view.kind == ES_HANDOVER_STAY)
			es_stay(sk, h, &view.seg);
		if (!es_message_open(skb))
			rc = es_socket_deliver(skb, sk);
		break;
	case ES_LEAVE:
	case ES_KEEP:
		if (es_message_open(skb))
			break;
		if (es_handover_answer_end(skb, h, hash,
					   verdict.action == ES_LEAVE ? ES_RECORD_ENDED : ES_RECORD_KEPT))
			counter = ES_COUNT_drop_queue_full;
		else if (verdict.action == ES_LEAVE)
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
		if (sk && !es_message_open(skb) && !es_handover_rebuild(skb, sk, h, &view.seg, hash))
			rc = TC_ACT_OK;
		else
			counter = ES_COUNT_rebuild_refused;
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
