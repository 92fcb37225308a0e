// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kmod/core/answer.h: what answers say, and that their bytes are what the RFCs want.
 */
#include "cmocka_all.h"
#include <arpa/inet.h>
#include <string.h>
#include "decide_view.h"
#include "kmod/core/answer.h"

static struct es_packet packet(void)
{
	struct es_packet pkt = {
		.saddr = htonl(0xcb007107), /* 203.0.113.7 */
		.daddr = htonl(0xc0000201), /* 192.0.2.1 */
		.sport = htons(40000),
		.dport = htons(80),
	};

	return pkt;
}

/* One's complement sum of big-endian words. */
static __u32 sum(const __u8 *bytes, size_t len)
{
	__u32 n = 0;

	for (size_t i = 0; i < len; i += 2)
		n += (__u32)bytes[i] << 8 | bytes[i + 1];
	while (n >> 16)
		n = (n & 0xffff) + (n >> 16);
	return n;
}

static __u32 pseudo_sum(const __u8 *ip, __u32 tcp_len)
{
	__u8 pseudo[12] = {0};

	memcpy(pseudo, ip + 12, 8);
	pseudo[9] = 6;
	pseudo[10] = (__u8)(tcp_len >> 8);
	pseudo[11] = (__u8)tcp_len;
	return sum(pseudo, sizeof(pseudo));
}

/* Checks what must hold for any answer. */
static void expect_sound(const struct es_answer *a)
{
	union es_answer_wire wire, partial;
	__u32 len = es_answer_write(a, 0, &wire), tcp_len = len - 20, total;
	__u8 bytes[ES_ANSWER_MAX];

	assert_int_equal(len, 40 + a->options_len);
	memcpy(bytes, wire.bytes, sizeof(bytes));
	assert_int_equal(bytes[0], 0x45);
	assert_int_equal(bytes[2] << 8 | bytes[3], len);
	assert_int_equal(sum(bytes, 20), 0xffff);
	assert_int_equal(bytes[20 + 12], tcp_len / 4 << 4);
	total = pseudo_sum(bytes, tcp_len) + sum(bytes + 20, tcp_len);
	assert_int_equal((total & 0xffff) + (total >> 16), 0xffff);
	for (__u32 i = len; i < ES_ANSWER_MAX; i++)
		assert_int_equal(bytes[i], 0);

	assert_int_equal(es_answer_write(a, 1, &partial), len);
	assert_int_equal(partial.bytes[36] << 8 | partial.bytes[37], pseudo_sum(bytes, tcp_len));
	partial.headers.tcp_check = wire.headers.tcp_check;
	assert_memory_equal(partial.bytes, wire.bytes, sizeof(wire));
}

static void test_bytes(void **state)
{
	/* A SYN-ACK but for the sums. */
	static const __u8 expected[] = {
		0x45, 0,  0,	60,   0,    0, 0x40, 0,	 64,  6,
		0,    0,  192,	0,    2,    1, 203,  0,	 113, 7, /* IP */
		0,    80, 156,	64,   1,    2, 3,    4,	 5,   6,
		7,    8,  0xa0, 0x12, 0xff, 0, 0,    0,	 0,   0, /* TCP */
		2,    4,  5,	180,  4,    2, 8,    10, 0,   0,
		0,    9,  0,	0,    0,    7, 1,    3,	 3,   10,
	};
	const struct es_tcp_options o = {.sack_ok = 1, .tstamp_ok = 1, .wscale_ok = 1, .rcv_wscale = 10};
	struct es_packet pkt = packet(), back;
	union es_answer_wire wire;
	struct es_answer a;

	(void)state;
	es_packet_turn(&pkt, &back);
	es_answer_reset(&back, 0x01020304, &a);
	a.ack = 0x05060708;
	a.window = 0xff00;
	a.flags = ES_TCP_SYN | ES_TCP_ACK;
	a.options_len = ES_SYNACK_OPTIONS_LEN;
	es_synack_options_write(a.options, &o, 1460, 9, 7);
	expect_sound(&a);
	assert_int_equal(es_answer_write(&a, 0, &wire), sizeof(expected));
	wire.headers.ip_check = 0;
	wire.headers.tcp_check = 0;
	assert_memory_equal(wire.bytes, expected, sizeof(expected));
}

