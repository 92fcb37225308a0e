/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_AGAIN_H
#define ES_BPF_AGAIN_H

/*
 * Packets that arrive at the public interface for a second time (kmod/core/again.h): the FIN of a packet from
 * which a socket was made without it (es_tcp_making_flags()), and packets that were in an envelope
 * (opened.h).
 */
#include "answer.h"
#include "opened.h"
#include "packet6.h"
#include "program.h"
#include "socket.h"
#include "kmod/core/again.h"

/* Leave only the FIN of the packet; 0 or -1. A function of its own, for its stack. */
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
 * For a socket that is, or just was, there. A listening one would answer with a RST, so without that socket
 * it is dropped. Returns the program's verdict. A function of its own, for its stack.
 */
__noinline int es_again_deliver(struct __sk_buff *skb, const struct es_packet *pkt,
				const struct es_segment *seg, __u32 mark)
{
	struct bpf_sock *sk;
	__u32 old_rcv_nxt;
	__u8 listening;
	int rc = TC_ACT_SHOT, is_there;

	if (!pkt || !seg)
		return TC_ACT_SHOT;
	sk = es_socket_lookup(skb, pkt);
	is_there = es_socket_classify(sk, &old_rcv_nxt, &listening) == ES_SOCKET_ESTABLISHED;
	if (is_there && (mark != ES_FIN_MARK || !es_fin_put(skb, pkt, seg)))
		rc = es_socket_deliver(skb, sk);
	if (sk)
		bpf_sk_release(sk);
	if (mark == ES_OPENED_FOLLOW_MARK)
		es_count(is_there ? ES_COUNT_handover_follow : ES_COUNT_handover_follow_lost);
	return rc;
}

/* The socket that listens for the packet; the caller releases it. A function of its own, for its stack. */
static __noinline struct bpf_sock *es_again_listener(struct __sk_buff *skb, const struct es_packet *pkt,
						     int is_programs)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	int service;

	if (!cfg || !pkt)
		return (void *)0;
	if (!is_programs)
		return es_socket_lookup(skb, pkt);
	service = es_service_of(pkt);
	return service < 0 ? (void *)0
			   : es_program_server(skb, pkt, &cfg->service[service & (ES_SERVICES_MAX - 1)]);
}

/*
 * Make the socket that was noted. If it was called off meanwhile, or forgotten for want of room, there is
 * none. Returns the program's verdict. A function of its own, for its stack.
 */
__noinline int es_again_make(struct __sk_buff *skb, const struct es_packet *pkt, const struct es_segment *seg)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_rebuilt_key key = {};
	struct es_rebuilt *rebuilt;
	struct bpf_sock *sk;
	__u32 old_rcv_nxt;
	__u8 listening;
	__u32 counter = ES_COUNT_rebuild_refused;

	if (!cfg || !pkt || !seg)
		return TC_ACT_SHOT;
	key.flow_hash = es_handover_flow(cfg, pkt);
	key.seq = seg->seq;
	rebuilt = bpf_map_lookup_elem(&es_rebuilts, &key);
	if (!rebuilt || !rebuilt->is_pending) {
		es_count(counter);
		return TC_ACT_SHOT;
	}
	rebuilt->is_pending = 0;
	sk = es_again_listener(skb, pkt, rebuilt->handover != 0);
	es_socket_classify(sk, &old_rcv_nxt, &listening);
	if (sk && listening) {
		/* Those ahead of it may have taken the last places since it was asked. */
		if (es_listener_is_full(sk))
			counter = ES_COUNT_handover_accept_full;
		else if (!bpf_skb_change_type(skb, PACKET_TYPE_HOST) &&
			 !es_rebuild(skb, sk, pkt, seg, &rebuilt->track.options))
			counter = rebuilt->handover ? ES_COUNT_connection_rebuilt : ES_COUNT_handover_rebuilt;
	}
	if (sk)
		bpf_sk_release(sk);
	es_count(counter);
	if (counter == ES_COUNT_connection_rebuilt || counter == ES_COUNT_handover_rebuilt)
		return ES_TC_NEXT;
	es_settle(key.flow_hash, key.seq, ES_SETTLED_UNDO, 0);
	/* So that a program that asks about it hears that it may send it again. */
	bpf_map_delete_elem(&es_rebuilts, &key);
	return TC_ACT_SHOT;
}

/*
 * es_again() - the packet has one of the marks. Returns the program's verdict. A function of its own, for its
 * stack.
 */
__noinline int es_again(struct __sk_buff *skb)
{
	struct es_packet pkt = {.off = ETH_HLEN};
	struct es_segment seg = {};
	__u32 mark = skb->mark;

	skb->mark = 0;
	if (es_packet_read(skb, &pkt, &seg) || es_packet_options(skb, &pkt, &seg))
		return TC_ACT_SHOT;
	return mark == ES_OPENED_MAKE_MARK ? es_again_make(skb, &pkt, &seg)
					   : es_again_deliver(skb, &pkt, &seg, mark);
}

#endif
