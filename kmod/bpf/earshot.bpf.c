// SPDX-License-Identifier: GPL-2.0-only
/*
 * The BPF datapath: tc programs. es_public (ingress) sees what the switch broadcasts, es_cluster (ingress, on
 * the private network and on lo) sees handover messages. Both only make the view, call the decision function
 * of kmod/core and carry its verdict out (public.h, target.h). es_reply (egress) reads where our servers'
 * responses end, keeps back what must not leave, and notes whom the stack has sent a RST.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <linux/in.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "kernel.h"
#include "maps.h"
#include "packet.h"
#include "checksum.h"
#include "answer.h"
#include "rebuild.h"
#include "queue.h"
#include "other.h"
#include "packet6.h"
#include "neighbour.h"
#include "message.h"
#include "socket.h"
#include "tracks.h"
#include "target.h"
#include "program.h"
#include "again.h"
#include "heard.h"
#include "reply.h"
#include "list.h"
#include "loads.h"
#include "unproven.h"
#include "look.h"
#include "view.h"
#include "public.h"

char LICENSE[] SEC("license") = "GPL";

/* A packet that the switch broadcasts. A function of its own, so that its stack is not below es_again()'s. */
static __noinline int es_public_packet(struct __sk_buff *skb)
{
	struct es_inbound in;
	struct es_config *cfg;
	struct es_state *state;
	int read;

	in.skb = skb;
	in.pkt = (struct es_packet){.off = ETH_HLEN};
	in.view = (struct es_view){};
	in.rc = TC_ACT_SHOT;
	if (es_packet_is_of_vlan(skb))
		return ES_TC_NEXT;
	if (skb->protocol == es_htons(ETH_P_ARP))
		return es_other_arp(skb);
	if (skb->protocol == es_htons(ETH_P_IPV6)) {
		read = es_public_read6(skb, &in.pkt, &in.view.seg);
		if (read < 0)
			return es_public_other6(skb, &in.pkt, read);
	} else if (skb->protocol == es_htons(ETH_P_IP)) {
		read = es_packet_plain4(skb, &in.pkt, &in.view.seg)
			       ? es_service_find(in.pkt.daddr, in.pkt.dport)
			       : es_public_read4(skb, &in.pkt, &in.view.seg);
		if (read < 0)
			return es_public_other4(skb, read);
	} else {
		return ES_TC_NEXT;
	}
	state = es_state_get();
	cfg = state ? es_config_get(state) : (void *)0;
	if (!cfg)
		return ES_TC_NEXT;
	in.service = (__u16)(read & (ES_SERVICES_MAX - 1));
	return es_public_segment(&in, state, cfg);
}

SEC("tc")
int es_public(struct __sk_buff *skb)
{
	if (es_unlikely((skb->mark & ES_AGAIN_MASK) == ES_AGAIN))
		return es_again(skb);
	return es_public_packet(skb);
}

/* Carry out what es_decide_fresh() says of a message. Returns the program's verdict. */
static __always_inline int es_cluster_carry_out(struct __sk_buff *skb, struct es_config *cfg,
						struct es_handover *h, int is_to_port)
{
	struct es_message_verdict verdict;

	es_decide_fresh(h, is_to_port, cfg->self, &verdict);
	if (verdict.counter != ES_COUNTER_COUNT)
		es_count(verdict.counter);
	switch (verdict.action) {
	case ES_MESSAGE_PASS:
		return ES_TC_NEXT;
	case ES_MESSAGE_PROGRAM:
		return es_program_message(skb, cfg, h);
	case ES_MESSAGE_STRAYS:
		return es_strays_answer(skb, cfg, h);
	case ES_MESSAGE_SEGMENT:
		return es_handover_message(skb, cfg, h);
	default:
		return TC_ACT_SHOT;
	}
}

/*
 * Does the packet come from, or go to, this node's handover port? NACKs come from the handover port to the
 * worker's own; they are checked here and go up. A function of its own, for its stack.
 */
