// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * inspector/http/head.h: any cut gives the same state, all offsets are inside, and a head that is beyond
 * doubt passes a second, naive check which shares no code with the scanner.
 */
#include <strings.h>

#include "tests/fuzz/fuzz.h"
#include "inspector/http/boundary.h"
#include "inspector/http/head.h"

static int same(const struct es_http_head *a, const struct es_http_head *b)
{
	return !memcmp(a, b, offsetof(struct es_http_head, headers)) &&
	       !memcmp(a->headers, b->headers, es_http_head_headers(a) * sizeof(a->headers[0]));
}

static void scan_part(struct es_http_head *h, const uint8_t *data, size_t len)
{
	char *copy = fuzz_copy(data, len);

	es_http_head_scan(h, copy, len);
	free(copy);
}

static void check_span(struct es_http_span span, size_t size)
{
	FUZZ_CHECK(span.off <= size && span.len <= size - span.off);
}

static void check_inside(const struct es_http_span *inner, const struct es_http_span *outer)
{
	FUZZ_CHECK(!inner->len ||
		   (inner->off >= outer->off && inner->off + inner->len <= outer->off + outer->len));
}

static void check_offsets(const struct es_http_head *h, size_t size)
{
	check_span(h->method_name, size);
	check_span(h->target, size);
	check_span(h->path, size);
	check_span(h->query, size);
	check_span(h->authority, size);
	check_span(h->host, size);
	check_inside(&h->path, &h->target);
	check_inside(&h->query, &h->target);
	check_inside(&h->authority, &h->target);
	for (uint32_t i = 0; i < es_http_head_headers(h); i++) {
		check_span(h->headers[i].name, size);
		check_span(h->headers[i].value, size);
	}
	FUZZ_CHECK(h->head_len_bytes <= size);
	FUZZ_CHECK((h->head_len_bytes != 0) == (h->result == ES_HTTP_DONE));
	FUZZ_CHECK((h->ambiguity != 0) == (h->result == ES_HTTP_AMBIGUOUS) || h->result == ES_HTTP_MORE);
	FUZZ_CHECK(h->result != ES_HTTP_AMBIGUOUS || (h->pin && h->target_complete && h->target.len));
	FUZZ_CHECK(h->body == ES_HTTP_BODY_UNKNOWN || h->result == ES_HTTP_DONE);
}

static int is_name(const char *line, size_t len, const char *name)
{
	return len > strlen(name) && !strncasecmp(line, name, strlen(name)) && line[strlen(name)] == ':';
}

/* The meaning of "beyond doubt", line by line on a terminated copy. */
static void check_done(const struct es_http_head *h, const uint8_t *data)
{
	size_t len = h->head_len_bytes;
	char *text = malloc(len + 1), *line, *end;
	unsigned int lengths = 0, codings = 0, hosts = 0, headers = 0;

	FUZZ_CHECK(text && len >= 16);
	memcpy(text, data, len);
	text[len] = '\0';
	FUZZ_CHECK(strlen(text) == len && !memcmp(text + len - 4, "\r\n\r\n", 4));
	for (line = text; !strncmp(line, "\r\n", 2);)
		line += 2;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		FUZZ_CHECK(c >= 0x20 || c == '\t' || c == '\r' || c == '\n');
		FUZZ_CHECK(c != 0x7f);
		FUZZ_CHECK(c != '\r' || text[i + 1] == '\n');
		FUZZ_CHECK(c != '\n' || (i && text[i - 1] == '\r'));
	}
	end = strstr(line, "\r\n");
	FUZZ_CHECK(end && (!memcmp(end - 9, " HTTP/1.1", 9) || !memcmp(end - 9, " HTTP/1.0", 9)));
	FUZZ_CHECK(strcspn(line, " \t") == h->method_name.len);
	FUZZ_CHECK((size_t)(end - line) == (size_t)h->method_name.len + h->target.len + 10);
	for (line = end + 2; (end = strstr(line, "\r\n")) != line; line = end + 2) {
		size_t colon;

		FUZZ_CHECK(end);
		colon = strcspn(line, ": \t");
		headers++;
		FUZZ_CHECK(colon && line[colon] == ':');
		lengths += is_name(line, (size_t)(end - line), "content-length");
		codings += is_name(line, (size_t)(end - line), "transfer-encoding");
		hosts += is_name(line, (size_t)(end - line), "host");
	}
	FUZZ_CHECK(line + 2 == text + len);
	FUZZ_CHECK(headers == h->header_count);
	FUZZ_CHECK(lengths + codings <= 1 && hosts <= 1);
	FUZZ_CHECK((lengths == 1) == h->has_content_length && (codings == 1) == h->chunked);
	FUZZ_CHECK((hosts == 1) == h->has_host);
	free(text);
}

