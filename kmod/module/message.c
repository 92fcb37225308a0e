// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks, opens and answers handover messages; target.c acts on their meaning.
 */
#include <linux/etherdevice.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>

#include "message.h"
#include "packet6.h"

static __be64 es_message_mac(const struct es_sipkey *key, const struct es_handover *h, const u8 *packet)
{
	u32 len = ntohs(h->packet_len), off;
	struct es_sipstate sip;
	u64 word;

	es_handover_mac_begin(&sip, key, h);
	for (off = 0; off + 8 <= len; off += 8) {
		memcpy(&word, packet + off, 8);
		es_siphash_word(&sip, es_cpu_le64(word));
	}
	word = 0;
	memcpy(&word, packet + off, len - off);
	return es_handover_mac_end(&sip, es_cpu_le64(word), len);
}

/* The time by which messages are stamped. */
static u64 es_message_wall_ns(const struct es_node *node)
{
	return ktime_get_coarse_ns() + READ_ONCE(node->state->wall_offset_ns);
}

u32 es_message_check(struct es_node *node, const struct es_config *cfg, struct sk_buff *skb,
		     const struct es_handover *h)
{
	u32 len = ntohs(h->packet_len);
	struct es_message_verdict verdict;
	struct es_message_moment moment;
	struct es_replay_slot *slot;
	const u8 *packet;
	int fresh;

	if (len > ES_MESSAGE_PACKET_MAX || skb_shared(skb) ||
	    !pskb_may_pull(skb, es_message_packet_off(skb) + len))
		return ES_COUNT_handover_malformed;
	packet = skb->data + es_message_packet_off(skb);
	if (es_message_mac(&cfg->handover_key[0], h, packet) != h->mac &&
	    (cfg->key_count < 2 || es_message_mac(&cfg->handover_key[1], h, packet) != h->mac))
		return ES_COUNT_handover_bad_mac;
	es_message_moment_get(node->state, cfg, h, ktime_get_coarse_ns(), ktime_get_ns(), &moment);
	es_decide_authentic(cfg, h, &moment, &verdict);
	if (verdict.action != ES_MESSAGE_GO_ON)
		return verdict.counter;
	slot = &node->replays[es_message_stream(h)];
	spin_lock_bh(&slot->lock);
	fresh = es_message_accept(&slot->replay, h);
	spin_unlock_bh(&slot->lock);
	return fresh ? ES_COUNT_handover_received : ES_COUNT_handover_replayed;
}

/* Turn @h into the answer to it, in front of the packet. */
static void es_answer_header_write(struct es_node *node, const struct es_config *cfg,
				   const struct es_handover *h, u8 kind, u8 reason, u8 *at)
{
	struct es_handover answer = *h;

	es_message_answer_put(&answer, cfg->self, kind, reason, es_message_wall_ns(node),
			      (u64)atomic64_fetch_inc((atomic64_t *)&node->state->sequence));
	answer.mac = es_message_mac(&cfg->handover_key[0], &answer, at + sizeof(answer));
	memcpy(at, &answer, sizeof(answer));
}

/*
 * Set the UDP checksum of a complete datagram of @len bytes. IPv4 does without one, as the MAC says more;
 * IPv6 demands one (RFC 8200, 8.1).
 */
static void es_answer_checksum(struct udphdr *udp, const struct ipv6hdr *ip6, u32 len)
{
	udp->check = 0;
	if (!ip6)
		return;
	udp->check =
		csum_ipv6_magic(&ip6->saddr, &ip6->daddr, len, IPPROTO_UDP, csum_partial(udp, (int)len, 0));
	if (!udp->check)
		udp->check = CSUM_MANGLED_0;
}

/* Addresses change places, and the length is that of a datagram of @udp_len bytes. */
static void es_answer_turn4(struct iphdr *ip, u32 udp_len)
{
	swap(ip->saddr, ip->daddr);
	ip->tot_len = htons((u16)(sizeof(*ip) + udp_len));
	ip_send_check(ip);
}

