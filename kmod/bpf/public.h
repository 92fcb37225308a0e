/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_PUBLIC_H
#define ES_BPF_PUBLIC_H

/*
 * The program es_public, which gets the packets of the public interface: reads those of IPv6, completes the
 * view of a segment, and carries out the verdict of es_decide().
 */
#include "answer.h"
#include "neighbour.h"
#include "other.h"
#include "packet6.h"
#include "queue.h"
#include "rebuild.h"
#include "view.h"
#include "kmod/core/icmp.h"

/*
 * Carry out a verdict that sends something to the client. A function of its own: stacks of BPF programs are
 * small.
 */
static __noinline int es_carry_out_answer(struct __sk_buff *skb, const struct es_packet *pkt,
					  const struct es_view *v, const struct es_verdict *verdict)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_answer answer;

	if (!cfg || !pkt || !v || !verdict)
		return TC_ACT_SHOT;
	es_answer_make(cfg, pkt, &v->seg, verdict, &answer);
	return es_answer_send(skb, cfg, &answer);
}

/*
 * A connection that this node does not serve at layer 4 may go to another node, but not before this node has
 * noted that it makes no socket for it.
 */
static __always_inline int es_carry_out_give(const struct es_view *v)
{
	struct es_settled_answer settled =
		es_settled_unpack(es_settle(v->flow_hash, v->seg.seq, ES_SETTLED_REFUSE, 0));

	return es_view_may_be_given(v, &settled);
}

/* Give the packet to the inspector. Returns the program's verdict. A function of its own, for its stack. */
static __noinline int es_carry_out_queue(struct __sk_buff *skb, struct bpf_sock *sk,
					 const struct es_packet *pkt, const struct es_view *v,
					 const struct es_verdict *verdict)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_record record = {};
	struct es_stray *stray;
	struct es_track *t;
	int service, rc;
	__u32 worker;

	if (!cfg || !pkt || !v || !verdict)
		return TC_ACT_SHOT;
	if (es_verdict_gives(v, verdict) && !es_carry_out_give(v)) {
		es_count(es_view_kept(v));
		return TC_ACT_SHOT;
	}
	if (verdict->action == ES_QUEUE_STRAY) {
		stray = es_stray_slot(v->flow_hash);
		if (stray)
			es_stray_asked(stray, v->now_ms);
	}
	service = es_service_of(pkt);
	es_view_record(v, verdict, pkt, (__u32)service,
		       es_verdict_needs_flow(verdict) && es_flow_was_heard(v->flow_hash), &record);
	t = v->track && sk ? es_track_of(sk) : (void *)0;
	if (t)
		es_view_record_track(t, &record);
	worker = es_view_worker(v, cfg);
	rc = es_queue_push(skb, &record, worker);
	es_count(rc < 0				? ES_COUNT_drop_queue_full
		 : es_verdict_gives(v, verdict) ? ES_COUNT_layer4_queued
						: verdict->counter);
	return rc > 0 ? es_queue_wake(skb, worker) : TC_ACT_SHOT;
}

/* Make the socket here, without an inspector; 0 or -1. */
static __noinline int es_carry_out_rebuild(struct __sk_buff *skb, struct bpf_sock *sk,
					   const struct es_packet *pkt, const struct es_view *v,
					   const struct es_verdict *verdict)
{
	struct es_rebuilt rebuilt = {.at_ns = bpf_ktime_get_coarse_ns()};
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;

	if (!sk || !pkt || !v || !verdict || !cfg)
		return -1;
	rebuilt.source = cfg->self;
	es_track_begin_uninspected(&rebuilt.track, &verdict->options);
	if (es_rebuild(skb, sk, pkt, &v->seg, &rebuilt.track.options))
		return -1;
	/*
	 * Noted because this node, too, may be lost, and be asked again when its sockets are gone. A request
	 * whose socket could not be made was not executed, so it is not noted.
	 */
	if (cfg->leased)
		es_first_note(v->flow_hash, v->seg.seq, rebuilt.at_ns);
	es_rebuilt_note(v->flow_hash, v->seg.seq, &rebuilt);
	return 0;
}

