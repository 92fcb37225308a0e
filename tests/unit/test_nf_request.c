// SPDX-License-Identifier: GPL-2.0-or-later
/* The facts that are read from a request packet, and the packets that are made of it. */
#include "cmocka_all.h"
#include "nf_flow.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/ip.h>
#include <linux/netfilter/nf_conntrack_tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "kmod/core/checksum.h"
#include "netfilter/kernel/compose.h"
#include "netfilter/rebuild/request.h"
#include "netfilter/rebuild/resets.h"

#define BODY	 "GET / HTTP/1.1\r\n\r\n!" /* an odd length */
#define BODY_LEN (sizeof(BODY) - 1)

/* The checksum of RFC 9293, written down once more, byte by byte. */
static void assert_checksum(const __u8 *packet, size_t len)
{
	int is_v6 = packet[0] >> 4 == 6;
	size_t ip_len = is_v6 ? 40 : 20, from = is_v6 ? 8 : 12;
	__u32 sum = (__u32)(IPPROTO_TCP + len - ip_len);

	for (size_t i = from; i < len; i++)
		sum += i % 2 ? packet[i] : (__u32)packet[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	assert_int_equal(sum, 0xffff);
	for (size_t i = sum = 0; i < 20 && !is_v6; i += 2)
		sum += (__u32)packet[i] << 8 | packet[i + 1];
	assert_true(is_v6 || (sum & 0xffff) + (sum >> 16) == 0xffff);
}

/*
 * A request of a client's, whose timestamps begin at the option block's byte @ts_at; @packet has room for 200
 * bytes.
 */
static size_t make(int is_v6, size_t ts_at, __u8 *packet)
{
	size_t header = sizeof(struct tcphdr) + 16, len = header + BODY_LEN;
	struct es_flow f = flow_of(is_v6);
	struct tcphdr *tcp = es_nf_compose(&f, NULL, len, header, packet);
	__u8 *options = (__u8 *)(tcp + 1);

	tcp->seq = htonl(0xfffffff1);
	tcp->ack_seq = htonl(1000);
	tcp->ack = tcp->psh = 1;
	tcp->window = htons(501);
	memset(options, 1, 16);
	options[ts_at] = 8;
	options[ts_at + 1] = 10;
	es_put_be32(options + ts_at + 2, 0x01020304);
	es_put_be32(options + ts_at + 6, 0xf1f2f3f4);
	memcpy((__u8 *)tcp + header, BODY, BODY_LEN);
	/* ECN, and a way through the network */
	if (is_v6) {
		packet[1] |= 0x2c;
		packet[7] = 33;
	} else {
		struct iphdr *ip = (struct iphdr *)packet;

		ip->tos = 0xb3;
		ip->ttl = 33;
		ip->check = 0;
		ip->check = (__u16)~es_csum_fold(es_csum_words((const __u16 *)ip, 10));
	}
	len = es_nf_compose_end(&f, tcp, len);
	return len;
}

static struct es_nf_request request_of(__u8 *packet, int is_v6)
{
	struct es_nf_request r = {
		.packet = packet,
		.len = make(is_v6, 2, packet),
		.options = {.mss = 1300,
			    .snd_wscale = 8,
			    .rcv_wscale = 7,
			    .wscale_ok = 1,
			    .sack_ok = 1,
			    .tstamp_ok = 1},
	};

	assert_int_equal(es_nf_request_read(&r), 0);
	return r;
}

static void test_read(void **state)
{
	(void)state;
	for (int is_v6 = 0; is_v6 < 2; is_v6++) {
		__u8 ES_NF_ALIGNED packet[200];
		struct es_flow flow = flow_of(is_v6);
		struct es_nf_request r = request_of(packet, is_v6);

		assert_memory_equal(&r.flow, &flow, sizeof(flow));
		assert_int_equal(r.seg.seq, 0xfffffff1);
		assert_int_equal(r.seg.ack, 1000);
		assert_int_equal(r.seg.len, BODY_LEN);
		assert_int_equal(r.seg.flags, ES_TCP_ACK | ES_TCP_PSH);
		assert_int_equal(r.seg.tsval, 0x01020304);
		assert_int_equal(r.seg.tsecr, 0xf1f2f3f4);
		assert_int_equal(r.seg.is_v6, is_v6);
		assert_int_equal(r.window, 501);
	}
}

static void test_damaged_requests_are_refused(void **state)
{
	(void)state;
	for (int is_v6 = 0; is_v6 < 2; is_v6++) {
		__u8 ES_NF_ALIGNED packet[200];
		size_t whole = make(is_v6, 2, packet), header = is_v6 ? 40 : 20;
		static const struct {
			int at;
			__u8 value;
		} damages[2][5] = {
			{{0, 0x46}, {0, 0x55}, {9, IPPROTO_UDP}, {6, 0x20}, {3, 200}},
			{{0, 0x50}, {0, 0x70}, {6, IPPROTO_UDP}, {6, IPPROTO_FRAGMENT}, {5, 200}},
		};

		for (size_t len = 0; len < whole; len++) {
			__u8 *copy = malloc(len ? len : 1);
			struct es_nf_request r = {.packet = copy, .len = len};

			assert_non_null(copy);
			memcpy(copy, packet, len);
			assert_int_equal(es_nf_request_read(&r), -EBADMSG);
			free(copy);
		}
		for (size_t i = 0; i < 5; i++) {
			struct es_nf_request r = {.packet = packet, .len = make(is_v6, 2, packet)};

			packet[damages[is_v6][i].at] = damages[is_v6][i].value;
			assert_int_equal(es_nf_request_read(&r), -EBADMSG);
		}
		for (unsigned int offset = 0; offset < 16; offset++) {
			struct es_nf_request r = {.packet = packet, .len = make(is_v6, 2, packet)};
			int is_right = offset >= 5 && header + offset * 4 <= whole;

			packet[header + 12] = (__u8)(offset << 4);
			assert_int_equal(es_nf_request_read(&r), is_right ? 0 : -EBADMSG);
		}
	}
}

/* The SYN, read as a packet of its own: numbers, and the options that were agreed upon, no others. */
static void test_syn(void **state)
{
	(void)state;
	for (int which = 0; which < 32; which++) {
		__u8 ES_NF_ALIGNED packet[200], ES_NF_ALIGNED out[ES_NF_MADE_MAX];
		int is_v6 = which & 1;
		struct es_nf_request r = request_of(packet, is_v6), syn = {.packet = out};

		r.options.wscale_ok = which >> 1 & 1;
		r.options.sack_ok = which >> 2 & 1;
		r.options.tstamp_ok = which >> 3 & 1;
		r.options.ecn_ok = which >> 4 & 1;
		syn.len = es_nf_request_syn(&r, out);
		assert_checksum(out, syn.len);
		assert_int_equal(es_nf_request_read(&syn), 0);
		assert_memory_equal(&syn.flow, &r.flow, sizeof(syn.flow));
		assert_int_equal(syn.seg.seq, 0xfffffff0);
		assert_int_equal(syn.seg.ack, 999);
		assert_int_equal(syn.seg.flags,
				 ES_TCP_SYN | (r.options.ecn_ok ? ES_TCP_ECE | ES_TCP_CWR : 0));
		assert_int_equal(syn.seg.len, 0);
		assert_int_equal(syn.seg.mss, 1300);
		assert_int_equal(syn.window, 501);
		assert_int_equal(syn.seg.has_wscale, r.options.wscale_ok);
		assert_int_equal(syn.seg.wscale, r.options.wscale_ok ? 8 : 0);
		assert_int_equal(syn.seg.sack_permitted, r.options.sack_ok);
		assert_int_equal(syn.seg.has_ts, r.options.tstamp_ok);
		assert_int_equal(syn.seg.tsval, r.options.tstamp_ok ? 0x01020304 : 0);
		assert_int_equal(syn.seg.tsecr,
				 r.options.tstamp_ok ? 0xf1f2f3f4 + ES_REBUILD_CLOCK_AHEAD_MS : 0);
		/* It has arrived the same way as the request, and has no ECN of its own. */
		assert_int_equal(out[is_v6 ? 7 : 8], 33);
		assert_int_equal(out[1] & (is_v6 ? 0x30 : 0x03), 0);
		assert_int_equal(out[1] & (is_v6 ? 0x0f : 0xfc), is_v6 ? 0x0c : 0xb0);
	}
}

static void test_mss_has_a_least_value(void **state)
{
	(void)state;
	for (int is_v6 = 0; is_v6 < 2; is_v6++) {
		__u8 ES_NF_ALIGNED packet[200], ES_NF_ALIGNED out[ES_NF_MADE_MAX];
		struct es_nf_request r = request_of(packet, is_v6), syn = {.packet = out};

		r.options.mss = 0;
		syn.len = es_nf_request_syn(&r, out);
		assert_int_equal(es_nf_request_read(&syn), 0);
		assert_int_equal(syn.seg.mss, is_v6 ? ES_TCP_MSS_MIN_V6 : ES_TCP_MSS_MIN);
	}
}

/* The request as it follows: the same, but without timestamps; wherever they were, the checksum holds. */
static void test_begin(void **state)
{
	(void)state;
	for (size_t which = 0; which < 14; which++) {
		__u8 ES_NF_ALIGNED packet[200], ES_NF_ALIGNED out[200], ES_NF_ALIGNED headers[ES_NF_MADE_MAX];
		int is_v6 = which & 1;
		size_t ts_at = which / 2, len, at;
		struct es_nf_request r = request_of(packet, is_v6), begun = {.packet = out};

		r.len = make(is_v6, ts_at, packet);
		assert_int_equal(es_nf_request_read(&r), 0);
		len = es_nf_request_begin(&r, headers);
		assert_int_equal(len, r.len - BODY_LEN);
		memcpy(out, headers, len);
		memcpy(out + len, BODY, BODY_LEN);
		begun.len = r.len;
		assert_checksum(out, begun.len);
		assert_int_equal(es_nf_request_read(&begun), 0);
		assert_false(begun.seg.has_ts);
		at = r.ip_len + 20UL + ts_at;
		memcpy(out + at, packet + at, 10);
		memcpy(out + r.ip_len + 16, packet + r.ip_len + 16, 2);
		assert_memory_equal(out, packet, r.len);
	}
}

/* Options of IPv6 between its header and that of TCP: the same is made as without them. */
static void test_options_of_v6(void **state)
{
	__u8 ES_NF_ALIGNED plain[200], ES_NF_ALIGNED packet[2500];
	__u8 ES_NF_ALIGNED out[2][ES_NF_MADE_MAX];
	struct es_nf_request without = request_of(plain, 1), with;

	(void)state;
	for (size_t size = 8; size <= 2048; size += 2040) {
		with = without;
		with.packet = packet;
		with.len = without.len + size;
		memcpy(packet, plain, 40);
		memset(packet + 40, 0, size);
		packet[4] = (__u8)((with.len - 40) >> 8);
		packet[5] = (__u8)(with.len - 40);
		packet[6] = IPPROTO_DSTOPTS;
		packet[40] = IPPROTO_TCP;
		packet[41] = (__u8)(size / 8 - 1);
		memcpy(packet + 40 + size, plain + 40, without.len - 40);
		assert_int_equal(es_nf_request_read(&with), 0);
		assert_int_equal(with.ip_len, 40 + size);
		assert_memory_equal(&with.flow, &without.flow, sizeof(with.flow));
		assert_memory_equal(&with.seg, &without.seg, sizeof(with.seg));
		assert_int_equal(with.window, without.window);
		assert_int_equal(es_nf_request_begin(&with, out[0]), es_nf_request_begin(&without, out[1]));
		assert_memory_equal(out[0], out[1], without.len - BODY_LEN);
		assert_int_equal(es_nf_request_syn(&with, out[0]), es_nf_request_syn(&without, out[1]));
		assert_memory_equal(out[0], out[1], 40 + 20);
	}
}

static void test_reset(void **state)
{
	(void)state;
	for (int is_v6 = 0; is_v6 < 2; is_v6++) {
		__u8 ES_NF_ALIGNED out[ES_NF_MADE_MAX];
		struct es_flow flow = flow_of(is_v6);
		struct es_nf_request rst = {.packet = out, .len = es_nf_reset(&flow, 77, out)};

		assert_checksum(out, rst.len);
		assert_int_equal(es_nf_request_read(&rst), 0);
		assert_memory_equal(&rst.flow, &flow, sizeof(flow));
		assert_int_equal(rst.seg.seq, 77);
		assert_int_equal(rst.seg.flags, ES_TCP_RST);
	}
}

/* The other way round: only the number changes, by what conntrack knows. */
static void test_resets_that_leave(void **state)
{
	(void)state;
	for (int is_v6 = 0; is_v6 < 2; is_v6++) {
		__u8 ES_NF_ALIGNED packet[200], ES_NF_ALIGNED out[ES_NF_RESET_MAX];
		struct es_nf_entry entry = {.state = TCP_CONNTRACK_ESTABLISHED,
					    .flow = flow_of(is_v6),
					    .offsets.server.after = -0x1000};
		struct es_flow there = flow_of(is_v6), flow;
		struct es_nf_request sent = request_of(packet, is_v6), heard = {.packet = out};
		struct tcphdr *tcp = (struct tcphdr *)(packet + sent.ip_len);

		assert_int_equal(es_nf_resets_flow(packet, sent.len, &flow), -EBADMSG);
		tcp->rst = 1;
		assert_int_equal(es_nf_resets_flow(packet, sent.len, &flow), 0);
		assert_memory_equal(&flow.client, &there.service, sizeof(flow.client));
		assert_memory_equal(&flow.service, &there.client, sizeof(flow.service));
		assert_int_equal(flow.client_port, there.service_port);
		assert_int_equal(flow.service_port, there.client_port);
		heard.len = es_nf_resets_translate(packet, sent.len, &entry, out);
		assert_checksum(out, heard.len);
		assert_int_equal(es_nf_request_read(&heard), 0);
		/* It has the service's address and port, whatever its socket's are. */
		assert_memory_equal(&heard.flow.service, &there.client, sizeof(there.client));
		assert_memory_equal(&heard.flow.client, &there.service, sizeof(there.service));
		assert_int_equal(heard.flow.service_port, there.client_port);
		assert_int_equal(heard.flow.client_port, there.service_port);
		assert_int_equal(heard.seg.seq, 0xffffeff1);
		assert_int_equal(heard.seg.ack, 1000);
		assert_int_equal(heard.seg.flags, ES_TCP_RST | ES_TCP_ACK);
		/* As the answer to a SYN, the kernel has it right. */
		entry.state = TCP_CONNTRACK_SYN_RECV;
		assert_int_equal(es_nf_resets_translate(packet, sent.len, &entry, out), 0);
		/*
		 * Where both have closed, one that acknowledges is an end, and one that does not an answer to
		 * a copy.
		 */
		entry.state = TCP_CONNTRACK_TIME_WAIT;
		assert_false(es_nf_resets_is_idle(packet, sent.len, &entry));
		tcp->ack = 0;
		assert_true(es_nf_resets_is_idle(packet, sent.len, &entry));
		entry.state = TCP_CONNTRACK_LAST_ACK;
		assert_false(es_nf_resets_is_idle(packet, sent.len, &entry));
	}
}

/*
 * A client that may have more to send, a body, a second request or the rest of this one, is not made to wait.
 */
static void test_is_all(void **state)
{
	static const struct {
		const char *text;
		int is_all;
	} cases[] = {
		{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 1},
		{"HEAD /content-length: HTTP/1.0\r\n\r\n", 1},
		{"GET / HTTP/1.1\r\n\r\nG", 0},
		{"GET / HTTP/1.1\r\nHost: a\r\n", 0},
		{"GET / HTTP/1.1\r\ncontent-length: 1\r\n\r\n", 0},
		{"GET / HTTP/1.1\r\nTRANSFER-ENCODING:chunked\r\n\r\n", 0},
		{"POST / HTTP/1.1\r\n\r\n", 0},
		{"\r\n\r\n", 0},
		{"", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t len = strlen(cases[i].text);
		__u8 *packet = malloc(40 + len);
		struct es_nf_request r = {.packet = packet, .len = 40 + len, .seg = {.len = (__u32)len}};

		assert_non_null(packet);
		memcpy(packet + 40, cases[i].text, len);
		assert_int_equal(es_nf_request_is_all(&r), cases[i].is_all);
		free(packet);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),   cmocka_unit_test(test_damaged_requests_are_refused),
		cmocka_unit_test(test_syn),    cmocka_unit_test(test_mss_has_a_least_value),
		cmocka_unit_test(test_begin),  cmocka_unit_test(test_options_of_v6),
		cmocka_unit_test(test_reset),  cmocka_unit_test(test_resets_that_leave),
		cmocka_unit_test(test_is_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
