/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_REBUILD_H
#define ES_BPF_REBUILD_H

/*
 * TCP Rebuilding: the stock kernel makes the established socket from the request packet itself, as if it had
 * answered the handshake with a syncookie of its own (bpf_sk_assign_tcp_reqsk(), kernel >= 6.9;
 * net/core/filter.c).
 */
#include "packet.h"
#include "settled.h"
#include "kmod/core/again.h"
#include "kmod/core/answer.h"

/* es_rebuild_prepare() - es_tcp_making_flags(). A global function, verified once. Returns 0 or -1. */
__noinline int es_rebuild_prepare(struct __sk_buff *skb, const struct es_packet *pkt)
{
	__be16 flags, making;
	__u32 off;

	if (!pkt)
		return -1;
	off = ETH_HLEN + es_packet_ip_len(pkt);
	if (bpf_skb_load_bytes(skb, off + ES_TCP_FLAGS_AT, &flags, sizeof(flags)))
		return -1;
	making = es_tcp_making_flags(flags);
	if (making == flags)
		return 0;
	return bpf_l4_csum_replace(skb, off + offsetof(struct tcphdr, check), flags, making,
				   sizeof(making)) ||
			       bpf_skb_store_bytes(skb, off + ES_TCP_FLAGS_AT, &making, sizeof(making), 0)
		       ? -1
		       : 0;
}

/*
 * A copy comes in by the same interface, behind the packet itself: es_fin_arrived(). If it is lost, the
 * client repeats its FIN.
 */
static __always_inline void es_rebuild_repeat(struct __sk_buff *skb)
{
	__u32 mark = skb->mark;

	skb->mark = ES_FIN_MARK;
	bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS);
	skb->mark = mark;
}

/* Remember what the socket shall know once it exists; 0 or -errno. */
static __always_inline int es_rebuilt_note(__u64 flow_hash, __u32 seq, const struct es_rebuilt *rebuilt)
{
	struct es_rebuilt_key key = {.flow_hash = flow_hash, .seq = seq};

	return (int)bpf_map_update_elem(&es_rebuilts, &key, rebuilt, BPF_ANY);
}

/**
 * es_rebuild() - give the packet, which must begin with its own IP header now, to a listening socket
 * @sk: the listening socket (a reference of the caller)
 * That it is made is noted already (ES_SETTLED_MAKE). Returns 0; -1 if the kernel refuses, and the caller
 * takes the note back.
 */
static __always_inline int es_rebuild(struct __sk_buff *skb, struct bpf_sock *sk, const struct es_packet *pkt,
				      const struct es_segment *seg, const struct es_tcp_options *o)
{
	__u16 least = seg->is_v6 ? ES_TCP_MSS_MIN_V6 : ES_TCP_MSS_MIN;
	struct bpf_tcp_req_attrs attrs = {
		.rcv_tsval = seg->tsval,
		/* The kernel makes our timestamp clock of it, which shows that value now. */
		.rcv_tsecr = seg->tsecr + ES_REBUILD_CLOCK_AHEAD_MS,
		.mss = o->mss < least ? least : o->mss,
		.rcv_wscale = o->rcv_wscale,
		.snd_wscale = o->snd_wscale,
		.ecn_ok = o->ecn_ok,
		.wscale_ok = o->wscale_ok,
		.sack_ok = o->sack_ok,
		.tstamp_ok = o->tstamp_ok,
	};
	struct tcp_sock *listener = bpf_skc_to_tcp_sock(sk);

	if (!listener || es_rebuild_prepare(skb, pkt) ||
	    bpf_sk_assign_tcp_reqsk(skb, (struct sock *)listener, &attrs, sizeof(attrs)))
		return -1;
	if (seg->flags & ES_TCP_FIN)
		es_rebuild_repeat(skb);
	return 0;
}

static __always_inline int es_listener_is_full(struct bpf_sock *sk)
{
	struct sock *listener = (struct sock *)bpf_skc_to_tcp_sock(sk);

	/* The kernel's sk_acceptq_is_full(). */
	return listener && listener->sk_ack_backlog > listener->sk_max_ack_backlog;
}

#endif