static __always_inline int es_carry_out(struct __sk_buff *skb, struct bpf_sock *sk,
					const struct es_packet *pkt, const struct es_view *v,
					const struct es_verdict *verdict, __u8 listening)
{
	__u32 counter = verdict->counter, settled;
	int rc = TC_ACT_SHOT;

	switch (verdict->action) {
	case ES_DELIVER:
		rc = es_socket_deliver(skb, sk);
		break;
	case ES_QUEUE_FIRST:
	case ES_QUEUE_LATER:
	case ES_QUEUE_STRAY:
		return es_carry_out_queue(skb, sk, pkt, v, verdict);
	case ES_SYNACK:
	case ES_END_OLD_AND_SYNACK:
	case ES_ANSWER_ACK:
	case ES_ANSWER_RST:
		rc = es_carry_out_answer(skb, pkt, v, verdict);
		if (verdict->action != ES_END_OLD_AND_SYNACK || rc == TC_ACT_SHOT)
			break;
		/* The answer leaves as a copy; the packet itself becomes the old socket's RST. */
		bpf_clone_redirect(skb, skb->ifindex, 0);
		rc = es_answer_end_old(skb, pkt, v->old_rcv_nxt);
		break;
	case ES_END_OLD:
		rc = es_answer_end_old(skb, pkt, v->old_rcv_nxt);
		break;
	case ES_REBUILD:
		/* The stack drops and counts a packet with a wrong checksum; no socket must come of it. */
		if (es_packet_is_damaged(skb, pkt, v->seg.len)) {
			bpf_skb_change_type(skb, PACKET_TYPE_HOST);
			rc = ES_TC_NEXT;
			break;
		}
		settled = ES_SETTLED_AS(es_settle(v->flow_hash, v->seg.seq, ES_SETTLED_MAKE, 0));
		/* The inspector may know which node serves the connection, or has it. */
		if (v->may_give && v->inspector_alive &&
		    (settled == ES_SETTLED_REFUSED || (settled == ES_SETTLED_NOT && !listening))) {
			es_settle(v->flow_hash, v->seg.seq, ES_SETTLED_UNDO, 0);
			return es_carry_out_queue(skb, sk, pkt, v, verdict);
		}
		/*
		 * The request was rebuilt before; or it was refused while there was an inspector, and another
		 * node may have it.
		 */
		if (settled != ES_SETTLED_NOT) {
			counter = ES_COUNT_handover_old;
			break;
		}
		if (!listening)
			counter = ES_COUNT_rebuild_no_listener;
		else if (es_listener_is_full(sk))
			/*
			 * Otherwise the kernel drops the packet, and our note of it the client's
			 * retransmissions.
			 */
			counter = ES_COUNT_handover_accept_full;
		else if (es_carry_out_rebuild(skb, sk, pkt, v, verdict))
			counter = ES_COUNT_rebuild_refused;
		if (counter != verdict->counter) {
			es_settle(v->flow_hash, v->seg.seq, ES_SETTLED_UNDO, 0);
			/* Tell the client at once, as a stack without that port would. */
			if (!listening)
				rc = es_carry_out_answer(skb, pkt, v, verdict);
			break;
		}
		bpf_skb_change_type(skb, PACKET_TYPE_HOST);
		rc = ES_TC_NEXT;
		break;
	default:
		break;
	}
	es_count(counter);
	return rc;
}

/* Is the ICMP error that begins at @off about a message? A global function, so that it is verified once. */
__noinline int es_public_is_error(struct __sk_buff *skb, __u32 off, int is_v6, int is_part)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	__u8 type, quoted[ES_ICMP_QUOTED];
	__be16 port[2];
	int at;

	if (!cfg || bpf_skb_load_bytes(skb, off, &type, sizeof(type)) || !es_icmp_is_error(type, is_v6))
		return 0;
	if (is_part) /* no router sends parts of one */
		return 1;
	if (bpf_skb_load_bytes(skb, off + ES_ICMP_HEADER, quoted, sizeof(quoted)))
		return 0;
	at = es_icmp_udp_at(quoted, is_v6);
	if (at <= 0)
		return at < 0;
	return !bpf_skb_load_bytes(skb, off + ES_ICMP_HEADER + (__u32)at, port, sizeof(port)) &&
	       (port[1] == cfg->handover_port || port[0] == cfg->handover_port);
}

/*
 * Does the packet belong to the nodes' messages: is it to or from the handover port, or an error about such a
 * packet? Nodes have a network of their own, where es_cluster looks at a message before a socket gets it;
 * nobody on the clients' side may send one. A fragment is looked at only if it has the ports; without that
 * fragment, the others never become a whole datagram.
 */
