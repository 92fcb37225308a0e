/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_FUZZ_H
#define ES_TESTS_FUZZ_H
/*
 * Shared by the fuzz bodies. A body is LLVMFuzzerTestOneInput() as libFuzzer wants it; without libFuzzer,
 * fuzz_main.c calls it with the corpus and with mutations of it.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An invariant; unlike assert() it is there in every build type. */
#define FUZZ_CHECK(condition)                                                                                \
	do {                                                                                                 \
		if (!(condition)) {                                                                          \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);            \
			abort();                                                                             \
		}                                                                                            \
	} while (0)

/* A heap copy of exactly @size bytes, so that a sanitizer sees a read behind them. The caller frees it. */
static inline char *fuzz_copy(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1);

	FUZZ_CHECK(copy);
	if (size)
		memcpy(copy, data, size);
	return copy;
}

/* Numbers that depend on nothing but @state (splitmix64). */
static inline uint64_t fuzz_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* A seed from the input itself, so that an input always runs the same way (FNV-1a). */
static inline uint64_t fuzz_seed(const uint8_t *data, size_t size)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ data[i]) * 0x100000001b3u;
	return hash;
}

#endif
