/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_PREFIX_H
#define ES_PREFIX_H

/*
 * A network of either family: the addresses that begin with the same bits.
 */
#include <string.h>
#include "kmod/core/types.h"

#define ES_PREFIX_V4 96 /* bits before those of an IPv4 address */

/* @bits: of the 128, so 192.0.2.0/24 has ES_PREFIX_V4 + 24; those of @address behind them are 0 */
struct es_prefix {
	struct es_addr address;
	unsigned int bits;
};

static inline int es_prefix_is_v4(const struct es_prefix *prefix)
{
	return prefix->bits >= ES_PREFIX_V4 && es_addr_is_v4(&prefix->address);
}

/* es_prefix_has() - is @address in it? No network has addresses of both families, ::/0 neither. */
static inline int es_prefix_has(const struct es_prefix *prefix, const struct es_addr *address)
{
	unsigned int bytes = prefix->bits / 8, rest = prefix->bits % 8;

	if (es_prefix_is_v4(prefix) != es_addr_is_v4(address) ||
	    memcmp(address->b, prefix->address.b, bytes) != 0)
		return 0;
	return !rest || !((address->b[bytes] ^ prefix->address.b[bytes]) >> (8 - rest));
}

#endif