static __always_inline int es_public_is_message(struct __sk_buff *skb, const struct es_config *cfg,
						const struct iphdr *ip)
{
	__u32 off = ETH_HLEN + ip->ihl * 4;
	struct udphdr udp;

	if (!es_addr_is_this_v4(&cfg->self_address, ip->daddr) ||
	    cfg->public_ifindex == cfg->cluster_ifindex || ip->frag_off & es_htons(0x1fff))
		return 0;
	if (ip->protocol == IPPROTO_ICMP)
		return es_public_is_error(skb, off, 0, (ip->frag_off & es_htons(0x2000)) != 0);
	return ip->protocol == IPPROTO_UDP && !bpf_skb_load_bytes(skb, off, &udp, sizeof(udp)) &&
	       (udp.dest == cfg->handover_port || udp.source == cfg->handover_port);
}

/*
 * Likewise for IPv6. A packet that may be a message behind headers which nobody walks over counts as one, as
 * nobody sends it who means well. A global function, so that it is verified once.
 */
__noinline int es_public_is_message6(struct __sk_buff *skb, const struct es_packet *pkt)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	__be16 port[2];
	int upper;

	if (!cfg || !pkt || cfg->public_ifindex == cfg->cluster_ifindex ||
	    !es_addr_equal(&pkt->dest, &cfg->self_address))
		return 0;
	upper = es_packet_upper6(skb);
	if (upper < 0)
		return 1;
	if (ES_UPPER6_NEXT(upper) == ES_HEADER_ICMPV6)
		return es_public_is_error(skb, ES_UPPER6_OFF(upper), 1, 0);
	return ES_UPPER6_NEXT(upper) == ES_HEADER_UDP &&
	       !bpf_skb_load_bytes(skb, ES_UPPER6_OFF(upper), port, sizeof(port)) &&
	       (port[1] == cfg->handover_port || port[0] == cfg->handover_port);
}

/*
 * Completes the view of a packet for an established socket. Returns 0, or -1 if the packet is to be dropped.
 */
static __always_inline int es_public_view_socket(struct bpf_sock *sk, const struct es_packet *pkt,
						 struct es_view *view, __u64 now_ns)
{
	if (view->silent)
		view->unproven = (__u8)es_view_is_unproven(sk);
	return es_view_reads_track(view) ? es_view_track(sk, pkt, view, now_ns) : 0;
}

/*
 * Completes the view of a packet without an established socket. Returns 0, or -1 if the packet is to be
 * dropped.
 */
static __always_inline int es_public_view_flow(struct __sk_buff *skb, const struct es_state *state,
					       const struct es_config *cfg, const struct es_packet *pkt,
					       struct es_view *view, __u32 service, __u64 now_ns)
{
	if (es_view_complete(pkt, view, now_ns))
		return -1;
	if (es_is_anothers(view)) {
		es_count(ES_COUNT_drop_not_mine);
		return -1;
	}
	if (view->mine && es_view_is_martian(pkt)) {
		es_count(ES_COUNT_drop_martian);
		return -1;
	}
	if (view->mine && es_packet_options(skb, pkt, &view->seg)) {
		es_count(ES_COUNT_drop_malformed);
		return -1;
	}
	if (view->mine && es_view_layer4_here(pkt, view, service, now_ns))
		return -1;
	view->has_doubts = cfg->leased && es_first_has_doubts(state->doubt_ns, now_ns);
	if (es_view_needs_heard(view))
		es_view_heard(state, cfg, view, now_ns);
	return view->has_doubts && view->mine ? es_view_doubt(view, now_ns) : 0;
}

/* Decides about the packet. A cookie that another connection got is not sent: then the next slot's is. */
static __always_inline int es_public_decide(struct es_view *view, struct es_verdict *ret)
{
	if (es_view_decide(view, ret))
		return -1;
	if (!es_verdict_may_collide(ret) || !es_cookie_is_taken(view, ret->cookie))
		return 0;
	view->slot++; /* the next slot's cookie is valid already */
	return es_view_decide(view, ret);
}

/* A TCP segment to a service, whose headers are read. */
static __always_inline int es_public_segment(struct __sk_buff *skb, struct es_state *state,
					     const struct es_config *cfg, const struct es_packet *pkt,
					     struct es_view *view, __u32 service)
{
	__u64 now_ns = bpf_ktime_get_coarse_ns();
	struct bpf_sock *sk = es_socket_lookup(skb, pkt);
	struct es_verdict verdict = {};
	int rc = TC_ACT_SHOT;
	__u8 listening;

