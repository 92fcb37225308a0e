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

_Static_assert(__builtin_offsetof(struct es_packet, dport) + sizeof(__be16) -
			       __builtin_offsetof(struct es_packet, source) ==
		       sizeof(((struct bpf_sock_tuple *)0)->ipv6),
	       "a packet of IPv6 is looked up by its own addresses and ports");

/*
 * The socket of a packet's flow. That of IPv4 is written into whole words, as es_array_at() does it: with
 * parts of words in its caller's stack, the verifier would follow the two families apart from there on.
 */
static __always_inline struct bpf_sock *es_socket_find(struct __sk_buff *skb, const struct es_packet *pkt)
{
	const int is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	struct bpf_sock_tuple *tuple = (void *)&pkt->source;
	__u64 flow[2];

	if (pkt->is_v6)
		return bpf_skc_lookup_tcp(skb, tuple, sizeof(tuple->ipv6), BPF_F_CURRENT_NETNS, 0);
	flow[0] = (__u64)pkt->saddr << (is_big ? 32 : 0) | (__u64)pkt->daddr << (is_big ? 0 : 32);
	flow[1] = (__u64)pkt->sport << (is_big ? 48 : 0) | (__u64)pkt->dport << (is_big ? 32 : 16);
	return bpf_skc_lookup_tcp(skb, (void *)flow, sizeof(tuple->ipv4), BPF_F_CURRENT_NETNS, 0);
}

/* The same in a function of its own, for where not every packet comes by. */
static __noinline struct bpf_sock *es_socket_lookup(struct __sk_buff *skb, const struct es_packet *pkt)
{
	return pkt ? es_socket_find(skb, pkt) : (void *)0;
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
