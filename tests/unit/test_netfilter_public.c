// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a node of the netfilter datapath does with the packets of its clients: bytes in, and what its hands are told.
 * What is decided, test_decide.c tests.
 */
#include "cmocka_all.h"
#include <errno.h>
#include <linux/if_arp.h>
#include "netfilter_world.h"
#include "netfilter/other.h"
#include "netfilter/public.h"

static enum es_nf_fate put(struct world *w, const uint8_t *bytes, size_t len)
{
	const struct es_nf_frame frame = {
		.bytes = bytes, .len = len, .ifindex = 2, .source = {2, 0, 0, 0, 0, 7}};

	return es_nf_public(w->node, &frame);
}

/* Opens the flow. Returns what the client then acknowledges, and echoes. */
static void open_flow(struct world *w, __u32 *ret_ack, __u32 *ret_tsecr)
{
	struct es_ip_packet answer;
	uint8_t bytes[256];

	put(w, bytes, segment(bytes, ISN, 0, ES_TCP_SYN, 0, ""));
	assert_int_equal(w->framed.count, 1);
	assert_int_equal(es_ip_packet_parse(w->framed.bytes[0], w->framed.len[0], &answer), 0);
	assert_true(es_ip_packet_checksum_ok(&answer));
	assert_int_equal(answer.seg.flags, ES_TCP_SYN | ES_TCP_ACK);
	assert_int_equal(answer.seg.ack, ISN + 1);
	assert_true(answer.seg.has_ts);
	*ret_ack = answer.seg.seq + 1;
	*ret_tsecr = answer.seg.tsval;
	w->framed.count = 0;
}

static void test_syn(void **state)
{
	struct world *w = *state;
	static const uint8_t client[6] = {2, 0, 0, 0, 0, 7};
	uint8_t bytes[256];

	assert_int_equal(put(w, bytes, segment(bytes, ISN, 0, ES_TCP_SYN, 0, "")), ES_NF_DROP);
	assert_int_equal(w->frame_protocol, ETH_P_IP);
	assert_memory_equal(w->frame_target, client, 6);
	assert_int_equal(counted(w, ES_COUNT_syn_answered), 1);
	assert_int_equal(w->looks, 0); /* a flood costs no question */
}

static void test_request_goes_to_the_inspector(void **state)
{
	struct world *w = *state;
	struct es_record record;
	__u32 ack, tsecr;
	uint8_t bytes[256];
	size_t len;

	open_flow(w, &ack, &tsecr);
	assert_int_equal(put(w, bytes, segment(bytes, ISN + 1, ack, ES_TCP_ACK, tsecr, "")), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_drop_handshake_ack), 1);
	len = segment(bytes, ISN + 1, ack, ES_TCP_ACK | ES_TCP_PSH, tsecr, "GET / HTTP/1.1\r\n\r\n");
	assert_int_equal(put(w, bytes, len), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_request_queued), 1);
	assert_int_equal(es_ring_reader_consume(w->reader), 1);
	memcpy(&record, w->queued.bytes[0], sizeof(record));
	assert_int_equal(record.kind, ES_RECORD_FIRST);
	assert_int_equal(record.flow_hash, the_flow_hash(w));
	assert_int_equal(record.len, len);
	assert_int_equal(record.gso_size, 0);
	assert_int_equal(record.flow, ES_FLOW_NEW);
	assert_memory_equal(w->queued.bytes[0] + sizeof(record), bytes, len);
	assert_int_equal(w->rebuilt.count, 0);
	assert_int_equal(w->framed.count, 0);
}

/* Ethernet pads short frames: what is behind the IP packet is no part of it. */
static void test_padding_goes_nowhere(void **state)
{
	struct world *w = *state;
	struct es_record record;
	uint8_t bytes[256] = {};
	__u32 ack, tsecr;
	size_t len;

	open_flow(w, &ack, &tsecr);
	len = segment(bytes, ISN + 1, ack, ES_TCP_ACK | ES_TCP_PSH, tsecr, "G");
	put(w, bytes, len + 6);
	assert_int_equal(es_ring_reader_consume(w->reader), 1);
	memcpy(&record, w->queued.bytes[0], sizeof(record));
	assert_int_equal(record.len, len);
}

static void test_anothers(void **state)
{
	struct world *w = *state;
	__u32 ack, tsecr;
	uint8_t bytes[256];

	open_flow(w, &ack, &tsecr);
	ring_give(w, OTHER);
	put(w, bytes, segment(bytes, ISN, 0, ES_TCP_SYN, 0, ""));
	put(w, bytes, segment(bytes, ISN + 1, ack, ES_TCP_ACK, tsecr, "GET"));
	assert_int_equal(counted(w, ES_COUNT_drop_not_mine), 2);
	assert_int_equal(es_ring_reader_consume(w->reader), 0);
	assert_int_equal(w->framed.count, 0);
	assert_int_equal(w->looks, 0); /* nor does what others have */
}

