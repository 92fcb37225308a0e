/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_SOCKET_H
#define ES_BPF_SOCKET_H

/*
 * The kernel's socket table, which is the connection table.
 */
#include <bpf/bpf_core_read.h>

#include "packet.h"
#include "kmod/core/decide.h"

/*
 * Does it listen, and may the kernel make connections for it? None of MPTCP: its own children are of another
 * kind. It is known before the envelope comes off, so that the message can go back.
 */
static __always_inline __u8 es_socket_listens(struct bpf_sock *sk)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);

	return !tp || !bpf_core_field_exists(tp->is_mptcp) || !tp->is_mptcp;
}

/* Classify what the look-up found; @ret_listener says whether @sk is a socket that listens, for us. */
static __always_inline __u8 es_socket_classify(struct bpf_sock *sk, __u32 *ret_old_rcv_nxt,
					       __u8 *ret_listener)
{
	struct tcp_timewait_sock *tw;

	*ret_listener = 0;
	if (!sk)
		return ES_SOCKET_NONE;
	if (sk->state == TCP_STATE_LISTEN) {
		*ret_listener = es_socket_listens(sk);
		return ES_SOCKET_NONE;
	}
	if (sk->state != TCP_STATE_TIME_WAIT)
		return ES_SOCKET_ESTABLISHED;
	tw = bpf_skc_to_tcp_timewait_sock(sk);
	if (!tw)
		return ES_SOCKET_NONE;
	*ret_old_rcv_nxt = tw->tw_sk.__tw_common.skc_tw_rcv_nxt;
	return tw->tw_sk.tw_substate == TCP_STATE_FIN_WAIT2 ? ES_SOCKET_FIN_WAIT2 : ES_SOCKET_TIME_WAIT;
}

/*
 * A function of its own. With the flow in its caller's stack, the verifier would follow the two families
 * apart from there on.
 */
static __noinline struct bpf_sock *es_socket_lookup(struct __sk_buff *skb, const struct es_packet *pkt)
{
	struct bpf_sock_tuple tuple = {};

	if (!pkt)
		return (void *)0;
	if (pkt->is_v6) {
		__builtin_memcpy(tuple.ipv6.saddr, &pkt->source, sizeof(pkt->source));
		__builtin_memcpy(tuple.ipv6.daddr, &pkt->dest, sizeof(pkt->dest));
		tuple.ipv6.sport = pkt->sport;
		tuple.ipv6.dport = pkt->dport;
		return bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple.ipv6), BPF_F_CURRENT_NETNS, 0);
	}
	tuple.ipv4.saddr = pkt->saddr;
	tuple.ipv4.daddr = pkt->daddr;
	tuple.ipv4.sport = pkt->sport;
	tuple.ipv4.dport = pkt->dport;
	return bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
}

/**
 * es_socket_deliver() - let the packet go up, to the very socket about which it was decided
 * The stack would look again; and if another CPU has ended that socket meanwhile, it would find the listening
 * one, and send the client a RST. But the client's connection may be at another node by now, or this be a
 * packet of its next one. A socket that has ended says nothing. Returns the program's verdict.
 */
static __noinline int es_socket_deliver(struct __sk_buff *skb, struct bpf_sock *sk)
{
	if (!sk || bpf_skb_change_type(skb, PACKET_TYPE_HOST) || bpf_sk_assign(skb, sk, 0))
		return TC_ACT_SHOT;
	return ES_TC_NEXT;
}

#endif
