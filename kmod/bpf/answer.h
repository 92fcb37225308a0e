/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_ANSWER_H
#define ES_BPF_ANSWER_H

/*
 * Answers without a socket: SYN-ACK, ACK and RST are written over the packet that asks for them and sent back
 * out of the interface it came from; a RST for a socket of our own is written the same way and goes up the
 * stack.
 */
#include "packet.h"
#include "checksum.h"
#include "kmod/core/answer.h"

/**
 * es_answer_put() - replace the packet's IP header and all behind it by @a
 * A packet whose checksum is left to hardware keeps that state. A global function, so that it is verified
 * once. Returns 0 or -1.
 */
__noinline int es_answer_put(struct __sk_buff *skb, const struct es_answer *a)
{
	union es_answer_wire wire;
	__u32 len;

	if (!a)
		return -1;
	len = es_answer_write(a, es_packet_csum_partial(skb), &wire);
	if (len > ES_ANSWER_MAX || bpf_skb_change_tail(skb, ETH_HLEN + len, 0))
		return -1;
	/* Constant lengths, as the verifier wants them. */
	if (len == ES_ANSWER_LEN)
		return (int)bpf_skb_store_bytes(skb, ETH_HLEN, wire.bytes, ES_ANSWER_LEN,
						BPF_F_RECOMPUTE_CSUM);
	if (len == ES_ANSWER_LEN + ES_TIMESTAMP_OPTION_LEN)
		return (int)bpf_skb_store_bytes(skb, ETH_HLEN, wire.bytes,
						ES_ANSWER_LEN + ES_TIMESTAMP_OPTION_LEN,
						BPF_F_RECOMPUTE_CSUM);
	return (int)bpf_skb_store_bytes(skb, ETH_HLEN, wire.bytes, ES_ANSWER_MAX, BPF_F_RECOMPUTE_CSUM);
}

/* The same with an IPv6 header. A global function, for its stack. */
__noinline int es_answer_put6(struct __sk_buff *skb, const struct es_answer *a)
{
	union es_answer_wire6 wire;
	__u32 len;

	if (!a)
		return -1;
	len = es_answer_write6(a, es_packet_csum_partial(skb), &wire);
	if (len > ES_ANSWER_MAX_V6 || bpf_skb_change_tail(skb, ETH_HLEN + len, 0))
		return -1;
	if (len == ES_ANSWER_LEN_V6)
		return (int)bpf_skb_store_bytes(skb, ETH_HLEN, wire.bytes, ES_ANSWER_LEN_V6,
						BPF_F_RECOMPUTE_CSUM);
	if (len == ES_ANSWER_LEN_V6 + ES_TIMESTAMP_OPTION_LEN)
		return (int)bpf_skb_store_bytes(skb, ETH_HLEN, wire.bytes,
						ES_ANSWER_LEN_V6 + ES_TIMESTAMP_OPTION_LEN,
						BPF_F_RECOMPUTE_CSUM);
	return (int)bpf_skb_store_bytes(skb, ETH_HLEN, wire.bytes, ES_ANSWER_MAX_V6, BPF_F_RECOMPUTE_CSUM);
}

static __always_inline int es_answer_put_any(struct __sk_buff *skb, const struct es_answer *a)
{
	return a->is_v6 ? es_answer_put6(skb, a) : es_answer_put(skb, a);
}

/* Back to who sent the frame. The cluster MAC is never a source: switches would learn it. */
static __always_inline int es_answer_address(struct __sk_buff *skb, const struct es_config *cfg)
{
	__u8 mac[2 * ETH_ALEN];

	if (bpf_skb_load_bytes(skb, ETH_ALEN, mac, ETH_ALEN))
		return -1;
	__builtin_memcpy(mac + ETH_ALEN, cfg->public_mac, ETH_ALEN);
	return (int)bpf_skb_store_bytes(skb, 0, mac, sizeof(mac), 0);
}

/*
 * Feed the socket that this packet met a RST that it must accept: exactly the byte it expects, no timestamp.
 * Returns 0 or -1.
 */
static __noinline int es_answer_end_old(struct __sk_buff *skb, const struct es_packet *pkt, __u32 rcv_nxt)
{
	struct es_answer rst;

	if (!pkt)
		return -1;
	es_answer_reset(pkt, rcv_nxt, &rst);
	if (es_answer_put_any(skb, &rst))
		return -1;
	bpf_skb_change_type(skb, PACKET_TYPE_HOST);
	return 0;
}

#endif
