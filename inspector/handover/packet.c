// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * TCP/IPv4 packets in userspace. No state, no I/O. IPv4 options never come here: the datapath drops such
 * packets.
 */
#include <errno.h>
#include <string.h>
#include "inspector/handover/packet.h"

#define IP_HEADER  20
#define TCP_HEADER 20

static uint16_t es_get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static void es_put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* One's complement sum of big-endian 16-bit words, an odd last byte padded with zero (RFC 1071). */
static uint64_t es_sum(const uint8_t *p, size_t len, uint64_t sum)
{
	for (; len >= 4; p += 4, len -= 4)
		sum += es_get_be32(p);
	if (len >= 2)
		sum += es_get16(p);
	if (len & 1)
		sum += (uint32_t)p[len - 1] << 8;
	return sum;
}

static uint16_t es_fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Sum of pseudo header, TCP header and payload (RFC 9293 section 3.1); 0xffff if the checksum in it holds. */
static uint16_t es_tcp_sum(const uint8_t *ip, size_t len)
{
	uint64_t sum = 6 + (len - IP_HEADER);

	sum = es_sum(ip + 12, 8, sum);
	return es_fold(es_sum(ip + IP_HEADER, len - IP_HEADER, sum));
}

static void es_checksums_fill(uint8_t *ip, size_t len)
{
	es_put16(ip + 10, 0);
	es_put16(ip + 10, (uint16_t)~es_fold(es_sum(ip, IP_HEADER, 0)));
	es_put16(ip + IP_HEADER + 16, 0);
	es_put16(ip + IP_HEADER + 16, (uint16_t)~es_tcp_sum(ip, len));
}

int es_ip_packet_parse(const uint8_t *bytes, size_t len, struct es_ip_packet *ret)
{
	struct es_tcp_option_scan scan = {.len = 0};
	const uint8_t *tcp = bytes + IP_HEADER;
	size_t total, header_len;
	__be32 addr;
	__be16 port;

	if (len < IP_HEADER + TCP_HEADER || bytes[0] != 0x45 || bytes[9] != 6)
		return -EBADMSG;
	total = es_get16(bytes + 2);
	header_len = IP_HEADER + (size_t)(tcp[12] >> 4) * 4;
	if (header_len < IP_HEADER + TCP_HEADER || header_len > len || header_len > total)
		return -EBADMSG;
	if (total < len)
		len = total;
	ret->bytes = bytes;
	ret->len = len;
	ret->header_len = header_len;
	memcpy(&addr, bytes + 12, 4);
	ret->flow.client = es_addr_from_v4(addr);
	memcpy(&addr, bytes + 16, 4);
	ret->flow.service = es_addr_from_v4(addr);
	memcpy(&port, tcp, 2);
	ret->flow.client_port = port;
	memcpy(&port, tcp + 2, 2);
	ret->flow.service_port = port;
	scan.len = (uint32_t)(header_len - IP_HEADER - TCP_HEADER);
	memcpy(scan.block, tcp + TCP_HEADER, scan.len);
	es_tcp_options_parse(&scan);
	ret->seg = scan.seg;
	ret->seg.seq = es_get_be32(tcp + 4);
	ret->seg.ack = es_get_be32(tcp + 8);
	ret->seg.flags = tcp[13];
	ret->seg.len = (uint32_t)(len - header_len);
	return 0;
}

int es_ip_packet_checksum_ok(const struct es_ip_packet *packet)
{
	return es_tcp_sum(packet->bytes, packet->len) == 0xffff;
}

size_t es_ip_packet_cut(const struct es_ip_packet *packet, size_t offset, size_t len, uint8_t *ret_bytes)
{
	int last = offset + len >= packet->seg.len;
	uint8_t *tcp = ret_bytes + IP_HEADER;
	size_t total = packet->header_len + len;

	memcpy(ret_bytes, packet->bytes, packet->header_len);
	memcpy(ret_bytes + packet->header_len, es_ip_packet_payload(packet) + offset, len);
	es_put16(ret_bytes + 2, (uint32_t)total);
	es_put_be32(tcp + 4, packet->seg.seq + (uint32_t)offset);
	if (!last)
		tcp[13] &= (uint8_t) ~(ES_TCP_FIN | ES_TCP_PSH);
	es_checksums_fill(ret_bytes, total);
	return total;
}

