// SPDX-License-Identifier: GPL-2.0-or-later
/* Packets in userspace: parsing, checksums against a naive one, cutting, the RST and other answers. */
#include "cmocka_all.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/handover/packet.h"

/* RFC 1071, the slow way. */
static uint16_t naive_sum(const uint8_t *p, size_t len, uint32_t sum)
{
	for (size_t i = 0; i < len; i++)
		sum += (uint32_t)p[i] << (i & 1 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static int checksums_hold(const uint8_t *p, size_t len)
{
	uint32_t pseudo = 6 + (uint32_t)(len - 20);

	for (int i = 12; i < 20; i += 2)
		pseudo += (uint32_t)(p[i] << 8 | p[i + 1]);
	return naive_sum(p, 20, 0) == 0xffff && naive_sum(p + 20, len - 20, pseudo) == 0xffff;
}

/* An IPv4 TCP packet with the timestamp option and @len payload bytes; checksums zero. */
static size_t make(uint8_t *p, size_t len, uint8_t flags)
{
	static const uint8_t header[52] = {
		0x45, 0,   0,	 0,    0x12, 0x34, 0x40, 0,  64, 6, 0, 0, 10, 77, 1,	1,    10, 77,
		0,    100, 0x9c, 0x40, 0,    80,   1,	 2,  3,	 4, 5, 6, 7,  8,  0x80, 0x18, 2,  0,
		0,    0,   0,	 0,    1,    1,	   8,	 10, 0,	 0, 0, 1, 0,  0,  0,	2,
	};
	size_t total = sizeof(header) + len;
	uint64_t seed = len + 1;

	memcpy(p, header, sizeof(header));
	p[2] = (uint8_t)(total >> 8);
	p[3] = (uint8_t)total;
	p[33] = flags;
	for (size_t i = 0; i < len; i++)
		p[sizeof(header) + i] = (uint8_t)es_test_random(&seed);
	return total;
}

static void test_parse(void **state)
{
	uint8_t p[200];
	struct es_ip_packet packet;
	size_t len = make(p, 100, ES_TCP_ACK | ES_TCP_PSH);

	(void)state;
	assert_int_equal(es_ip_packet_parse(p, len, &packet), 0);
	assert_int_equal(packet.header_len, 52);
	assert_int_equal(packet.seg.len, 100);
	assert_int_equal(packet.seg.seq, 0x01020304);
	assert_int_equal(packet.seg.ack, 0x05060708);
	assert_true(packet.seg.has_ts && packet.seg.tsval == 1 && packet.seg.tsecr == 2);
	assert_int_equal(ntohs(packet.flow.client_port), 40000);
	assert_int_equal(packet.flow.service.w[3], inet_addr("10.77.0.100"));
	assert_int_equal(es_ip_packet_parse(p, len - 1, &packet), 0); /* cut by the datapath */
	assert_int_equal(packet.seg.len, 99);
	for (size_t cut = 0; cut < 52; cut++)
		assert_int_equal(es_ip_packet_parse(p, cut, &packet), -EBADMSG);
	p[0] = 0x46;
	assert_int_equal(es_ip_packet_parse(p, len, &packet), -EBADMSG);
	p[0] = 0x45;
	p[9] = 17;
	assert_int_equal(es_ip_packet_parse(p, len, &packet), -EBADMSG);
	p[9] = 6;
	p[32] = 0x40; /* a TCP header shorter than one */
	assert_int_equal(es_ip_packet_parse(p, len, &packet), -EBADMSG);
	p[32] = 0x80;
	p[2] = 0;
	p[3] = 40; /* the options do not fit */
	assert_int_equal(es_ip_packet_parse(p, len, &packet), -EBADMSG);
}

static void test_cut_whole(void **state)
{
	static const size_t lengths[] = {0, 1, 2, 3, 7, 100, 1447, 1448, 8999};
	uint8_t p[10000], out[10000];

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct es_ip_packet packet;
		size_t len = make(p, lengths[i], ES_TCP_ACK);

		assert_int_equal(es_ip_packet_parse(p, len, &packet), 0);
		assert_int_equal(es_ip_packet_cut(&packet, 0, packet.seg.len, out), len);
		assert_true(checksums_hold(out, len));
		assert_memory_equal(out + 52, p + 52, len - 52);
		packet.bytes = out;
		assert_true(es_ip_packet_checksum_ok(&packet));
		out[len - 1] ^= 4;
		assert_false(es_ip_packet_checksum_ok(&packet));
	}
}

static void test_cut_pieces(void **state)
{
	uint8_t p[14100], out[2000], joined[14000];
	struct es_ip_packet packet, piece;
	size_t at = 0, len = make(p, 14000, ES_TCP_ACK | ES_TCP_PSH | ES_TCP_FIN);

	(void)state;
	assert_int_equal(es_ip_packet_parse(p, len, &packet), 0);
	while (at < 14000) {
		size_t n = 14000 - at < 1364 ? 14000 - at : 1364;
		size_t total = es_ip_packet_cut(&packet, at, n, out);

		assert_true(checksums_hold(out, total));
		assert_int_equal(es_ip_packet_parse(out, total, &piece), 0);
		assert_int_equal(piece.seg.seq, packet.seg.seq + at);
		assert_int_equal(piece.seg.len, n);
		assert_int_equal(piece.seg.flags,
				 at + n == 14000 ? ES_TCP_ACK | ES_TCP_PSH | ES_TCP_FIN : ES_TCP_ACK);
		memcpy(joined + at, es_ip_packet_payload(&piece), n);
		at += n;
	}
	assert_memory_equal(joined, p + 52, 14000);
}

static void test_reset(void **state)
{
	uint8_t p[200], out[40];
	struct es_ip_packet packet, rst;
	size_t len = make(p, 100, ES_TCP_ACK);

	(void)state;
	assert_int_equal(es_ip_packet_parse(p, len, &packet), 0);
	es_ip_packet_reset(&packet, out);
	assert_true(checksums_hold(out, sizeof(out)));
	assert_int_equal(es_ip_packet_parse(out, sizeof(out), &rst), 0);
	assert_int_equal(rst.seg.flags, ES_TCP_RST);
	assert_int_equal(rst.seg.seq, packet.seg.ack);
	assert_true(es_addr_equal(&rst.flow.client, &packet.flow.service));
	assert_true(es_addr_equal(&rst.flow.service, &packet.flow.client));
	assert_int_equal(rst.flow.client_port, packet.flow.service_port);
}

static void test_sack(void **state)
{
	static const uint8_t option[] = {1, 1, 5, 10, 0, 0, 4, 0, 0, 0, 8, 0};
	uint8_t p[200], out[ES_ANSWER_HEADER_MAX + ES_SACK_SIZE];
	struct es_ip_packet packet, answer;
	size_t len = make(p, 100, ES_TCP_ACK);

	(void)state;
	for (int has_ts = 1; has_ts >= 0; has_ts--) {
		size_t header = has_ts ? 52 : 40, total;

		if (!has_ts)
			memset(p + 40, 1, 12); /* no operations instead */
		assert_int_equal(es_ip_packet_parse(p, len, &packet), 0);
		total = es_ip_packet_sack(&packet, 77, 1024, 2048, 3, out);
		assert_int_equal(total, header + sizeof(option));
		assert_true(checksums_hold(out, total));
		assert_int_equal(es_ip_packet_parse(out, total, &answer), 0);
		assert_int_equal(answer.seg.seq, packet.seg.ack);
		assert_int_equal(answer.seg.ack, 77);
		assert_int_equal(answer.seg.flags, ES_TCP_ACK);
		assert_int_equal(answer.seg.len, 0);
		assert_int_equal(answer.seg.has_ts, has_ts);
		assert_int_equal(answer.seg.tsval, has_ts ? packet.seg.tsecr : 0);
		assert_int_equal(out[34] << 8 | out[35], 0xffff >> 3);
		assert_memory_equal(out + header, option, sizeof(option));
	}
}

static void test_answer(void **state)
{
	uint8_t p[200], out[ES_ANSWER_HEADER_MAX + 100];
	struct es_ip_packet packet, answer;
	size_t len = make(p, 100, ES_TCP_ACK);

	(void)state;
	for (int has_ts = 1; has_ts >= 0; has_ts--) {
		if (!has_ts)
			memset(p + 40, 1, 12); /* no operations instead */
		assert_int_equal(es_ip_packet_parse(p, len, &packet), 0);
		assert_int_equal(packet.seg.has_ts, has_ts);
		for (size_t text = 0; text <= 100; text += 25) {
			size_t total =
				es_ip_packet_answer(&packet, 77, ES_TCP_ACK | ES_TCP_FIN, p + 52, text, out);

			assert_int_equal(total, (has_ts ? 52 : 40) + text);
			assert_true(checksums_hold(out, total));
			assert_int_equal(es_ip_packet_parse(out, total, &answer), 0);
			assert_int_equal(answer.seg.seq, packet.seg.ack);
			assert_int_equal(answer.seg.ack, 77);
			assert_int_equal(answer.seg.flags, ES_TCP_ACK | ES_TCP_FIN);
			assert_int_equal(answer.seg.len, text);
			assert_int_equal(answer.seg.has_ts, has_ts);
			assert_int_equal(answer.seg.tsval, packet.seg.tsecr);
			assert_int_equal(answer.seg.tsecr, packet.seg.tsval);
			assert_memory_equal(es_ip_packet_payload(&answer), p + 52, text);
			assert_true(es_addr_equal(&answer.flow.service, &packet.flow.client));
		}
	}
}

/* A client's packet, made from what is known of the connection: as one that was received, again. */
static void test_make(void **state)
{
	uint8_t p[200], bytes[200];
	struct es_ip_packet packet, made;
	size_t len = make(p, 100, ES_TCP_ACK | ES_TCP_PSH);

	(void)state;
	assert_int_equal(es_ip_packet_parse(p, len, &packet), 0);
	for (int has_ts = 0; has_ts < 2; has_ts++) {
		packet.seg.has_ts = (uint8_t)has_ts;
		len = es_ip_packet_make(&packet.flow, &packet.seg, es_ip_packet_payload(&packet), bytes);
		assert_int_equal(len, (has_ts ? 52 : 40) + 100);
		assert_true(checksums_hold(bytes, len));
		assert_int_equal(es_ip_packet_parse(bytes, len, &made), 0);
		assert_memory_equal(&made.flow, &packet.flow, sizeof(made.flow));
		assert_int_equal(made.seg.seq, packet.seg.seq);
		assert_int_equal(made.seg.ack, packet.seg.ack);
		assert_int_equal(made.seg.flags, packet.seg.flags);
		assert_int_equal(made.seg.len, 100);
		assert_int_equal(made.seg.has_ts, has_ts);
		assert_int_equal(made.seg.tsval, has_ts ? packet.seg.tsval : 0);
		assert_int_equal(made.seg.tsecr, has_ts ? packet.seg.tsecr : 0);
		assert_memory_equal(es_ip_packet_payload(&made), es_ip_packet_payload(&packet), 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),	  cmocka_unit_test(test_make),
		cmocka_unit_test(test_cut_whole), cmocka_unit_test(test_cut_pieces),
		cmocka_unit_test(test_reset),	  cmocka_unit_test(test_answer),
		cmocka_unit_test(test_sack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
