/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_PACKET6_H
#define ES_MODULE_PACKET6_H

/*
 * The headers before that of TCP, of IPv6 (kmod/core/headers.h) and of both families.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>

#include "kmod/core/headers.h"
#include "packet.h"

/**
 * es_packet_headers6() - walk to the TCP header of the IPv6 packet at @pkt->off
 * Sets @pkt's addresses, headers_len and is_v6. Returns what es_headers_counter() does.
 */
static inline int es_packet_headers6(const struct sk_buff *skb, struct es_packet *pkt)
{
	struct es_headers_walk w = {.off = sizeof(struct ipv6hdr)};
	const struct ipv6hdr *ip;
	struct ipv6hdr buf;
	const u8 *head;
	u8 head_buf[2];

	ip = skb_header_pointer(skb, (int)pkt->off, sizeof(buf), &buf);
	if (!ip || ip->version != 6)
		return ES_COUNT_drop_malformed;
	memcpy(&pkt->source, &ip->saddr, sizeof(pkt->source));
	memcpy(&pkt->dest, &ip->daddr, sizeof(pkt->dest));
	pkt->is_v6 = 1;
	w.next = ip->nexthdr;
	for (int i = 0; i < ES_HEADERS_MAX && es_headers_go_on(&w); i++) {
		head = skb_header_pointer(skb, (int)(pkt->off + w.off), sizeof(head_buf), head_buf);
		if (!head)
			return ES_COUNT_drop_malformed;
		es_headers_step(&w, head);
	}
	pkt->headers_len = (u16)w.off;
	return es_headers_counter(w.next, &pkt->source);
}

/**
 * es_packet_upper6() - walk to what the headers of the IPv6 packet at skb->data are for
 * @next: that of the first. Returns where it is, and @ret_next; -1: it is unknown what is behind the headers,
 * see es_headers_hide().
 */
static inline int es_packet_upper6(const struct sk_buff *skb, u8 next, u32 *ret_next)
{
	struct es_headers_walk w = {.off = sizeof(struct ipv6hdr), .next = next};
	const u8 *head;
	u8 head_buf[2];

	for (int i = 0; i < ES_HEADERS_MAX && es_headers_go_on(&w); i++) {
		head = skb_header_pointer(skb, (int)w.off, sizeof(head_buf), head_buf);
		if (!head)
			return -1;
		es_headers_step(&w, head);
	}
	if (es_headers_hide(w.next))
		return -1;
	*ret_next = w.next;
	return (int)w.off;
}

/**
 * es_packet_headers() - what comes before the TCP header of a packet that is in the stack, of either family
 * Sets @pkt's addresses, headers_len and is_v6. Returns 0, or -EINVAL if it is none of TCP that a service's
 * may be.
 */
static inline int es_packet_headers(const struct sk_buff *skb, int is_v6, struct es_packet *pkt)
{
	const struct iphdr *ip = ip_hdr(skb);

	if (is_v6)
		return es_packet_headers6(skb, pkt) == ES_COUNTER_COUNT ? 0 : -EINVAL;
	if (ip->protocol != IPPROTO_TCP || ip->ihl != 5)
		return -EINVAL;
	pkt->saddr = ip->saddr;
	pkt->daddr = ip->daddr;
	return 0;
}

#endif
