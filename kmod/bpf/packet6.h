/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_PACKET6_H
#define ES_BPF_PACKET6_H

/*
 * From the bytes of an IPv6 packet to a segment (kmod/core/headers.h).
 */
#include <linux/ipv6.h>

#include "maps.h"
#include "packet.h"
#include "kmod/core/headers.h"

/* One header further; returns 0 at one that is not walked over. -1: it is cut off. */
static __always_inline int es_packet_step6(struct __sk_buff *skb, __u32 at, struct es_headers_walk *w)
{
	__u8 head[2];

	if (!es_headers_go_on(w))
		return 0;
	if (bpf_skb_load_bytes(skb, at + w->off, head, sizeof(head)))
		return -1;
	es_headers_step(w, head);
	return 1;
}

/**
 * es_packet_headers6() - walk to the TCP header of the IPv6 packet at @pkt->off
 * Sets @pkt's addresses, headers_len and is_v6. Returns what es_headers_counter() does. A global function, so
 * that it is verified once.
 */
__noinline int es_packet_headers6(struct __sk_buff *skb, struct es_packet *pkt)
{
	struct es_headers_walk w = {.off = sizeof(struct ipv6hdr)};
	struct ipv6hdr ip;
	int rc = 1;

	if (!pkt || bpf_skb_load_bytes(skb, pkt->off, &ip, sizeof(ip)) || ip.version != 6)
		return ES_COUNT_drop_malformed;
	__builtin_memcpy(&pkt->source, &ip.saddr, sizeof(pkt->source));
	__builtin_memcpy(&pkt->dest, &ip.daddr, sizeof(pkt->dest));
	pkt->is_v6 = 1;
	w.next = ip.nexthdr;
	for (int i = 0; i < ES_HEADERS_MAX && rc > 0; i++)
		rc = es_packet_step6(skb, pkt->off, &w);
	pkt->headers_len = (__u16)w.off;
	if (rc < 0)
		return ES_COUNT_drop_malformed;
	return es_headers_counter(w.next, &pkt->source);
}

/* The parts of es_packet_upper6()'s result. */
#define ES_UPPER6_NEXT(upper) ((__u32)(upper)&0xff)
#define ES_UPPER6_OFF(upper)  ((__u32)(upper) >> 8)

/**
 * es_packet_upper6() - walk to what the headers of the IPv6 packet behind the Ethernet header are for
 * Returns where that is in the frame, and what it is; -1: it is unknown what is behind the headers, see
 * es_headers_hide(). A global function, so that it is verified once.
 */
__noinline int es_packet_upper6(struct __sk_buff *skb)
{
	struct es_headers_walk w = {.off = sizeof(struct ipv6hdr)};
	__u8 next;
	int rc = 1;

	if (bpf_skb_load_bytes(skb, ETH_HLEN + offsetof(struct ipv6hdr, nexthdr), &next, sizeof(next)))
		return -1;
	w.next = next;
	for (int i = 0; i < ES_HEADERS_MAX && rc > 0; i++)
		rc = es_packet_step6(skb, ETH_HLEN, &w);
	if (es_headers_hide(w.next))
		return -1;
	return (int)((ETH_HLEN + w.off) << 8 | (w.next & 0xff));
}

/**
 * es_packet_tcp6() - read the TCP header behind those that es_packet_headers6() has walked over
 * @len: bytes from the IPv6 header's first to the packet's last. Returns 0, or -1 if the lengths contradict
 * each other. A global function, so that it is verified once.
 */
__noinline int es_packet_tcp6(struct __sk_buff *skb, struct es_packet *pkt, __u32 len, struct es_segment *seg)
{
	struct tcphdr th;
	__u32 doff, headers;

	if (!pkt || !seg)
		return -1;
	headers = pkt->headers_len;
	if (bpf_skb_load_bytes(skb, pkt->off + headers, &th, sizeof(th)))
		return -1;
	doff = th.doff * 4;
	if (doff < sizeof(th) || headers + doff > len)
		return -1;
	es_packet_tcp_fill(&th, doff, len - headers - doff, pkt, seg);
	seg->is_v6 = 1;
	return 0;
}

/*
 * es_packet_read() - a packet of TCP behind the Ethernet header, of either family: 0 or -1. A function of its
 * own, for its stack.
 */
static __noinline int es_packet_read(struct __sk_buff *skb, struct es_packet *ret, struct es_segment *ret_seg)
{
	struct iphdr ip;

	if (!ret || !ret_seg)
		return -1;
	if (skb->protocol == es_htons(ETH_P_IPV6))
		return es_packet_headers6(skb, ret) != ES_COUNTER_COUNT ||
				       es_packet_tcp6(skb, ret, skb->len - ETH_HLEN, ret_seg)
			       ? -1
			       : 0;
	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return -1;
	ret->saddr = ip.saddr;
	ret->daddr = ip.daddr;
	return es_packet_tcp(skb, ETH_HLEN, ret, es_ntohs(ip.tot_len), ret_seg);
}

/**
 * es_packet_plain6() - the same for what nearly all packets are: TCP right behind the IPv6 header
 * Reads them where they lie, without a copy on the stack. @pkt->off is ETH_HLEN; @is_leaving: the header does
 * not tell the length. Returns 1 when @pkt and @seg are read; 0: es_packet_headers6() has to look. A global
 * function, so that it is verified once.
 */
__noinline int es_packet_plain6(struct __sk_buff *skb, struct es_packet *pkt, struct es_segment *seg,
				int is_leaving)
{
	const char *from = (const char *)(long)skb->data + ETH_HLEN;
	const struct ipv6hdr *ip = (const void *)from;
	const struct tcphdr *th = (const void *)(from + sizeof(*ip));
	__u32 doff, len = skb->len - ETH_HLEN;

	if (!pkt || !seg || (const char *)(th + 1) > (const char *)(long)skb->data_end || ip->version != 6 ||
	    ip->nexthdr != IPPROTO_TCP)
		return 0;
	doff = th->doff * 4;
	if (!is_leaving)
		len = es_headers_packet_len(ip->payload_len, skb->gso_size != 0, len);
	if (len > skb->len - ETH_HLEN || doff < sizeof(*th) || sizeof(*ip) + doff > len)
		return 0;
	__builtin_memcpy(&pkt->source, &ip->saddr, sizeof(pkt->source));
	if (!es_addr_is_client(&pkt->source))
		return 0;
	__builtin_memcpy(&pkt->dest, &ip->daddr, sizeof(pkt->dest));
	pkt->is_v6 = 1;
	pkt->headers_len = sizeof(*ip);
	es_packet_tcp_fill(th, doff, len - sizeof(*ip) - doff, pkt, seg);
	seg->is_v6 = 1;
	return 1;
}

#endif
