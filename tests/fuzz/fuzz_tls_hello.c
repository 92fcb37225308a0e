// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * inspector/http/tls_hello.h: fewer bytes never say something else, only less; what is asked for is more than
 * there is, and what is found lies in the bytes.
 */
#include "tests/fuzz/fuzz.h"
#include "inspector/http/tls_hello.h"

static enum es_tls_result parse(const uint8_t *data, size_t size, struct es_tls_hello *ret)
{
	char *copy = fuzz_copy(data, size);
	enum es_tls_result result = es_tls_hello_parse(copy, size, ret);

	free(copy);
	FUZZ_CHECK(result == ret->result);
	FUZZ_CHECK((result == ES_TLS_MORE) == (ret->more_bytes != 0));
	FUZZ_CHECK(result != ES_TLS_MORE || ret->more_bytes > size);
	FUZZ_CHECK(ret->sni_len <= ES_TLS_NAME_MAX && ret->alpn_len <= ES_TLS_ALPN_MAX);
	FUZZ_CHECK(ret->ticket_count <= ES_TLS_TICKETS_MAX);
	FUZZ_CHECK(result != ES_TLS_NONE || (!ret->sni_len && !ret->alpn_len && !ret->ticket_count));
	return result;
}

static void check_names(const struct es_tls_hello *h)
{
	size_t len, sum = 0;

	for (unsigned int i = 0; i < h->sni_len; i++)
		FUZZ_CHECK(h->sni[i] > ' ' && h->sni[i] <= '~');
	for (unsigned int n = 0; es_tls_hello_alpn(h, n, &len); n++)
		sum += 1 + len;
	FUZZ_CHECK(sum == h->alpn_len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t state = fuzz_seed(data, size);
	struct es_tls_hello whole, part;

	parse(data, size, &whole);
	check_names(&whole);
	for (int i = 0; i < 4; i++) {
		size_t len = size ? fuzz_random(&state) % size : 0;

		parse(data, len, &part);
		check_names(&part);
		if (part.result != ES_TLS_MORE) {
			FUZZ_CHECK(part.result == whole.result && part.sni_len == whole.sni_len &&
				   part.alpn_len == whole.alpn_len);
		} else {
			FUZZ_CHECK(size >= part.more_bytes || whole.result == ES_TLS_NONE ||
				   whole.more_bytes == part.more_bytes);
			FUZZ_CHECK(whole.result == ES_TLS_NONE ||
				   (part.sni_len <= whole.sni_len && part.alpn_len <= whole.alpn_len &&
				    part.ticket_count <= whole.ticket_count));
		}
	}
	return 0;
}
