/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_CHECKSUM_H
#define ES_CORE_CHECKSUM_H

/*
 * The Internet checksum (RFC 1071), over words as they lie in memory.
 */
#include "types.h"

static __always_inline __u16 es_csum_fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)sum;
}

static __always_inline __u32 es_csum_words(const __u16 *p, int n)
{
	__u32 sum = 0;

	for (int i = 0; i < n; i++)
		sum += p[i];
	return sum;
}

#endif