/* Whatever is in it: also words that carry twice, and sums that are 0. */
static void test_sums(void **state)
{
	static const __u8 lengths[] = {0, ES_TIMESTAMP_OPTION_LEN, ES_SYNACK_OPTIONS_LEN};
	__u32 random = 1;

	(void)state;
	for (unsigned int i = 0; i < 30000; i++) {
		struct es_answer a = {.options_len = lengths[i % 3]};
		__u32 word[6];

		for (unsigned int w = 0; w < 6; w++)
			word[w] = i < 3 ? ~0u : (random = random * 1664525 + 1013904223);
		a.saddr = word[0];
		a.daddr = word[1];
		a.sport = (__be16)word[2];
		a.dport = (__be16)(word[2] >> 16);
		a.seq = word[3];
		a.ack = word[4];
		a.window = (__u16)word[5];
		a.flags = (__u8)(word[5] >> 16);
		memset(a.options, (int)(word[5] >> 24), a.options_len);
		expect_sound(&a);
	}
}

struct row {
	const char *what;
	__u32 action;
	__u8 flags, has_ts, wscale_ok, ecn_ok; /* the last two as the handshake agreed on */
	struct es_answer expected;	       /* but for addresses, and @options */
};

#define ACKED	 5000u /* what the client's segment acknowledges */
#define SEQ	 9000u
#define SYN_ACK	 (ES_TCP_SYN | ES_TCP_ACK)
#define SYN_OPTS .options_len = ES_SYNACK_OPTIONS_LEN

static const struct row rows[] = {
	{"a SYN",
	 ES_SYNACK,
	 ES_TCP_SYN,
	 1,
	 1,
	 0,
	 {.seq = 77, .ack = SEQ + 1, .window = 65000, .flags = SYN_ACK, SYN_OPTS}},
	{"a SYN with ECN",
	 ES_SYNACK,
	 ES_TCP_SYN,
	 0,
	 0,
	 1,
	 {.seq = 77, .ack = SEQ + 1, .window = 65000, .flags = SYN_ACK | ES_TCP_ECE, SYN_OPTS}},
	{"a SYN of ports that were in use",
	 ES_END_OLD_AND_SYNACK,
	 ES_TCP_SYN,
	 1,
	 1,
	 0,
	 {.seq = 77, .ack = SEQ + 1, .window = 65000, .flags = SYN_ACK, SYN_OPTS}},
	{"a keep-alive probe",
	 ES_ANSWER_ACK,
	 ES_TCP_ACK,
	 1,
	 1,
	 0,
	 {.seq = ACKED,
	  .ack = SEQ + 1,
	  .window = 65000 >> 10,
	  .flags = ES_TCP_ACK,
	  .options_len = ES_TIMESTAMP_OPTION_LEN}},
	{"a keep-alive probe without options",
	 ES_ANSWER_ACK,
	 ES_TCP_ACK,
	 0,
	 0,
	 0,
	 {.seq = ACKED, .ack = SEQ + 1, .window = 65000, .flags = ES_TCP_ACK}},
	{"what is too late", ES_ANSWER_RST, ES_TCP_ACK, 1, 1, 0, {.seq = ACKED, .flags = ES_TCP_RST}},
	{"a request that no server takes",
	 ES_REBUILD,
	 ES_TCP_ACK,
	 1,
	 1,
	 0,
	 {.seq = ACKED, .flags = ES_TCP_RST}},
};

static void test_verdicts(void **state)
{
	struct es_config cfg = config();
	struct es_packet pkt = packet();

	(void)state;
	cfg.synack_window = 65000;
	cfg.mss = 1400;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct es_tcp_options o = {.mss = 1460, .wscale_ok = r->wscale_ok, .ecn_ok = r->ecn_ok};
		struct es_verdict v = {.action = r->action,
				       .counter = ES_COUNT_keepalive_answered,
				       .cookie = 77,
				       .tsval = 11,
				       .ack = SEQ + 1,
				       .options = o};
		struct es_segment seg = {
			.seq = SEQ, .flags = r->flags, .has_ts = r->has_ts, .tsval = 21, .tsecr = 22};
		struct es_answer got, expected = r->expected;

		/* The cookie says what was agreed on. */
		seg.ack = ((__u32)es_cookie_options_pack(&o) << 10) + 1;
		if (expected.seq == ACKED)
			expected.seq = seg.ack;
		expected.saddr = pkt.daddr;
		expected.daddr = pkt.saddr;
		expected.sport = pkt.dport;
		expected.dport = pkt.sport;
		if (expected.options_len == ES_SYNACK_OPTIONS_LEN)
			es_synack_options_write(expected.options, &o, 1400, 11, 21);
		else if (expected.options_len)
			es_timestamp_option_write(expected.options, 22, 21);
		es_answer_make(&cfg, &pkt, &seg, &v, &got);
		if (memcmp(&got, &expected, sizeof(got)) != 0)
			fail_msg("%s: got seq %u, ack %u, window %u, flags %#x, %u bytes of options", r->what,
				 got.seq, got.ack, got.window, got.flags, got.options_len);
		expect_sound(&got);
	}
}

