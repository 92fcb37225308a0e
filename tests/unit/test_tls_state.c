// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tls/record/state.h and secret.h: a state as bytes and back, whatever has become of the bytes; the memory
 * that secrets lie in.
 */
#include "cmocka_all.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tls/record/record.h"
#include "tls/record/secret.h"
#include "tls/record/state.h"

static struct es_tls_state some_state(void)
{
	struct es_tls_state state;
	uint64_t seed = 1;

	memset(&state, 0, sizeof(state));
	state.version = ES_TLS_1_3;
	state.suite = 0x1302;
	state.consumed = 1234;
	state.window = 77;
	state.from = 0x1122334455667788;
	state.alpn = ES_TLS_ALPN_HTTP1;
	state.has_client = 1;
	for (size_t i = 0; i < ES_TLS_SECRET_MAX; i++) {
		state.client.secret[i] = (uint8_t)es_test_random(&seed);
		state.server.secret[i] = (uint8_t)es_test_random(&seed);
	}
	state.client.number = 0x0102030405060708;
	state.server.number = 7;
	for (size_t i = 0; i < ES_TLS_DIGEST_SIZE; i++)
		state.client_digest[i] = (uint8_t)es_test_random(&seed);
	snprintf(state.name, sizeof(state.name), "www.example.org");
	return state;
}

static void a_state_comes_back(void **unused)
{
	struct es_tls_state state = some_state(), again;
	uint8_t bytes[ES_TLS_STATE_BYTES];

	es_tls_state_put(&state, bytes);
	memset(&again, 0x55, sizeof(again));
	assert_int_equal(es_tls_state_get(bytes, &again), 0);
	assert_memory_equal(&again, &state, sizeof(state));
	memset(state.name, 'x', sizeof(state.name) - 1);
	state.consumed = ES_TLS_TEXT_MAX;
	es_tls_state_put(&state, bytes);
	assert_int_equal(es_tls_state_get(bytes, &again), 0);
	assert_memory_equal(&again, &state, sizeof(state));
	(void)unused;
}

/* The layout is one between nodes of several versions. */
static void the_layout_stays(void **unused)
{
	struct es_tls_state state = some_state();
	uint8_t bytes[ES_TLS_STATE_BYTES];

	es_tls_state_put(&state, bytes);
	assert_memory_equal(bytes, "\1\3\4\x13\2\4\xd2\1\1", 9);
	assert_memory_equal(bytes + 9, state.client.secret, 48);
	assert_memory_equal(bytes + 57, "\1\2\3\4\5\6\7\x8", 8);
	assert_memory_equal(bytes + 65, state.server.secret, 48);
	assert_memory_equal(bytes + 113, "\0\0\0\0\0\0\0\7", 8);
	assert_memory_equal(bytes + 121, state.client_digest, 32);
	assert_string_equal((const char *)bytes + 153, "www.example.org");
	for (size_t i = 153 + 15; i < 411; i++)
		assert_int_equal(bytes[i], 0);
	assert_memory_equal(bytes + 411, "\x11\x22\x33\x44\x55\x66\x77\x88", 8);
	assert_memory_equal(bytes + 419, "\0\x4d", 2);
	for (size_t i = 421; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], 0);
	/* The first version, which would send longer records, refuses this one. */
	state.text_max = 512;
	es_tls_state_put(&state, bytes);
	assert_memory_equal(bytes, "\2\3\4", 3);
	assert_memory_equal(bytes + 409, "\2\0", 2);
	bytes[0] = 1;
	assert_int_equal(es_tls_state_get(bytes, &state), -EPROTO);
	(void)unused;
}

/* Others are not told what stands after a name. */
static void nothing_else_is_written(void **unused)
{
	struct es_tls_state state = some_state();
	uint8_t bytes[ES_TLS_STATE_BYTES], clean[ES_TLS_STATE_BYTES];

	es_tls_state_put(&state, clean);
	memset(state.name + 16, 'x', sizeof(state.name) - 16);
	es_tls_state_put(&state, bytes);
	assert_memory_equal(bytes, clean, sizeof(bytes));
	(void)unused;
}

/* Refused, or read as a state that is written as it was read, and from which records can be read. */
static void each_byte_may_be_another(void **unused)
{
	struct es_tls_state state = some_state(), got, untouched;
	uint8_t bytes[ES_TLS_STATE_BYTES], again[ES_TLS_STATE_BYTES];
	struct es_tls_records *records;
	unsigned int refused = 0;

	memset(&untouched, 0x55, sizeof(untouched));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		for (unsigned int other = 1; other < 256; other++) {
			es_tls_state_put(&state, bytes);
			bytes[i] ^= (uint8_t)other;
			memset(&got, 0x55, sizeof(got));
			if (es_tls_state_get(bytes, &got)) {
				assert_memory_equal(&got, &untouched, sizeof(got));
				refused++;
				continue;
			}
			assert_int_equal(got.name[sizeof(got.name) - 1], 0);
			es_tls_state_put(&got, again);
			if (i < 153)
				assert_memory_equal(again, bytes, sizeof(bytes));
			if (other == 1) {
				assert_int_equal(es_tls_records_new(&got, &records), 0);
				es_tls_records_free(&records);
			}
		}
	}
	assert_true(refused > 5 * 255);
	(void)unused;
}