static __noinline int es_cluster_read4(struct __sk_buff *skb, const struct es_config *cfg,
				       struct es_message_envelope *ret, struct udphdr *ret_udp)
{
	struct iphdr ip;

	if (!cfg || !ret || !ret_udp || es_packet_load(skb, ETH_HLEN, &ip, sizeof(ip)) ||
	    ip.protocol != IPPROTO_UDP || ip.ihl != 5 || !es_addr_is_this_v4(&cfg->self_address, ip.daddr) ||
	    bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(ip), ret_udp, sizeof(*ret_udp)))
		return 0;
	ret->ip_len = (__u32)es_ntohs(ip.tot_len) - (__u32)sizeof(ip);
	ret->is_partial = (ip.frag_off & es_htons(0x3fff)) != 0;
	return ret_udp->dest == cfg->handover_port || ret_udp->source == cfg->handover_port;
}

/* The same with IPv6: behind its header, or that of a datagram's first part. */
static __noinline int es_cluster_read6(struct __sk_buff *skb, const struct es_config *cfg,
				       struct es_message_envelope *ret, struct udphdr *ret_udp)
{
	__u32 off = ETH_HLEN + sizeof(struct ipv6hdr);
	struct ipv6hdr ip;
	__u8 part[8];

	if (!cfg || !ret || !ret_udp || bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)) ||
	    !es_addr_equal((const struct es_addr *)&ip.daddr, &cfg->self_address))
		return 0;
	ret->is_partial = ip.nexthdr == ES_HEADER_FRAGMENT;
	if (ret->is_partial) {
		if (bpf_skb_load_bytes(skb, off, part, sizeof(part)) || part[2] || part[3] & 0xf8)
			return 0;
		ip.nexthdr = part[0];
		off += sizeof(part);
	}
	if (ip.nexthdr != ES_HEADER_UDP || bpf_skb_load_bytes(skb, off, ret_udp, sizeof(*ret_udp)))
		return 0;
	ret->ip_len = es_ntohs(ip.payload_len);
	return ret_udp->dest == cfg->handover_port || ret_udp->source == cfg->handover_port;
}

/* Is it a message, and one that this node wants? @envelope: what the IP header says */
static __always_inline int es_cluster_message(struct __sk_buff *skb, struct es_config *cfg,
					      struct es_message_envelope *envelope, const struct udphdr *udp)
{
	struct es_message_verdict verdict;
	struct es_handover h;
	__u32 counter;

	envelope->udp_len = es_ntohs(udp->len);
	envelope->is_short = bpf_skb_load_bytes(skb, es_message_header_off(skb), &h, sizeof(h)) != 0;
	es_decide_envelope(envelope, &h, cfg->self, &verdict);
	if (verdict.action == ES_MESSAGE_PASS)
		return ES_TC_NEXT;
	if (verdict.action == ES_MESSAGE_REFUSE) {
		es_count(verdict.counter);
		return TC_ACT_SHOT;
	}
	counter = (__u32)es_message_check(skb, cfg, &h);
	if (skb->mark != ES_ASKED_MARK)
		es_count(counter);
	if (counter != ES_COUNT_handover_received)
		return TC_ACT_SHOT;
	return es_cluster_carry_out(skb, cfg, &h, udp->dest == cfg->handover_port);
}

SEC("tc")
int es_cluster(struct __sk_buff *skb)
{
	struct es_message_envelope envelope = {};
	struct es_config *cfg;
	struct es_state *state;
	struct udphdr udp;
	int is_ours = 0;

	if (skb->protocol == es_htons(ES_WAKE_PROTOCOL))
		return TC_ACT_OK; /* our own */
	if (es_packet_is_of_vlan(skb))
		return ES_TC_NEXT;
	state = es_state_get();
	cfg = state ? es_config_get(state) : (void *)0;
	if (!cfg)
		return ES_TC_NEXT;
	if (skb->protocol == es_htons(ETH_P_IP))
		is_ours = es_cluster_read4(skb, cfg, &envelope, &udp);
	else if (es_message_is_v6(skb))
		is_ours = es_cluster_read6(skb, cfg, &envelope, &udp);
	return is_ours ? es_cluster_message(skb, cfg, &envelope, &udp) : ES_TC_NEXT;
}

