/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_LOOK_H
#define ES_BPF_LOOK_H

/*
 * The iterators' view of one socket, for a daemon that walks the sockets itself
 * (inspector/datapath/bpf_walk.c) because its kernel refuses iterators. Run by it, never attached: a struct
 * es_look goes in behind an Ethernet header, and comes out in the packet's place.
 */
#include "loads.h"
#include "unproven.h"
#include "kmod/core/look.h"

SEC("tc")
int es_look(struct __sk_buff *skb)
{
	struct es_packet pkt;
	struct es_look look = {};
	struct es_track *track;
	struct bpf_sock *sk;
	struct tcp_sock *tp;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &look.flow, sizeof(look.flow)) ||
	    bpf_skb_load_bytes(skb, ETH_HLEN + offsetof(struct es_look, step), &look.step, sizeof(look.step)))
		return -1;
	if (look.step == ES_LOOK_LATE) {
		es_count(ES_COUNT_end_late);
		return 0;
	}
	if (look.step == ES_LOOK_ENDED) {
		if (bpf_skb_load_bytes(skb, ETH_HLEN + offsetof(struct es_look, connection), &look.connection,
				       sizeof(look.connection)))
			return -1;
		es_settle(look.connection.flow_hash, look.connection.first_seq, ES_SETTLED_END, 0);
		return 0;
	}
	es_packet_of_flow(&look.flow, &pkt);
	sk = es_socket_lookup(skb, &pkt);
	if (sk) {
		tp = sk->state == TCP_STATE_LISTEN ? (void *)0 : bpf_skc_to_tcp_sock(sk);
		if (tp && es_load_read(tp, &look.load) && es_connection_read(tp, &look.connection)) {
			look.is_found = 1;
			look.connection.unproven = (__u8)es_socket_is_unproven(tp);
			track = bpf_sk_storage_get(&es_tracks, tp, (void *)0, 0);
			if (track)
				look.connection.is_ceded = (__u8)es_track_of_is_ceded(track, tp->snd_una);
			look.has_track = (__u8)es_track_read(tp, &look.flow, &look.track);
			look.is_unacknowledged = tp->snd_una != tp->write_seq;
			look.tsval = es_ns_to_ms(bpf_ktime_get_ns()) + tp->tsoffset;
		}
		bpf_sk_release(sk);
	}
	return (int)bpf_skb_store_bytes(skb, 0, &look, sizeof(look), 0);
}

#endif
