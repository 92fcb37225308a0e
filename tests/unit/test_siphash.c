// SPDX-License-Identifier: GPL-2.0-or-later
/* SipHash-2-4 against the test vectors of its paper (appendix A and the reference implementation). */
#include "cmocka_all.h"
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
		assert_true(es_flow_hash(&key, &flow) == hash(bytes, sizeof(flow)));
		assert_true(es_addr_hash(&key, &flow.client) == hash(bytes, 16));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_flow_is_its_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
