/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_STRAYS_H
#define ES_BPF_STRAYS_H

/*
 * Answers other nodes that ask whose a segment is which no node takes (kmod/core/strays.h).
 */
#include "message.h"
#include "settled.h"
#include "socket.h"
#include "tracks.h"
#include "kmod/core/target.h"

__noinline int es_stray_may_be_on_its_way(__u64 flow_hash, const struct es_segment *seg, __u64 now_ns)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_node_ring *ring = state ? es_ring_get(state) : (void *)0;
	struct es_decision_set *decisions;
	__u32 set;

	if (!cfg || !ring || !seg || !cfg->decision_sets)
		return 0;
	set = es_decision_index(flow_hash, cfg->decision_sets);
	decisions = es_array_at(&es_decisions, set);
	return decisions &&
	       es_stray_is_on_its_way(decisions, flow_hash, es_node_ring_answers(ring, flow_hash), seg->seq,
				      seg->ack, es_ns_to_ms(now_ns));
}

/*
 * Without a lease: may another node go on with the connection? Then it does, and this one never does again,
 * whatever becomes of the lease. Returns 1 if so.
 */
static __noinline int es_stray_cede(struct bpf_sock *sk)
{
	struct es_track_socket socket = {};
	struct es_track *t;

	if (!sk)
		return 0;
	t = es_track_of(sk);
	if (!t || !es_socket_is_ceded(sk))
		return 0;
	es_track_socket_read(sk, &socket);
	return es_track_cede(t, &socket);
}

/* es_stray_look() - does this node have the segment's connection? Counts. Returns an enum es_nack_reason. */
__noinline int es_stray_look(struct __sk_buff *skb, const struct es_packet *pkt, const struct es_segment *seg)
{
	struct es_handover_view view = {};
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_settled_answer settled;
	struct es_flow flow;
	struct bpf_sock *sk;
	__u32 old_rcv_nxt, counter;
	__u64 hash;
	int reason;

	if (!cfg || !pkt || !seg)
		return ES_NACK_HERE;
	es_packet_flow(pkt, &flow);
	hash = es_flow_hash(&cfg->ring_key, cfg->ring_seed, &flow);
	view.seg.seq = seg->seq;
	view.seg.flags = seg->flags;
	settled = es_settled_unpack(es_settle(hash, seg->seq, ES_SETTLED_LOOK, 0));
	sk = es_socket_lookup(skb, pkt);
	view.socket = es_socket_classify(sk, &old_rcv_nxt, &view.listening);
	if (sk) {
		if (view.socket == ES_SOCKET_ESTABLISHED &&
		    es_lease_is_over(state->lease_ns, bpf_ktime_get_ns()))
			view.ceded = (__u8)es_stray_cede(sk);
		bpf_sk_release(sk);
	}
	view.on_its_way = (__u8)es_stray_may_be_on_its_way(hash, seg, bpf_ktime_get_coarse_ns());
	reason = (int)es_decide_stray(&view, &settled, &counter);
	es_count(counter);
	return reason;
}

/* @at: where the questions begin */
struct es_strays_loop {
	struct __sk_buff *skb;
	__u64 here;
	__u32 count;
	__u16 at;
	__u16 failed;
	struct es_packet pkt;
};

/* Load one question into @ret, which is all zeros before. Returns 0 or -1. */
static __always_inline int es_stray_question_load(const struct es_strays_loop *loop, __u32 i,
						  union es_stray_question_any *ret)
{
	if (loop->pkt.is_v6)
		return (int)bpf_skb_load_bytes(loop->skb, loop->at + i * sizeof(ret->v6), &ret->v6,
					       sizeof(ret->v6));
	return (int)bpf_skb_load_bytes(loop->skb, loop->at + i * sizeof(ret->v4), &ret->v4, sizeof(ret->v4));
}

static long es_strays_step(__u32 i, void *data)
{
	struct es_strays_loop *loop = data;
	union es_stray_question_any question = {};
	struct es_segment seg = {};

	if (i >= loop->count)
		return 1;
	if (es_stray_question_load(loop, i, &question) ||
	    es_stray_question_read(&question, &loop->pkt, &seg)) {
		loop->failed = 1;
		return 1;
	}
	if (es_stray_look(loop->skb, &loop->pkt, &seg) != ES_NACK_NOT_HERE)
		loop->here |= 1ULL << (i & (ES_STRAYS_MANY - 1));
	return 0;
}

/*
 * Read the beginning of the message: the service, and how many segments it asks about. Returns the counter to
 * drop it by, ES_COUNTER_COUNT if it may be answered.
 */
static __noinline int es_strays_load(const struct es_handover *h, struct es_strays_loop *loop)
{
	union es_stray_service_any service = {};
	__u32 len, at;
	int is_v6;

	if (!h || !loop)
		return ES_COUNT_handover_malformed;
	len = es_ntohs(h->packet_len);
	at = es_message_packet_off(loop->skb);
	is_v6 = h->kind == ES_HANDOVER_STRAYS6;
	if (len < es_stray_service_len(is_v6) ||
	    (is_v6 ? bpf_skb_load_bytes(loop->skb, at, &service.v6, sizeof(service.v6))
		   : bpf_skb_load_bytes(loop->skb, at, &service.v4, sizeof(service.v4))))
		return ES_COUNT_handover_malformed;
	loop->count = es_stray_service_read(&service, is_v6, &loop->pkt);
	if (len != es_strays_len(is_v6, loop->count))
		return ES_COUNT_handover_malformed;
	loop->at = (__u16)(at + es_stray_service_len(is_v6));
	return es_service_of(&loop->pkt) < 0 ? ES_COUNT_handover_wrong_target : ES_COUNTER_COUNT;
}

/*
 * A message that asks about many strays; a function of its own, for its stack. Returns the program's verdict.
 */
static __noinline int es_strays_answer(struct __sk_buff *skb, struct es_config *cfg, struct es_handover *h)
{
	struct es_strays_loop loop = {.skb = skb};
	int counter;

	if (!cfg || !h)
		return TC_ACT_SHOT;
	counter = es_strays_load(h, &loop);
	if (counter != ES_COUNTER_COUNT) {
		es_count((__u32)counter);
		return TC_ACT_SHOT;
	}
	bpf_loop(ES_STRAYS_MANY, es_strays_step, &loop, 0);
	if (loop.failed) {
		es_count(ES_COUNT_handover_malformed);
		return TC_ACT_SHOT;
	}
	es_message_strays_put(h, loop.here);
	if (es_message_cut(skb)) {
		es_count(ES_COUNT_answer_failed);
		return TC_ACT_SHOT;
	}
	return es_message_nack(skb, cfg, h, ES_NACK_STRAYS);
}

#endif