static void es_answer_turn6(struct ipv6hdr *ip, u32 udp_len)
{
	swap(ip->saddr, ip->daddr);
	ip->payload_len = htons((u16)udp_len);
}

static int es_message_answer_here(struct es_node *node, const struct es_config *cfg, struct sk_buff *skb,
				  const struct es_handover *h, u8 kind, u8 reason)
{
	u32 len = es_message_packet_off(skb) + ntohs(h->packet_len), udp_len = len - es_message_udp_off(skb);
	int is_v6 = es_message_is_v6(skb);
	struct udphdr *udp;

	if (skb_ensure_writable(skb, len) || pskb_trim(skb, len))
		return -ENOMEM;
	udp = (struct udphdr *)(skb->data + es_message_udp_off(skb));
	if (is_v6)
		es_answer_turn6((struct ipv6hdr *)skb->data, udp_len);
	else
		es_answer_turn4((struct iphdr *)skb->data, udp_len);
	swap(udp->source, udp->dest);
	udp->len = htons((u16)udp_len);
	es_answer_header_write(node, cfg, h, kind, reason, (u8 *)(udp + 1));
	es_answer_checksum(udp, is_v6 ? (const struct ipv6hdr *)skb->data : NULL, udp_len);
	skb->ip_summed = CHECKSUM_NONE;
	skb->csum_valid = 0;
	return 0;
}

/* The IP header of an answer to the message whose header is @in. */
static void es_answer_put4(struct sk_buff *out, const struct iphdr *in, u32 udp_len)
{
	struct iphdr *ip = skb_put_zero(out, sizeof(*ip));

	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tot_len = htons((u16)(sizeof(*ip) + udp_len));
	ip->frag_off = htons(IP_DF);
	ip->ttl = IPDEFTTL;
	ip->protocol = IPPROTO_UDP;
	ip->saddr = in->daddr;
	ip->daddr = in->saddr;
	ip_send_check(ip);
}

static void es_answer_put6(struct sk_buff *out, const struct ipv6hdr *in, u32 udp_len)
{
	struct ipv6hdr *ip = skb_put_zero(out, sizeof(*ip));

	ip->version = 6;
	ip->payload_len = htons((u16)udp_len);
	ip->nexthdr = IPPROTO_UDP;
	ip->hop_limit = IPDEFTTL;
	ip->saddr = in->daddr;
	ip->daddr = in->saddr;
}

int es_message_send(struct es_node *node, const struct es_config *cfg, const struct sk_buff *skb,
		    const struct es_handover *h, u8 kind, u8 reason)
{
	u32 packet_len = ntohs(h->packet_len), udp_off = es_message_udp_off(skb);
	u32 len = es_message_packet_off(skb) + packet_len, udp_len = len - udp_off;
	const struct udphdr *udp_in = (const struct udphdr *)(skb->data + udp_off);
	struct net_device *dev = skb->dev;
	int is_v6 = es_message_is_v6(skb);
	struct sk_buff *out;
	struct udphdr *udp;
	u8 *header;
	int rc;

	out = alloc_skb(LL_RESERVED_SPACE(dev) + len + dev->needed_tailroom, GFP_ATOMIC);
	if (!out)
		return -ENOMEM;
	skb_reserve(out, LL_RESERVED_SPACE(dev));
	skb_reset_network_header(out);
	skb_set_transport_header(out, (int)udp_off);
	if (is_v6)
		es_answer_put6(out, (const struct ipv6hdr *)skb->data, udp_len);
	else
		es_answer_put4(out, (const struct iphdr *)skb->data, udp_len);
	udp = skb_put_zero(out, sizeof(*udp));
	udp->source = udp_in->dest;
	udp->dest = udp_in->source;
	udp->len = htons((u16)udp_len);
	header = skb_put(out, sizeof(*h));
	skb_put_data(out, skb->data + es_message_packet_off(skb), packet_len);
	es_answer_header_write(node, cfg, h, kind, reason, header);
	es_answer_checksum(udp, is_v6 ? (const struct ipv6hdr *)out->data : NULL, udp_len);
	out->protocol = skb->protocol;
	out->dev = dev;
	/* To this node itself: a packet on lo carries its route; without one it would be a martian. */
	if (dev->flags & IFF_LOOPBACK)
		skb_dst_copy(out, skb);
	if (dev_hard_header(out, dev, ntohs(out->protocol), eth_hdr(skb)->h_source, dev->dev_addr, out->len) <
	    0) {
		kfree_skb(out);
		return -EINVAL;
	}
	skb_reset_mac_header(out);
	rc = dev_queue_xmit(out);
	return net_xmit_eval(rc) ? -ENOBUFS : 0;
}

