/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_PACKET_H
#define ES_BPF_PACKET_H

/*
 * From the bytes of a packet to a segment and a flow. Headers are copied to the stack, which survives every
 * later change of the packet.
 */
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/tcp.h>
#include <linux/udp.h>

#include "kmod/core/packet.h"
#include "kmod/core/tcp.h"

#define ES_VLAN_ID 0xfff /* of a tag; above it are priority and drop eligibility */

/**
 * es_packet_is_of_vlan() - is the frame none of this interface's, but of one above it?
 * A tag with number 0 names no VLAN, only a priority (IEEE 802.1Q): the stack takes it off, and so does this,
 * or our answers would carry it. Before anything else is read of the packet.
 */
static __always_inline int es_packet_is_of_vlan(struct __sk_buff *skb)
{
	if (es_likely(!skb->vlan_present))
		return 0;
	return (skb->vlan_tci & ES_VLAN_ID) || bpf_skb_vlan_pop(skb);
}

/**
 * es_packet_load() - bpf_skb_load_bytes(), without the call where the bytes are in the linear part
 * There headers nearly always are.
 * @off, @len: constants
 */
static __always_inline long es_packet_load(struct __sk_buff *skb, __u32 off, void *to, __u32 len)
{
	const char *from = (const char *)(long)skb->data + off;

	if (from + len > (const char *)(long)skb->data_end)
		return bpf_skb_load_bytes(skb, off, to, len);
	__builtin_memcpy(to, from, len);
	return 0;
}

/* Note what a TCP header of @doff bytes says, before @len bytes of payload. */
static __always_inline void es_packet_tcp_fill(const struct tcphdr *th, __u32 doff, __u32 len,
					       struct es_packet *pkt, struct es_segment *seg)
{
	pkt->options_len = doff - sizeof(*th);
	pkt->sport = th->source;
	pkt->dport = th->dest;
	__builtin_memset(seg, 0, sizeof(*seg));
	seg->seq = es_ntohl(th->seq);
	seg->ack = es_ntohl(th->ack_seq);
	seg->len = len;
	seg->flags = ((const __u8 *)th)[13];
}

/**
 * es_packet_tcp() - read the TCP header behind an IPv4 header without options
 * @off: where that one is, a constant; @len: bytes from its first to the packet's last (its tot_len)
 * Returns 0, or -1 if the lengths contradict each other.
 */
static __always_inline int es_packet_tcp(struct __sk_buff *skb, __u32 off, struct es_packet *pkt, __u32 len,
					 struct es_segment *ret_seg)
{
	struct tcphdr th;
	__u32 doff;

	if (es_packet_load(skb, off + sizeof(struct iphdr), &th, sizeof(th)))
		return -1;
	doff = th.doff * 4;
	if (doff < sizeof(th) || sizeof(struct iphdr) + doff > len)
		return -1;
	es_packet_tcp_fill(&th, doff, len - sizeof(struct iphdr) - doff, pkt, ret_seg);
	return 0;
}

/**
 * es_packet_plain4() - read what nearly all packets of IPv4 are: TCP right behind a header without options
 * Reads them where they lie, without a copy on the stack. @pkt->off is ETH_HLEN. Returns 1 when @pkt and
 * @seg are read; 0: somebody has to look closer.
 */
static __always_inline int es_packet_plain4(struct __sk_buff *skb, struct es_packet *pkt,
					    struct es_segment *seg)
{
	const char *from = (const char *)(long)skb->data + ETH_HLEN;
	const struct iphdr *ip = (const void *)from;
	const struct tcphdr *th = (const void *)(from + sizeof(*ip));
	__u32 doff, len;

	if ((const char *)(th + 1) > (const char *)(long)skb->data_end || ip->ihl != 5 ||
	    ip->protocol != IPPROTO_TCP || ip->frag_off & es_htons(0x3fff))
		return 0;
	doff = th->doff * 4;
	len = es_ntohs(ip->tot_len);
	if (len > skb->len - ETH_HLEN || doff < sizeof(*th) || sizeof(*ip) + doff > len)
		return 0;
	pkt->saddr = ip->saddr;
	pkt->daddr = ip->daddr;
	es_packet_tcp_fill(th, doff, len - sizeof(*ip) - doff, pkt, seg);
	return 1;
}

/* Where the TCP header begins. */
static __always_inline __u32 es_packet_tcp_off(const struct es_packet *pkt)
{
	return pkt->off + es_packet_ip_len(pkt);
}

static long es_packet_option_step(__u32 i, void *scan)
{
	(void)i;
	return es_tcp_option_step(scan);
}

/*
 * Options are read only where a decision needs them: nothing of this runs for an established connection.
 * A global function, so that it is verified once.
 */
__noinline int es_packet_options(struct __sk_buff *skb, const struct es_packet *pkt, struct es_segment *seg)
{
	struct es_tcp_option_scan scan = {};

	if (!pkt || !seg)
		return -1;
	scan.len = pkt->options_len;
	if (!scan.len)
		return 0;
	if (scan.len > ES_TCP_OPTIONS_MAX ||
	    bpf_skb_load_bytes(skb, es_packet_tcp_off(pkt) + sizeof(struct tcphdr), scan.block, scan.len))
		return -1;
	scan.seg = *seg;
	if (es_tcp_options_are_ts(&scan)) {
		scan.seg.has_ts = 1;
		scan.seg.tsval = es_get_be32(scan.block + 4);
		scan.seg.tsecr = es_get_be32(scan.block + 8);
	} else {
		bpf_loop(ES_TCP_OPTIONS_MAX, es_packet_option_step, &scan, 0);
	}
	*seg = scan.seg;
	return es_tcp_options_are_taken(&scan) ? 0 : -1;
}

#endif
