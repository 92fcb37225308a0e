// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kmod/core/headers.h and neighbour.h: the headers before a TCP header of IPv6, from whom a segment may come,
 * and the answer to a neighbour that looks for a service's address.
 */
#include "cmocka_all.h"
#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>
#include "kmod/core/neighbour.h"
#include "kmod/core/packet.h"

static struct es_addr addr(const char *text)
{
	struct es_addr a;

	assert_int_equal(inet_pton(AF_INET6, text, a.b), 1);
	return a;
}

static void test_client(void **state)
{
	static const char *const clients[] = {"2001:db8::7",	    "fe80::7",	       "fd00::7", "::2",
					      "64:ff9b::c633:6407", "::fffe:c633:6407"};
	static const char *const nobodys[] = {"::", "::1", "ff02::1", "ff0e::7", "::ffff:198.51.100.7"};
	struct es_addr a;

	(void)state;
	for (size_t i = 0; i < sizeof(clients) / sizeof(*clients); i++) {
		a = addr(clients[i]);
		if (!es_addr_is_client(&a) || es_headers_counter(ES_HEADER_TCP, &a) != ES_COUNTER_COUNT)
			fail_msg("%s is no client", clients[i]);
	}
	for (size_t i = 0; i < sizeof(nobodys) / sizeof(*nobodys); i++) {
		a = addr(nobodys[i]);
		if (es_addr_is_client(&a) || es_headers_counter(ES_HEADER_TCP, &a) != ES_COUNT_drop_martian)
			fail_msg("%s is a client", nobodys[i]);
	}
}

static void test_client_v4(void **state)
{
	static const char *const clients[] = {"1.0.0.0",  "126.255.255.255", "128.0.0.1", "169.254.7.7",
					      "10.0.0.1", "223.255.255.255", "240.0.0.1", "255.255.255.254"};
	static const char *const nobodys[] = {"0.0.0.0",	 "0.255.255.255", "127.0.0.0",
					      "127.255.255.255", "224.0.0.0",	  "239.255.255.255",
					      "255.255.255.255"};

	(void)state;
	for (size_t i = 0; i < sizeof(clients) / sizeof(*clients); i++)
		if (!es_v4_is_client(inet_addr(clients[i])))
			fail_msg("%s is no client", clients[i]);
	for (size_t i = 0; i < sizeof(nobodys) / sizeof(*nobodys); i++)
		if (es_v4_is_client(inet_addr(nobodys[i])))
			fail_msg("%s is a client", nobodys[i]);
}

static void test_walk(void **state)
{
	static const __u8 hop_by_hop[] = {ES_HEADER_OPTIONS, 0}, options[] = {ES_HEADER_TCP, 2};
	struct es_headers_walk w = {.off = 40, .next = ES_HEADER_HOP_BY_HOP};
	const struct es_addr a = addr("2001:db8::7");

	(void)state;
	assert_true(es_headers_go_on(&w));
	es_headers_step(&w, hop_by_hop);
	assert_int_equal(w.off, 48);
	assert_true(es_headers_go_on(&w));
	/* It ends where the walk may not go on, too. */
	assert_int_equal(es_headers_counter(w.next, &a), ES_COUNT_drop_v6_headers);
	es_headers_step(&w, options);
	assert_int_equal(w.off, 72);
	assert_false(es_headers_go_on(&w));
	assert_int_equal(es_headers_counter(w.next, &a), ES_COUNTER_COUNT);
	assert_int_equal(es_headers_counter(ES_HEADER_FRAGMENT, &a), ES_COUNT_drop_v6_fragment);
	assert_int_equal(es_headers_counter(ES_HEADER_ROUTING, &a), ES_COUNT_drop_v6_routing);
	assert_int_equal(es_headers_counter(ES_HEADER_ICMPV6, &a), -1);
	assert_int_equal(es_headers_counter(17, &a), -1);
}

static void test_packet_len(void **state)
{
	(void)state;
	assert_int_equal(es_headers_packet_len(htons(20), 0, 60), 60);
	assert_int_equal(es_headers_packet_len(htons(20), 0, 64), 60); /* the frame's padding */
	assert_int_equal(es_headers_packet_len(htons(20), 1, 90000), 60);
	assert_int_equal(es_headers_packet_len(0, 1, 90000), 90000);
	assert_int_equal(es_headers_packet_len(0, 0, 90000),
			 40); /* a jumbogram: shorter than its TCP header */
}

