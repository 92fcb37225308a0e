// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * SipHash-2-4 against the test vectors of its paper (appendix A and the reference implementation), and what
 * hashes of flows are made of.
 */
#include "cmocka_all.h"
#include <arpa/inet.h>
#include <string.h>
#include "kmod/core/flow.h"

static __u64 hash(const unsigned char *in, __u32 len)
{
	struct es_sipkey key = {.k0 = 0x0706050403020100ULL, .k1 = 0x0f0e0d0c0b0a0908ULL};
	struct es_sipstate sip;
	__u64 word = 0;
	__u32 at = 0;

	es_siphash_init(&sip, &key);
	for (; at + 8 <= len; at += 8) {
		memcpy(&word, in + at, 8);
		es_siphash_word(&sip, es_cpu_le64(word));
	}
	word = 0;
	memcpy(&word, in + at, len - at);
	return es_siphash_final(&sip, es_cpu_le64(word), len);
}

static void test_vectors(void **state)
{
	static const __u64 vectors[] = {
		0x726fdb47dd0e0e31ULL, 0x74f839c593dc67fdULL, 0x0d6c8009d9a94f5aULL, 0x85676696d7fb7e2dULL,
		0xcf2794e0277187b7ULL, 0x18765564cd99a68dULL, 0xcbc9466e58fee3ceULL, 0xab0200f58b01d137ULL,
		0x93f5f5799a932462ULL, 0x9e0082df0ba9e4b0ULL, 0x7a5dbbc594ddb9f3ULL, 0xf4b32f46226bada7ULL,
		0x751e8fbc860ee5fbULL, 0x14ea5627c0843d90ULL, 0xf723ca908e7af2eeULL, 0xa129ca6149be45e5ULL,
	};
	unsigned char in[16];

	(void)state;
	for (unsigned int i = 0; i < 16; i++) {
		in[i] = (unsigned char)i;
		assert_true(hash(in, i) == vectors[i]);
	}
}

/* The flow hash is SipHash over the flow's 36 bytes as they lie in memory. */
static void test_flow_is_its_bytes(void **state)
{
	struct es_sipkey key = {.k0 = 0x0706050403020100ULL, .k1 = 0x0f0e0d0c0b0a0908ULL};
	struct es_flow flow;
	uint64_t seed = 1;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		unsigned char *bytes = (unsigned char *)&flow;

		for (size_t k = 0; k < sizeof(flow); k++)
			bytes[k] = (unsigned char)es_test_random(&seed);
		assert_true(es_flow_hash(&key, 0, &flow) == hash(bytes, sizeof(flow)));
		assert_true(es_addr_hash(&key, &flow.client) == hash(bytes, 16));
	}
}

/* The slots that a rule of nf_tables computes (tests/netfilter/test_hash.py asks the kernel for others). */
static void test_jhash_slots(void **state)
{
	static const struct {
		const char *client;
		unsigned int port;
		__u32 slot;
	} vectors[] = {
		{"10.9.0.1", 1, 0xbc3e},
		{"10.9.0.11", 80, 0x6d2f},
		{"10.9.0.77", 32768, 0x0e38},
		{"10.9.0.200", 50123, 0x321d},
		{"10.9.0.1", 65535, 0x9a8d},
		{"fd00:79::1", 1, 0x31ee},
		{"2001:db8::10", 80, 0x38c1},
		{"2001:db8:1:2:3:4:5:6", 50123, 0xc27c},
		{"fe80::ff:fe00:1", 65535, 0x2a75},
	};
	struct es_addr client;
	__be32 v4;

	(void)state;
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		if (inet_pton(AF_INET, vectors[i].client, &v4) == 1)
			client = es_addr_from_v4(v4);
		else
			assert_int_equal(inet_pton(AF_INET6, vectors[i].client, &client), 1);
		assert_int_equal(es_jhash_slot(&client, es_htons(vectors[i].port), 0x12345678),
				 vectors[i].slot);
	}
}

/* Only the position on the ring is jhash's, and it depends on the client alone. */
static void test_flow_with_a_jhash_position(void **state)
{
	struct es_sipkey key = {.k0 = 1, .k1 = 2};
	uint64_t seed = 1;
	struct es_flow flow;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		unsigned char *bytes = (unsigned char *)&flow;
		__u64 with, without;

		for (size_t k = 0; k < sizeof(flow); k++)
			bytes[k] = (unsigned char)es_test_random(&seed);
		if (i & 1)
			flow.client = es_addr_from_v4(flow.client.w[3]);
		with = es_flow_hash(&key, 7, &flow);
		without = es_flow_hash(&key, 0, &flow);
		assert_true(without == es_flow_siphash(&key, &flow));
		assert_true(with << 16 == without << 16);
		assert_int_equal(with >> 48, es_jhash_slot(&flow.client, flow.client_port, 7));
	}
}

/*
 * Neighbouring ports and addresses lie everywhere: no slot of 64 has more than half as much again as its
 * part.
 */
static void test_jhash_spreads(void **state)
{
	unsigned int found[64] = {};
	const unsigned int clients = 64, ports = 1000;

	(void)state;
	for (unsigned int i = 0; i < clients; i++) {
		struct es_addr client = es_addr_from_v4(es_htonl(0x0a090000 + i));

		for (unsigned int port = 0; port < ports; port++)
			found[es_jhash_slot(&client, es_htons(32768 + port), 0x2a5) >> 10]++;
	}
	for (unsigned int i = 0; i < 64; i++)
		assert_in_range(found[i], clients * ports / 64 / 2, clients * ports / 64 * 3 / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),	      cmocka_unit_test(test_flow_is_its_bytes),
		cmocka_unit_test(test_jhash_slots),   cmocka_unit_test(test_flow_with_a_jhash_position),
		cmocka_unit_test(test_jhash_spreads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