/* The headers of a packet of TCP that leaves; 0 or -1. */
static __always_inline int es_reply_headers(struct __sk_buff *skb, struct es_packet *pkt,
					    struct es_segment *ret_seg)
{
	/* Not what the IP header says: that is nothing of a packet that the network card will cut. */
	__u32 len = skb->len - ETH_HLEN;
	struct iphdr ip;

	if (skb->protocol == es_htons(ETH_P_IPV6))
		return es_packet_plain6(skb, pkt, ret_seg, 1) ? 0
		       : es_packet_headers6(skb, pkt) == ES_COUNTER_COUNT
			       ? es_packet_tcp6(skb, pkt, len, ret_seg)
			       : -1;
	if (skb->protocol != es_htons(ETH_P_IP) || es_packet_load(skb, ETH_HLEN, &ip, sizeof(ip)) ||
	    ip.protocol != IPPROTO_TCP || ip.ihl != 5)
		return -1;
	pkt->saddr = ip.saddr;
	pkt->daddr = ip.daddr;
	return es_packet_tcp(skb, ETH_HLEN, pkt, len, ret_seg);
}

SEC("tc")
int es_reply(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct es_packet pkt = {};
	struct es_config *cfg;
	struct es_state *state;
	struct es_segment seg;
	struct tcp_sock *tp;
	int inspect, is_new;

	/*
	 * A packet that has come in goes out again: our own answer. Over a virtual link it may even bring its
	 * sender's socket.
	 */
	if (skb->ingress_ifindex)
		return ES_TC_NEXT;
	pkt.off = ETH_HLEN;
	if (es_reply_headers(skb, &pkt, &seg) || (!sk && !es_reply_is_stacks(skb, &pkt, &seg)))
		return ES_TC_NEXT;
	state = es_state_get();
	cfg = state ? es_config_get(state) : (void *)0;
	tp = es_reply_connection(sk);
	is_new = tp && es_socket_is_unproven(tp);
	if (!cfg || (!cfg->reads_replies && !state->lease_ns && !(seg.flags & ES_TCP_RST) && !is_new))
		return ES_TC_NEXT;
	inspect = es_reply_inspect(&pkt);
	if (inspect < 0)
		return ES_TC_NEXT;
	if (!sk) {
		es_reply_ended(sk, &pkt, seg.seq);
		return ES_TC_NEXT;
	}
	if (is_new)
		es_reply_settled(es_reply_flow(&pkt), tp->rcv_nxt - (__u32)tp->bytes_received);
	if (inspect == ES_INSPECT_EVERY && es_reply_is_held(sk, &seg)) {
		es_count(ES_COUNT_reply_leaving);
		return TC_ACT_SHOT;
	}
	/* A packet that is kept back is read when it comes again. */
	if (seg.len && inspect == ES_INSPECT_EVERY && !es_reply_is_ceded(sk))
		es_reply_track(skb, sk, &pkt, &seg);
	switch (es_reply_fate(sk, &pkt, &seg)) {
	case ES_REPLY_STAYS:
		return TC_ACT_SHOT;
	case ES_REPLY_TELLS:
		tp = bpf_skc_to_tcp_sock(sk);
		return tp ? es_reply_tell(skb, &pkt, tp->snd_una, tp->snd_nxt) : TC_ACT_SHOT;
	default:
		if (!(seg.flags & ES_TCP_RST))
			return ES_TC_NEXT;
		if (inspect != ES_INSPECT_NEVER && es_reply_is_astray(sk, &pkt)) {
			es_count(ES_COUNT_reply_astray);
			return TC_ACT_SHOT;
		}
		es_reply_ended(sk, &pkt, seg.seq);
		return ES_TC_NEXT;
	}
}
