// SPDX-License-Identifier: GPL-2.0-or-later
/* ICMP errors about what a server has sent, as its socket must hear them. */
#include "cmocka_all.h"
#include "nf_flow.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include "netfilter/kernel/compose.h"
#include "netfilter/rebuild/errors.h"

#define SHIFT  (-70000)
#define SEQ    1000u /* as the client knows it */
#define QUOTED 60    /* bytes of TCP and after it */

static size_t ip_len(int is_v6)
{
	return is_v6 ? 40 : 20;
}

/* RFC 1071's sum, byte by byte: of the ICMP message, and of IPv6 the pseudo header, too (RFC 4443, 2.3). */
static __u16 sum_of(const __u8 *packet, size_t len, int is_v6)
{
	__u32 sum = is_v6 ? (__u32)(IPPROTO_ICMPV6 + len - 40) : 0;

	for (size_t i = is_v6 ? 8 : 20; i < len; i++)
		sum += i % 2 ? packet[i] : (__u32)packet[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)sum;
}

/* "Too big", by a router, to the server. Returns its length. */
static size_t make(int is_v6, __u8 *packet)
{
	const size_t at = ip_len(is_v6), len = at + 8 + at + QUOTED;
	const struct es_flow f = flow_of(is_v6);
	const struct es_flow left = {.client = f.service,
				     .service = f.client,
				     .client_port = f.service_port,
				     .service_port = f.client_port};
	__u8 ES_NF_ALIGNED quoted[200];
	struct tcphdr *tcp = es_nf_compose(&left, NULL, QUOTED, sizeof(*tcp), quoted);
	__u16 check;

	memset(tcp + 1, 'x', QUOTED - sizeof(*tcp));
	tcp->seq = htonl(SEQ);
	es_nf_compose_end(&left, tcp, QUOTED);
	if (!is_v6)
		quoted[4] = quoted[5] =
			0xff; /* its number; of IPv6, the length has the bit that is meant here */
	/* Its own header says the same but for protocol and length. */
	memset(packet, 0, at + 8);
	memcpy(packet, quoted, at);
	if (is_v6) {
		packet[5] = (__u8)(len - 40);
		packet[6] = IPPROTO_ICMPV6;
		memcpy(packet + 24, &f.service, 16);
	} else {
		packet[3] = (__u8)len;
		packet[9] = IPPROTO_ICMP;
		memcpy(packet + 16, &f.service.w[3], 4);
	}
	packet[at] = is_v6 ? 2 : 3;
	packet[at + 1] = is_v6 ? 0 : 4;
	memcpy(packet + at + 8, quoted, at + QUOTED);
	check = htons((__u16)~sum_of(packet, len, is_v6));
	memcpy(packet + at + 2, &check, sizeof(check));
	assert_int_equal(sum_of(packet, len, is_v6), 0xffff);
	return len;
}

static void test_translate(void **state)
{
	const struct es_nf_entry entry = {.offsets = {.server = {.after = SHIFT}}};

	(void)state;
	for (int is_v6 = 0; is_v6 < 2; is_v6++) {
		const struct es_flow flow = flow_of(is_v6);
		const size_t seq_at = 2 * ip_len(is_v6) + 8 + 4;
		__u8 packet[200], before[200];
		size_t len = make(is_v6, packet);
		struct es_nf_error error;
		__u32 seq;

		memcpy(before, packet, len);
		assert_int_equal(es_nf_errors_read(packet, len, &error), 0);
		assert_memory_equal(&error.flow, &flow, sizeof(flow));
		es_nf_errors_translate(&error, &entry, packet);
		memcpy(&seq, packet + seq_at, sizeof(seq));
		assert_int_equal(ntohl(seq), SEQ - SHIFT);
		assert_int_equal(sum_of(packet, len, is_v6), 0xffff);
		/* The bit that the kernel would take for an ACK is cleared. */
		assert_int_equal(before[ip_len(is_v6) + 13] & 0x10, 0x10);
		assert_int_equal(packet[ip_len(is_v6) + 13], before[ip_len(is_v6) + 13] & ~0x10);
		packet[ip_len(is_v6) + 13] |= 0x10;
		/* Nothing else. */
		memcpy(packet + seq_at, before + seq_at, 4);
		memcpy(packet + ip_len(is_v6) + 2, before + ip_len(is_v6) + 2, 2);
		assert_memory_equal(packet, before, len);
	}
}

/* RFC 792 wants eight bytes of TCP, and no more are needed. */
static void test_what_is_cut_off(void **state)
{
	(void)state;
	for (int is_v6 = 0; is_v6 < 2; is_v6++) {
		const size_t enough = 2 * ip_len(is_v6) + 8 + 8;
		__u8 packet[200];
		size_t len = make(is_v6, packet);

		for (size_t cut = 0; cut <= len; cut++) {
			__u8 *copy = malloc(cut ? cut : 1);
			struct es_nf_error error;

			assert_non_null(copy);
			memcpy(copy, packet, cut);
			if (cut > 5)
				copy[is_v6 ? 5 : 3] = (__u8)(is_v6 ? cut - 40 : cut);
			assert_int_equal(es_nf_errors_read(copy, cut, &error), cut < enough ? -EBADMSG : 0);
			free(copy);
		}
	}
}

static void test_what_is_no_segment(void **state)
{
	static const struct {
		size_t at; /* in what is quoted */
		int is_v6;
		__u8 value;
	} others[] = {
		{9, 0, IPPROTO_UDP},	  {7, 0, 1},	{6, 0, 0x01}, {0, 0, 0x60}, {6, 1, IPPROTO_UDP},
		{6, 1, IPPROTO_FRAGMENT}, {0, 1, 0x45}, {0, 1, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		__u8 packet[200];
		size_t len = make(others[i].is_v6, packet);
		struct es_nf_error error;

		packet[ip_len(others[i].is_v6) + 8 + others[i].at] = others[i].value;
		assert_int_equal(es_nf_errors_read(packet, len, &error), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_translate),
		cmocka_unit_test(test_what_is_cut_off),
		cmocka_unit_test(test_what_is_no_segment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
