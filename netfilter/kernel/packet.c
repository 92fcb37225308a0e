// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads the headers of packets.
 */
#include <errno.h>
#include "kmod/core/checksum.h"
#include "kmod/core/headers.h"
#include "netfilter/kernel/packet.h"

#define ES_NF_SAID_MAX 0xffff /* bytes; the largest length that a header can hold */

static int es_nf_ip_read4(const uint8_t *bytes, size_t len, struct es_nf_ip *ret)
{
	*ret = (struct es_nf_ip){
		.source = es_addr_from_v4(es_nf_be32(bytes + 12)),
		.dest = es_addr_from_v4(es_nf_be32(bytes + 16)),
		.len = es_ntohs(es_nf_be16(bytes + 2)),
		.at = (size_t)(bytes[0] & 0xf) * 4,
		.next = bytes[9],
		.first = bytes[9],
		.hops = bytes[8],
	};
	return ret->at < ES_NF_IP_LEN || ret->at > len ? -EBADMSG : 0;
}

static int es_nf_ip_read6(const uint8_t *bytes, size_t len, struct es_nf_ip *ret)
{
	struct es_headers_walk w = {.off = ES_NF_IP6_LEN, .next = bytes[6]};

	for (int i = 0; i < ES_HEADERS_MAX && es_headers_go_on(&w); i++) {
		if (w.off + 2 > len)
			return -EBADMSG;
		es_headers_step(&w, bytes + w.off);
	}
	*ret = (struct es_nf_ip){
		.len = ES_NF_IP6_LEN + es_ntohs(es_nf_be16(bytes + 4)),
		.at = w.off,
		.next = (uint8_t)w.next,
		.first = bytes[6],
		.hops = bytes[7],
		.is_v6 = 1,
	};
	memcpy(&ret->source, bytes + 8, sizeof(ret->source));
	memcpy(&ret->dest, bytes + 24, sizeof(ret->dest));
	return ret->at > len ? -EBADMSG : 0;
}

int es_nf_ip_read(const uint8_t *bytes, size_t len, struct es_nf_ip *ret_ip)
{
	if (len >= ES_NF_IP_LEN && bytes[0] >> 4 == 4)
		return es_nf_ip_read4(bytes, len, ret_ip);
	return len >= ES_NF_IP6_LEN && bytes[0] >> 4 == 6 ? es_nf_ip_read6(bytes, len, ret_ip) : -EBADMSG;
}

int es_nf_ip_counter(const struct es_nf_ip *ip)
{
	if (ip->is_v6)
		return es_headers_counter(ip->next, &ip->source);
	if (ip->next != ES_HEADER_TCP)
		return -1;
	return ip->at == ES_NF_IP_LEN ? ES_COUNTER_COUNT : ES_COUNT_drop_malformed;
}

static void es_nf_packet_addresses(const struct es_nf_ip *ip, struct es_packet *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (ip->is_v6) {
		ret->source = ip->source;
		ret->dest = ip->dest;
		ret->is_v6 = 1;
		ret->headers_len = (__u16)ip->at;
	} else {
		ret->saddr = ip->source.w[3];
		ret->daddr = ip->dest.w[3];
	}
}

/* @full_len: the packet's length without padding */
static int es_nf_packet_read(const uint8_t *bytes, size_t len, const struct es_nf_ip *ip, size_t full_len,
			     struct es_packet *ret_pkt, struct es_segment *ret_seg)
{
	const uint8_t *tcp = bytes + ip->at;
	size_t doff;

	if (es_nf_ip_counter(ip) != ES_COUNTER_COUNT || ip->at + ES_NF_TCP_LEN > len)
		return -EBADMSG;
	doff = (size_t)(tcp[12] >> 4) * 4;
	if (doff < ES_NF_TCP_LEN || ip->at + doff > full_len)
		return -EBADMSG;
	es_nf_packet_addresses(ip, ret_pkt);
	ret_pkt->options_len = (__u32)(doff - ES_NF_TCP_LEN);
	ret_pkt->sport = es_nf_be16(tcp);
	ret_pkt->dport = es_nf_be16(tcp + 2);
	memset(ret_seg, 0, sizeof(*ret_seg));
	ret_seg->seq = es_ntohl(es_nf_be32(tcp + 4));
	ret_seg->ack = es_ntohl(es_nf_be32(tcp + 8));
	ret_seg->len = (__u32)(full_len - ip->at - doff);
	ret_seg->flags = tcp[13];
	ret_seg->is_v6 = ip->is_v6;
	return 0;
}

int es_nf_packet_tcp(const uint8_t *bytes, size_t len, struct es_packet *ret_pkt, struct es_segment *ret_seg)
{
	struct es_nf_ip ip;

	if (es_nf_ip_read(bytes, len, &ip) || ip.len > len)
		return -EBADMSG;
	return es_nf_packet_read(bytes, len, &ip, ip.len, ret_pkt, ret_seg);
}

int es_nf_packet_headers(const uint8_t *bytes, size_t len, size_t full_len, struct es_packet *ret_pkt,
			 struct es_segment *ret_seg)
{
	struct es_nf_ip ip;

	if (es_nf_ip_read(bytes, len, &ip))
		return -EBADMSG;
	if (full_len > ES_NF_SAID_MAX && ip.len == (ip.is_v6 ? ES_NF_IP6_LEN : 0))
		ip.len = full_len;
	return es_nf_packet_read(bytes, len, &ip, ip.len, ret_pkt, ret_seg);
}

static __u32 es_nf_packet_sum(const uint8_t *at, size_t len)
{
	__u32 sum = 0;

	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (__u32)(at[i] << 8 | at[i + 1]);
	return sum + (len & 1 ? (__u32)at[len - 1] << 8 : 0);
}

int es_nf_packet_is_whole(const uint8_t *bytes, const struct es_packet *pkt, const struct es_segment *seg)
{
	size_t at = es_packet_ip_len(pkt), len = ES_NF_TCP_LEN + pkt->options_len + seg->len;
	__u32 sum = ES_HEADER_TCP + (__u32)len + es_nf_packet_sum(bytes + at, len);

	/* The two addresses are adjacent. */
	sum += pkt->is_v6 ? es_nf_packet_sum(bytes + 8, 32) : es_nf_packet_sum(bytes + 12, 8);
	return es_csum_fold(sum) == 0xffff;
}

int es_nf_packet_options(const uint8_t *bytes, const struct es_packet *pkt, struct es_segment *seg)
{
	struct es_tcp_option_scan scan = {.len = pkt->options_len};

	if (!scan.len)
		return 0;
	memcpy(scan.block, bytes + es_packet_ip_len(pkt) + ES_NF_TCP_LEN, scan.len);
	scan.seg = *seg;
	es_tcp_options_parse(&scan);
	*seg = scan.seg;
	return es_tcp_options_are_taken(&scan) ? 0 : -EBADMSG;
}
