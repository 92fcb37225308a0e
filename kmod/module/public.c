// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packets that arrive on the public interface: makes the view of a packet, has es_decide() decide, and
 * carries the verdict out. The counterpart of es_public in kmod/bpf/public.h, at the same place: ingress of
 * the device, before any protocol, where frames for a MAC that is not the interface's have not been dropped
 * yet.
 */
#include <linux/udp.h>

#include "answer.h"
#include "kept.h"
#include "neighbour.h"
#include "other.h"
#include "public.h"
#include "rebuild.h"
#include "settled.h"
#include "view.h"
#include "kmod/core/icmp.h"
#include "kmod/core/plan.h"
#include "kmod/core/serving.h"

/* struct es_inbound - a packet under decision, with its plan; @rc: the hook's verdict */
struct es_inbound {
	struct es_node *node;
	const struct es_version *version;
	struct sk_buff *skb;
	struct es_packet pkt;
	struct es_view view;
	struct es_verdict verdict;
	struct es_record record;
	struct es_socket_found found;
	struct es_public_plan plan;
	u64 now_ns;
	int service;
	unsigned int rc;
};

static struct es_settled_answer es_public_settle(const struct es_inbound *in, enum es_settled_step step)
{
	return es_settle(in->node, &in->version->config, in->view.flow_hash, in->view.seg.seq, step, 0);
}

/*
 * The steps of a plan (kmod/core/plan.h). Each returns 0, or anything else if it has failed. A packet with a
 * wrong checksum is found where its socket would be made: es_rebuild_hook().
 */
static int es_public_making(struct es_inbound *in)
{
	struct es_plan_server server = {.settled = es_public_settle(in, ES_SETTLED_MAKE)};
	const struct sock *listener;

	if (es_plan_makes(ES_WAY_PACKET, &server.settled)) {
		es_socket_lookup_listener(in->node->net, in->skb, &in->pkt, &in->found);
		listener = in->found.listener;
		server.listening =
			listener && es_listener_is_usable(listener) &&
			!es_serving_refuses(in->node->state, (u32)in->service, in->pkt.is_v6, in->now_ns);
		server.is_full = server.listening && sk_acceptq_is_full(listener);
	}
	es_plan_making(&in->view, &server, ES_WAY_PACKET, in->version->config.leased, &in->plan);
	return 0;
}

static int es_public_undo(const struct es_inbound *in)
{
	es_public_settle(in, es_plan_undo(ES_WAY_PACKET));
	return 0;
}

static int es_public_promise(const struct es_inbound *in)
{
	struct es_settled_answer settled = es_public_settle(in, ES_SETTLED_REFUSE);

	return es_view_may_be_given(&in->view, &settled) ? 0 : -1;
}

static int es_public_asked(const struct es_inbound *in)
{
	es_stray_asked(es_stray_slot(in->node, in->view.flow_hash), in->view.now_ms);
	return 0;
}

static int es_public_queue(struct es_inbound *in)
{
	int was_heard = es_verdict_needs_flow(&in->verdict) &&
			es_flow_was_heard(in->node, in->view.flow_hash, in->now_ns);

	es_view_record(&in->view, &in->verdict, &in->pkt, (u32)in->service, was_heard, &in->record);
	return es_queue_push(in->node, in->version->config.workers, in->skb, &in->record);
}

static int es_public_answer(const struct es_inbound *in)
{
	const struct es_config *cfg = &in->version->config;
	struct es_answer answer;

	es_answer_make(cfg, &in->pkt, &in->view.seg, &in->verdict, &answer);
	return es_answer_send(in->skb, cfg, &answer);
}

static int es_public_end(struct es_inbound *in)
{
	int rc = es_answer_end_old(in->skb, &in->pkt, in->view.old_rcv_nxt);

	if (!rc)
		in->rc = NF_ACCEPT;
	return rc;
}

