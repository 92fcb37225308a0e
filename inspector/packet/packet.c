// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * TCP packets of both families in userspace. No state, no I/O. IPv4 options never come here: the datapath
 * drops such packets.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include "inspector/packet/packet.h"

#define IPV4_HEADER 20
#define IPV6_HEADER 40
#define TCP_HEADER  20

/* So many extension headers of IPv6 are walked over, each of 8 bytes or more. */
#define IPV6_EXTENSIONS_MAX 8

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

static int is_v6(const uint8_t *ip)
{
	return ip[0] >> 4 == 6;
}

/* The packet's length by its IP header. */
static size_t es_ip_total(const uint8_t *ip)
{
	return is_v6(ip) ? IPV6_HEADER + (size_t)es_get16(ip + 4) : es_get16(ip + 2);
}

static void es_ip_total_put(uint8_t *ip, size_t total)
{
	if (is_v6(ip))
		es_put16(ip + 4, (uint32_t)(total - IPV6_HEADER));
	else
		es_put16(ip + 2, (uint32_t)total);
}

/*
 * Sum of pseudo header, TCP header and payload (RFC 9293 section 3.1, RFC 8200 section 8.1); 0xffff if the
 * checksum in it holds. Both pseudo headers add up the same words: addresses, protocol and length.
 */
static uint16_t es_tcp_sum(const uint8_t *ip, size_t ip_len, size_t len)
{
	uint64_t sum = IPPROTO_TCP + (len - ip_len);

	sum = is_v6(ip) ? es_sum(ip + 8, 32, sum) : es_sum(ip + 12, 8, sum);
	return es_fold(es_sum(ip + ip_len, len - ip_len, sum));
}

static void es_checksums_fill(uint8_t *ip, size_t ip_len, size_t len)
{
	if (!is_v6(ip)) {
		es_put16(ip + 10, 0);
		es_put16(ip + 10, (uint16_t)~es_fold(es_sum(ip, IPV4_HEADER, 0)));
	}
	es_put16(ip + ip_len + 16, 0);
	es_put16(ip + ip_len + 16, (uint16_t)~es_tcp_sum(ip, ip_len, len));
}

/*
 * RFC 8200 section 4: options are passed over; a fragment or a routing header is none that the datapath lets
 * through.
 */
static size_t es_ipv6_header_len(const uint8_t *ip, size_t len)
{
	size_t at = IPV6_HEADER;
	uint8_t next;

	if (len < IPV6_HEADER)
		return 0;
	next = ip[6];
	for (int i = 0; i < IPV6_EXTENSIONS_MAX && (next == IPPROTO_HOPOPTS || next == IPPROTO_DSTOPTS);
	     i++) {
		if (at + 8 > len)
			return 0;
		next = ip[at];
		at += 8 + (size_t)ip[at + 1] * 8;
	}
	return next == IPPROTO_TCP && at <= len ? at : 0;
}

size_t es_ip_header_len(const uint8_t *bytes, size_t len)
{
	if (!len)
		return 0;
	if (is_v6(bytes))
		return es_ipv6_header_len(bytes, len);
	return len >= IPV4_HEADER && bytes[0] == 0x45 && bytes[9] == IPPROTO_TCP ? IPV4_HEADER : 0;
}

void es_ip_addresses(const uint8_t *bytes, struct es_addr *ret_source, struct es_addr *ret_target)
{
	__be32 addr;

	if (is_v6(bytes)) {
		memcpy(ret_source, bytes + 8, sizeof(*ret_source));
		memcpy(ret_target, bytes + 24, sizeof(*ret_target));
		return;
	}
	memcpy(&addr, bytes + 12, 4);
	*ret_source = es_addr_from_v4(addr);
	memcpy(&addr, bytes + 16, 4);
	*ret_target = es_addr_from_v4(addr);
}

/* An IPv6 packet with a mapped address passes for one of IPv4 everywhere else (RFC 4942 section 2.2). */
static int is_disguised(const uint8_t *ip, const struct es_flow *flow)
{
	return is_v6(ip) && (es_addr_is_v4(&flow->client) || es_addr_is_v4(&flow->service));
}

int es_ip_packet_parse(const uint8_t *bytes, size_t len, struct es_ip_packet *ret)
{
	size_t total, header_len, ip_len = es_ip_header_len(bytes, len);
	struct es_tcp_option_scan scan = {.len = 0};
	const uint8_t *tcp = bytes + ip_len;
	__be16 port;

	if (!ip_len || len < ip_len + TCP_HEADER)
		return -EBADMSG;
	total = es_ip_total(bytes);
	header_len = ip_len + (size_t)(tcp[12] >> 4) * 4;
	if (header_len < ip_len + TCP_HEADER || header_len > len || header_len > total)
		return -EBADMSG;
	if (total < len)
		len = total;
	es_ip_addresses(bytes, &ret->flow.client, &ret->flow.service);
	if (is_disguised(bytes, &ret->flow))
		return -EBADMSG;
	ret->bytes = bytes;
	ret->len = len;
	ret->ip_len = ip_len;
	ret->header_len = header_len;
	memcpy(&port, tcp, 2);
	ret->flow.client_port = port;
	memcpy(&port, tcp + 2, 2);
	ret->flow.service_port = port;
	scan.len = (uint32_t)(header_len - ip_len - TCP_HEADER);
	memcpy(scan.block, tcp + TCP_HEADER, scan.len);
	es_tcp_options_parse(&scan);
	ret->seg = scan.seg;
	ret->seg.seq = es_get_be32(tcp + 4);
	ret->seg.ack = es_get_be32(tcp + 8);
	ret->seg.flags = tcp[13];
	ret->seg.len = (uint32_t)(len - header_len);
	return 0;
}

