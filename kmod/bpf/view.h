/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_VIEW_H
#define ES_BPF_VIEW_H

/*
 * Gathers from the tables the facts that es_decide() needs, about a packet, its flow, its socket and that
 * socket's track. It also makes the decision, in a stack frame of its own.
 */
#include "heard.h"
#include "packet.h"
#include "socket.h"
#include "tracks.h"
#include "kmod/core/plan.h"
#include "kmod/core/view.h"

static __always_inline struct es_decision_set *es_decision_set_of(const struct es_config *cfg,
								  __u64 flow_hash)
{
	__u32 set = es_decision_index(flow_hash, cfg->decision_sets);

	return cfg->decision_sets ? es_array_at(&es_decisions, set) : (void *)0;
}

/* Fill in the facts about a flow that es_decide() needs, and that the packet and its socket do not tell. */
__noinline int es_view_complete(const struct es_packet *pkt, struct es_view *v, __u64 now_ns)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_decision_set *decisions;
	struct es_node_ring *ring;
	struct es_kept_slot *kept;
	struct es_reset *reset;
	struct es_stray *stray;

	if (!cfg || !pkt || !v)
		return -1;
	es_view_begin(v, cfg, pkt);
	if (es_view_opens(v)) {
		es_syn_note(state, cfg, v, now_ns);
		es_flow_note(v->flow_hash, now_ns);
	}
	if (es_view_may_be_ended(v, state->reset_ns, now_ns)) {
		reset = es_reset_slot(v->flow_hash);
		if (reset)
			es_view_ended(v, reset, now_ns);
	}
	if (v->socket != ES_SOCKET_ESTABLISHED) {
		ring = es_ring_get(state);
		if (!ring)
			return -1;
		es_view_ring(v, ring, state->attached);
		if (cfg->leased && es_view_is_overheard(v))
			es_view_overhear(v, now_ns);
	}
	if (es_view_may_be_kept(v, state->asked_until_s, now_ns)) {
		kept = es_kept_slot(v->flow_hash);
		if (kept)
			es_view_kept_says(v, kept);
	}
	if (!es_view_concerns(v))
		return 0;
	es_view_time(v, cfg, state, state->worker[es_view_worker(v, cfg)].heartbeat_ns, now_ns);
	if (!es_view_needs_decision(v))
		return 0;
	decisions = es_decision_set_of(cfg, v->flow_hash);
	stray = es_stray_slot(v->flow_hash);
	if (decisions && stray)
		es_view_decision(v, decisions, stray);
	return 0;
}

/* es_view_layer4(); a global function, so that it is verified once. Returns 0 or -1. */
__noinline int es_view_layer4_here(const struct es_packet *pkt, struct es_view *v, __u32 service,
				   __u64 now_ns)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;

	if (!cfg || !pkt || !v)
		return -1;
	service &= ES_SERVICES_MAX - 1;
	es_view_layer4(v, state, &cfg->service[service], service, pkt, now_ns);
	return 0;
}

/* es_packet_is_martian(); a global function, so that it is verified once. */
__noinline int es_view_is_martian(const struct es_packet *pkt)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;

	return cfg && pkt && es_packet_is_martian(cfg, pkt);
}

static __always_inline int es_view_is_unproven(struct bpf_sock *sk)
{
	/* @sk is checked for the verifier, which may not see that an established socket is there. */
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : (void *)0;

	return tp && es_socket_is_unproven(tp);
}

/* A client's payload or FIN for a socket here, where each request is inspected: is it the inspector's? */
static __noinline int es_view_track(struct bpf_sock *sk, const struct es_packet *pkt, struct es_view *v,
				    __u64 now_ns)
{
	struct es_track_socket socket = {};
	struct es_track *t;
	__u8 pin = ES_PIN_none;

	if (!sk || !pkt || !v)
		return -1;
	t = es_track_of(sk);
	if (t && !es_track_is_leaving(t) &&
	    (t->pin ||
	     (es_seq_before(v->seg.seq + v->seg.len, t->next_request_seq) && !(v->seg.flags & ES_TCP_URG))))
		return 0; /* the inside of a body: nothing to work out */
	if (!v->seg.len && !(v->seg.flags & ES_TCP_URG) && (!t || t->state == ES_TRACK_SERVED))
		return 0; /* a FIN, but the inspector has no request of this connection */
	es_track_socket_read(sk, &socket);
	if (!socket.is_established)
		return 0;
	if (es_view_complete(pkt, v, now_ns))
		return -1;
	if (!t)
		t = es_track_create(sk, v->flow_hash);
	if (!t)
		return 0;
	v->track = (__u8)es_track_inbound(t, &v->seg, &socket, v->inspector_alive, &pin);
	if (v->track == ES_TRACK_PIN) {
		es_track_pin(t, pin);
		v->track = (__u8)es_track_pinned(t, &v->seg);
	}
	return 0;
}

/* struct es_planned - a verdict, and the plan of it */
struct es_planned {
	struct es_verdict verdict;
	struct es_public_plan plan;
};

/*
 * es_decide() and es_plan_public() in a stack frame of their own, and verified once: a global function, see
 * es_service_find().
 */
__noinline int es_view_decide(const struct es_view *v, struct es_planned *ret)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;

	if (!cfg || !v || !ret)
		return -1;
	ret->verdict = (struct es_verdict){};
	es_decide(cfg, v, &ret->verdict);
	es_plan_public(v, &ret->verdict, ES_WAY_AGAIN, &ret->plan);
	return 0;
}

static __noinline int es_cookie_is_taken(const struct es_view *v, __u32 cookie)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_decision_set *decisions;

	if (!cfg || !v)
		return 0;
	decisions = es_decision_set_of(cfg, v->flow_hash);
	return decisions && es_view_cookie_is_taken(v, decisions, cookie);
}

#endif