static int es_public_make(const struct es_inbound *in)
{
	struct es_track track = {};

	es_track_begin_uninspected(&track, &in->verdict.options);
	return es_rebuild_note(in->node, &in->pkt, &in->view.seg, in->view.flow_hash,
			       (u16)in->version->config.self, &track);
}

static int es_public_first(const struct es_inbound *in)
{
	es_first_note(in->node, in->view.flow_hash, in->view.seg.seq, in->now_ns);
	return 0;
}

static int es_public_pass(struct es_inbound *in)
{
	es_rebuild_split(in->skb, &in->pkt, &in->view.seg);
	in->skb->pkt_type = PACKET_HOST;
	in->rc = NF_ACCEPT;
	return 0;
}

static int es_public_deliver(struct es_inbound *in)
{
	in->rc = es_socket_deliver(in->skb, &in->found);
	return 0;
}

#define ES_PUBLIC_TAKE_ALL(name)                                                                             \
	if ((in->plan.steps & ES_PUBLIC_STEP(name)) && es_public_##name(in))                                 \
		return ES_PUBLIC_STEP(name);
#define ES_PUBLIC_TAKE_PACKET ES_PUBLIC_TAKE_ALL
#define ES_PUBLIC_TAKE_HANDS(name)
#define ES_PUBLIC_TAKE(name, ways) ES_PUBLIC_TAKE_##ways(name)

/* Take the steps of the plan. Returns the one that has failed, or 0. */
static u32 es_public_carry_out(struct es_inbound *in)
{
	ES_PUBLIC_STEPS(ES_PUBLIC_TAKE)
	return 0;
}

/* Without a lease: may another node be given the request that made the socket, or go on with it? */
static u8 es_public_stands(struct es_inbound *in)
{
	const struct es_config *cfg = &in->version->config;
	const struct sock *sk = in->found.sk;

	if (!es_socket_is_tcp(sk))
		return 0;
	es_view_begin(&in->view, cfg, &in->pkt);
	return es_socket_is_unproven(sk) ||
	       es_socket_is_ceded(in->node, cfg, (u32)in->service, in->view.flow_hash, sk);
}

/* A TCP segment to a service, whose headers are read. The caller puts the socket. */
static unsigned int es_public_segment(struct es_inbound *in)
{
	const struct es_config *cfg = &in->version->config;
	struct es_view *v = &in->view;
	u32 failed;

	in->now_ns = ktime_get_coarse_ns();
	es_socket_lookup(in->node->net, in->skb, &in->pkt, &in->found);
	v->socket = in->found.kind;
	v->old_rcv_nxt = in->found.old_rcv_nxt;
	v->inspect = es_view_inspect(&in->pkt, cfg->service[in->service].inspect);
	v->unsafe = cfg->service[in->service].unsafe;
	v->survives = cfg->service[in->service].survives;
	v->silent = (u8)es_is_silent(in->node);
	if (v->socket == ES_SOCKET_ESTABLISHED) {
		if (v->silent)
			v->unproven = es_public_stands(in);
		if (es_view_reads_track(v))
			es_view_track(in->node, in->version, in->found.sk, &in->pkt, v, in->now_ns,
				      &in->record);
	} else {
		es_view_complete(in->node, in->version, &in->pkt, v, in->now_ns);
		if (v->mine && es_packet_is_martian(cfg, &in->pkt)) {
			es_count(in->node, ES_COUNT_drop_martian);
			return NF_DROP;
		}
		if (v->mine && es_packet_options(in->skb, &in->pkt, &v->seg)) {
			es_count(in->node, ES_COUNT_drop_malformed);
			return NF_DROP;
		}
		es_view_layer4(v, in->node->state, &cfg->service[in->service], (u32)in->service, &in->pkt,
			       in->now_ns);
		v->has_doubts =
			cfg->leased && es_first_has_doubts(READ_ONCE(in->node->state->doubt_ns), in->now_ns);
		if (es_view_needs_heard(v))
			es_view_heard(in->node, in->version, v, in->now_ns);
		if (v->has_doubts && v->mine)
			es_view_doubt(in->node, v, in->now_ns);
	}
	es_decide(cfg, v, &in->verdict);
	if (es_verdict_may_collide(&in->verdict) &&
	    es_view_cookie_is_taken(v, es_decision_set_of(in->node, v->flow_hash), in->verdict.cookie)) {
		v->slot++; /* the next slot's cookie is valid already */
		es_decide(cfg, v, &in->verdict);
	}
	if (in->verdict.guess)
		es_guess_note(&in->node->state->guesses, es_ns_to_s(in->now_ns));
	es_plan_public(v, &in->verdict, ES_WAY_PACKET, &in->plan);
	failed = es_public_carry_out(in);
	if (failed) {
		es_public_failed(v, failed, &in->plan);
		if (in->plan.steps & ES_PUBLIC_STEP(undo))
			es_public_undo(in);
	}
	es_count(in->node, in->plan.counter);
	return in->rc;
}

/* See kmod/bpf/public.h. */
static int es_public_is_error(const struct sk_buff *skb, const struct es_config *cfg, int off, int is_v6,
			      int is_part)
{
	u8 type_buf, quoted_buf[ES_ICMP_QUOTED];
	const u8 *type, *quoted;
	const __be16 *port;
	__be16 port_buf[2];
	int at;

	type = skb_header_pointer(skb, off, sizeof(type_buf), &type_buf);
	if (!type || !es_icmp_is_error(*type, is_v6))
		return 0;
	if (is_part)
		return 1;
	quoted = skb_header_pointer(skb, off + ES_ICMP_HEADER, sizeof(quoted_buf), quoted_buf);
	if (!quoted)
		return 0;
	at = es_icmp_udp_at(quoted, is_v6);
	if (at <= 0)
		return at < 0;
	port = skb_header_pointer(skb, off + ES_ICMP_HEADER + at, sizeof(port_buf), port_buf);
	return port && (port[1] == cfg->handover_port || port[0] == cfg->handover_port);
}

static int es_public_is_message(const struct sk_buff *skb, const struct es_config *cfg,
				const struct iphdr *ip)
{
	const struct udphdr *udp;
	struct udphdr buf;

	if (!es_addr_is_this_v4(&cfg->self_address, ip->daddr) ||
	    cfg->public_ifindex == cfg->cluster_ifindex || (ip->frag_off & htons(IP_OFFSET)))
		return 0;
	if (ip->protocol == IPPROTO_ICMP)
		return es_public_is_error(skb, cfg, ip->ihl * 4, 0, (ip->frag_off & htons(IP_MF)) != 0);
	if (ip->protocol != IPPROTO_UDP)
		return 0;
	udp = skb_header_pointer(skb, ip->ihl * 4, sizeof(buf), &buf);
	return udp && (udp->dest == cfg->handover_port || udp->source == cfg->handover_port);
}

static int es_public_is_message6(const struct sk_buff *skb, const struct es_config *cfg,
				 const struct ipv6hdr *ip)
{
	const struct udphdr *udp;
	struct udphdr buf;
	u32 next;
	int off;

	if (cfg->public_ifindex == cfg->cluster_ifindex ||
	    !es_addr_equal((const struct es_addr *)&ip->daddr, &cfg->self_address))
		return 0;
	off = es_packet_upper6(skb, ip->nexthdr, &next);
	if (off < 0)
		return 1;
	if (next == ES_HEADER_ICMPV6)
		return es_public_is_error(skb, cfg, off, 1, 0);
	if (next != ES_HEADER_UDP)
		return 0;
	udp = skb_header_pointer(skb, off, sizeof(buf), &buf);
	return udp && (udp->dest == cfg->handover_port || udp->source == cfg->handover_port);
}

static unsigned int es_public_ip(struct es_inbound *in)
{
	const struct iphdr *ip;
	struct iphdr buf;
	u32 len;

	ip = skb_header_pointer(in->skb, 0, sizeof(buf), &buf);
	if (!ip)
		return NF_ACCEPT;
	if (!es_is_service_address(in->version, ip->daddr)) {
		if (!es_public_is_message(in->skb, &in->version->config, ip))
			return NF_ACCEPT;
		es_count(in->node, ES_COUNT_handover_public);
		return NF_DROP;
	}
	if (ip->protocol != IPPROTO_TCP)
		return es_other_ip(in->node, in->version, in->skb, ip);
	if (ip->frag_off & htons(IP_MF | IP_OFFSET)) {
		es_count(in->node, ES_COUNT_drop_fragment);
		return NF_DROP;
	}
	in->pkt.saddr = ip->saddr;
	in->pkt.daddr = ip->daddr;
	len = ntohs(ip->tot_len);
	if (ip->ihl != 5 || len > in->skb->len || es_packet_tcp(in->skb, &in->pkt, len, &in->view.seg)) {
		es_count(in->node, ES_COUNT_drop_malformed);
		return NF_DROP;
	}
	in->service = es_service_find(in->version, in->pkt.daddr, in->pkt.dport);
	if (in->service < 0)
		return es_other_ip(in->node, in->version, in->skb, ip);
	return es_public_segment(in);
}

static unsigned int es_public_ip6(struct es_inbound *in)
{
	const struct es_version *version = in->version;
	const struct ipv6hdr *ip;
	struct ipv6hdr buf;
	int counter, rc;
	u32 len;

	ip = skb_header_pointer(in->skb, 0, sizeof(buf), &buf);
	if (!ip)
		return NF_ACCEPT;
	memcpy(&in->pkt.source, &ip->saddr, sizeof(in->pkt.source));
	memcpy(&in->pkt.dest, &ip->daddr, sizeof(in->pkt.dest));
	if (ip->nexthdr == IPPROTO_ICMPV6) {
		rc = es_neighbour_solicited(in->node, version, in->skb, &in->pkt, ip->hop_limit);
		if (rc != ES_NEIGHBOUR_NONE)
			return (unsigned int)rc;
	}
	if (!es_is_service_address6(version, &in->pkt.dest)) {
		if (!es_public_is_message6(in->skb, &version->config, ip))
			return NF_ACCEPT;
		es_count(in->node, ES_COUNT_handover_public);
		return NF_DROP;
	}
	counter = es_packet_headers6(in->skb, &in->pkt);
	if (counter < 0)
		return es_other_ip6(in->node, version, in->skb, &in->pkt, ip->nexthdr);
	len = es_headers_packet_len(ip->payload_len, skb_is_gso(in->skb), in->skb->len);
	if (counter == ES_COUNTER_COUNT &&
	    (len > in->skb->len || es_packet_tcp(in->skb, &in->pkt, len, &in->view.seg)))
		counter = ES_COUNT_drop_malformed;
	if (counter != ES_COUNTER_COUNT) {
		es_count(in->node, (u32)counter);
		return NF_DROP;
	}
	in->service = es_service_find6(version, &in->pkt.dest, in->pkt.dport);
	if (in->service < 0)
		return es_other_ip6(in->node, version, in->skb, &in->pkt, ip->nexthdr);
	return es_public_segment(in);
}

unsigned int es_public_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct es_inbound in = {.node = priv, .skb = skb, .rc = NF_DROP};
	unsigned int rc = NF_ACCEPT;

	if (unlikely(skb->mark == ES_FIN_MARK))
		return es_rebuild_fin(in.node, skb);
	in.version = es_version_get(in.node);
	if (!in.version || es_packet_is_of_vlan(skb))
		return NF_ACCEPT;
	if (skb->protocol == htons(ETH_P_ARP))
		return es_other_arp(in.node, in.version, skb);
	if (skb->protocol == htons(ETH_P_IP))
		rc = es_public_ip(&in);
	else if (IS_ENABLED(CONFIG_IPV6) && skb->protocol == htons(ETH_P_IPV6))
		rc = es_public_ip6(&in);
	es_socket_put(&in.found);
	return rc;
}
