// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tls/http/response.h: a response ends at one place, and says one thing of its connection, however it is cut;
 * and it ends where kmod/core/response.h says.
 */
#include "tests/fuzz/fuzz.h"
#include "tls/http/response.h"

static enum es_tls_response_end take(struct es_tls_response *response, const uint8_t *data, size_t size,
				     uint64_t *seed, size_t *ret_used)
{
	enum es_tls_response_end end;
	size_t at = 0;

	do {
		size_t part =
			seed ? fuzz_random(seed) % ((size - at < 100 ? size - at : 100) + 1) : size - at;
		char *copy = fuzz_copy(data + at, part);
		size_t used;

		end = es_tls_response_take(response, (uint8_t *)copy, part, &used);
		free(copy);
		FUZZ_CHECK(used <= part);
		FUZZ_CHECK(used == part || (end != ES_TLS_RESPONSE_OPEN && end != ES_TLS_RESPONSE_AT_CLOSE));
		at += used;
	} while ((end == ES_TLS_RESPONSE_OPEN || end == ES_TLS_RESPONSE_AT_CLOSE) && at < size);
	*ret_used = at;
	return end;
}

/* Byte by byte, without the versions and words of tls/http/. */
static uint8_t plain_phase(const uint8_t *data, size_t size, int is_head)
{
	struct es_response scan;

	es_response_init(&scan, is_head);
	for (size_t at = 0; at < size && scan.phase < ES_RESPONSE_DONE;) {
		if (es_response_reads(&scan))
			es_response_byte(&scan, data[at++]);
		else
			at += es_response_skip(&scan, (uint32_t)(size - at));
	}
	return scan.phase;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t seed = fuzz_seed(data, size);
	int is_head = size && data[0] & 1, is_connect = size && data[0] & 2;
	struct es_tls_response whole, cut;
	size_t used, cut_used;

	if (size) {
		data++;
		size--;
	}
	es_tls_response_init(&whole, is_head, is_connect);
	es_tls_response_init(&cut, is_head, is_connect);
	FUZZ_CHECK(take(&whole, data, size, NULL, &used) == take(&cut, data, size, &seed, &cut_used));
	FUZZ_CHECK(used == cut_used && whole.status == cut.status && whole.keeps == cut.keeps);
	FUZZ_CHECK(whole.scan.phase == cut.scan.phase);
	if (!is_connect)
		FUZZ_CHECK(whole.scan.phase == plain_phase(data, size, is_head));
	return 0;
}
