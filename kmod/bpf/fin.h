/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_FIN_H
#define ES_BPF_FIN_H

/*
 * The FIN of a packet that a socket was made from without it (es_tcp_making_flags()).
 */
#include "answer.h"
#include "packet6.h"
#include "socket.h"

/* Of the packet there is now only the FIN; 0 or -1. A function of its own, for its stack. */
static __noinline int es_fin_put(struct __sk_buff *skb, const struct es_packet *pkt,
				 const struct es_segment *seg)
{
	struct es_answer fin;
	__be16 window;

	if (!pkt || !seg ||
	    bpf_skb_load_bytes(skb, ETH_HLEN + es_packet_ip_len(pkt) + ES_TCP_WINDOW_AT, &window,
			       sizeof(window)))
		return -1;
	es_answer_fin(pkt, seg, es_ntohs(window), &fin);
	return es_answer_put_any(skb, &fin);
}

/*
 * es_fin_arrived() - the packet has ES_FIN_MARK; it was counted when its socket was made
 * A listening socket would answer it with a RST, so without that socket it is dropped. Returns the program's
 * verdict. A function of its own, for its stack.
 */
static __noinline int es_fin_arrived(struct __sk_buff *skb)
{
	struct es_packet pkt = {.off = ETH_HLEN};
	struct es_segment seg = {};
	struct bpf_sock *sk;
	__u32 old_rcv_nxt;
	__u8 listening;
	int rc = TC_ACT_SHOT;

	skb->mark = 0;
	if (es_packet_read(skb, &pkt, &seg) || es_packet_options(skb, &pkt, &seg))
		return TC_ACT_SHOT;
	sk = es_socket_lookup(skb, &pkt);
	if (es_socket_classify(sk, &old_rcv_nxt, &listening) == ES_SOCKET_ESTABLISHED &&
	    !es_fin_put(skb, &pkt, &seg))
		rc = es_socket_deliver(skb, sk);
	if (sk)
		bpf_sk_release(sk);
	return rc;
}

#endif
