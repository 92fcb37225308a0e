/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_NETFILTER_LETTER_H
#define ES_TESTS_NETFILTER_LETTER_H

/*
 * Handover messages for a node of the netfilter datapath, and what it answers. Include after cmocka_all.h.
 */
#include "netfilter_world.h"
#include "netfilter/node/message.h"
#include "netfilter/node/target.h"

#define WORKER_PORT 40500

/* struct letter - a message as another node sends it: headers, and after them a packet */
struct letter {
	struct es_handover h;
	__u16 sport, dport;
	size_t packet_len;
	uint8_t packet[1024];
	uint8_t bytes[1500];
};

static __u64 next_sequence;

static inline void letter_begin(const struct world *w, struct letter *l, __u8 kind, const char *payload)
{
	memset(l, 0, sizeof(*l));
	l->sport = WORKER_PORT;
	l->dport = HANDOVER_PORT;
	l->packet_len = segment(l->packet, ISN + 1, 5001, ES_TCP_ACK | ES_TCP_PSH, 9, payload);
	l->h = (struct es_handover){
		.magic = es_htonl(ES_HANDOVER_MAGIC),
		.version = ES_HANDOVER_VERSION,
		.kind = kind,
		.source = OTHER,
		.target = SELF,
		.mss = es_htons(1400),
		.snd_wscale = 9,
		.rcv_wscale = 7,
		.flags = ES_HANDOVER_F_WSCALE | ES_HANDOVER_F_SACK | ES_HANDOVER_F_TS,
	};
	(void)w;
}

/*
 * The offset of the header, and of the packet, in a message between nodes that have addresses of this world's
 * family.
 */
static inline size_t header_off(void)
{
	return (are.nodes_v6 ? ES_NF_IP6_LEN : ES_NF_IP_LEN) + ES_NF_UDP_LEN;
}

static inline size_t packet_off(void)
{
	return header_off() + sizeof(struct es_handover);
}

/* The MAC last, and a sequence number of its own. */
static inline enum es_nf_fate letter_put(struct world *w, struct letter *l, int is_new)
{
	const struct es_addr source = host(are.nodes_v6, 202), dest = host(are.nodes_v6, 201);
	const struct es_nf_frame frame = {
		.bytes = l->bytes, .len = packet_off() + l->packet_len, .ifindex = 3};
	struct es_sipstate sip;
	__u64 word;
	size_t off;

	if (is_new) {
		l->h.packet_len = es_htons((__u16)l->packet_len);
		l->h.sequence = (__be64)es_cpu_be64(++next_sequence);
		l->h.mac = 0;
		es_handover_mac_begin(&sip, &w->config.handover_key[0], &l->h);
		for (off = 0; off + 8 <= l->packet_len; off += 8) {
			memcpy(&word, l->packet + off, 8);
			es_siphash_word(&sip, es_cpu_le64(word));
		}
		word = 0;
		memcpy(&word, l->packet + off, l->packet_len - off);
		l->h.mac = es_handover_mac_end(&sip, es_cpu_le64(word), (__u32)l->packet_len);
	}
	datagram(l->bytes, &source, &dest, l->sport, l->dport, sizeof(l->h) + l->packet_len);
	memcpy(l->bytes + header_off(), &l->h, sizeof(l->h));
	memcpy(l->bytes + packet_off(), l->packet, l->packet_len);
	return es_nf_cluster(w->node, &frame);
}

/* The sum of an IPv6 datagram, pseudo header included, is nothing but ones (RFC 8200, 8.1). */
static inline void assert_checksum6(const uint8_t *bytes, size_t len)
{
	__u32 sum = (__u32)(len - ES_NF_IP6_LEN) + IPPROTO_UDP;

	for (size_t i = 8; i < len; i++)
		sum += i % 2 ? bytes[i] : (__u32)bytes[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	assert_int_equal(sum, 0xffff);
	assert_int_not_equal(es_nf_be16(bytes + ES_NF_IP6_LEN + 6), 0);
}

/* The answer that was sent last: its header, which comes from this node's handover port. */
static inline struct es_handover answer(const struct world *w)
{
	const size_t last = w->sent.count - 1;
	const uint8_t *bytes = w->sent.bytes[last], *udp = bytes + header_off() - ES_NF_UDP_LEN;
	const struct es_addr self = host(are.nodes_v6, 201), asker = host(are.nodes_v6, 202);
	struct es_handover h;
	struct es_nf_ip ip;

	assert_true(w->sent.count > 0);
	memcpy(&h, bytes + header_off(), sizeof(h));
	assert_int_equal(es_nf_ip_read(bytes, w->sent.len[last], &ip), 0);
	assert_int_equal(ip.len, w->sent.len[last]);
	assert_int_equal(w->sent.len[last], packet_off() + es_ntohs(h.packet_len));
	assert_memory_equal(&ip.source, &self, sizeof(self));
	assert_memory_equal(&ip.dest, &asker, sizeof(asker));
	assert_int_equal(es_ntohs(es_nf_be16(udp)), HANDOVER_PORT);
	assert_int_equal(es_ntohs(es_nf_be16(udp + 2)), WORKER_PORT);
	assert_int_equal(es_ntohs(es_nf_be16(udp + 4)), ip.len - ip.at);
	if (are.nodes_v6)
		assert_checksum6(bytes, w->sent.len[last]);
	assert_int_equal(h.source, SELF);
	assert_int_equal(h.target, OTHER);
	assert_int_equal(h.stream, ES_STREAM_DATAPATH);
	return h;
}

#endif