static void check_lookups(const struct es_http_head *h, const uint8_t *data, size_t size)
{
	static const char *const names[] = {"a", "host", "Cookie", "sid", "Content-Length", ""};
	char *copy = fuzz_copy(data, size);
	const char *value;
	size_t len;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (es_http_head_find(h, copy, names[i], &value, &len))
			FUZZ_CHECK(value >= copy && value + len <= copy + size);
		if (es_http_head_cookie(h, copy, names[i], &value, &len))
			FUZZ_CHECK(value >= copy && value + len <= copy + size);
	}
	if (es_http_head_host(h, copy, &value, &len))
		FUZZ_CHECK(value >= copy && value + len <= copy + size);
	free(copy);
}

static int is_reached(const struct es_http_head *h, const uint8_t *data, size_t len)
{
	char *copy = fuzz_copy(data, len);
	int reached = es_boundary_is_reached(h, copy, len);

	free(copy);
	return reached;
}

/* Where the client waits, it waits with all that is behind; and at the request's end, if that is proven. */
static void check_boundary(const struct es_http_head *h, const uint8_t *data, size_t size, uint64_t *seed)
{
	size_t len = h->head_len_bytes + fuzz_random(seed) % (size - h->head_len_bytes + 1);
	struct es_boundary boundary;
	char *copy = fuzz_copy(data, size);

	FUZZ_CHECK(!is_reached(h, data, len) || is_reached(h, data, size));
	es_boundary_find(h, copy, size, &boundary);
	free(copy);
	if (boundary.pin == ES_PIN_none && !h->expect_continue)
		FUZZ_CHECK(is_reached(h, data, size) == (size >= boundary.len_bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t seed = fuzz_seed(data, size);
	struct es_http_head whole, cut;
	size_t step = size <= 128 ? 1 : size / 4;

	es_http_head_init(&whole);
	scan_part(&whole, data, size);
	check_offsets(&whole, size);
	check_lookups(&whole, data, size);
	if (whole.result == ES_HTTP_DONE)
		check_done(&whole, data);
	if (whole.result == ES_HTTP_DONE)
		check_boundary(&whole, data, size, &seed);

	/* Small inputs grow byte by byte, larger ones in a few random steps. */
	es_http_head_init(&cut);
	for (size_t len = 0; len < size; len += step == 1 ? 1 : 1 + fuzz_random(&seed) % step) {
		scan_part(&cut, data, len);
		check_offsets(&cut, size);
	}
	scan_part(&cut, data, size);
	FUZZ_CHECK(same(&whole, &cut));

	/* Bytes after a head are none of its business. */
	if (whole.result == ES_HTTP_DONE) {
		es_http_head_init(&cut);
		scan_part(&cut, data, whole.head_len_bytes);
		FUZZ_CHECK(same(&whole, &cut));
		es_http_head_init(&cut);
		scan_part(&cut, data, whole.head_len_bytes - 1);
		FUZZ_CHECK(cut.result == ES_HTTP_MORE);
	}
	es_http_head_truncate(&whole);
	FUZZ_CHECK(whole.result != ES_HTTP_MORE);
	check_offsets(&whole, size);
	return 0;
}
