// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks and answers handover messages; target.c acts on their meaning.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include "kmod/core/checksum.h"
#include "kmod/core/wall.h"
#include "netfilter/message.h"

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

/* What the clocks say. */
static struct es_message_moment es_nf_message_moment(const struct es_nf_node *node,
						     const struct es_handover *h)
{
	const struct es_state *state = node->tables.state;

	return (struct es_message_moment){
		.wall_ns = node->now_ns + es_nf_read64(&state->wall_offset_ns),
		.before_ns = node->now_ns + es_wall_before(state, node->now_ns),
		.since_ns = node->now_ns - es_nf_read64(&state->began_ns),
		.began = es_nf_read32(&state->began[h->source]),
		.own_began = es_nf_read32(&state->began[node->config.self & (ES_NODES_MAX - 1)]),
	};
}

__u32 es_nf_message_check(struct es_nf_node *node, const struct es_nf_frame *frame,
			  const struct es_handover *h)
{
	const struct es_config *cfg = &node->config;
	const uint8_t *packet = es_nf_message_bytes(frame);
	__u32 len = es_ntohs(h->packet_len);
	struct es_message_verdict verdict;
	struct es_message_moment moment;
	struct es_replay *replay;

	if (len > ES_MESSAGE_PACKET_MAX || frame->len < ES_NF_MESSAGE_PACKET_OFF + len)
		return ES_COUNT_handover_malformed;
	if (es_nf_message_mac(&cfg->handover_key[0], h, packet) != h->mac &&
	    (cfg->key_count < 2 || es_nf_message_mac(&cfg->handover_key[1], h, packet) != h->mac))
		return ES_COUNT_handover_bad_mac;
	moment = es_nf_message_moment(node, h);
	es_decide_authentic(cfg, h, &moment, &verdict);
	if (verdict.action != ES_MESSAGE_GO_ON)
		return verdict.counter;
	replay = &node->tables.replays[h->source * ES_STREAMS_MAX + (h->stream & (ES_STREAMS_MAX - 1))];
	return es_replay_accept(replay, es_cpu_be64((__u64)h->sequence)) ? ES_COUNT_handover_received
									 : ES_COUNT_handover_replayed;
}

int es_nf_message_packet(const struct es_nf_frame *frame, const struct es_handover *h,
			 struct es_packet *ret_pkt, struct es_segment *ret_seg)
{
	const uint8_t *packet = es_nf_message_bytes(frame);
	__u32 len = es_ntohs(h->packet_len);

	if (len < ES_NF_IP_LEN || !es_message_packet_ok(packet, len) ||
	    es_nf_packet_tcp(packet, len, ret_pkt, ret_seg))
		return -EBADMSG;
	return es_nf_packet_options(packet, ret_pkt, ret_seg);
}

/* struct es_nf_message_wire - what is before the packet in a message: two headers, and the message's */
struct es_nf_message_wire {
	struct iphdr ip;
	struct udphdr udp;
	struct es_handover handover;
	uint8_t packet[ES_MESSAGE_PACKET_MAX];
} __attribute__((packed)); /* the headers before it leave struct es_handover unaligned */

void es_nf_message_answer(struct es_nf_node *node, const struct es_nf_frame *frame,
			  const struct es_handover *h, __u8 kind, __u8 reason)
{
	__u32 packet_len = es_ntohs(h->packet_len);
	size_t len = ES_NF_MESSAGE_PACKET_OFF + packet_len;
	struct es_state *state = node->tables.state;
	struct es_nf_message_wire out = {
		.ip = {.version = 4,
		       .ihl = 5,
		       .tot_len = es_htons((__u16)len),
		       .frag_off = es_htons(IP_DF),
		       .ttl = IPDEFTTL,
		       .protocol = IPPROTO_UDP,
		       .saddr = es_nf_be32(frame->bytes + 16),
		       .daddr = es_nf_be32(frame->bytes + 12)},
		/* No UDP checksum: the MAC says more. */
		.udp = {.source = es_nf_be16(frame->bytes + ES_NF_IP_LEN + 2),
			.dest = es_nf_be16(frame->bytes + ES_NF_IP_LEN),
			.len = es_htons((__u16)(len - ES_NF_IP_LEN))},
	};
	struct es_handover header = *h;

	es_message_answer_put(&header, node->config.self, kind, reason,
			      node->now_ns + es_nf_read64(&state->wall_offset_ns),
			      __atomic_fetch_add(&state->sequence, 1, __ATOMIC_RELAXED));
	memcpy(out.packet, es_nf_message_bytes(frame), packet_len);
	header.mac = es_nf_message_mac(&node->config.handover_key[0], &header, out.packet);
	out.handover = header;
	if (node->hands.send(node->hands.ctx, &out, len))
		es_nf_count(node, ES_COUNT_answer_failed);
}
