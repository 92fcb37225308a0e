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

/* struct es_inbound - a packet under decision, with its plan; @sk is held; @rc: the program's verdict */
struct es_inbound {
	struct __sk_buff *skb;
	struct bpf_sock *sk;
	struct es_packet pkt;
	struct es_view view;
	struct es_planned planned;
	__u16 service;
	__u8 listening;
	int rc;
};

/*
 * es_plan_making(). A global function, so that it is verified once, and the code after it for no plan in
 * particular. @settled: es_settle()'s result
 */
__noinline int es_public_plan_making(const struct es_view *v, int settled, __u32 listening, __u32 is_full,
				     struct es_public_plan *plan)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_plan_server server = {};

	if (!cfg || !v || !plan)
		return -1;
	server.settled = es_settled_unpack(settled);
	server.listening = listening != 0;
	server.is_full = is_full != 0;
	es_plan_making(v, &server, ES_WAY_AGAIN, cfg->leased, plan);
	return 0;
}

/*
 * The steps of a plan (kmod/core/plan.h). Each returns 0 or -1; those that are not inlined need a stack of
 * their own.
 */
static __always_inline int es_public_making(struct es_inbound *in)
{
	int settled, is_full = 0;

	if (es_packet_is_damaged(in->skb, &in->pkt, in->view.seg.len)) {
		in->planned.plan.steps = ES_PUBLIC_STEP(pass);
		return 0;
	}
	settled = es_settle(in->view.flow_hash, in->view.seg.seq, ES_SETTLED_MAKE, 0);
	if (in->listening && in->sk)
		is_full = es_listener_is_full(in->sk);
	return es_public_plan_making(&in->view, settled, in->listening, (__u32)is_full, &in->planned.plan);
}

static __always_inline int es_public_undo(struct es_inbound *in)
{
	es_settle(in->view.flow_hash, in->view.seg.seq, es_plan_undo(ES_WAY_AGAIN), 0);
	return 0;
}

static __always_inline int es_public_promise(struct es_inbound *in)
{
	struct es_settled_answer settled =
		es_settled_unpack(es_settle(in->view.flow_hash, in->view.seg.seq, ES_SETTLED_REFUSE, 0));

	return es_view_may_be_given(&in->view, &settled) ? 0 : -1;
}

static __always_inline int es_public_asked(struct es_inbound *in)
{
	struct es_stray *stray = es_stray_slot(in->view.flow_hash);

	if (stray)
		es_stray_asked(stray, in->view.now_ms);
	return 0;
}

static __noinline int es_public_queue(struct es_inbound *in)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	const struct es_view *v = &in->view;
	struct es_record record = {};
	struct es_track *t;
	__u32 worker;
	int rc;

	if (!cfg)
		return -1;
	es_view_record(v, &in->planned.verdict, &in->pkt, in->service,
		       es_verdict_needs_flow(&in->planned.verdict) && es_flow_was_heard(v->flow_hash),
		       &record);
	t = v->track && in->sk ? es_track_of(in->sk) : (void *)0;
	if (t)
		es_view_record_track(t, &record);
	worker = es_view_worker(v, cfg);
	rc = es_queue_push(in->skb, &record, worker);
	if (rc > 0)
		in->rc = es_queue_wake(in->skb, worker);
	return rc < 0 ? -1 : 0;
}

static __noinline int es_public_answer(struct es_inbound *in)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_answer answer;

	if (!cfg)
		return -1;
	es_answer_make(cfg, &in->pkt, &in->view.seg, &in->planned.verdict, &answer);
	if (es_answer_address(in->skb, cfg) || es_answer_put_any(in->skb, &answer))
		return -1;
	/* Where the packet is still needed, the answer leaves as a copy. */
	if (in->planned.plan.steps & ES_PUBLIC_STEP(end))
		bpf_clone_redirect(in->skb, in->skb->ifindex, 0);
	else
		in->rc = (int)bpf_redirect(in->skb->ifindex, 0);
	return 0;
}

static __always_inline int es_public_end(struct es_inbound *in)
{
	if (es_answer_end_old(in->skb, &in->pkt, in->view.old_rcv_nxt))
		return -1;
	in->rc = TC_ACT_OK;
	return 0;
}

static __noinline int es_public_make(struct es_inbound *in)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_rebuilt rebuilt = {.at_ns = bpf_ktime_get_coarse_ns()};

	if (!cfg || !in->sk)
		return -1;
	rebuilt.source = cfg->self;
	es_track_begin_uninspected(&rebuilt.track, &in->planned.verdict.options);
	if (es_rebuild(in->skb, in->sk, &in->pkt, &in->view.seg, &rebuilt.track.options))
		return -1;
	es_rebuilt_note(in->view.flow_hash, in->view.seg.seq, &rebuilt);
	return 0;
}

