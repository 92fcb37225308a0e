/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CMOCKA_ALL_H
#define ES_CMOCKA_ALL_H

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* A reproducible source of test values (splitmix64). */
static inline uint64_t es_test_random(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

#endif
