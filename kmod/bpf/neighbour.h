/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_NEIGHBOUR_H
#define ES_BPF_NEIGHBOUR_H

/*
 * Neighbour solicitations (RFC 4861, 7.2) for a service's IPv6 address, which one node answers with the
 * cluster MAC, as ARP requests are (other.h): those to the address's multicast group, and those with which a
 * neighbour asks again whether the address is still there. And what else comes to such an address and is no
 * TCP.
 */
#include "other.h"
#include "packet6.h"
#include "kmod/core/neighbour.h"

static __always_inline int es_address6_is_mine(const struct es_state *state, const struct es_config *cfg,
					       const struct es_addr *client)
{
	return es_ring_is_mine(state, es_addr_hash(&cfg->ring_key, client));
}

/* Write the answer to who asked over the packet. A global function, for its stack. */
__noinline int es_neighbour_answer(struct __sk_buff *skb, const struct es_packet *pkt,
				   const struct es_addr *target)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	union es_neighbour_packet answer;
	__u8 eth[2 * ETH_ALEN] = ES_NEIGHBOUR_ALL_MAC;

	if (!cfg || !pkt || !target)
		return -1;
	es_neighbour_write(cfg, &pkt->source, target, &answer);
	if (!es_addr_is_unspecified(&pkt->source) && bpf_skb_load_bytes(skb, ETH_ALEN, eth, ETH_ALEN))
		return -1;
	__builtin_memcpy(eth + ETH_ALEN, cfg->public_mac, ETH_ALEN);
	if (bpf_skb_change_tail(skb, ETH_HLEN + sizeof(answer), 0) ||
	    bpf_skb_store_bytes(skb, 0, eth, sizeof(eth), 0) ||
	    bpf_skb_store_bytes(skb, ETH_HLEN, answer.bytes, sizeof(answer), BPF_F_RECOMPUTE_CSUM))
		return -1;
	return 0;
}

struct es_neighbour_scan {
	struct __sk_buff *skb;
	struct es_neighbour_walk walk;
};

static long es_neighbour_unit(__u32 i, void *ctx)
{
	struct es_neighbour_scan *scan = ctx;
	__u16 words[ES_NEIGHBOUR_UNIT / 2];

	if (bpf_skb_load_bytes(scan->skb, ETH_HLEN + sizeof(struct ipv6hdr) + i * ES_NEIGHBOUR_UNIT, words,
			       sizeof(words)))
		return 1;
	return !es_neighbour_step(&scan->walk, words);
}

/*
 * Is the solicitation one that a neighbour has sent as it is? A global function, so that it is verified once.
 */
__noinline int es_neighbour_check(struct __sk_buff *skb, const struct es_packet *pkt)
{
	struct es_neighbour_scan scan = {.skb = skb};
	__be16 len;

	if (!pkt ||
	    bpf_skb_load_bytes(skb, ETH_HLEN + offsetof(struct ipv6hdr, payload_len), &len, sizeof(len)))
		return 0;
	es_neighbour_walk_init(&pkt->source, &pkt->dest, es_ntohs(len), &scan.walk);
	if (!scan.walk.is_wrong)
		bpf_loop(ES_NEIGHBOUR_UNITS_MAX, es_neighbour_unit, &scan, 0);
	return es_neighbour_is_valid(&scan.walk);
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

	if (!cfg || !pkt ||
	    bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(struct ipv6hdr), &asked, ES_NEIGHBOUR_ASKS) ||
	    !es_neighbour_is_solicitation(&asked, hops) || !es_is_service_address6(&asked.target))
		return -1;
	if (!es_neighbour_check(skb, pkt)) {
		es_count(ES_COUNT_drop_malformed);
		return TC_ACT_SHOT;
	}
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

/* A packet for a service's address that is not TCP to a service (es_other_ip()). */
static __noinline int es_other_ip6(struct __sk_buff *skb, const struct es_packet *pkt, __u32 next)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	__u32 mine = ES_COUNT_other_mine;

	if (!cfg || !pkt)
		return ES_TC_NEXT;
	if (next == ES_HEADER_ICMPV6) {
		__u8 type = ES_ICMPV6_ECHO;

		bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(struct ipv6hdr), &type, 1);
		if (es_icmpv6_is_error(type))
			return es_other_deliver(skb, ES_COUNT_icmp_error);
		mine = ES_COUNT_icmp_echo_mine;
	}
	if (es_address6_is_mine(state, cfg, &pkt->source))
		return es_other_deliver(skb, mine);
	es_count(ES_COUNT_other_not_mine);
	return TC_ACT_SHOT;
}

#endif