unsigned int es_message_answer(struct es_node *node, const struct es_config *cfg, struct sk_buff *skb,
			       const struct es_handover *h, u8 kind, u8 reason)
{
	int is_own = h->source == cfg->self;
	int rc = is_own ? es_message_answer_here(node, cfg, skb, h, kind, reason)
			: es_message_send(node, cfg, skb, h, kind, reason);

	if (rc)
		es_count(node, ES_COUNT_answer_failed);
	return is_own && !rc ? NF_ACCEPT : NF_DROP;
}

static int es_message_packet4(const struct iphdr *ip, u32 len, struct es_packet *ret)
{
	if (!es_message_packet_ok((const u8 *)ip, len))
		return -EINVAL;
	ret->saddr = ip->saddr;
	ret->daddr = ip->daddr;
	return 0;
}

static int es_message_packet6(const struct sk_buff *skb, const struct ipv6hdr *ip, u32 len,
			      struct es_packet *ret)
{
	if (sizeof(*ip) + ntohs(ip->payload_len) != len || es_packet_headers6(skb, ret) != ES_COUNTER_COUNT)
		return -EINVAL;
	return 0;
}

int es_message_packet(const struct sk_buff *skb, const struct es_handover *h, struct es_packet *ret_pkt,
		      struct es_segment *ret_seg)
{
	const u8 *packet = skb->data + es_message_packet_off(skb);
	u32 len = ntohs(h->packet_len);
	int rc = -EINVAL;

	ret_pkt->off = es_message_packet_off(skb);
	if (len >= sizeof(struct ipv6hdr) && packet[0] >> 4 == 6)
		rc = es_message_packet6(skb, (const struct ipv6hdr *)packet, len, ret_pkt);
	else if (len >= sizeof(struct iphdr))
		rc = es_message_packet4((const struct iphdr *)packet, len, ret_pkt);
	if (rc || es_packet_tcp(skb, ret_pkt, len, ret_seg) || es_packet_options(skb, ret_pkt, ret_seg))
		return -EINVAL;
	return 0;
}

int es_message_open(const struct es_node *node, struct sk_buff *skb, const struct es_packet *pkt)
{
	struct net_device *dev = READ_ONCE(node->device[ES_HOOK_PUBLIC]);
	u32 off = es_message_packet_off(skb);
	struct ethhdr *eth;

	if (!dev || skb_cow_head(skb, 0))
		return -ENODEV;
	skb_dst_drop(skb); /* on lo it has the envelope's */
	skb->dev = dev;
	skb->skb_iif = dev->ifindex;
	skb->protocol = pkt->is_v6 ? htons(ETH_P_IPV6) : htons(ETH_P_IP);
	if (skb->ip_summed != CHECKSUM_COMPLETE)
		skb->ip_summed = CHECKSUM_NONE; /* the old state was the envelope's */
	skb->csum_valid = 0;
	skb->csum_level = 0;
	if (!skb_pull_rcsum(skb, off))
		return -EINVAL;
	skb_reset_network_header(skb);
	/* In the place of the envelope's end. */
	eth = skb_push(skb, ETH_HLEN);
	ether_addr_copy(eth->h_dest, dev->dev_addr);
	eth_zero_addr(eth->h_source);
	eth->h_proto = skb->protocol;
	skb_reset_mac_header(skb);
	__skb_pull(skb, ETH_HLEN);
	skb_reset_mac_len(skb);
	skb_clear_hash(skb);
	skb->pkt_type = PACKET_HOST;
	return 0;
}
