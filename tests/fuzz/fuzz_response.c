// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * kmod/core/response.h: any cut, and words instead of bytes, give the same result; once a response is
 * complete, one more byte makes it unclear and nothing makes it incomplete again.
 */
#include "tests/fuzz/fuzz.h"
#include "kmod/core/response.h"

static size_t feed(struct es_response *r, const uint8_t *data, size_t len, int words)
{
	size_t at = 0;
	__u64 word;

	while (at < len) {
		if (!es_response_reads(r)) {
			__u32 skipped = es_response_skip(r, (__u32)(len - at));

			FUZZ_CHECK(skipped <= len - at);
			FUZZ_CHECK(skipped > 0 || es_response_reads(r) || r->phase == ES_RESPONSE_DONE);
			at += skipped;
			continue;
		}
		if (words && at + 8 <= len) {
			memcpy(&word, data + at, sizeof(word));
			if (es_response_word(r, word)) {
				at += 8;
				continue;
			}
		}
		es_response_byte(r, data[at++]);
	}
	return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t seed = fuzz_seed(data, size);
	int is_head = size && data[0] & 1;
	struct es_response whole, cut;
	size_t at = 0;

	if (size > 100000)
		return 0;
	es_response_init(&whole, is_head);
	feed(&whole, data, size, 1);
	es_response_init(&cut, is_head);
	while (at < size) {
		size_t len = 1 + fuzz_random(&seed) % 40;
		__u8 before = cut.phase;

		if (len > size - at)
			len = size - at;
		feed(&cut, data + at, len, 0);
		FUZZ_CHECK(before < ES_RESPONSE_DONE || cut.phase >= before);
		at += len;
	}
	FUZZ_CHECK(whole.phase <= ES_RESPONSE_UNCLEAR);
	FUZZ_CHECK(!memcmp(&whole, &cut, sizeof(whole)));
	return 0;
}