	view->socket = es_socket_classify(sk, &view->old_rcv_nxt, &listening);
	if (es_serving_refuses(state, service, pkt->is_v6, now_ns))
		listening = 0;
	view->silent = (__u8)es_lease_is_over(state->lease_ns, now_ns);
	if (view->socket == ES_SOCKET_ESTABLISHED
		    ? es_public_view_socket(sk, pkt, view, now_ns)
		    : es_public_view_flow(skb, state, cfg, pkt, view, service, now_ns))
		goto out;
	if (es_public_decide(view, &verdict))
		goto out;
	if (verdict.guess)
		es_guess_note(&state->guesses, es_ns_to_s(now_ns));
	rc = es_carry_out(skb, sk, pkt, view, &verdict, listening);
out:
	if (sk)
		bpf_sk_release(sk);
	return rc;
}

enum { ES_READ6_NEXT = -1, ES_READ6_DROP = -2, ES_READ6_OTHER = -3, ES_READ6_SOLICITED = -4 };

/*
 * Read a packet of IPv6. Returns the index of the service that it is for, or an ES_READ6 value; a packet that
 * is to be dropped is counted. A global function, so that it is verified once, and the verifier need not
 * follow IPv4's packets again after it.
 */
__noinline int es_public_read6(struct __sk_buff *skb, struct es_packet *pkt, struct es_segment *seg)
{
	struct ipv6hdr ip;
	__u32 len;
	int counter, service;

	if (!pkt || !seg)
		return ES_READ6_NEXT;
	if (es_packet_plain6(skb, pkt, seg, 0)) {
		service = es_service_find6(&pkt->dest, pkt->dport);
		if (service >= 0)
			return service & (ES_SERVICES_MAX - 1);
		return es_is_service_address6(&pkt->dest) ? ES_READ6_OTHER : ES_READ6_NEXT;
	}
	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return ES_READ6_NEXT;
	__builtin_memcpy(&pkt->source, &ip.saddr, sizeof(pkt->source));
	__builtin_memcpy(&pkt->dest, &ip.daddr, sizeof(pkt->dest));
	pkt->is_v6 = 1;
	if (ip.nexthdr == ES_HEADER_ICMPV6 && ip.hop_limit == ES_NEIGHBOUR_HOPS)
		return ES_READ6_SOLICITED;
	if (!es_is_service_address6(&pkt->dest)) {
		if (!es_public_is_message6(skb, pkt))
			return ES_READ6_NEXT;
		es_count(ES_COUNT_handover_public);
		return ES_READ6_DROP;
	}
	counter = es_packet_headers6(skb, pkt);
	if (counter < 0)
		return ES_READ6_OTHER;
	len = es_headers_packet_len(ip.payload_len, skb->gso_size != 0, skb->len - ETH_HLEN);
	if (counter == ES_COUNTER_COUNT && (len > skb->len - ETH_HLEN || es_packet_tcp6(skb, pkt, len, seg)))
		counter = ES_COUNT_drop_malformed;
	if (counter != ES_COUNTER_COUNT) {
		es_count((__u32)counter);
		return ES_READ6_DROP;
	}
	service = es_service_find6(&pkt->dest, pkt->dport);
	return service < 0 ? ES_READ6_OTHER : service & (ES_SERVICES_MAX - 1);
}

/* Returns the program's verdict for a packet of IPv6 that is for no service's port. */
static __noinline int es_public_other6(struct __sk_buff *skb, const struct es_packet *pkt, int read)
{
	__u8 next = 0, hops = 0;
	int rc;

	if (!pkt || read == ES_READ6_NEXT)
		return ES_TC_NEXT;
	if (read == ES_READ6_DROP || bpf_skb_load_bytes(skb, ETH_HLEN + 6, &next, 1) ||
	    bpf_skb_load_bytes(skb, ETH_HLEN + 7, &hops, 1))
		return TC_ACT_SHOT;
	if (read == ES_READ6_SOLICITED) {
		rc = es_neighbour_solicited(skb, pkt, hops);
		if (rc != -1)
			return rc;
		if (!es_is_service_address6(&pkt->dest)) {
			if (!es_public_is_message6(skb, pkt))
				return ES_TC_NEXT;
			es_count(ES_COUNT_handover_public);
			return TC_ACT_SHOT;
		}
	}
	return es_other_ip6(skb, pkt, next);
}

#endif
