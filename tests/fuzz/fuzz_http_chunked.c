// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * inspector/http/chunked.h: any cut gives the same result, and a body that ends is one that a naive decoder
 * (strtoull() and strstr() over the whole) ends at the same byte.
 */
#include "tests/fuzz/fuzz.h"
#include "inspector/http/chunked.h"

static size_t scan_part(struct es_http_chunked *c, const uint8_t *data, size_t len)
{
	char *copy = fuzz_copy(data, len);
	size_t used = SIZE_MAX;

	es_http_chunked_scan(c, copy, len, &used);
	free(copy);
	FUZZ_CHECK(used <= len);
	FUZZ_CHECK(c->result != ES_HTTP_CHUNKED_MORE || used == len);
	FUZZ_CHECK((c->error != 0) == (c->result == ES_HTTP_CHUNKED_ERROR));
	return used;
}

static const char *find_crlf(const char *at, const char *end)
{
	for (; end - at >= 2; at++)
		if (at[0] == '\r' && at[1] == '\n')
			return at;
	return NULL;
}

/* For bodies known to be well-formed: their length, and the data's. */
static size_t decode(const char *text, size_t size, uint64_t *ret_body)
{
	const char *at = text, *end = text + size, *line_end;
	unsigned long long chunk;
	uint64_t body = 0;

	do {
		chunk = strtoull(at, NULL, 16);
		at = find_crlf(at, end);
		FUZZ_CHECK(at);
		at += 2;
		if (!chunk)
			break;
		FUZZ_CHECK((size_t)(end - at) >= 2 && chunk <= (size_t)(end - at) - 2);
		at += chunk + 2;
		body += chunk;
	} while (1);
	do {
		line_end = find_crlf(at, end);
		FUZZ_CHECK(line_end);
		chunk = (unsigned long long)(line_end - at);
		at = line_end + 2;
	} while (chunk);
	*ret_body = body;
	return (size_t)(at - text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t seed = fuzz_seed(data, size), body;
	struct es_http_chunked whole, cut;
	size_t used, cut_used = 0, piece;

	es_http_chunked_init(&whole);
	used = scan_part(&whole, data, size);
	FUZZ_CHECK(whole.body_bytes <= used);
	if (whole.result == ES_HTTP_CHUNKED_DONE) {
		char *text = fuzz_copy(data, size);

		FUZZ_CHECK(decode(text, size, &body) == used && body == whole.body_bytes);
		free(text);
	}

	es_http_chunked_init(&cut);
	for (size_t at = 0; at < size; at += piece) {
		piece = size <= 128 ? 1 : fuzz_random(&seed) % (size / 4);
		if (piece > size - at)
			piece = size - at;
		cut_used += scan_part(&cut, data + at, piece);
	}
	FUZZ_CHECK(!memcmp(&whole, &cut, sizeof(whole)) && used == cut_used);

	/* Bytes after a body are none of its business, and nothing shorter is one. */
	if (whole.result == ES_HTTP_CHUNKED_DONE) {
		es_http_chunked_init(&cut);
		FUZZ_CHECK(scan_part(&cut, data, used - 1) == used - 1 && cut.result == ES_HTTP_CHUNKED_MORE);
	}
	return 0;
}
