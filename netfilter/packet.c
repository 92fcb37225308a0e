// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads the headers of packets.
 */
#include <errno.h>
#include "netfilter/packet.h"

int es_nf_packet_tcp(const uint8_t *ip, size_t len, struct es_packet *ret_pkt, struct es_segment *ret_seg)
{
	const uint8_t *tcp = ip + ES_NF_IP_LEN;
	size_t total, doff;

	if (len < ES_NF_IP_LEN + ES_NF_TCP_LEN || ip[0] != 0x45)
		return -EBADMSG;
	total = es_ntohs(es_nf_be16(ip + 2));
	doff = (size_t)(tcp[12] >> 4) * 4;
	if (total > len || doff < ES_NF_TCP_LEN || ES_NF_IP_LEN + doff > total)
		return -EBADMSG;
	memset(ret_pkt, 0, sizeof(*ret_pkt));
	ret_pkt->options_len = (__u32)(doff - ES_NF_TCP_LEN);
	ret_pkt->saddr = es_nf_be32(ip + 12);
	ret_pkt->daddr = es_nf_be32(ip + 16);
	ret_pkt->sport = es_nf_be16(tcp);
	ret_pkt->dport = es_nf_be16(tcp + 2);
	memset(ret_seg, 0, sizeof(*ret_seg));
	ret_seg->seq = es_ntohl(es_nf_be32(tcp + 4));
	ret_seg->ack = es_ntohl(es_nf_be32(tcp + 8));
	ret_seg->len = (__u32)(total - ES_NF_IP_LEN - doff);
	ret_seg->flags = tcp[13];
	return 0;
}

int es_nf_packet_options(const uint8_t *ip, const struct es_packet *pkt, struct es_segment *seg)
{
	struct es_tcp_option_scan scan = {.len = pkt->options_len};

	if (!scan.len)
		return 0;
	memcpy(scan.block, ip + ES_NF_IP_LEN + ES_NF_TCP_LEN, scan.len);
	scan.seg = *seg;
	es_tcp_options_parse(&scan);
	*seg = scan.seg;
	return es_tcp_options_are_taken(&scan) ? 0 : -EBADMSG;
}
