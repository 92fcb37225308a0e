/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_OTHER_H
#define ES_BPF_OTHER_H

/*
 * Packets for a service's IP address that are for no service: ARP, ICMP, other protocols and ports. Each goes
 * to exactly one node, chosen by the ring from the client's address alone, so that an ssh or a traceroute to
 * the service IP meets one machine; ICMP errors go to all, since only the stacks know whose connection they
 * are about.
 */
#include "packet.h"
#include "maps.h"
#include "kmod/core/serving.h"

/* linux/icmp.h drags in the C library. */
enum {
	ES_ICMP_UNREACHABLE = 3,
	ES_ICMP_ECHO = 8,
	ES_ICMP_TIME_EXCEEDED = 11,
	ES_ICMP_PARAMETER_PROBLEM = 12
};

struct es_arp {
	__be16 hardware;
	__be16 protocol;
	__u8 hlen;
	__u8 plen;
	__be16 operation;
	__u8 sender_mac[ETH_ALEN];
	__u8 sender_ip[4];
	__u8 target_mac[ETH_ALEN];
	__u8 target_ip[4];
};

/*
 * These two are global functions on purpose: the verifier checks them once and takes their result for any
 * number. Inlined, it would follow the rest of the program once for each of the 64 places where the loop may
 * end.
 */
__noinline int es_is_service_address(__be32 v4)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;

	if (!cfg)
		return 0;
	for (__u32 i = 0; i < ES_SERVICES_MAX; i++) {
		if (i >= cfg->service_count)
			break;
		if (cfg->service[i].address.w[3] == v4 && es_addr_is_v4(&cfg->service[i].address))
			return 1;
	}
	return 0;
}

enum { ES_SERVICE_NONE = -1, ES_SERVICE_NOT_ADDRESS = -2 };

/*
 * Index of the service. Otherwise ES_SERVICE_NOT_ADDRESS: es_is_service_address() would say no; or
 * ES_SERVICE_NONE, which says nothing of the address: an IPv6 address may end in the same bytes.
 */
__noinline int es_service_find(__be32 v4, __u32 port)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	int rc = ES_SERVICE_NOT_ADDRESS;

	if (!cfg)
		return ES_SERVICE_NOT_ADDRESS;
	for (__u32 i = 0; i < ES_SERVICES_MAX; i++) {
		if (i >= cfg->service_count)
			break;
		if (cfg->service[i].address.w[3] != v4)
			continue;
		if (cfg->service[i].port == port && es_addr_is_v4(&cfg->service[i].address))
			return (int)i;
		rc = ES_SERVICE_NONE;
	}
	return rc;
}

/* Is it a service's address of IPv6? */
__noinline int es_is_service_address6(const struct es_addr *a)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;

	if (!cfg || !a || !(a->w[0] | a->w[1] | a->w[2] | a->w[3]))
		return 0; /* an entry without one has all zeros */
	for (__u32 i = 0; i < ES_SERVICES_MAX; i++) {
		if (i >= cfg->service_count)
			break;
		if (es_addr_equal(&cfg->service[i].address6, a))
			return 1;
	}
	return 0;
}

/* Index of the service with this address of IPv6, -1 if the port is none. */
__noinline int es_service_find6(const struct es_addr *a, __u32 port)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;

	if (!cfg || !a || !(a->w[0] | a->w[1] | a->w[2] | a->w[3]))
		return -1;
	for (__u32 i = 0; i < ES_SERVICES_MAX; i++) {
		if (i >= cfg->service_count)
			break;
		if (cfg->service[i].port == port && es_addr_equal(&cfg->service[i].address6, a))
			return (int)i;
	}
	return -1;
}

/* Index of the service that a client's packet is for, -1 if it is for none. */
static __always_inline int es_service_of(const struct es_packet *pkt)
{
	return pkt->is_v6 ? es_service_find6(&pkt->dest, pkt->dport)
			  : es_service_find(pkt->daddr, pkt->dport);
}

#define ES_FAMILY_V6 10 /* AF_INET6 */

