/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_NEIGHBOUR_H
#define ES_BPF_NEIGHBOUR_H

/*
 * Neighbour solicitations (RFC 4861, 7.2) for a service's IPv6 address, which one node answers with the cluster MAC, as ARP
 * requests are (other.h): those to the address's multicast group, and those with which a neighbour asks again whether
 * the address is still there. And what else comes to such an address and is no TCP.
 */
#include "other.h"
#include "packet6.h"

enum {
	ES_ICMPV6_UNREACHABLE = 1,
	ES_ICMPV6_ERROR_LAST = 4, /* parameter problem; among them: packet too big */
	ES_ICMPV6_SOLICITATION = 135,
	ES_ICMPV6_ADVERTISEMENT = 136,
};

#define ES_NEIGHBOUR_HOPS      255 /* it has passed no router */
#define ES_NEIGHBOUR_SOLICITED 0x40000000
#define ES_NEIGHBOUR_OVERRIDE  0x20000000
#define ES_NEIGHBOUR_TARGET_AT 2 /* the option with the target's link-layer address */

/* struct es_neighbour - an advertisement, or the part of a solicitation that each has */
struct es_neighbour {
	__u8 type;
	__u8 code;
	__u16 check;
	__be32 flags;
	struct es_addr target;
	__u8 option;
	__u8 option_len;
	__u8 mac[ETH_ALEN];
};
#define ES_NEIGHBOUR_ASKS offsetof(struct es_neighbour, option)

/* struct es_neighbour_packet - the answer, from its IPv6 header on */
union es_neighbour_packet {
	struct {
		__be32 version_class_label;
		__be16 payload_len;
		__u8 next_header;
		__u8 hop_limit;
		struct es_addr source;
		struct es_addr dest;
		struct es_neighbour body;
	};
	__u16 words[36];
	__u8 bytes[72];
};
_Static_assert(sizeof(union es_neighbour_packet) == 72, "no padding: it is sent");

static __always_inline int es_address6_is_mine(const struct es_state *state, const struct es_config *cfg,
					       const struct es_addr *client)
{
	return es_ring_is_mine(state, es_addr_hash(&cfg->ring_key, client));
}

static __always_inline int es_addr_is_unspecified(const struct es_addr *a)
{
	return !(a->w[0] | a->w[1] | a->w[2] | a->w[3]);
}

/*
 * Write the answer to who asked; who has no address yet asks whether it may take this one, and all hear the answer.
 * A global function, for its stack.
 */
__noinline int es_neighbour_answer(struct __sk_buff *skb, const struct es_packet *pkt,
				   const struct es_addr *target)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	union es_neighbour_packet answer = {};
	__u8 eth[2 * ETH_ALEN] = {0x33, 0x33, [ETH_ALEN - 1] = 1}; /* RFC 2464, 7: ff02::1 */

	if (!cfg || !pkt || !target)
		return -1;
	answer.version_class_label = es_htonl(0x60000000);
	answer.payload_len = es_htons(sizeof(answer.body));
	answer.next_header = ES_HEADER_ICMPV6;
	answer.hop_limit = ES_NEIGHBOUR_HOPS;
	answer.source = *target;
	answer.body.type = ES_ICMPV6_ADVERTISEMENT;
	answer.body.flags = es_htonl(ES_NEIGHBOUR_OVERRIDE);
	answer.body.target = *target;
	answer.body.option = ES_NEIGHBOUR_TARGET_AT;
	answer.body.option_len = 1;
	__builtin_memcpy(answer.body.mac, cfg->cluster_mac, ETH_ALEN);
	if (es_addr_is_unspecified(&pkt->source)) {
		answer.dest.w[0] = es_htonl(0xff020000);
		answer.dest.w[3] = es_htonl(1);
	} else {
		answer.dest = pkt->source;
		answer.body.flags |= es_htonl(ES_NEIGHBOUR_SOLICITED);
		if (bpf_skb_load_bytes(skb, ETH_ALEN, eth, ETH_ALEN))
			return -1;
	}
	__builtin_memcpy(eth + ETH_ALEN, cfg->public_mac, ETH_ALEN);
	answer.body.check =
		(__u16)~es_csum_fold(es_csum_words(answer.words + 4, 32) + (__u16)es_htons(ES_HEADER_ICMPV6) +
				     (__u16)es_htons(sizeof(answer.body)));
	if (bpf_skb_change_tail(skb, ETH_HLEN + sizeof(answer), 0) ||
	    bpf_skb_store_bytes(skb, 0, eth, sizeof(eth), 0) ||
	    bpf_skb_store_bytes(skb, ETH_HLEN, answer.bytes, sizeof(answer), BPF_F_RECOMPUTE_CSUM))
		return -1;
	return 0;
}

/*
 * Is it a solicitation for a service's address, whatever its destination is? Returns the program's verdict,
 * or -1 if it is none. @len: as in es_packet_tcp6()
 */
static __noinline int es_neighbour_solicited(struct __sk_buff *skb, const struct es_packet *pkt, __u32 hops)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_neighbour asked = {};

	if (!cfg || !pkt || hops != ES_NEIGHBOUR_HOPS ||
	    bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(struct ipv6hdr), &asked, ES_NEIGHBOUR_ASKS) ||
	    asked.type != ES_ICMPV6_SOLICITATION || asked.code || !es_is_service_address6(&asked.target))
		return -1;
	if (!es_address6_is_mine(state, cfg, &pkt->source)) {
		es_count(ES_COUNT_ndp_not_mine);
		return TC_ACT_SHOT;
	}
	if (es_packet_csum_partial(skb) || es_neighbour_answer(skb, pkt, &asked.target)) {
		es_count(ES_COUNT_answer_failed);
		return TC_ACT_SHOT;
	}
	es_count(ES_COUNT_ndp_answered);
	return (int)bpf_redirect(skb->ifindex, 0);
}

/* What is addressed to a service's address and is no TCP to a service (es_other_ip()). */
static __noinline int es_other_ip6(struct __sk_buff *skb, const struct es_packet *pkt, __u32 next)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	__u32 mine = ES_COUNT_other_mine;

	if (!cfg || !pkt)
		return ES_TC_NEXT;
	if (next == ES_HEADER_ICMPV6) {
		__u8 type = 128; /* echo */

		bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(struct ipv6hdr), &type, 1);
		if (type >= ES_ICMPV6_UNREACHABLE && type <= ES_ICMPV6_ERROR_LAST)
			return es_other_deliver(skb, ES_COUNT_icmp_error);
		mine = ES_COUNT_icmp_echo_mine;
	}
	if (es_address6_is_mine(state, cfg, &pkt->source))
		return es_other_deliver(skb, mine);
	es_count(ES_COUNT_other_not_mine);
	return TC_ACT_SHOT;
}

#endif