static void test_without_a_daemon_it_serves(void **state)
{
	struct world *w = *state;
	__u32 ack, tsecr;
	uint8_t bytes[256];
	size_t len;

	open_flow(w, &ack, &tsecr);
	w->node->tables.state->worker[0].heartbeat_ns = NOW_NS - 2000000000;
	len = segment(bytes, ISN + 1, ack, ES_TCP_ACK | ES_TCP_PSH, tsecr, "GET");
	assert_int_equal(put(w, bytes, len), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_request_fallback), 1);
	assert_int_equal(w->rebuilt.count, 1);
	assert_memory_equal(w->rebuilt.bytes[0], bytes, len);
	assert_true(w->rebuilt_options.tstamp_ok);

	/* Again: its socket is there, and gets the copy. */
	put(w, bytes, len);
	assert_int_equal(w->rebuilt.count, 1);
	assert_int_equal(w->injected.count, 1);
	assert_int_equal(counted(w, ES_COUNT_deliver_established), 1);

	/* And when that is over, nothing is made of it. */
	w->found = (struct es_nf_found){.listening = 1};
	put(w, bytes, len);
	assert_int_equal(w->rebuilt.count, 1);
	assert_int_equal(counted(w, ES_COUNT_handover_old), 1);
}

/* What was on its way when the connection was made here finds it, though the ring gives its flow to another node. */
static void test_overtaken(void **state)
{
	struct world *w = *state;
	__u32 ack, tsecr;
	uint8_t bytes[256];
	size_t len;

	open_flow(w, &ack, &tsecr);
	es_nf_track_note(w->node->tables.tracks, the_flow_hash(w), ISN + 1, es_ns_to_ms(NOW_NS));
	ring_give(w, OTHER);
	w->found = w->found_after;
	len = segment(bytes, ISN + 4, ack, ES_TCP_ACK | ES_TCP_FIN, tsecr, "");
	assert_int_equal(put(w, bytes, len), ES_NF_DROP);
	assert_int_equal(w->injected.count, 1);
	assert_memory_equal(w->injected.bytes[0], bytes, len);
	w->node->now_ns += (ES_NF_TRACK_FRESH_MS + 1) * 1000000ULL;
	put(w, bytes, len);
	assert_int_equal(w->injected.count, 1);
	assert_int_equal(counted(w, ES_COUNT_drop_not_mine), 1);
}

/* A client that has forgotten its connection opens another one of its ports. */
static void test_known_syn(void **state)
{
	struct world *w = *state;
	uint8_t bytes[256];
	const struct es_nf_frame frame = {.bytes = bytes,
					  .len = segment(bytes, ISN, 0, ES_TCP_SYN, 0, ""),
					  .ifindex = 2,
					  .is_known = 1};

	/* Its socket is here: it tells the client so (RFC 5961, 4). */
	w->found = w->found_after;
	assert_int_equal(es_nf_public(w->node, &frame), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_deliver_syn_established), 1);
	assert_int_equal(w->injected.count, 1);
	assert_int_equal(w->framed.count, 0);
	assert_int_equal(w->forgotten, 0);

	/* It is gone, and its entry must not take the next packets for its own; whoever inspects the new connection. */
	w->found = (struct es_nf_found){.listening = 1};
	es_nf_public(w->node, &frame);
	assert_int_equal(w->forgotten, 1);
	assert_int_equal(counted(w, ES_COUNT_syn_answered), 1);
	ring_give(w, OTHER);
	es_nf_public(w->node, &frame);
	assert_int_equal(w->forgotten, 2);
	assert_int_equal(counted(w, ES_COUNT_drop_not_mine), 1);
}

static void test_nothing_listens(void **state)
{
	struct world *w = *state;
	struct es_ip_packet answer;
	__u32 ack, tsecr;
	uint8_t bytes[256];
	size_t len;

	open_flow(w, &ack, &tsecr);
	w->node->tables.state->worker[0].heartbeat_ns = 0;
	len = segment(bytes, ISN + 1, ack, ES_TCP_ACK | ES_TCP_PSH, tsecr, "GET");
	w->found.listening = 0;
	put(w, bytes, len);
	assert_int_equal(counted(w, ES_COUNT_rebuild_no_listener), 1);
	assert_int_equal(w->framed.count, 1);
	assert_int_equal(es_ip_packet_parse(w->framed.bytes[0], w->framed.len[0], &answer), 0);
	assert_int_equal(answer.seg.flags, ES_TCP_RST);
	assert_int_equal(answer.seg.seq, ack);

	w->found.listening = 1;
	w->found.accept_full = 1;
	put(w, bytes, len);
	assert_int_equal(counted(w, ES_COUNT_handover_accept_full), 1);
	assert_int_equal(w->rebuilt.count, 0);

	/* The kernel makes none all the same: the client's repetition tries again. */
	w->found.accept_full = 0;
	w->rebuild_rc = -ECONNREFUSED;
	put(w, bytes, len);
	assert_int_equal(counted(w, ES_COUNT_rebuild_refused), 1);
	w->rebuild_rc = ES_NF_BUILT;
	put(w, bytes, len);
	assert_int_equal(counted(w, ES_COUNT_request_fallback), 1);
}