/* A segment that a client sends after a refusal is taken in whole, with a window as large as can be. */
static void test_dropped(void **state)
{
	struct es_config cfg = config();
	struct es_packet pkt = packet();
	const struct es_verdict v = {
		.action = ES_ANSWER_ACK, .counter = ES_COUNT_reject_dropped, .ack = SEQ + 1000};
	const struct es_tcp_options o = {.mss = 1460, .wscale_ok = 1};
	struct es_segment seg = {.seq = SEQ, .len = 1000, .flags = ES_TCP_ACK};
	struct es_answer got;

	(void)state;
	cfg.synack_window = 65000;
	seg.ack = ((__u32)es_cookie_options_pack(&o) << 10) + 1;
	es_answer_make(&cfg, &pkt, &seg, &v, &got);
	assert_int_equal(got.seq, seg.ack);
	assert_int_equal(got.ack, SEQ + 1000);
	assert_int_equal(got.window, 65000);
	assert_int_equal(got.flags, ES_TCP_ACK);
	expect_sound(&got);
}

/* For a socket of this node's, in its client's name. */
static void test_reset(void **state)
{
	struct es_packet pkt = packet();
	struct es_answer a;

	(void)state;
	es_answer_reset(&pkt, 99, &a);
	assert_int_equal(a.saddr, pkt.saddr);
	assert_int_equal(a.dport, pkt.dport);
	assert_int_equal(a.seq, 99);
	assert_int_equal(a.flags, ES_TCP_RST);
	assert_int_equal(a.ack, 0);
	assert_int_equal(a.options_len, 0);
	expect_sound(&a);
}

static void test_turn(void **state)
{
	struct es_packet pkt = packet(), back, again;

	(void)state;
	es_packet_turn(&pkt, &back);
	assert_int_equal(back.saddr, pkt.daddr);
	assert_int_equal(back.dport, pkt.sport);
	es_packet_turn(&back, &again);
	assert_memory_equal(&again, &pkt, sizeof(pkt));
}

/*
 * An IPv6 answer has the right lengths, and a checksum that is right over the pseudo header of RFC 8200, 8.1,
 * however many options there are.
 */
static void test_ipv6(void **state)
{
	static const __u8 options_len[] = {0, ES_TIMESTAMP_OPTION_LEN, ES_SYNACK_OPTIONS_LEN};
	struct es_packet pkt = {.is_v6 = 1, .sport = htons(40000), .dport = htons(80)};
	union es_answer_wire6 wire;
	struct es_answer a;
	__u32 len, sum;

	(void)state;
	for (unsigned int i = 0; i < sizeof(pkt.source); i++) {
		pkt.source.b[i] = (__u8)(i * 37 + 32);
		pkt.dest.b[i] = (__u8)(i * 73 + 255);
	}
	for (unsigned int i = 0; i < sizeof(options_len); i++) {
		es_answer_reset(&pkt, 0x12345678, &a);
		a.options_len = options_len[i];
		memset(a.options, 0xa5, a.options_len);
		len = es_answer_write6(&a, 0, &wire);
		assert_int_equal(len, 60 + options_len[i]);
		assert_int_equal(ntohs(wire.headers.payload_len), len - 40);
		assert_int_equal(wire.bytes[0], 0x60);
		assert_memory_equal(&wire.headers.source, &pkt.source, 16);
		assert_memory_equal(&wire.headers.dest, &pkt.dest, 16);
		sum = htons(6) + htons((__u16)(len - 40));
		assert_int_equal(es_csum_fold(sum + es_csum_words(wire.words + 4, (int)(len - 8) / 2)),
				 0xffff);
		/* Hardware adds the segment to what is in the field. */
		es_answer_write6(&a, 1, &wire);
		assert_int_equal(es_csum_fold(sum + es_csum_words(wire.words + 4, 16)),
				 wire.headers.tcp_check);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),	cmocka_unit_test(test_sums),  cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_dropped), cmocka_unit_test(test_reset), cmocka_unit_test(test_turn),
		cmocka_unit_test(test_ipv6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