static void test_packet_of_flow(void **state)
{
	const struct es_flow flows[] = {
		{es_addr_from_v4(1), es_addr_from_v4(2), 3, 4},
		{addr("2001:db8::7"), addr("2001:db8::100"), 3, 4},
	};
	struct es_packet pkt;
	struct es_flow back;

	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		es_packet_of_flow(&flows[v6], &pkt);
		assert_int_equal(pkt.is_v6, v6);
		es_packet_flow(&pkt, &back);
		assert_memory_equal(&back, &flows[v6], sizeof(back));
	}
	es_packet_of_flow(&flows[0], &pkt);
	assert_int_equal(pkt.saddr, 1);
	assert_int_equal(pkt.daddr, 2);
}

/* RFC 4443, 2.3, the slow way: the sum over pseudo header and message with its checksum is all ones. */
static unsigned int sum_of(const union es_neighbour_packet *p)
{
	__u32 sum = ES_HEADER_ICMPV6 + sizeof(p->body);

	for (size_t i = 8; i < sizeof(p->bytes); i += 2)
		sum += (__u32)(p->bytes[i] << 8 | p->bytes[i + 1]);
	return (sum & 0xffff) + (sum >> 16);
}

static void test_advertisement(void **state)
{
	static const struct es_config cfg = {.cluster_mac = {3, 0, 0, 0, 0, 7}};
	const struct es_addr target = addr("2001:db8::100"), asker = addr("2001:db8::7"), nobody = addr("::"),
			     everybody = addr("ff02::1");
	union es_neighbour_packet answer;

	(void)state;
	es_neighbour_write(&cfg, &asker, &target, &answer);
	assert_int_equal(ntohl(answer.body.flags), ES_NEIGHBOUR_SOLICITED | ES_NEIGHBOUR_OVERRIDE);
	assert_memory_equal(&answer.dest, &asker, sizeof(asker));
	assert_memory_equal(&answer.source, &target, sizeof(target));
	assert_memory_equal(&answer.body.target, &target, sizeof(target));
	assert_memory_equal(answer.body.mac, cfg.cluster_mac, sizeof(answer.body.mac));
	assert_int_equal(answer.hop_limit, ES_NEIGHBOUR_HOPS);
	assert_int_equal(sum_of(&answer), 0xffff);

	es_neighbour_write(&cfg, &nobody, &target, &answer);
	assert_int_equal(ntohl(answer.body.flags), ES_NEIGHBOUR_OVERRIDE);
	assert_memory_equal(&answer.dest, &everybody, sizeof(everybody));
	assert_int_equal(sum_of(&answer), 0xffff);
}

static void test_solicitation(void **state)
{
	const struct es_neighbour asks = {.type = ES_ICMPV6_SOLICITATION};
	const struct es_neighbour tells = {.type = ES_ICMPV6_ADVERTISEMENT};
	const struct es_neighbour coded = {.type = ES_ICMPV6_SOLICITATION, .code = 1};

	(void)state;
	assert_true(es_neighbour_is_solicitation(&asks, 255));
	assert_false(es_neighbour_is_solicitation(&asks, 254)); /* from behind a router */
	assert_false(es_neighbour_is_solicitation(&tells, 255));
	assert_false(es_neighbour_is_solicitation(&coded, 255));
	assert_true(es_icmpv6_is_error(2)); /* packet too big */
	assert_false(es_icmpv6_is_error(ES_ICMPV6_ECHO));
	assert_false(es_icmpv6_is_error(0));
}

/* The message of a solicitation, with its checksum: 24 bytes and options. */
static int is_valid(const char *from, const char *to, const char *options, size_t len, __u16 wrong)
{
	const struct es_addr source = addr(from), dest = addr(to);
	struct es_neighbour_walk w;
	union {
		struct es_neighbour head;
		__u16 words[ES_NEIGHBOUR_UNITS_MAX * ES_NEIGHBOUR_UNIT / 2];
		char bytes[ES_NEIGHBOUR_UNITS_MAX * ES_NEIGHBOUR_UNIT];
	} asks = {.head = {.type = ES_ICMPV6_SOLICITATION, .target = addr("2001:db8::100")}};
	__u32 sum = (__u32)htons(ES_HEADER_ICMPV6) + htons((__u16)(ES_NEIGHBOUR_ASKS + len));
	__u16 words[16];

	memcpy(asks.bytes + ES_NEIGHBOUR_ASKS, options, len);
	memcpy(words, &source, sizeof(source));
	memcpy(words + 8, &dest, sizeof(dest));
	sum += es_csum_words(words, 16) + es_csum_words(asks.words, sizeof(asks.words) / 2);
	asks.head.check = (__u16)(~es_csum_fold(sum) ^ wrong);
	es_neighbour_walk_init(&source, &dest, (__u32)(ES_NEIGHBOUR_ASKS + len), &w);
	if (!w.is_wrong)
		while (es_neighbour_step(&w, asks.words + (size_t)w.unit * ES_NEIGHBOUR_UNIT / 2))
			;
	return es_neighbour_is_valid(&w);
}