/* Both headers of a packet to the client, with @len bytes behind the IP header; checksums are still to be
 * filled. */
static uint8_t *es_answer_headers(const struct es_ip_packet *packet, size_t len, size_t tcp_header,
				  uint8_t *ret_bytes)
{
	uint8_t *tcp = ret_bytes + IP_HEADER;

	memset(ret_bytes, 0, IP_HEADER + tcp_header);
	ret_bytes[0] = 0x45;
	es_put16(ret_bytes + 2, (uint16_t)(IP_HEADER + len));
	es_put16(ret_bytes + 6, 0x4000);
	ret_bytes[8] = 64;
	ret_bytes[9] = 6;
	memcpy(ret_bytes + 12, &packet->flow.service.w[3], 4);
	memcpy(ret_bytes + 16, &packet->flow.client.w[3], 4);
	memcpy(tcp, &packet->flow.service_port, 2);
	memcpy(tcp + 2, &packet->flow.client_port, 2);
	es_put_be32(tcp + 4, packet->seg.ack);
	tcp[12] = (uint8_t)(tcp_header / 4 << 4);
	return tcp;
}

/* The timestamps of an answer to @packet, if its client has them; returns their length. */
static size_t es_answer_timestamps(const struct es_ip_packet *packet, uint8_t *option)
{
	if (!packet->seg.has_ts)
		return 0;
	option[0] = option[1] = 1; /* no operation */
	option[2] = 8;
	option[3] = 10;
	es_put_be32(option + 4, packet->seg.tsecr);
	es_put_be32(option + 8, packet->seg.tsval);
	return 12;
}

size_t es_ip_packet_answer(const struct es_ip_packet *packet, uint32_t ack, uint8_t flags,
			   const void *payload, size_t len, uint8_t *ret_bytes)
{
	size_t header = packet->seg.has_ts ? TCP_HEADER + 12 : TCP_HEADER;
	uint8_t *tcp = es_answer_headers(packet, header + len, header, ret_bytes);

	es_put_be32(tcp + 8, ack);
	tcp[13] = flags;
	es_put16(tcp + 14, 0xffff);
	es_answer_timestamps(packet, tcp + TCP_HEADER);
	memcpy(tcp + header, payload, len);
	es_checksums_fill(ret_bytes, IP_HEADER + header + len);
	return IP_HEADER + header + len;
}

size_t es_ip_packet_sack(const struct es_ip_packet *packet, uint32_t ack, uint32_t from, uint32_t to,
			 unsigned int wscale, uint8_t *ret_bytes)
{
	size_t header = TCP_HEADER + (packet->seg.has_ts ? 12 : 0) + ES_SACK_SIZE;
	uint8_t *tcp = es_answer_headers(packet, header, header, ret_bytes), *option = tcp + TCP_HEADER;

	es_put_be32(tcp + 8, ack);
	tcp[13] = ES_TCP_ACK;
	es_put16(tcp + 14, 0xffff >> wscale);
	option += es_answer_timestamps(packet, option);
	option[0] = option[1] = 1; /* no operation */
	option[2] = 5;
	option[3] = 10;
	es_put_be32(option + 4, from);
	es_put_be32(option + 8, to);
	es_checksums_fill(ret_bytes, IP_HEADER + header);
	return IP_HEADER + header;
}

size_t es_ip_packet_make(const struct es_flow *flow, const struct es_segment *seg, const uint8_t *payload,
			 uint8_t *ret_bytes)
{
	/* From the client, so the other way round than an answer. */
	const struct es_ip_packet from = {
		.flow = {.client = flow->service,
			 .service = flow->client,
			 .client_port = flow->service_port,
			 .service_port = flow->client_port},
		.seg = {.ack = seg->seq, .has_ts = seg->has_ts, .tsval = seg->tsecr, .tsecr = seg->tsval},
	};

	return es_ip_packet_answer(&from, seg->ack, seg->flags, payload, seg->len, ret_bytes);
}

void es_ip_packet_reset(const struct es_ip_packet *packet, uint8_t *ret_bytes)
{
	es_answer_headers(packet, TCP_HEADER, TCP_HEADER, ret_bytes)[13] = ES_TCP_RST;
	es_checksums_fill(ret_bytes, IP_HEADER + TCP_HEADER);
}
