// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tls/record/state.h and sealed.h with bytes that nobody has written: a state that is read is one that is
 * written as it was read, and from which a connection goes on; of sealed ones only those open that were
 * sealed, and those once.
 */
#include <stdbool.h>

#include "tests/fuzz/fuzz.h"
#include "tls/record/record.h"
#include "tls/record/sealed.h"

#define NOW 1764300000000000000ULL

static bool is_same(const struct es_tls_state *state, const struct es_tls_state *other)
{
	uint8_t bytes[ES_TLS_STATE_BYTES], others[ES_TLS_STATE_BYTES];

	es_tls_state_put(state, bytes);
	es_tls_state_put(other, others);
	return !memcmp(bytes, others, sizeof(bytes));
}

static void check_state(const uint8_t *bytes)
{
	uint8_t again[ES_TLS_STATE_BYTES];
	struct es_tls_records *records;
	struct es_tls_state state, second;

	if (es_tls_state_get(bytes, &state))
		return;
	es_tls_state_put(&state, again);
	FUZZ_CHECK(!es_tls_state_get(again, &second));
	FUZZ_CHECK(is_same(&state, &second));
	FUZZ_CHECK(!es_tls_records_new(&state, &records));
	es_tls_records_state(records, &second);
	state.consumed = 0;
	FUZZ_CHECK(is_same(&state, &second));
	es_tls_records_free(&records);
}

static void check_sealed(const uint8_t *sealed, const struct es_tls_seal_keys *keys,
			 struct es_tls_taken *taken)
{
	struct es_tls_state state;
	struct es_flow flow;

	memset(&flow, 0, sizeof(flow));
	FUZZ_CHECK(es_tls_unseal(keys, taken, &flow, "b", NOW, sealed, &state) != ES_TLS_OPENED);
}

/* The input, laid over a sealed state that holds it: it opens if that has changed nothing. */
static void check_laid_over(const uint8_t *data, size_t size, const struct es_tls_seal_keys *keys,
			    struct es_tls_taken *taken)
{
	uint8_t sealed[ES_TLS_SEALED_BYTES], other[ES_TLS_SEALED_BYTES];
	struct es_tls_state state, opened;
	size_t at = size ? data[0] * 2 % sizeof(sealed) : 0;
	enum es_tls_opened result;
	struct es_flow flow;

	memset(&flow, 0, sizeof(flow));
	memset(&state, 0, sizeof(state));
	state.version = ES_TLS_1_3;
	state.suite = 0x1301;
	FUZZ_CHECK(!es_tls_seal(keys, &flow, "b", NOW, &state, sealed));
	memcpy(other, sealed, sizeof(other));
	for (size_t i = 1; i < size && at + i <= sizeof(other); i++)
		other[at + i - 1] ^= data[i];
	result = es_tls_unseal(keys, taken, &flow, "b", NOW, other, &opened);
	FUZZ_CHECK((result == ES_TLS_OPENED) == !memcmp(sealed, other, sizeof(other)));
	if (result == ES_TLS_OPENED) {
		FUZZ_CHECK(is_same(&state, &opened));
		result = es_tls_unseal(keys, taken, &flow, "b", NOW, other, &opened);
		FUZZ_CHECK(result == ES_TLS_SEALED_REPEATED);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct es_tls_seal_keys keys = {.count = 2, .id = {1, 2}, .key = {{1}, {2}}};
	static struct es_tls_taken *taken;
	static unsigned int count;
	uint8_t bytes[ES_TLS_SEALED_BYTES];
	size_t len = size < sizeof(bytes) ? size : sizeof(bytes);

	if (++count % 100000 == 0)
		es_tls_taken_free(&taken);
	if (!taken)
		taken = es_tls_taken_new(NOW - 1);
	FUZZ_CHECK(taken);
	memset(bytes, 0, sizeof(bytes));
	if (len)
		memcpy(bytes, data, len);
	check_state(bytes);
	check_sealed(bytes, &keys, taken);
	check_laid_over(data, size, &keys, taken);
	return 0;
}
