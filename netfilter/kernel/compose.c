// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Writes IP and TCP headers.
 */
#include <arpa/inet.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <netinet/in.h>
#include <string.h>
#include "kmod/core/checksum.h"
#include "netfilter/kernel/compose.h"

#define ES_HOPS 64

static size_t put_v4(const struct es_flow *flow, const __u8 *like, size_t tcp_len, __u8 *ret_packet)
{
	struct iphdr *ip = (struct iphdr *)ret_packet;

	*ip = (struct iphdr){.ttl = ES_HOPS};
	if (like)
		memcpy(ip, like, sizeof(*ip));
	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tos &= 0xfc; /* no ECN */
	ip->tot_len = htons((__u16)(sizeof(*ip) + tcp_len));
	ip->id = 0;
	ip->frag_off = htons(0x4000); /* don't fragment */
	ip->protocol = IPPROTO_TCP;
	ip->saddr = flow->client.w[3];
	ip->daddr = flow->service.w[3];
	ip->check = 0;
	ip->check = (__u16)~es_csum_fold(es_csum_words((const __u16 *)ip, sizeof(*ip) / 2));
	return sizeof(*ip);
}

static size_t put_v6(const struct es_flow *flow, const __u8 *like, size_t tcp_len, __u8 *ret_packet)
{
	struct ipv6hdr *ip = (struct ipv6hdr *)ret_packet;

	*ip = (struct ipv6hdr){.hop_limit = ES_HOPS};
	if (like)
		memcpy(ip, like, sizeof(*ip));
	ip->version = 6;
	ip->flow_lbl[0] &= 0xcf; /* no ECN */
	ip->payload_len = htons((__u16)tcp_len);
	ip->nexthdr = IPPROTO_TCP;
	memcpy(&ip->saddr, &flow->client, sizeof(ip->saddr));
	memcpy(&ip->daddr, &flow->service, sizeof(ip->daddr));
	return sizeof(*ip);
}

struct tcphdr *es_nf_compose(const struct es_flow *flow, const __u8 *like, size_t tcp_len, size_t header_len,
			     __u8 *ret_packet)
{
	size_t ip_len = es_addr_is_v4(&flow->client) ? put_v4(flow, like, tcp_len, ret_packet)
						     : put_v6(flow, like, tcp_len, ret_packet);
	struct tcphdr *tcp = (struct tcphdr *)(ret_packet + ip_len);

	*tcp = (struct tcphdr){
		.source = flow->client_port,
		.dest = flow->service_port,
		.doff = header_len / 4 & 15,
	};
	return tcp;
}

static __u32 sum_of_address(const struct es_addr *address)
{
	__u16 words[8];

	memcpy(words, address, sizeof(words));
	return es_addr_is_v4(address) ? es_csum_words(words + 6, 2) : es_csum_words(words, 8);
}

size_t es_nf_compose_end(const struct es_flow *flow, struct tcphdr *tcp, size_t tcp_len)
{
	__u32 sum = (__u32)htons(IPPROTO_TCP) + htons((__u16)tcp_len);
	__u8 last[2] = {tcp_len % 2 ? ((const __u8 *)tcp)[tcp_len - 1] : 0, 0};
	__u16 word;

	memcpy(&word, last, sizeof(word));
	tcp->check = 0;
	sum += sum_of_address(&flow->client) + sum_of_address(&flow->service) + word;
	sum += es_csum_words((const __u16 *)tcp, (int)(tcp_len / 2));
	tcp->check = (__u16)~es_csum_fold(sum);
	return (es_addr_is_v4(&flow->client) ? sizeof(struct iphdr) : sizeof(struct ipv6hdr)) + tcp_len;
}
