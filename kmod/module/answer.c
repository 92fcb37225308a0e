// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes the segments that no socket sends.
 */
#include <linux/etherdevice.h>
#include <linux/ipv6.h>
#include <net/ip.h>
#include <net/tcp.h>

#include "answer.h"
#include "compat.h"

/* An answer of either family. */
union es_answer_any {
	union es_answer_wire v4;
	union es_answer_wire6 v6;
	u8 bytes[ES_ANSWER_MAX_V6];
};

/* Returns how many bytes are to be sent. */
static u32 es_answer_put(const struct es_answer *a, union es_answer_any *ret)
{
	return a->is_v6 ? es_answer_write6(a, 0, &ret->v6) : es_answer_write(a, 0, &ret->v4);
}

static u16 es_answer_protocol(const struct es_answer *a)
{
	return a->is_v6 ? ETH_P_IPV6 : ETH_P_IP;
}

/* The bytes as a packet, with room around them; NULL if there is no memory. */
static struct sk_buff *es_answer_packet(u16 protocol, const u8 *packet, u32 len, unsigned int headroom,
					unsigned int tailroom)
{
	struct sk_buff *out = alloc_skb(headroom + len + tailroom, GFP_ATOMIC);

	if (!out)
		return NULL;
	skb_reserve(out, headroom);
	skb_reset_network_header(out);
	skb_set_transport_header(out, protocol == ETH_P_IPV6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr));
	skb_put_data(out, packet, len);
	out->protocol = htons(protocol);
	return out;
}

int es_answer_frame(struct net_device *dev, u16 protocol, const u8 *packet, u32 len, const u8 *dest,
		    const u8 *source)
{
	struct sk_buff *out =
		es_answer_packet(protocol, packet, len, LL_RESERVED_SPACE(dev), dev->needed_tailroom);
	int rc;

	if (!out)
		return -ENOMEM;
	out->dev = dev;
	if (dev_hard_header(out, dev, protocol, dest, source, out->len) < 0) {
		kfree_skb(out);
		return -EINVAL;
	}
	skb_reset_mac_header(out);
	rc = dev_queue_xmit(out);
	return net_xmit_eval(rc) ? -ENOBUFS : 0;
}

int es_answer_send(const struct sk_buff *skb, const struct es_config *cfg, const struct es_answer *a)
{
	union es_answer_any wire;
	u32 len = es_answer_put(a, &wire);

	return es_answer_frame(skb->dev, es_answer_protocol(a), wire.bytes, len, eth_hdr(skb)->h_source,
			       cfg->public_mac);
}

int es_answer_route(struct net *net, const struct sk_buff *skb, const struct es_answer *a)
{
	union es_answer_any wire;
	u32 len = es_answer_put(a, &wire);
	struct sk_buff *out = es_answer_packet(es_answer_protocol(a), wire.bytes, len, MAX_HEADER, 0);
	int rc;

	if (!out)
		return -ENOMEM;
	skb_dst_copy(out, skb);
	rc = a->is_v6 ? es_ip6_local_out(net, out) : ip_local_out(net, NULL, out);
	return net_xmit_eval(rc) ? -ENOBUFS : 0;
}

int es_answer_prepare(struct sk_buff *skb)
{
	/* Others that hold this very buffer (not a clone) must not see it change. */
	if (skb_shared(skb))
		return -EBUSY;
	return skb_unclone(skb, GFP_ATOMIC) || skb_linearize(skb) ? -ENOMEM : 0;
}

/* Put @a in the place of the packet, for the stack. Returns 0 or -errno. */
static int es_answer_replace(struct sk_buff *skb, const struct es_answer *a)
{
	union es_answer_any wire;
	u32 len = es_answer_put(a, &wire);

	if (skb->len < len)
		return -EINVAL;
	skb_trim(skb, len);
	if (skb_is_gso(skb))
		skb_gso_reset(skb);
	memcpy(skb->data, wire.bytes, len);
	skb->ip_summed = CHECKSUM_NONE;
	skb->csum_valid = 0;
	skb->pkt_type = PACKET_HOST;
	return 0;
}

int es_answer_end_old(struct sk_buff *skb, const struct es_packet *pkt, u32 rcv_nxt)
{
	int rc = es_answer_prepare(skb);
	struct es_answer rst;

	if (rc)
		return rc;
	es_answer_reset(pkt, rcv_nxt, &rst);
	return es_answer_replace(skb, &rst);
}

int es_answer_put_next(struct sk_buff *skb, const struct es_packet *pkt, const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	int rc = es_answer_prepare(skb);
	struct es_answer next;

	if (rc)
		return rc;
	/* By the socket's own clock: Linux says nothing to an acknowledgement from the past. */
	es_answer_next(pkt, READ_ONCE(tp->rcv_nxt), READ_ONCE(tp->snd_una), tp->rx_opt.tstamp_ok,
		       READ_ONCE(tp->rx_opt.ts_recent), es_ns_to_ms(ktime_get_ns()) + tp->tsoffset, &next);
	return es_answer_replace(skb, &next);
}

int es_answer_end(struct sk_buff *skb, const struct es_packet *pkt, const struct es_segment *seg)
{
	const struct tcphdr *th = (const struct tcphdr *)(skb->data + es_packet_ip_len(pkt));
	struct es_answer fin;

	es_answer_fin(pkt, seg, ntohs(th->window), &fin);
	return es_answer_replace(skb, &fin);
}
