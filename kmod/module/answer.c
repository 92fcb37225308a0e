// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes the segments that no socket sends.
 */
#include <linux/etherdevice.h>
#include <net/ip.h>
#include <net/tcp.h>

#include "answer.h"

/* IP and TCP header and options, with full checksums, to @at. Returns how many bytes. */
static u32 es_answer_write(void *at, const struct es_answer *a)
{
	u32 tcp_len = (u32)sizeof(struct tcphdr) + a->options_len;
	struct iphdr *ip = at;
	struct tcphdr *th = at + sizeof(*ip);

	memset(at, 0, sizeof(*ip) + tcp_len);
	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tot_len = htons((u16)(sizeof(*ip) + tcp_len));
	ip->frag_off = htons(IP_DF);
	ip->ttl = IPDEFTTL;
	ip->protocol = IPPROTO_TCP;
	ip->saddr = a->saddr;
	ip->daddr = a->daddr;
	ip_send_check(ip);
	th->source = a->sport;
	th->dest = a->dport;
	th->seq = htonl(a->seq);
	th->ack_seq = htonl(a->ack);
	th->doff = tcp_len / 4;
	((u8 *)th)[13] = a->flags;
	th->window = htons(a->window);
	memcpy(th + 1, a->options, a->options_len);
	th->check = tcp_v4_check((int)tcp_len, a->saddr, a->daddr, csum_partial(th, (int)tcp_len, 0));
	return (u32)sizeof(*ip) + tcp_len;
}

void es_answer_to(const struct es_packet *pkt, struct es_answer *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->saddr = pkt->daddr;
	ret->daddr = pkt->saddr;
	ret->sport = pkt->dport;
	ret->dport = pkt->sport;
}

void es_answer_synack(const struct es_config *cfg, const struct es_packet *pkt, const struct es_segment *seg,
		      const struct es_verdict *v, struct es_answer *ret)
{
	es_answer_to(pkt, ret);
	ret->seq = v->cookie;
	ret->ack = seg->seq + 1;
	ret->window = (u16)cfg->synack_window;
	ret->flags = ES_TCP_SYN | ES_TCP_ACK | (v->options.ecn_ok ? ES_TCP_ECE : 0);
	ret->options_len = ES_SYNACK_OPTIONS_LEN;
	es_synack_options_write(ret->options, &v->options, cfg->mss, v->tsval, seg->tsval);
}

int es_answer_send(const struct sk_buff *skb, const struct es_config *cfg, const struct es_answer *a)
{
	const u32 room = sizeof(struct iphdr) + sizeof(struct tcphdr) + ES_SYNACK_OPTIONS_LEN;
	struct net_device *dev = skb->dev;
	struct sk_buff *out = alloc_skb(LL_RESERVED_SPACE(dev) + room + dev->needed_tailroom, GFP_ATOMIC);
	int rc;

	if (!out)
		return -ENOMEM;
	skb_reserve(out, LL_RESERVED_SPACE(dev));
	skb_reset_network_header(out);
	skb_set_transport_header(out, sizeof(struct iphdr));
	skb_put(out, es_answer_write(out->data, a));
	out->protocol = htons(ETH_P_IP);
	out->dev = dev;
	if (dev_hard_header(out, dev, ETH_P_IP, eth_hdr(skb)->h_source, cfg->public_mac, out->len) < 0) {
		kfree_skb(out);
		return -EINVAL;
	}
	skb_reset_mac_header(out);
	rc = dev_queue_xmit(out);
	return net_xmit_eval(rc) ? -ENOBUFS : 0;
}

int es_answer_route(struct net *net, const struct sk_buff *skb, const struct es_answer *a)
{
	const u32 room = sizeof(struct iphdr) + sizeof(struct tcphdr) + ES_SYNACK_OPTIONS_LEN;
	struct sk_buff *out = alloc_skb(MAX_HEADER + room, GFP_ATOMIC);
	int rc;

	if (!out)
		return -ENOMEM;
	skb_reserve(out, MAX_HEADER);
	skb_reset_network_header(out);
	skb_set_transport_header(out, sizeof(struct iphdr));
	skb_put(out, es_answer_write(out->data, a));
	out->protocol = htons(ETH_P_IP);
	skb_dst_copy(out, skb);
	rc = ip_local_out(net, NULL, out);
	return net_xmit_eval(rc) ? -ENOBUFS : 0;
}

int es_answer_prepare(struct sk_buff *skb)
{
	/* Others that hold this very buffer (not a clone) must not see it change. */
	if (skb_shared(skb))
		return -EBUSY;
	return skb_unclone(skb, GFP_ATOMIC) || skb_linearize(skb) ? -ENOMEM : 0;
}

int es_answer_end_old(struct sk_buff *skb, const struct es_packet *pkt, u32 rcv_nxt)
{
	const struct es_answer rst = {
		.saddr = pkt->saddr,
		.daddr = pkt->daddr,
		.sport = pkt->sport,
		.dport = pkt->dport,
		.seq = rcv_nxt,
		.flags = ES_TCP_RST,
	};
	const u32 len = sizeof(struct iphdr) + sizeof(struct tcphdr);
	int rc = es_answer_prepare(skb);

	if (rc)
		return rc;
	if (skb->len < len)
		return -EINVAL;
	skb_trim(skb, len);
	if (skb_is_gso(skb))
		skb_gso_reset(skb);
	es_answer_write(skb->data, &rst);
	skb->ip_summed = CHECKSUM_NONE;
	skb->csum_valid = 0;
	skb->pkt_type = PACKET_HOST;
	return 0;
}
