/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_PACKET_H
#define ES_MODULE_PACKET_H

/*
 * From the bytes of a packet to a segment and a flow. Headers are read by skb_header_pointer(), so that paged
 * data need not be pulled for packets that are dropped anyway.
 */
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>

#include "kmod/core/packet.h"
#include "kmod/core/tcp.h"

/**
 * es_packet_is_of_vlan() - is the frame none of this interface's, but of one above it?
 * A tag with number 0 names no VLAN, only a priority (IEEE 802.1Q): the stack takes it off, and so does this.
 */
static inline int es_packet_is_of_vlan(struct sk_buff *skb)
{
	if (likely(!skb_vlan_tag_present(skb)))
		return 0;
	if (skb_vlan_tag_get_id(skb))
		return 1;
	__vlan_hwaccel_clear_tag(skb);
	return 0;
}

/**
 * es_packet_tcp() - read the TCP header behind an IPv4 header without options, or behind es_packet_headers6()
 * @len: bytes from the IP header's first to the packet's last
 * Returns 0, or -EINVAL if the lengths contradict each other.
 */
static inline int es_packet_tcp(const struct sk_buff *skb, struct es_packet *pkt, u32 len,
				struct es_segment *ret_seg)
{
	u32 ip_len = es_packet_ip_len(pkt), doff;
	struct tcphdr buf;
	const struct tcphdr *th;

	th = skb_header_pointer(skb, (int)(pkt->off + ip_len), sizeof(buf), &buf);
	if (!th)
		return -EINVAL;
	doff = th->doff * 4;
	if (doff < sizeof(*th) || ip_len + doff > len)
		return -EINVAL;
	pkt->options_len = doff - sizeof(*th);
	pkt->sport = th->source;
	pkt->dport = th->dest;
	memset(ret_seg, 0, sizeof(*ret_seg));
	ret_seg->seq = ntohl(th->seq);
	ret_seg->ack = ntohl(th->ack_seq);
	ret_seg->len = len - ip_len - doff;
	ret_seg->flags = ((const u8 *)th)[13];
	ret_seg->is_v6 = pkt->is_v6;
	return 0;
}

/* Options are read only where a decision needs them: nothing of this runs for an established connection. */
static inline int es_packet_options(const struct sk_buff *skb, const struct es_packet *pkt,
				    struct es_segment *seg)
{
	struct es_tcp_option_scan scan = {.len = pkt->options_len};

	if (!scan.len)
		return 0;
	if (skb_copy_bits(skb, (int)(pkt->off + es_packet_ip_len(pkt) + sizeof(struct tcphdr)), scan.block,
			  (int)scan.len))
		return -EINVAL;
	scan.seg = *seg;
	es_tcp_options_parse(&scan);
	*seg = scan.seg;
	return es_tcp_options_are_taken(&scan) ? 0 : -EINVAL;
}

#endif
