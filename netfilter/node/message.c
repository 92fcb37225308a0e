// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks and answers handover messages; target.c acts on their meaning.
 */
#include <errno.h>
#include <linux/ipv6.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include "kmod/core/checksum.h"
#include "netfilter/node/message.h"

static __be64 es_nf_message_mac(const struct es_sipkey *key, const struct es_handover *h,
				const uint8_t *packet)
{
	__u32 len = es_ntohs(h->packet_len), off;
	struct es_sipstate sip;
	__u64 word;

	es_handover_mac_begin(&sip, key, h);
	for (off = 0; off + 8 <= len; off += 8) {
		memcpy(&word, packet + off, 8);
		es_siphash_word(&sip, es_cpu_le64(word));
	}
	word = 0;
	memcpy(&word, packet + off, len - off);
	return es_handover_mac_end(&sip, es_cpu_le64(word), len);
}

__u32 es_nf_message_check(struct es_nf_node *node, const struct es_nf_frame *frame,
			  const struct es_handover *h)
{
	const struct es_config *cfg = &node->config;
	const uint8_t *packet = es_nf_message_bytes(frame);
	__u32 len = es_ntohs(h->packet_len);
	struct es_message_verdict verdict;
	struct es_message_moment moment;

	if (len > ES_MESSAGE_PACKET_MAX || frame->len < es_nf_message_packet_off(frame) + len)
		return ES_COUNT_handover_malformed;
	if (es_nf_message_mac(&cfg->handover_key[0], h, packet) != h->mac &&
	    (cfg->key_count < 2 || es_nf_message_mac(&cfg->handover_key[1], h, packet) != h->mac))
		return ES_COUNT_handover_bad_mac;
	es_message_moment_get(node->memory.state, cfg, h, node->now_ns, node->now_ns, &moment);
	es_decide_authentic(cfg, h, &moment, &verdict);
	if (verdict.action != ES_MESSAGE_GO_ON)
		return verdict.counter;
	return es_message_accept(&node->memory.replays[es_message_stream(h)], h) ? ES_COUNT_handover_received
										 : ES_COUNT_handover_replayed;
}

/*
 * Is the packet as long as the message says, and does its IP header have the form that a node takes from a
 * client?
 */
static int es_nf_message_packet_ok(const uint8_t *packet, __u32 len)
{
	if (len >= ES_NF_IP6_LEN && packet[0] >> 4 == 6)
		return ES_NF_IP6_LEN + (__u32)es_ntohs(es_nf_be16(packet + 4)) == len;
	return len >= ES_NF_IP_LEN && es_message_packet_ok(packet, len);
}

int es_nf_message_packet(const struct es_nf_frame *frame, const struct es_handover *h,
			 struct es_packet *ret_pkt, struct es_segment *ret_seg)
{
	const uint8_t *packet = es_nf_message_bytes(frame);
	__u32 len = es_ntohs(h->packet_len);

	if (!es_nf_message_packet_ok(packet, len) || es_nf_packet_tcp(packet, len, ret_pkt, ret_seg))
		return -EBADMSG;
	return es_nf_packet_options(packet, ret_pkt, ret_seg);
}

/*
 * union es_nf_message_wire - a message after its IP header; the bytes after the packet are zero, for the
 * checksum
 */
union es_nf_message_wire {
	struct {
		struct udphdr udp;
		struct es_handover handover;
		uint8_t packet[ES_MESSAGE_PACKET_MAX];
	};
	__u16 words[(sizeof(struct udphdr) + sizeof(struct es_handover) + ES_MESSAGE_PACKET_MAX) / 2];
};

/* Makes the IP header of an answer to @frame, for @len bytes after it. Returns its length. */
static size_t es_nf_message_put4(const struct es_nf_frame *frame, size_t len, uint8_t *ret_bytes)
{
	const struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tot_len = es_htons((__u16)(ES_NF_IP_LEN + len)),
		.frag_off = es_htons(IP_DF),
		.ttl = IPDEFTTL,
		.protocol = IPPROTO_UDP,
		.saddr = es_nf_be32(frame->bytes + 16),
		.daddr = es_nf_be32(frame->bytes + 12),
	};

	memcpy(ret_bytes, &ip, sizeof(ip));
	return sizeof(ip);
}

static size_t es_nf_message_put6(const struct es_nf_frame *frame, size_t len, uint8_t *ret_bytes)
{
	struct ipv6hdr ip = {
		.version = 6,
		.payload_len = es_htons((__u16)len),
		.nexthdr = IPPROTO_UDP,
		.hop_limit = IPDEFTTL,
	};

	memcpy(&ip.saddr, frame->bytes + 24, sizeof(ip.saddr));
	memcpy(&ip.daddr, frame->bytes + 8, sizeof(ip.daddr));
	memcpy(ret_bytes, &ip, sizeof(ip));
	return sizeof(ip);
}

/*
 * Returns the UDP checksum for @len bytes of the datagram. IPv6 demands one (RFC 8200, 8.1); IPv4 does
 * without, as the MAC says more.
 */
static __u16 es_nf_message_checksum6(const struct es_nf_frame *frame, const union es_nf_message_wire *wire,
				     size_t len)
{
	__u16 addresses[16], check;
	__u32 sum = (__u32)es_htons(IPPROTO_UDP) + es_htons((__u16)len);

	memcpy(addresses, frame->bytes + 8, sizeof(addresses)); /* both; their order adds nothing */
	sum += es_csum_words(addresses, 16) + es_csum_words(wire->words, (int)(len + 1) / 2);
	check = (__u16)~es_csum_fold(sum);
	return check ? check : 0xffff; /* 0 would say that there is none */
}

void es_nf_message_answer(struct es_nf_node *node, const struct es_nf_frame *frame,
			  const struct es_handover *h, __u8 kind, __u8 reason)
{
	const uint8_t *udp = frame->bytes + es_nf_message_udp_off(frame);
	const int is_v6 = es_nf_message_udp_off(frame) == ES_NF_IP6_LEN;
	__u32 packet_len = es_ntohs(h->packet_len);
	size_t len = offsetof(union es_nf_message_wire, packet) + packet_len, ip_len;
	struct es_state *state = node->memory.state;
	union es_nf_message_wire wire = {
		.udp = {.source = es_nf_be16(udp + 2), .dest = es_nf_be16(udp), .len = es_htons((__u16)len)},
		.handover = *h,
	};
	uint8_t bytes[ES_NF_IP6_LEN + sizeof(wire)];

	es_message_answer_put(&wire.handover, node->config.self, kind, reason,
			      node->now_ns + es_nf_read64(&state->wall_offset_ns),
			      __atomic_fetch_add(&state->sequence, 1, __ATOMIC_RELAXED));
	memcpy(wire.packet, es_nf_message_bytes(frame), packet_len);
	wire.handover.mac = es_nf_message_mac(&node->config.handover_key[0], &wire.handover, wire.packet);
	if (is_v6)
		wire.udp.check = es_nf_message_checksum6(frame, &wire, len);
	ip_len = is_v6 ? es_nf_message_put6(frame, len, bytes) : es_nf_message_put4(frame, len, bytes);
	memcpy(bytes + ip_len, &wire, len);
	if (node->hands.send(node->hands.ctx, bytes, ip_len + len))
		es_nf_count(node, ES_COUNT_answer_failed);
}