static void test_a_full_queue(void **state)
{
	struct world *w = *state;
	__u32 ack, tsecr;
	uint8_t bytes[1500];
	char payload[1200];
	size_t len;

	open_flow(w, &ack, &tsecr);
	memset(payload, 'x', sizeof(payload));
	payload[sizeof(payload) - 1] = 0;
	len = segment(bytes, ISN + 1, ack, ES_TCP_ACK | ES_TCP_PSH, tsecr, payload);
	for (int i = 0; i < 100; i++)
		put(w, bytes, len);
	assert_true(counted(w, ES_COUNT_drop_queue_full) > 0);
	assert_int_equal(counted(w, ES_COUNT_drop_queue_full) + counted(w, ES_COUNT_request_queued), 100);
}

/* Each length, and each first byte of a header that may say another one. */
static void test_malformed(void **state)
{
	struct world *w = *state;
	uint8_t bytes[256];
	size_t len = segment(bytes, ISN, 0, ES_TCP_SYN, 0, "");

	for (size_t cut = ES_NF_IP_LEN; cut < len; cut++)
		assert_int_equal(put(w, bytes, cut), ES_NF_DROP);
	bytes[0] = 0x46;
	put(w, bytes, len);
	bytes[0] = 0x45;
	bytes[ES_NF_IP_LEN + 12] = 0x40;
	put(w, bytes, len);
	bytes[ES_NF_IP_LEN + 12] = 0xf0;
	put(w, bytes, len);
	assert_int_equal(counted(w, ES_COUNT_drop_malformed), len - ES_NF_IP_LEN + 3);
	assert_int_equal(w->framed.count, 0);
}

static void test_other_traffic(void **state)
{
	struct world *w = *state;
	uint8_t echo[28] = {
		0x45, [3] = 28, [9] = IPPROTO_ICMP, [12] = 10, [15] = 7, [16] = 10, [19] = 100, [20] = 8};
	uint8_t udp[28] = {0x45, [3] = 28, [9] = IPPROTO_UDP, [12] = 10, [15] = 7, [16] = 10, [19] = 201};

	assert_int_equal(put(w, echo, sizeof(echo)), ES_NF_ACCEPT);
	assert_int_equal(counted(w, ES_COUNT_icmp_echo_mine), 1);
	ring_give(w, OTHER);
	assert_int_equal(put(w, echo, sizeof(echo)), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_other_not_mine), 1);
	echo[20] = 3; /* an error may be about any node's connection */
	assert_int_equal(put(w, echo, sizeof(echo)), ES_NF_ACCEPT);
	assert_int_equal(counted(w, ES_COUNT_icmp_error), 1);

	/* To the node itself: its own affair, unless it pretends to be a node's message. */
	assert_int_equal(put(w, udp, sizeof(udp)), ES_NF_ACCEPT);
	udp[22] = HANDOVER_PORT >> 8;
	udp[23] = HANDOVER_PORT & 0xff;
	assert_int_equal(put(w, udp, sizeof(udp)), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_handover_public), 1);
}

static void test_arp(void **state)
{
	struct world *w = *state;
	uint8_t arp[28] = {0, 1, 8, 0,	6, 4, 0, ARPOP_REQUEST, 2, 0, 0,
			   0, 0, 7, 10, 0, 0, 7, [24] = 10,	0, 0, 100};
	static const uint8_t client[6] = {2, 0, 0, 0, 0, 7}, cluster[6] = {3, 0xbf, 10, 0, 0, 100};

	es_nf_other_arp(w->node, arp, sizeof(arp));
	assert_int_equal(w->framed.count, 1);
	assert_int_equal(w->frame_protocol, ETH_P_ARP);
	assert_memory_equal(w->frame_target, client, 6);
	assert_int_equal(w->framed.bytes[0][7], ARPOP_REPLY);
	assert_memory_equal(w->framed.bytes[0] + 8, cluster, 6);
	assert_memory_equal(w->framed.bytes[0] + 14, arp + 24, 4);
	assert_memory_equal(w->framed.bytes[0] + 18, arp + 8, 10);
	assert_int_equal(counted(w, ES_COUNT_arp_answered), 1);

	arp[27] = 101;
	es_nf_other_arp(w->node, arp, sizeof(arp));
	arp[27] = 100;
	es_nf_other_arp(w->node, arp, sizeof(arp) - 1);
	ring_give(w, OTHER);
	es_nf_other_arp(w->node, arp, sizeof(arp));
	assert_int_equal(counted(w, ES_COUNT_arp_not_mine), 1);
	assert_int_equal(w->framed.count, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
	const struct CMUnitTest tests[] = {
		T(test_syn),
		T(test_request_goes_to_the_inspector),
		T(test_padding_goes_nowhere),
		T(test_anothers),
		T(test_without_a_daemon_it_serves),
		T(test_overtaken),
		T(test_known_syn),
		T(test_nothing_listens),
		T(test_a_full_queue),
		T(test_malformed),
		T(test_other_traffic),
		T(test_arp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