/* The flow of a connection's socket; of IPv4 on a socket of IPv6, too, whose mapped addresses are as ours. */
static __always_inline void es_flow_of_socket(struct sock_common *skc, struct es_flow *ret)
{
	if (skc->skc_family == ES_FAMILY_V6 && bpf_core_field_exists(skc->skc_v6_daddr)) {
		bpf_core_read(&ret->client, sizeof(ret->client), &skc->skc_v6_daddr);
		bpf_core_read(&ret->service, sizeof(ret->service), &skc->skc_v6_rcv_saddr);
	} else {
		ret->client = es_addr_from_v4(skc->skc_daddr);
		ret->service = es_addr_from_v4(skc->skc_rcv_saddr);
	}
	ret->client_port = skc->skc_dport;
	ret->service_port = es_htons(skc->skc_num);
}

static __always_inline int es_service_of_flow(const struct es_flow *flow)
{
	return es_addr_is_v4(&flow->service) ? es_service_find(flow->service.w[3], flow->service_port)
					     : es_service_find6(&flow->service, flow->service_port);
}

/* Does this node make no connection for @service? A global function, see es_service_find(). */
__noinline int es_service_is_refused(__u32 service, __u32 is_v6)
{
	struct es_state *state = es_state_get();

	return state && es_serving_refuses(state, service, (int)is_v6, bpf_ktime_get_coarse_ns());
}

static __always_inline int es_address_is_mine(const struct es_state *state, const struct es_config *cfg,
					      __be32 v4)
{
	struct es_addr client = es_addr_from_v4(v4);

	return es_ring_is_mine(state, es_addr_hash(&cfg->ring_key, &client));
}

/**
 * es_other_arp() - answer who-has for a service address with the cluster MAC, on one node
 */
static __noinline int es_other_arp(struct __sk_buff *skb)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	__u8 eth[2 * ETH_ALEN];
	struct es_arp arp;
	__be32 sender, target;

	if (!cfg || bpf_skb_load_bytes(skb, ETH_HLEN, &arp, sizeof(arp)))
		return ES_TC_NEXT;
	__builtin_memcpy(&target, arp.target_ip, 4);
	__builtin_memcpy(&sender, arp.sender_ip, 4);
	if (arp.operation != es_htons(1) || arp.protocol != es_htons(ETH_P_IP) ||
	    !es_is_service_address(target))
		return ES_TC_NEXT;
	if (!es_address_is_mine(state, cfg, sender)) {
		es_count(ES_COUNT_arp_not_mine);
		return TC_ACT_SHOT;
	}
	__builtin_memcpy(eth, arp.sender_mac, ETH_ALEN);
	__builtin_memcpy(eth + ETH_ALEN, cfg->public_mac, ETH_ALEN);
	arp.operation = es_htons(2);
	__builtin_memcpy(arp.target_mac, arp.sender_mac, ETH_ALEN);
	__builtin_memcpy(arp.target_ip, arp.sender_ip, 4);
	__builtin_memcpy(arp.sender_mac, cfg->cluster_mac, ETH_ALEN);
	__builtin_memcpy(arp.sender_ip, &target, 4);
	if (bpf_skb_store_bytes(skb, 0, eth, sizeof(eth), 0) ||
	    bpf_skb_store_bytes(skb, ETH_HLEN, &arp, sizeof(arp), 0)) {
		es_count(ES_COUNT_answer_failed);
		return TC_ACT_SHOT;
	}
	es_count(ES_COUNT_arp_answered);
	return (int)bpf_redirect(skb->ifindex, 0);
}

static __always_inline int es_other_deliver(struct __sk_buff *skb, __u32 counter)
{
	es_count(counter);
	bpf_skb_change_type(skb, PACKET_TYPE_HOST);
	return ES_TC_NEXT;
}

static __noinline int es_other_ip(struct __sk_buff *skb, const struct iphdr *ip)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	__u32 mine = ES_COUNT_other_mine;

	if (!cfg || !ip)
		return ES_TC_NEXT;
	if (ip->protocol == IPPROTO_ICMP) {
		__u8 type = ES_ICMP_ECHO;

		bpf_skb_load_bytes(skb, ETH_HLEN + ip->ihl * 4, &type, 1);
		if (type == ES_ICMP_UNREACHABLE || type == ES_ICMP_TIME_EXCEEDED ||
		    type == ES_ICMP_PARAMETER_PROBLEM)
			return es_other_deliver(skb, ES_COUNT_icmp_error);
		mine = ES_COUNT_icmp_echo_mine;
	}
	if (es_address_is_mine(state, cfg, ip->saddr))
		return es_other_deliver(skb, mine);
	es_count(ES_COUNT_other_not_mine);
	return TC_ACT_SHOT;
}

#endif
