/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_BYTES_H
#define ES_TLS_BYTES_H

/* Numbers in network order, at any place. */
#include <stdint.h>

static inline void es_tls_put(uint8_t *at, unsigned int size, uint64_t number)
{
	while (size--) {
		at[size] = (uint8_t)number;
		number >>= 8;
	}
}

static inline uint64_t es_tls_get(const uint8_t *at, unsigned int size)
{
	uint64_t number = 0;

	while (size--)
		number = number << 8 | *at++;
	return number;
}

#endif
