// SPDX-License-Identifier: GPL-2.0-or-later
/* Packets in userspace: parsing, checksums against a naive one, cutting, the RST and other answers. */
#include "cmocka_all.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/packet/packet.h"

/* RFC 1071, the slow way. */
static uint16_t naive_sum(const uint8_t *p, size_t len, uint32_t sum)
{
	for (size_t i = 0; i < len; i++)
		sum += (uint32_t)p[i] << (i & 1 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* Every test runs for both families: *state points to a family. */
static const int families[] = {4, 6};
static int is_v6;
static size_t ip_len;

static int setup(void **state)
{
	is_v6 = *(const int *)*state == 6;
	ip_len = is_v6 ? 40 : 20;
	return 0;
}

static int checksums_hold(const uint8_t *p, size_t len)
{
	uint32_t pseudo = 6 + (uint32_t)(len - ip_len);

	for (size_t i = is_v6 ? 8 : 12; i < ip_len; i += 2)
		pseudo += (uint32_t)(p[i] << 8 | p[i + 1]);
	if (!is_v6 && naive_sum(p, 20, 0) != 0xffff)
		return 0;
	return naive_sum(p + ip_len, len - ip_len, pseudo) == 0xffff;
}

static void total_set(uint8_t *p, size_t total)
{
	size_t says = is_v6 ? total - 40 : total;

	p[is_v6 ? 4 : 2] = (uint8_t)(says >> 8);
	p[is_v6 ? 5 : 3] = (uint8_t)says;
}

/* A TCP packet with the timestamp option and @len payload bytes; checksums zero. */
static size_t make(uint8_t *p, size_t len, uint8_t flags)
{
	static const uint8_t v4[20] = {0x45, 0, 0,  0,	0x12, 0x34, 0x40, 0,  64, 6,
				       0,    0, 10, 77, 1,    1,    10,	  77, 0,  100};
	static const uint8_t v6[40] = {0x60, 1, 2, 3, 0, 0, 6, 64, 0x20, 1, 0x0d, 0xb8, 0,    0,
				       0,    0, 0, 0, 0, 0, 0, 0,  1,	 1, 0x20, 1,	0x0d, 0xb8,
				       0,    0, 0, 0, 0, 0, 0, 0,  0,	 0, 0,	  100};
	static const uint8_t tcp[32] = {
		0x9c, 0x40, 0, 80, 1, 2, 3, 4,	5, 6, 7, 8, 0x80, 0x18, 2, 0,
		0,    0,    0, 0,  1, 1, 8, 10, 0, 0, 0, 1, 0,	  0,	0, 2,
	};
	size_t total = ip_len + sizeof(tcp) + len;
	uint64_t seed = len + 1;

	memcpy(p, is_v6 ? v6 : v4, ip_len);
	memcpy(p + ip_len, tcp, sizeof(tcp));
	total_set(p, total);
	p[ip_len + 13] = flags;
	for (size_t i = 0; i < len; i++)
		p[ip_len + sizeof(tcp) + i] = (uint8_t)es_test_random(&seed);
	return total;
}

static void test_parse(void **state)
{
	static const uint8_t service_v6[16] = {0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100};
	uint8_t p[200];
	struct es_ip_packet packet;
	size_t len = make(p, 100, ES_TCP_ACK | ES_TCP_PSH), protocol = is_v6 ? 6 : 9;

	(void)state;
	assert_int_equal(es_ip_packet_parse(p, len, &packet), 0);
	assert_int_equal(packet.ip_len, ip_len);
	assert_int_equal(packet.header_len, ip_len + 32);
	assert_int_equal(packet.seg.len, 100);
	assert_int_equal(packet.seg.seq, 0x01020304);
	assert_int_equal(packet.seg.ack, 0x05060708);
	assert_true(packet.seg.has_ts && packet.seg.tsval == 1 && packet.seg.tsecr == 2);
	assert_int_equal(ntohs(packet.flow.client_port), 40000);
	if (is_v6)
		assert_memory_equal(&packet.flow.service, service_v6, 16);
	else
		assert_int_equal(packet.flow.service.w[3], inet_addr("10.77.0.100"));
	assert_int_equal(es_ip_packet_parse(p, len - 1, &packet), 0); /* cut by the datapath */
	assert_int_equal(packet.seg.len, 99);
	for (size_t cut = 0; cut < ip_len + 32; cut++)
		assert_int_equal(es_ip_packet_parse(p, cut, &packet), -EBADMSG);
	p[0] ^= 0x23; /* no version of IP, or IPv4 with options */
	assert_int_equal(es_ip_packet_parse(p, len, &packet), -EBADMSG);
	p[0] ^= 0x23;
	p[protocol] = 17;
	assert_int_equal(es_ip_packet_parse(p, len, &packet), -EBADMSG);
	p[protocol] = 6;
	p[ip_len + 12] = 0x40; /* a TCP header shorter than one */
	assert_int_equal(es_ip_packet_parse(p, len, &packet), -EBADMSG);
	p[ip_len + 12] = 0x80;
	total_set(p, ip_len + 20); /* the options do not fit */
	assert_int_equal(es_ip_packet_parse(p, len, &packet), -EBADMSG);
	total_set(p, ip_len + 42);
	assert_int_equal(es_ip_packet_parse(p, len, &packet), 0);
	assert_int_equal(packet.seg.len, 10);
	es_ip_packet_truncate(p, ip_len + 37);
	assert_int_equal(es_ip_packet_parse(p, len, &packet), 0);
	assert_int_equal(packet.seg.len, 5);
}

/* Put an extension header of @units * 8 bytes after the IPv6 header; returns the packet's new length. */
static size_t extend(uint8_t *p, size_t len, uint8_t type, unsigned int units)
{
	size_t more = units * 8;

	memmove(p + 40 + more, p + 40, len - 40);
	memset(p + 40, 0, more);
	p[40] = p[6];
	p[41] = (uint8_t)(units - 1);
	p[6] = type;
	total_set(p, len + more);
	return len + more;
}

static void test_extensions(void **state)
{
	static const uint8_t refused[] = {43, 44, 51, 59};
	uint8_t p[400], out[400];
	struct es_ip_packet packet;
	size_t len;

	(void)state;
	if (!is_v6)
		return; /* IPv4 has none */
	len = extend(p, make(p, 100, ES_TCP_ACK), 60, 2);
	len = extend(p, len, 0, 1);
	assert_int_equal(es_ip_packet_parse(p, len, &packet), 0);
	assert_int_equal(packet.ip_len, 64);
	assert_int_equal(packet.seg.len, 100);
	assert_int_equal(es_ip_packet_cut(&packet, 0, 100, out), len);
	assert_int_equal(es_ip_packet_parse(out, len, &packet), 0);
	assert_true(es_ip_packet_checksum_ok(&packet));
	for (size_t cut = 0; cut < 64 + 32; cut++)
		assert_int_equal(es_ip_packet_parse(p, cut, &packet), -EBADMSG);
	p[41] = 255; /* reaches beyond the packet */
	assert_int_equal(es_ip_packet_parse(p, len, &packet), -EBADMSG);
	for (size_t i = 0; i < sizeof(refused); i++) {
		len = extend(p, make(p, 100, ES_TCP_ACK), refused[i], 1);
		assert_int_equal(es_ip_packet_parse(p, len, &packet), -EBADMSG);
	}
	len = make(p, 100, ES_TCP_ACK);
	for (int i = 0; i < 9; i++) {
		assert_int_equal(es_ip_packet_parse(p, len, &packet), 0);
		len = extend(p, len, 60, 1);
	}
	assert_int_equal(es_ip_packet_parse(p, len, &packet), -EBADMSG); /* too many */
}

/* A packet of IPv6 must not pass for one of an IPv4 client. */
static void test_mapped(void **state)
{
	static const uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	struct es_ip_packet packet;
	uint8_t p[200];
	size_t len;

	(void)state;
	if (!is_v6)
		return; /* cannot be in a header of 32 bits */
	for (size_t at = 8; at <= 24; at += 16) {
		len = make(p, 100, ES_TCP_ACK);
		memcpy(p + at, prefix, sizeof(prefix));
		assert_int_equal(es_ip_packet_parse(p, len, &packet), -EBADMSG);
	}
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
		assert_memory_equal(out + ip_len + 32, p + ip_len + 32, len - ip_len - 32);
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
	assert_memory_equal(joined, p + ip_len + 32, 14000);
}

static void test_reset(void **state)
{
	uint8_t p[200], out[ES_RESET_MAX];
	struct es_ip_packet packet, rst;
	size_t len = make(p, 100, ES_TCP_ACK);

	(void)state;
	assert_int_equal(es_ip_packet_parse(p, len, &packet), 0);
	len = es_ip_packet_reset(&packet, out);
	assert_int_equal(len, ip_len + 20);
	assert_true(checksums_hold(out, len));
	assert_int_equal(es_ip_packet_parse(out, len, &rst), 0);
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
		size_t header = ip_len + (has_ts ? 32 : 20), total;

		if (!has_ts)
			memset(p + ip_len + 20, 1, 12); /* no operations instead */
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
		assert_int_equal(out[ip_len + 14] << 8 | out[ip_len + 15], 0xffff >> 3);
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
			memset(p + ip_len + 20, 1, 12); /* no operations instead */
		assert_int_equal(es_ip_packet_parse(p, len, &packet), 0);
		assert_int_equal(packet.seg.has_ts, has_ts);
		for (size_t text = 0; text <= 100; text += 25) {
			size_t total = es_ip_packet_answer(&packet, 77, ES_TCP_ACK | ES_TCP_FIN,
							   p + ip_len + 32, text, out);

			assert_int_equal(total, ip_len + (has_ts ? 32 : 20) + text);
			assert_true(checksums_hold(out, total));
			assert_int_equal(es_ip_packet_parse(out, total, &answer), 0);
			assert_int_equal(answer.seg.seq, packet.seg.ack);
			assert_int_equal(answer.seg.ack, 77);
			assert_int_equal(answer.seg.flags, ES_TCP_ACK | ES_TCP_FIN);
			assert_int_equal(answer.seg.len, text);
			assert_int_equal(answer.seg.has_ts, has_ts);
			assert_int_equal(answer.seg.tsval, packet.seg.tsecr);
			assert_int_equal(answer.seg.tsecr, packet.seg.tsval);
			assert_memory_equal(es_ip_packet_payload(&answer), p + ip_len + 32, text);
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
		assert_int_equal(len, ip_len + (has_ts ? 32 : 20) + 100);
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

#define TEST(f)                                                                                              \
	cmocka_unit_test_prestate_setup_teardown(f, setup, NULL, (void *)&families[0]),                      \
	{                                                                                                    \
#f " (IPv6)", f, setup, NULL, (void *)&families[1]                                           \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_parse), TEST(test_extensions), TEST(test_mapped),
		TEST(test_make),  TEST(test_cut_whole),	 TEST(test_cut_pieces),
		TEST(test_reset), TEST(test_answer),	 TEST(test_sack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
