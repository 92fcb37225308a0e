// SPDX-License-Identifier: GPL-2.0-or-later
/* ARP, neighbour discovery, and packets to service addresses that are for no service. */
#include <linux/icmp.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include "kmod/core/neighbour.h"
#include "netfilter/node/other.h"

/* struct es_nf_arp - an ARP packet of Ethernet and IPv4 */
struct es_nf_arp {
	__be16 hardware;
	__be16 protocol;
	__u8 hardware_len;
	__u8 protocol_len;
	__be16 operation;
	__u8 sender_mac[ETH_ALEN];
	__u8 sender_ip[4];
	__u8 target_mac[ETH_ALEN];
	__u8 target_ip[4];
} __attribute__((packed));

static int es_nf_address_is_mine(const struct es_nf_node *node, const struct es_addr *client)
{
	return es_nf_ring_is_mine(node, es_addr_hash(&node->config.ring_key, client));
}

void es_nf_other_arp(struct es_nf_node *node, const uint8_t *arp, size_t len)
{
	struct es_nf_arp request, reply;
	struct es_addr sender, target;
	int rc;

	if (len < sizeof(request))
		return;
	memcpy(&request, arp, sizeof(request));
	sender = es_addr_from_v4(es_nf_be32(request.sender_ip));
	target = es_addr_from_v4(es_nf_be32(request.target_ip));
	if (request.operation != es_htons(ARPOP_REQUEST) || request.protocol != es_htons(ETH_P_IP) ||
	    request.hardware_len != ETH_ALEN || request.protocol_len != 4 ||
	    !es_nf_is_service_address(node, &target))
		return;
	if (!es_nf_address_is_mine(node, &sender)) {
		es_nf_count(node, ES_COUNT_arp_not_mine);
		return;
	}
	/* The frame comes from this node, the ARP packet from the cluster's MAC. */
	reply = request;
	reply.operation = es_htons(ARPOP_REPLY);
	memcpy(reply.sender_mac, node->config.cluster_mac, ETH_ALEN);
	memcpy(reply.sender_ip, request.target_ip, 4);
	memcpy(reply.target_mac, request.sender_mac, ETH_ALEN);
	memcpy(reply.target_ip, request.sender_ip, 4);
	rc = node->hands.frame(node->hands.ctx, request.sender_mac, ETH_P_ARP, &reply, sizeof(reply));
	es_nf_count(node, rc ? ES_COUNT_answer_failed : ES_COUNT_arp_answered);
}

/* Is the solicitation valid, as a neighbour would send it? */
static int es_nf_neighbour_check(const struct es_nf_frame *frame, const struct es_nf_ip *ip)
{
	size_t len = es_ntohs(es_nf_be16(frame->bytes + 4));
	struct es_neighbour_walk walk;
	__u16 words[ES_NEIGHBOUR_UNIT / 2];

	es_neighbour_walk_init(&ip->source, &ip->dest, (__u32)len, &walk);
	if (walk.is_wrong || frame->len < ES_NF_IP6_LEN + len)
		return 0;
	do {
		memcpy(words, frame->bytes + ES_NF_IP6_LEN + walk.unit * ES_NEIGHBOUR_UNIT, sizeof(words));
	} while (es_neighbour_step(&walk, words));
	return es_neighbour_is_valid(&walk);
}

int es_nf_other_neighbour(struct es_nf_node *node, const struct es_nf_frame *frame, const struct es_nf_ip *ip)
{
	__u8 to[ETH_ALEN] = ES_NEIGHBOUR_ALL_MAC;
	union es_neighbour_packet answer;
	struct es_neighbour asked = {};
	int rc;

	if (!ip->is_v6 || ip->first != ES_HEADER_ICMPV6 || frame->len < ES_NF_IP6_LEN + ES_NEIGHBOUR_ASKS)
		return 0;
	memcpy(&asked, frame->bytes + ES_NF_IP6_LEN, ES_NEIGHBOUR_ASKS);
	if (!es_neighbour_is_solicitation(&asked, ip->hops) || !es_nf_is_service_address(node, &asked.target))
		return 0;
	if (!es_nf_neighbour_check(frame, ip)) {
		es_nf_count(node, ES_COUNT_drop_malformed);
		return 1;
	}
	if (!es_nf_address_is_mine(node, &ip->source)) {
		es_nf_count(node, ES_COUNT_ndp_not_mine);
		return 1;
	}
	es_neighbour_write(&node->config, &ip->source, &asked.target, &answer);
	if (!es_addr_is_unspecified(&ip->source))
		memcpy(to, frame->source, sizeof(to));
	rc = node->hands.frame(node->hands.ctx, to, ETH_P_IPV6, answer.bytes, sizeof(answer));
	es_nf_count(node, rc ? ES_COUNT_answer_failed : ES_COUNT_ndp_answered);
	return 1;
}

static int es_nf_is_icmp_error(const struct es_nf_frame *frame, const struct es_nf_ip *ip)
{
	uint8_t type;

	if (frame->len <= ip->at)
		return 0;
	type = frame->bytes[ip->at];
	if (ip->is_v6)
		return es_icmpv6_is_error(type);
	return type == ICMP_DEST_UNREACH || type == ICMP_TIME_EXCEEDED || type == ICMP_PARAMETERPROB;
}

enum es_nf_fate es_nf_other_ip(struct es_nf_node *node, const struct es_nf_frame *frame,
			       const struct es_nf_ip *ip)
{
	int is_icmp = ip->first == (ip->is_v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP);

	if (is_icmp && es_nf_is_icmp_error(frame, ip)) {
		es_nf_count(node, ES_COUNT_icmp_error);
		return node->hands.error(node->hands.ctx, frame->bytes, frame->len) ? ES_NF_ACCEPT
										    : ES_NF_DROP;
	}
	if (!es_nf_address_is_mine(node, &ip->source)) {
		es_nf_count(node, ES_COUNT_other_not_mine);
		return ES_NF_DROP;
	}
	es_nf_count(node, is_icmp ? ES_COUNT_icmp_echo_mine : ES_COUNT_other_mine);
	return ES_NF_ACCEPT;
}
