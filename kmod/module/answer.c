// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes the segments that no socket sends.
 */
#include <linux/etherdevice.h>
#include <net/ip.h>
#include <net/tcp.h>

#include "answer.h"

/* The bytes of @a as a packet, behind @headroom bytes; NULL if there is no memory. */
static struct sk_buff *es_answer_packet(const struct es_answer *a, unsigned int headroom,
					unsigned int tailroom)
{
	struct sk_buff *out = alloc_skb(headroom + ES_ANSWER_MAX + tailroom, GFP_ATOMIC);
	union es_answer_wire wire;
	u32 len;

	if (!out)
		return NULL;
	skb_reserve(out, headroom);
	skb_reset_network_header(out);
	skb_set_transport_header(out, sizeof(struct iphdr));
	len = es_answer_write(a, 0, &wire);
	skb_put_data(out, wire.bytes, len);
	out->protocol = htons(ETH_P_IP);
	return out;
}

int es_answer_send(const struct sk_buff *skb, const struct es_config *cfg, const struct es_answer *a)
{
	struct net_device *dev = skb->dev;
	struct sk_buff *out = es_answer_packet(a, LL_RESERVED_SPACE(dev), dev->needed_tailroom);
	int rc;

	if (!out)
		return -ENOMEM;
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
	struct sk_buff *out = es_answer_packet(a, MAX_HEADER, 0);
	int rc;

	if (!out)
		return -ENOMEM;
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
	int rc = es_answer_prepare(skb);
	union es_answer_wire wire;
	struct es_answer rst;
	u32 len;

	if (rc)
		return rc;
	es_answer_reset(pkt, rcv_nxt, &rst);
	len = es_answer_write(&rst, 0, &wire);
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
