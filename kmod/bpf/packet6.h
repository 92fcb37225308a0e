/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_PACKET6_H
#define ES_BPF_PACKET6_H

/*
 * From the bytes of an IPv6 packet to a segment: the walk over its extension headers (RFC 8200, 4) ends after a few, as
 * a verifier wants it, and as nobody who means it well sends more.
 */
#include <linux/ipv6.h>

#include "maps.h"
#include "packet.h"

enum {
	ES_HEADER_HOP_BY_HOP = 0,
	ES_HEADER_ROUTING = 43,
	ES_HEADER_FRAGMENT = 44,
	ES_HEADER_ICMPV6 = 58,
	ES_HEADER_OPTIONS = 60,
};

#define ES_HEADERS_MAX 4 /* before that of TCP */

/**
 * struct es_headers_walk - where a walk is
 * @next: what begins at @off, which is counted from the IPv6 header on
 */
struct es_headers_walk {
	__u32 off;
	__u32 next;
};

/* One header further; returns 0 at one that is not walked over. -1: it is cut off. */
static __always_inline int es_headers_step(struct __sk_buff *skb, __u32 at, struct es_headers_walk *w)
{
	__u8 head[2];

	if (w->next != ES_HEADER_HOP_BY_HOP && w->next != ES_HEADER_OPTIONS)
		return 0;
	if (bpf_skb_load_bytes(skb, at + w->off, head, sizeof(head)))
		return -1;
	w->next = head[0];
	w->off += 8 + 8 * (__u32)head[1];
	return 1;
}

/**
 * es_packet_headers6() - walk to the TCP header of the IPv6 packet at @pkt->off
 * Sets @pkt's addresses, headers_len and is_v6. Returns the counter to drop it by, ES_COUNTER_COUNT if it is TCP, and -1 if
 * it is something else. A global function, so that it is verified once.
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
		rc = es_headers_step(skb, pkt->off, &w);
	pkt->headers_len = (__u16)w.off;
	if (rc < 0)
		return ES_COUNT_drop_malformed;
	if (w.next == IPPROTO_TCP)
		return ES_COUNTER_COUNT;
	if (w.next == ES_HEADER_FRAGMENT)
		return ES_COUNT_drop_v6_fragment;
	if (w.next == ES_HEADER_ROUTING)
		return ES_COUNT_drop_v6_routing;
	if (w.next == ES_HEADER_HOP_BY_HOP || w.next == ES_HEADER_OPTIONS)
		return ES_COUNT_drop_v6_headers;
	return -1;
}

/* What a TCP header of @doff bytes says; @len as es_packet_tcp6() has it. */
static __always_inline void es_packet_tcp6_fill(const struct tcphdr *th, __u32 doff, __u32 len,
						struct es_packet *pkt, struct es_segment *seg)
{
	pkt->options_len = doff - sizeof(*th);
	pkt->sport = th->source;
	pkt->dport = th->dest;
	__builtin_memset(seg, 0, sizeof(*seg));
	seg->seq = es_ntohl(th->seq);
	seg->ack = es_ntohl(th->ack_seq);
	seg->len = len - pkt->headers_len - doff;
	seg->flags = ((const __u8 *)th)[13];
	seg->is_v6 = 1;
}

/**
 * es_packet_tcp6() - read the TCP header behind those that es_packet_headers6() has walked over
 * @len: bytes from the IPv6 header's first to the packet's last. Returns 0, or -1 if the lengths contradict each
 * other. A global function, so that it is verified once.
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
	es_packet_tcp6_fill(&th, doff, len, pkt, seg);
	return 0;
}

/**
 * es_packet_plain6() - the same for what nearly all packets are: TCP right behind the IPv6 header
 * Reads them where they lie, without a copy on the stack. @pkt->off is ETH_HLEN; @is_leaving: the header does not tell the length.
 * Returns 1 when @pkt and @seg are read; 0: es_packet_headers6() has to look. A global function, so that it is verified once.
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
	/* A merged packet may say 0, if it is longer than payload_len can say. */
	if (!is_leaving && ip->payload_len) {
		if (sizeof(*ip) + es_ntohs(ip->payload_len) > len)
			return 0;
		len = sizeof(*ip) + es_ntohs(ip->payload_len);
	}
	if (doff < sizeof(*th) || sizeof(*ip) + doff > len)
		return 0;
	__builtin_memcpy(&pkt->source, &ip->saddr, sizeof(pkt->source));
	__builtin_memcpy(&pkt->dest, &ip->daddr, sizeof(pkt->dest));
	pkt->is_v6 = 1;
	pkt->headers_len = sizeof(*ip);
	es_packet_tcp6_fill(th, doff, len, pkt, seg);
	return 1;
}

#endif