void es_ip_packet_truncate(uint8_t *bytes, size_t len)
{
	if (es_ip_header_len(bytes, len))
		es_ip_total_put(bytes, len);
}

int es_ip_packet_checksum_ok(const struct es_ip_packet *packet)
{
	return es_tcp_sum(packet->bytes, packet->ip_len, packet->len) == 0xffff;
}

size_t es_ip_packet_cut(const struct es_ip_packet *packet, size_t offset, size_t len, uint8_t *ret_bytes)
{
	int last = offset + len >= packet->seg.len;
	uint8_t *tcp = ret_bytes + packet->ip_len;
	size_t total = packet->header_len + len;

	memcpy(ret_bytes, packet->bytes, packet->header_len);
	memcpy(ret_bytes + packet->header_len, es_ip_packet_payload(packet) + offset, len);
	es_ip_total_put(ret_bytes, total);
	es_put_be32(tcp + 4, packet->seg.seq + (uint32_t)offset);
	if (!last)
		tcp[13] &= (uint8_t) ~(ES_TCP_FIN | ES_TCP_PSH);
	es_checksums_fill(ret_bytes, packet->ip_len, total);
	return total;
}

/* The IP header of an answer: of the family of its addresses. */
static size_t es_answer_ip_len(const struct es_flow *flow)
{
	return es_addr_is_v4(&flow->service) ? IPV4_HEADER : IPV6_HEADER;
}

static void es_answer_ip(const struct es_flow *flow, uint8_t *ip)
{
	if (!es_addr_is_v4(&flow->service)) {
		ip[0] = 0x60;
		ip[6] = IPPROTO_TCP;
		ip[7] = 64;
		memcpy(ip + 8, &flow->service, 16);
		memcpy(ip + 24, &flow->client, 16);
		return;
	}
	ip[0] = 0x45;
	es_put16(ip + 6, 0x4000);
	ip[8] = 64;
	ip[9] = IPPROTO_TCP;
	memcpy(ip + 12, &flow->service.w[3], 4);
	memcpy(ip + 16, &flow->client.w[3], 4);
}

/* Both headers of a packet to the client, with @len bytes behind the IP header; checksums are still to be
 * filled. */
static uint8_t *es_answer_headers(const struct es_ip_packet *packet, size_t len, size_t tcp_header,
				  uint8_t *ret_bytes)
{
	size_t ip_len = es_answer_ip_len(&packet->flow);
	uint8_t *tcp = ret_bytes + ip_len;

	memset(ret_bytes, 0, ip_len + tcp_header);
	es_answer_ip(&packet->flow, ret_bytes);
	es_ip_total_put(ret_bytes, ip_len + len);
	memcpy(tcp, &packet->flow.service_port, 2);
	memcpy(tcp + 2, &packet->flow.client_port, 2);
	es_put_be32(tcp + 4, packet->seg.ack);
	tcp[12] = (uint8_t)(tcp_header / 4 << 4);
	return tcp;
}

/* Its checksums; returns the packet's length. */
static size_t es_answer_finish(const struct es_ip_packet *packet, size_t len, uint8_t *ret_bytes)
{
	size_t ip_len = es_answer_ip_len(&packet->flow);

	es_checksums_fill(ret_bytes, ip_len, ip_len + len);
	return ip_len + len;
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
	return es_answer_finish(packet, header + len, ret_bytes);
}

size_t es_ip_packet_ack(const struct es_ip_packet *packet, uint32_t ack, unsigned int wscale,
			uint8_t *ret_bytes)
{
	size_t header = TCP_HEADER + (packet->seg.has_ts ? 12 : 0);
	uint8_t *tcp = es_answer_headers(packet, header, header, ret_bytes);

	es_put_be32(tcp + 8, ack);
	tcp[13] = ES_TCP_ACK;
	es_put16(tcp + 14, 0xffff >> wscale);
	es_answer_timestamps(packet, tcp + TCP_HEADER);
	return es_answer_finish(packet, header, ret_bytes);
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
	return es_answer_finish(packet, header, ret_bytes);
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

size_t es_ip_packet_reset(const struct es_ip_packet *packet, uint8_t *ret_bytes)
{
	es_answer_headers(packet, TCP_HEADER, TCP_HEADER, ret_bytes)[13] = ES_TCP_RST;
	return es_answer_finish(packet, TCP_HEADER, ret_bytes);
}