/* RFC 4861, 7.1.1 */
static void test_solicitation_is_valid(void **state)
{
	static const char someone[] = "2001:db8::7", group[] = "ff02::1:ff00:100", mac[] = "\1\1\2\3\4\5\6\7",
			  nonce[] = "\16\1\2\3\4\5\6\7";
	static const char big[ES_NEIGHBOUR_UNITS_MAX * ES_NEIGHBOUR_UNIT] = "\16\175";
	const size_t most = sizeof(big) - ES_NEIGHBOUR_ASKS;

	(void)state;
	assert_true(is_valid(someone, group, "", 0, 0));
	assert_true(is_valid(someone, group, mac, 8, 0));
	assert_true(is_valid(someone, "2001:db8::100", mac, 8, 0));
	assert_true(is_valid(someone, group, big, most, 0));
	assert_true(is_valid("::", group, "", 0, 0));
	assert_true(is_valid("::", group, nonce, 8, 0));
	for (unsigned int bit = 0; bit < 16; bit++)
		assert_false(is_valid(someone, group, mac, 8, (__u16)(1U << bit)));
	assert_false(is_valid(someone, group, mac, 7, 0));
	assert_false(is_valid(someone, group, big, 8, 0)); /* the option says that it is longer */
	assert_false(is_valid(someone, group, "\1\0\0\0\0\0\0\0", 8, 0));
	assert_false(is_valid("::", group, mac, 8, 0));
	assert_false(is_valid("::", "2001:db8::100", "", 0, 0));
	assert_false(is_valid("::", "ff02::1", "", 0, 0));
}

/* Lengths that no solicitation has: too short, no multiple of 8, or longer than anybody sends. */
static void test_solicitation_length(void **state)
{
	static const unsigned int wrong[] = {0, 8, 16, 23, 25, 8 * ES_NEIGHBOUR_UNITS_MAX + 8, 65528, 65535};
	const struct es_addr someone = addr("2001:db8::7"), group = addr("ff02::1:ff00:100");
	struct es_neighbour_walk w;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		es_neighbour_walk_init(&someone, &group, wrong[i], &w);
		assert_true(w.is_wrong);
		assert_false(es_neighbour_is_valid(&w));
	}
}

/* If a header is not TCP's, is it certain that no datagram follows it? */
static void test_hidden(void **state)
{
	static const __u8 walked[] = {ES_HEADER_UDP, ES_HEADER_TCP, ES_HEADER_ICMPV6, 59, 50, 51};
	static const __u8 hide[] = {ES_HEADER_HOP_BY_HOP, ES_HEADER_OPTIONS, ES_HEADER_ROUTING,
				    ES_HEADER_FRAGMENT};

	(void)state;
	for (size_t i = 0; i < sizeof(walked); i++)
		assert_false(es_headers_hide(walked[i]));
	for (size_t i = 0; i < sizeof(hide); i++)
		assert_true(es_headers_hide(hide[i]));
}

static void test_this_v4(void **state)
{
	const struct es_addr v4 = es_addr_from_v4(inet_addr("10.78.0.1"));
	struct es_addr v6 = addr("fd00:78::1");

	(void)state;
	v6.w[3] = v4.w[3];
	assert_true(es_addr_is_this_v4(&v4, inet_addr("10.78.0.1")));
	assert_false(es_addr_is_this_v4(&v4, inet_addr("10.78.0.2")));
	assert_false(es_addr_is_this_v4(&v6, inet_addr("10.78.0.1")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_client),
		cmocka_unit_test(test_client_v4),
		cmocka_unit_test(test_walk),
		cmocka_unit_test(test_packet_len),
		cmocka_unit_test(test_packet_of_flow),
		cmocka_unit_test(test_advertisement),
		cmocka_unit_test(test_solicitation),
		cmocka_unit_test(test_solicitation_is_valid),
		cmocka_unit_test(test_solicitation_length),
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_this_v4),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
