// SPDX-License-Identifier: GPL-2.0-only
/*
 * Answers neighbour solicitations, and passes on what comes by IPv6 to a service's address and is for no
 * service. The counterpart of kmod/bpf/neighbour.h.
 */
#include <linux/etherdevice.h>

#include "answer.h"
#include "kmod/core/neighbour.h"
#include "neighbour.h"
#include "other.h"

/* Send the answer to who asked. Returns 0 or -errno. */
static int es_neighbour_answer(const struct sk_buff *skb, const struct es_config *cfg,
			       const struct es_packet *pkt, const struct es_addr *target)
{
	u8 dest[ETH_ALEN] = ES_NEIGHBOUR_ALL_MAC;
	union es_neighbour_packet answer;

	es_neighbour_write(cfg, &pkt->source, target, &answer);
	if (!es_addr_is_unspecified(&pkt->source))
		ether_addr_copy(dest, eth_hdr(skb)->h_source);
	return es_answer_frame(skb->dev, ETH_P_IPV6, answer.bytes, sizeof(answer), dest, cfg->public_mac);
}

/* Is the solicitation one that a neighbour has sent as it is? */
static int es_neighbour_check(const struct sk_buff *skb, const struct es_packet *pkt)
{
	const struct ipv6hdr *ip;
	struct es_neighbour_walk walk;
	u16 words[ES_NEIGHBOUR_UNIT / 2];
	struct ipv6hdr buf;
	const u16 *unit;

	ip = skb_header_pointer(skb, 0, sizeof(buf), &buf);
	if (!ip)
		return 0;
	es_neighbour_walk_init(&pkt->source, &pkt->dest, ntohs(ip->payload_len), &walk);
	if (walk.is_wrong)
		return 0;
	do {
		unit = skb_header_pointer(skb, sizeof(*ip) + walk.unit * ES_NEIGHBOUR_UNIT, sizeof(words),
					  words);
	} while (unit && es_neighbour_step(&walk, unit));
	return es_neighbour_is_valid(&walk);
}

int es_neighbour_solicited(struct es_node *node, const struct es_version *version, struct sk_buff *skb,
			   const struct es_packet *pkt, u8 hops)
{
	const struct es_neighbour *asked;
	struct es_neighbour buf;

	asked = skb_header_pointer(skb, sizeof(struct ipv6hdr), ES_NEIGHBOUR_ASKS, &buf);
	if (!asked || !es_neighbour_is_solicitation(asked, hops) ||
	    !es_is_service_address6(version, &asked->target))
		return ES_NEIGHBOUR_NONE;
	if (!es_neighbour_check(skb, pkt))
		es_count(node, ES_COUNT_drop_malformed);
	else if (!es_address_is_mine(node, version, &pkt->source))
		es_count(node, ES_COUNT_ndp_not_mine);
	else if (es_neighbour_answer(skb, &version->config, pkt, &asked->target))
		es_count(node, ES_COUNT_answer_failed);
	else
		es_count(node, ES_COUNT_ndp_answered);
	return NF_DROP;
}

unsigned int es_other_ip6(struct es_node *node, const struct es_version *version, struct sk_buff *skb,
			  const struct es_packet *pkt, u8 next)
{
	u32 counter = ES_COUNT_other_mine;

	if (next == ES_HEADER_ICMPV6) {
		u8 buf;
		const u8 *type = skb_header_pointer(skb, sizeof(struct ipv6hdr), sizeof(buf), &buf);

		counter = type && es_icmpv6_is_error(*type) ? ES_COUNT_icmp_error : ES_COUNT_icmp_echo_mine;
	}
	if (counter != ES_COUNT_icmp_error && !es_address_is_mine(node, version, &pkt->source)) {
		es_count(node, ES_COUNT_other_not_mine);
		return NF_DROP;
	}
	es_count(node, counter);
	skb->pkt_type = PACKET_HOST;
	return NF_ACCEPT;
}
