// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tls/http/request.h: a head that is beyond doubt is the same request when it has been rewritten
 * (tls_head_check.h), and the body of a request ends at one place, however it is cut.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tls_head_check.h"

/* Bytes of @text that belong to the body, @seed: cut at random; -1: malformed. */
static long body_len(const struct es_http_head *head, const uint8_t *text, size_t len, uint64_t *seed,
		     int *ret_is_over)
{
	struct es_tls_body body;
	size_t at = 0;

	es_tls_body_init(&body, head);
	*ret_is_over = 0;
	do {
		size_t part = seed ? fuzz_random(seed) % (len - at + 1) : len - at;
		char *copy = fuzz_copy(text + at, part);
		long rc = es_tls_body_take(&body, (uint8_t *)copy, part, ret_is_over);

		free(copy);
		if (rc < 0)
			return -1;
		FUZZ_CHECK((size_t)rc == part || (*ret_is_over && (size_t)rc < part));
		at += (size_t)rc;
	} while (!*ret_is_over && at < len);
	return (long)at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t seed = fuzz_seed(data, size);
	struct es_tls_state state;
	struct es_flow flow;
	struct es_http_head head;
	int over, cut_over;
	char *text;

	es_http_head_init(&head);
	text = fuzz_copy(data, size);
	if (es_http_head_scan(&head, text, size) == ES_HTTP_DONE) {
		const uint8_t *body = data + head.head_len_bytes;
		size_t len = size - head.head_len_bytes;

		memset(&state, 0, sizeof(state));
		memset(&flow, 0xff, sizeof(flow));
		if (seed & 4)
			flow.client = flow.service = es_addr_from_v4((__be32)seed);
		state.has_client = !!(seed & 8);
		head_check(&head, text, (enum es_tls_tell)(seed & 3), &flow, &state);
		FUZZ_CHECK(body_len(&head, body, len, NULL, &over) ==
			   body_len(&head, body, len, &seed, &cut_over));
		FUZZ_CHECK(over == cut_over);
	}
	free(text);
	return 0;
}