static void nonsense_is_refused(void **unused)
{
	static const struct {
		size_t at;
		const char *bytes;
		size_t len;
	} cases[] = {
		{0, "\0", 1},	  /* no layout */
		{0, "\2", 1},	  /* a later one */
		{1, "\3\2", 2},	  /* TLS 1.1 */
		{1, "\3\3", 2},	  /* a suite of TLS 1.3 */
		{3, "\0\x35", 2}, /* CBC */
		{5, "\x40\1", 2}, /* more than a record has */
		{7, "\3", 1},	  /* a protocol that is not known */
		{8, "\2", 1},	  /* neither yes nor no */
	};
	struct es_tls_state state = some_state(), got;
	uint8_t bytes[ES_TLS_STATE_BYTES];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		es_tls_state_put(&state, bytes);
		memcpy(bytes + cases[i].at, cases[i].bytes, cases[i].len);
		assert_int_equal(es_tls_state_get(bytes, &got), -EPROTO);
	}
	es_tls_state_put(&state, bytes);
	memset(bytes + 153, 'x', ES_TLS_NAME_SIZE);
	assert_int_equal(es_tls_state_get(bytes, &got), -EPROTO);
	(void)unused;
}

static void a_wiped_state_has_nothing(void **unused)
{
	struct es_tls_state state = some_state(), zero;

	memset(&zero, 0, sizeof(zero));
	es_tls_state_wipe(&state);
	assert_memory_equal(&state, &zero, sizeof(state));
	(void)unused;
}

/*
 * The flags of the mapping that has @address, of /proc/self/smaps: "dd" is left out of cores, "lo" is locked.
 */
static int has_flag(const void *address, const char *flag)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	unsigned long from, to;
	int is_here = 0, has = -1;
	char line[512];

	assert_non_null(file);
	while (has < 0 && fgets(line, sizeof(line), file)) {
		/* NOLINTNEXTLINE(cert-err34-c): the kernel's numbers */
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			is_here = (unsigned long)address >= from && (unsigned long)address < to;
		else if (is_here && !strncmp(line, "VmFlags:", 8))
			has = !!strstr(line + 8, flag);
	}
	fclose(file);
	return has;
}

static void secrets_have_memory_of_their_own(void **unused)
{
	static const size_t sizes[] = {1, 64, 65, 400, 1000, 4096};
	uint8_t *memory[600];

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		for (size_t round = 0; round < 2; round++) {
			for (size_t i = 0; i < 600; i++) {
				memory[i] = es_secret_new(sizes[s]);
				assert_non_null(memory[i]);
				assert_int_equal((uintptr_t)memory[i] % 16, 0);
				for (size_t k = 0; k < sizes[s]; k++)
					assert_int_equal(memory[i][k], 0);
				memset(memory[i], (int)(i + 1), sizes[s]);
			}
			for (size_t i = 0; i < 600; i++) {
				for (size_t k = 0; k < sizes[s]; k++)
					assert_int_equal(memory[i][k], (uint8_t)(i + 1));
				es_secret_free(memory[i], sizes[s]);
			}
		}
	}
	assert_null(es_secret_new(ES_SECRET_MAX + 1));
	assert_null(es_secret_new(SIZE_MAX));
	es_secret_free(NULL, 1);
	(void)unused;
}

static void secrets_are_in_no_core(void **unused)
{
	void *memory = es_secret_new(100);

	assert_int_equal(has_flag(memory, " dd"), 1);
#ifndef __SANITIZE_ADDRESS__ /* there, mlock() does nothing and says that it has */
	if (es_secret_is_locked())
		assert_int_equal(has_flag(memory, " lo"), 1);
#endif
	assert_int_equal(has_flag(&memory, " dd"), 0);
	es_secret_free(memory, 100);
	(void)unused;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_state_comes_back),
		cmocka_unit_test(the_layout_stays),
		cmocka_unit_test(nothing_else_is_written),
		cmocka_unit_test(each_byte_may_be_another),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(a_wiped_state_has_nothing),
		cmocka_unit_test(secrets_have_memory_of_their_own),
		cmocka_unit_test(secrets_are_in_no_core),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
