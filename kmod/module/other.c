// SPDX-License-Identifier: GPL-2.0-only
/*
 * The services' addresses, ARP for them, and the traffic to them that no service takes.
 */
#include <linux/etherdevice.h>
#include <linux/icmp.h>
#include <linux/if_arp.h>
#include <linux/ip.h>
#include <net/arp.h>

#include "kmod/core/neighbour.h"
#include "other.h"

/* The part of an ARP packet behind its header, for Ethernet and IPv4. */
struct es_arp_addresses {
	u8 sender_mac[ETH_ALEN];
	u8 sender_ip[4];
	u8 target_mac[ETH_ALEN];
	u8 target_ip[4];
} __packed;

int es_is_service_address(const struct es_version *version, __be32 v4)
{
	const struct es_config *cfg = &version->config;

	for (u32 i = 0; i < cfg->service_count; i++)
		if (cfg->service[i].address.w[3] == v4 && es_addr_is_v4(&cfg->service[i].address))
			return 1;
	return 0;
}

int es_service_find(const struct es_version *version, __be32 v4, __be16 port)
{
	const struct es_config *cfg = &version->config;

	for (u32 i = 0; i < cfg->service_count; i++)
		if (cfg->service[i].port == port && cfg->service[i].address.w[3] == v4 &&
		    es_addr_is_v4(&cfg->service[i].address))
			return (int)i;
	return -1;
}

/* Entries without an address of IPv6 have all zeros, which is nobody's. */
int es_is_service_address6(const struct es_version *version, const struct es_addr *a)
{
	const struct es_config *cfg = &version->config;

	if (es_addr_is_unspecified(a))
		return 0;
	for (u32 i = 0; i < cfg->service_count; i++)
		if (es_addr_equal(&cfg->service[i].address6, a))
			return 1;
	return 0;
}

int es_service_find6(const struct es_version *version, const struct es_addr *a, __be16 port)
{
	const struct es_config *cfg = &version->config;

	if (es_addr_is_unspecified(a))
		return -1;
	for (u32 i = 0; i < cfg->service_count; i++)
		if (cfg->service[i].port == port && es_addr_equal(&cfg->service[i].address6, a))
			return (int)i;
	return -1;
}

int es_service_of(const struct es_version *version, const struct es_packet *pkt)
{
	return pkt->is_v6 ? es_service_find6(version, &pkt->dest, pkt->dport)
			  : es_service_find(version, pkt->daddr, pkt->dport);
}

int es_address_is_mine(const struct es_node *node, const struct es_version *version,
		       const struct es_addr *client)
{
	return es_ring_is_mine(node, version, es_addr_hash(&version->config.ring_key, client));
}

unsigned int es_other_arp(struct es_node *node, const struct es_version *version, struct sk_buff *skb)
{
	struct {
		struct arphdr header;
		struct es_arp_addresses addresses;
	} __packed buf, *arp;
	__be32 sender, target;
	struct sk_buff *reply;
	struct es_addr client;
	int rc;

	arp = skb_header_pointer(skb, 0, sizeof(buf), &buf);
	if (!arp || arp->header.ar_op != htons(ARPOP_REQUEST) || arp->header.ar_pro != htons(ETH_P_IP) ||
	    arp->header.ar_hln != ETH_ALEN || arp->header.ar_pln != 4)
		return NF_ACCEPT;
	memcpy(&target, arp->addresses.target_ip, 4);
	memcpy(&sender, arp->addresses.sender_ip, 4);
	if (!es_is_service_address(version, target))
		return NF_ACCEPT;
	client = es_addr_from_v4(sender);
	if (!es_address_is_mine(node, version, &client)) {
		es_count(node, ES_COUNT_arp_not_mine);
		return NF_DROP;
	}
	/* The frame's source is this node, the ARP packet's is the cluster: see es_answer_send(). */
	reply = arp_create(ARPOP_REPLY, ETH_P_ARP, sender, skb->dev, target, arp->addresses.sender_mac,
			   version->config.cluster_mac, arp->addresses.sender_mac);
	if (!reply) {
		es_count(node, ES_COUNT_answer_failed);
		return NF_DROP;
	}
	ether_addr_copy(((struct ethhdr *)reply->data)->h_source, version->config.public_mac);
	rc = dev_queue_xmit(reply);
	es_count(node, net_xmit_eval(rc) ? ES_COUNT_answer_failed : ES_COUNT_arp_answered);
	return NF_DROP;
}

unsigned int es_other_ip(struct es_node *node, const struct es_version *version, struct sk_buff *skb,
			 const struct iphdr *ip)
{
	struct es_addr client = es_addr_from_v4(ip->saddr);
	u32 counter = ES_COUNT_other_mine;

	if (ip->protocol == IPPROTO_ICMP) {
		u8 buf;
		const u8 *type = skb_header_pointer(skb, ip->ihl * 4, sizeof(buf), &buf);

		counter = ES_COUNT_icmp_echo_mine;
		if (type && (*type == ICMP_DEST_UNREACH || *type == ICMP_TIME_EXCEEDED ||
			     *type == ICMP_PARAMETERPROB)) {
			es_count(node, ES_COUNT_icmp_error);
			skb->pkt_type = PACKET_HOST;
			return NF_ACCEPT;
		}
	}
	if (!es_address_is_mine(node, version, &client)) {
		es_count(node, ES_COUNT_other_not_mine);
		return NF_DROP;
	}
	es_count(node, counter);
	skb->pkt_type = PACKET_HOST;
	return NF_ACCEPT;
}