static __always_inline int es_public_first(struct es_inbound *in)
{
	es_first_note(in->view.flow_hash, in->view.seg.seq, bpf_ktime_get_coarse_ns());
	return 0;
}

static __always_inline int es_public_pass(struct es_inbound *in)
{
	bpf_skb_change_type(in->skb, PACKET_TYPE_HOST);
	in->rc = ES_TC_NEXT;
	return 0;
}

static __always_inline int es_public_deliver(struct es_inbound *in)
{
	in->rc = es_socket_deliver(in->skb, in->sk);
	return 0;
}

#define ES_PUBLIC_TAKE_ALL(name)                                                                             \
	if ((in->planned.plan.steps & ES_PUBLIC_STEP(name)) && es_public_##name(in))                         \
		return ES_PUBLIC_STEP(name);
#define ES_PUBLIC_TAKE_PACKET ES_PUBLIC_TAKE_ALL
#define ES_PUBLIC_TAKE_HANDS(name)
#define ES_PUBLIC_TAKE(name, ways) ES_PUBLIC_TAKE_##ways(name)

/* Take the steps of the plan. Returns the one that has failed, or 0. */
static __always_inline __u32 es_public_carry_out(struct es_inbound *in)
{
	/* Nearly all packets of connections that are here. */
	if (in->planned.plan.steps == ES_PUBLIC_STEP(deliver)) {
		es_public_deliver(in);
		return 0;
	}
	ES_PUBLIC_STEPS(ES_PUBLIC_TAKE)
	return 0;
}

/* es_public_failed(); a global function, so that it is verified once. */
__noinline int es_public_failure(const struct es_view *v, __u32 step, struct es_public_plan *plan)
{
	if (!v || !plan)
		return -1;
	es_public_failed(v, step, plan);
	return 0;
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
static __always_inline int es_public_is_message(struct __sk_buff *skb, const struct iphdr *ip)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	__u32 off = ETH_HLEN + ip->ihl * 4;
	struct udphdr udp;

	if (!cfg || !es_addr_is_this_v4(&cfg->self_address, ip->daddr) ||
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
		view->unproven = (__u8)(es_view_is_unproven(sk) || es_socket_is_ceded(sk));
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
static __always_inline int es_public_decide(struct es_inbound *in)
{
	if (es_view_decide(&in->view, &in->planned))
		return -1;
	if (!es_verdict_may_collide(&in->planned.verdict) ||
	    !es_cookie_is_taken(&in->view, in->planned.verdict.cookie))
		return 0;
	in->view.slot++; /* the next slot's cookie is valid already */
	return es_view_decide(&in->view, &in->planned);
}

/* A TCP segment to a service, whose headers are read. */
static __always_inline int es_public_segment(struct es_inbound *in, struct es_state *state,
					     const struct es_config *cfg)
{
	struct es_view *view = &in->view;
	__u64 now_ns = bpf_ktime_get_coarse_ns();
	struct bpf_sock *sk = es_socket_find(in->skb, &in->pkt);
	__u32 failed;
	__u8 listening;

	view->inspect = es_view_inspect(&in->pkt, cfg->service[in->service].inspect);
	view->unsafe = cfg->service[in->service].unsafe;
	view->survives = cfg->service[in->service].survives;
	view->socket = es_socket_classify(sk, &view->old_rcv_nxt, &listening);
	if (es_serving_refuses(state, in->service, in->pkt.is_v6, now_ns))
		listening = 0;
	view->silent = (__u8)es_lease_is_over(state->lease_ns, now_ns);
	if (view->socket == ES_SOCKET_ESTABLISHED
		    ? es_public_view_socket(sk, &in->pkt, view, now_ns)
		    : es_public_view_flow(in->skb, state, cfg, &in->pkt, view, in->service, now_ns))
		goto out;
	if (es_public_decide(in))
		goto out;
	if (in->planned.verdict.guess)
		es_guess_note(&state->guesses, es_ns_to_s(now_ns));
	in->sk = sk;
	in->listening = listening;
	failed = es_public_carry_out(in);
	if (failed) {
		es_public_failure(view, failed, &in->planned.plan);
		if (in->planned.plan.steps & ES_PUBLIC_STEP(undo))
			es_public_undo(in);
	}
	es_count(in->planned.plan.counter);
out:
	if (sk)
		bpf_sk_release(sk);
	return in->rc;
}

enum {
	ES_READ_OTHER = ES_SERVICE_NONE,
	ES_READ_NEXT = ES_SERVICE_NOT_ADDRESS,
	ES_READ_DROP = -3,
	ES_READ_SOLICITED = -4
};

/*
 * Read a packet of IPv4 that es_packet_plain4() has not read. Returns the index of the service that it is
 * for, or an ES_READ value; a packet that is to be dropped is counted. A function of its own, for its stack.
 */
static __noinline int es_public_read4(struct __sk_buff *skb, struct es_packet *pkt, struct es_segment *seg)
{
	struct iphdr ip;
	int service;
	__u32 len;

	if (!pkt || !seg || bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return ES_READ_NEXT;
	pkt->saddr = ip.saddr;
	pkt->daddr = ip.daddr;
	if (!es_is_service_address(ip.daddr)) {
		if (!es_public_is_message(skb, &ip))
			return ES_READ_NEXT;
		es_count(ES_COUNT_handover_public);
		return ES_READ_DROP;
	}
	if (ip.protocol != IPPROTO_TCP)
		return ES_READ_OTHER;
	if (ip.frag_off & es_htons(0x3fff)) {
		es_count(ES_COUNT_drop_fragment);
		return ES_READ_DROP;
	}
	/* A merged packet may be longer than tot_len can say (BIG TCP is IPv6 only; 0 means such a one). */
	len = es_ntohs(ip.tot_len);
	if (ip.ihl != 5 || len > skb->len - ETH_HLEN || es_packet_tcp(skb, ETH_HLEN, pkt, len, seg)) {
		es_count(ES_COUNT_drop_malformed);
		return ES_READ_DROP;
	}
	service = es_service_find(pkt->daddr, pkt->dport);
	return service < 0 ? ES_READ_OTHER : service & (ES_SERVICES_MAX - 1);
}

/* Returns the program's verdict for a packet of IPv4 for which no service was found. */
static __noinline int es_public_other4(struct __sk_buff *skb, int read)
{
	struct iphdr ip;

	if (read == ES_READ_NEXT)
		return ES_TC_NEXT;
	if (read == ES_READ_DROP || bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return TC_ACT_SHOT;
	return es_is_service_address(ip.daddr) ? es_other_ip(skb, &ip) : ES_TC_NEXT;
}

/*
 * es_public_read4() for a packet of IPv6; it may also return ES_READ_SOLICITED. A global function, so that it
 * is verified once.
 */
__noinline int es_public_read6(struct __sk_buff *skb, struct es_packet *pkt, struct es_segment *seg)
{
	struct ipv6hdr ip;
	__u32 len;
	int counter, service;

	if (!pkt || !seg)
		return ES_READ_NEXT;
	if (es_packet_plain6(skb, pkt, seg, 0)) {
		service = es_service_find6(&pkt->dest, pkt->dport);
		if (service >= 0)
			return service & (ES_SERVICES_MAX - 1);
		return es_is_service_address6(&pkt->dest) ? ES_READ_OTHER : ES_READ_NEXT;
	}
	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return ES_READ_NEXT;
	__builtin_memcpy(&pkt->source, &ip.saddr, sizeof(pkt->source));
	__builtin_memcpy(&pkt->dest, &ip.daddr, sizeof(pkt->dest));
	pkt->is_v6 = 1;
	if (ip.nexthdr == ES_HEADER_ICMPV6 && ip.hop_limit == ES_NEIGHBOUR_HOPS)
		return ES_READ_SOLICITED;
	if (!es_is_service_address6(&pkt->dest)) {
		if (!es_public_is_message6(skb, pkt))
			return ES_READ_NEXT;
		es_count(ES_COUNT_handover_public);
		return ES_READ_DROP;
	}
	counter = es_packet_headers6(skb, pkt);
	if (counter < 0)
		return ES_READ_OTHER;
	len = es_headers_packet_len(ip.payload_len, skb->gso_size != 0, skb->len - ETH_HLEN);
	if (counter == ES_COUNTER_COUNT && (len > skb->len - ETH_HLEN || es_packet_tcp6(skb, pkt, len, seg)))
		counter = ES_COUNT_drop_malformed;
	if (counter != ES_COUNTER_COUNT) {
		es_count((__u32)counter);
		return ES_READ_DROP;
	}
	service = es_service_find6(&pkt->dest, pkt->dport);
	return service < 0 ? ES_READ_OTHER : service & (ES_SERVICES_MAX - 1);
}

/* Returns the program's verdict for a packet of IPv6 that is for no service's port. */
static __noinline int es_public_other6(struct __sk_buff *skb, const struct es_packet *pkt, int read)
{
	__u8 next = 0, hops = 0;
	int rc;

	if (!pkt || read == ES_READ_NEXT)
		return ES_TC_NEXT;
	if (read == ES_READ_DROP || bpf_skb_load_bytes(skb, ETH_HLEN + 6, &next, 1) ||
	    bpf_skb_load_bytes(skb, ETH_HLEN + 7, &hops, 1))
		return TC_ACT_SHOT;
	if (read == ES_READ_SOLICITED) {
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
