/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_INNER_H
#define ES_BPF_INNER_H

/*
 * The client's packet in a handover message, which the inspecting node took as it came.
 */
#include "message.h"
#include "packet6.h"

/*
 * Read IPv4: 0, or -1 if it is none. A function of its own, for its stack. The offset comes from the frame,
 * and not from @pkt, where the verifier would not see its bounds.
 */
static __noinline int es_inner_read4(struct __sk_buff *skb, struct es_packet *pkt, __u32 len,
				     struct es_segment *ret_seg)
{
	struct es_packet inner = {.off = es_message_packet_off(skb)};
	struct iphdr ip;

	if (!pkt || !ret_seg || bpf_skb_load_bytes(skb, inner.off, &ip, sizeof(ip)) ||
	    !es_message_packet_ok((const __u8 *)&ip, len))
		return -1;
	inner.saddr = ip.saddr;
	inner.daddr = ip.daddr;
	if (es_packet_tcp(skb, inner.off, &inner, len, ret_seg))
		return -1;
	*pkt = inner;
	return 0;
}

/* The same for IPv6. */
static __noinline int es_inner_read6(struct __sk_buff *skb, struct es_packet *pkt, __u32 len,
				     struct es_segment *ret_seg)
{
	__be16 payload_len;

	if (!pkt || !ret_seg ||
	    bpf_skb_load_bytes(skb, pkt->off + offsetof(struct ipv6hdr, payload_len), &payload_len,
			       sizeof(payload_len)) ||
	    es_ntohs(payload_len) + sizeof(struct ipv6hdr) != len ||
	    es_packet_headers6(skb, pkt) != ES_COUNTER_COUNT)
		return -1;
	return es_packet_tcp6(skb, pkt, len, ret_seg);
}

/**
 * es_inner_read() - read the packet of a message, options included
 * Sets all of @pkt. Returns 0, or -1 if it is no whole TCP segment. A global function, so that it is
 * verified once.
 */
__noinline int es_inner_read(struct __sk_buff *skb, const struct es_handover *h, struct es_packet *pkt,
			     struct es_segment *seg)
{
	__u8 first;
	__u32 len;

	if (!h || !pkt || !seg || bpf_skb_load_bytes(skb, es_message_packet_off(skb), &first, sizeof(first)))
		return -1;
	len = es_ntohs(h->packet_len);
	pkt->off = es_message_packet_off(skb);
	if (first >> 4 == 6 ? es_inner_read6(skb, pkt, len, seg) : es_inner_read4(skb, pkt, len, seg))
		return -1;
	return es_packet_options(skb, pkt, seg);
}

#endif
