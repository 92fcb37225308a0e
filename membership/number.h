/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_MEMBERSHIP_NUMBER_H
#define ES_MEMBERSHIP_NUMBER_H

/* Numbers as they stand on the bus: big endian, anywhere. */
#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline void es_put32(void *at, uint32_t value)
{
	value = htobe32(value);
	memcpy(at, &value, sizeof(value));
}

static inline void es_put64(void *at, uint64_t value)
{
	value = htobe64(value);
	memcpy(at, &value, sizeof(value));
}

static inline uint32_t es_get32(const void *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return be32toh(value);
}

static inline uint64_t es_get64(const void *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return be64toh(value);
}

#endif
