// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Packets of clients that are cut off, or whose headers are odd, on a node of the netfilter datapath.
 */
#include "cmocka_all.h"
#include "netfilter_world.h"
#include "kmod/core/headers.h"

/* Each length, and each that a header may say. */
static void test_malformed(void **state)
{
	struct world *w = *state;
	const size_t ip_len = are.clients_v6 ? ES_NF_IP6_LEN : ES_NF_IP_LEN;
	const size_t length_at = are.clients_v6 ? 5 : 3; /* of the packet */
	uint8_t bytes[256];
	size_t len = segment(bytes, ISN, 0, ES_TCP_SYN, 0, "");

	for (size_t cut = ip_len; cut < len; cut++)
		assert_int_equal(put(w, bytes, cut), ES_NF_DROP);
	bytes[length_at]++;
	put(w, bytes, len);
	bytes[length_at]--;
	bytes[ip_len + 12] = 0x40;
	put(w, bytes, len);
	bytes[ip_len + 12] = 0xf0;
	put(w, bytes, len);
	assert_int_equal(counted(w, ES_COUNT_drop_malformed), len - ip_len + 3);
	assert_int_equal(w->framed.count, 0);
}

static void test_options_of_ip(void **state)
{
	struct world *w = *state;
	uint8_t bytes[256];
	size_t len = segment(bytes, ISN, 0, ES_TCP_SYN, 0, "");

	bytes[0] = 0x46;
	assert_int_equal(put(w, bytes, len), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_drop_malformed), 1);
}

/* A segment after @n headers of @kind. Returns its length. */
static size_t behind(uint8_t *bytes, uint8_t kind, size_t n)
{
	uint8_t plain[256];
	size_t len = segment(plain, ISN, 0, ES_TCP_SYN, 0, "");

	memcpy(bytes, plain, ES_NF_IP6_LEN);
	memset(bytes + ES_NF_IP6_LEN, 0, n * 8);
	bytes[5] = (uint8_t)(bytes[5] + n * 8);
	bytes[6] = kind;
	for (size_t i = 0; i < n; i++)
		bytes[ES_NF_IP6_LEN + i * 8] = i + 1 < n ? ES_HEADER_OPTIONS : IPPROTO_TCP;
	memcpy(bytes + ES_NF_IP6_LEN + n * 8, plain + ES_NF_IP6_LEN, len - ES_NF_IP6_LEN);
	return len + n * 8;
}

/*
 * After options there may be a SYN; what follows any other header, only its target is told
 * (kmod/core/headers.h).
 */
static void test_headers(void **state)
{
	struct world *w = *state;
	uint8_t bytes[512];
	size_t len;

	put(w, bytes, behind(bytes, ES_HEADER_HOP_BY_HOP, ES_HEADERS_MAX));
	assert_int_equal(counted(w, ES_COUNT_syn_answered), 1);
	assert_int_equal(put(w, bytes, behind(bytes, ES_HEADER_HOP_BY_HOP, ES_HEADERS_MAX + 1)), ES_NF_DROP);
	assert_int_equal(counted(w, ES_COUNT_drop_v6_headers), 1);
	put(w, bytes, behind(bytes, ES_HEADER_FRAGMENT, 1));
	assert_int_equal(counted(w, ES_COUNT_drop_v6_fragment), 1);
	put(w, bytes, behind(bytes, ES_HEADER_ROUTING, 1));
	assert_int_equal(counted(w, ES_COUNT_drop_v6_routing), 1);
	/* Each place where it may be cut off; and a header that is longer than the packet. */
	len = behind(bytes, ES_HEADER_OPTIONS, 2);
	for (size_t cut = ES_NF_IP6_LEN; cut < len; cut++)
		assert_int_equal(put(w, bytes, cut), ES_NF_DROP);
	bytes[ES_NF_IP6_LEN + 1] = 255;
	put(w, bytes, len);
	assert_int_equal(counted(w, ES_COUNT_drop_malformed), len - ES_NF_IP6_LEN + 1);
	/* Nobody's address. */
	segment(bytes, ISN, 0, ES_TCP_SYN, 0, "");
	bytes[8] = 0xff;
	put(w, bytes, len);
	assert_int_equal(counted(w, ES_COUNT_drop_martian), 1);
	assert_int_equal(w->framed.count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ES_TEST_OF(test_malformed, v4),
		ES_TEST_OF(test_malformed, v6),
		ES_TEST_OF(test_options_of_ip, v4),
		ES_TEST_OF(test_headers, v6),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
