/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_JHASH_H
#define ES_CORE_JHASH_H

/*
 * Bob Jenkins' lookup3 (2006) as nf_tables compute it by `jhash ip saddr . tcp sport mod 65536 seed SEED`,
 * with ip6 saddr alike (the kernel's include/linux/jhash.h and net/netfilter/nft_hash.c): so a rule of
 * nf_tables can tell whose flow a packet is. It is no keyed function: who sees which of some flows go to one
 * node can find the seed.
 */
#include "types.h"

static __always_inline __u32 es_rol32(__u32 x, unsigned int n)
{
	return (x << n) | (x >> (32 - n));
}

/* struct es_jhash - the three words that it turns */
struct es_jhash {
	__u32 a, b, c;
};

/* @len: bytes of all that is hashed */
static __always_inline void es_jhash_init(struct es_jhash *h, __u32 len, __u32 seed)
{
	h->a = h->b = h->c = 0xdeadbeefU + len + seed;
}

/* Between two parts of 12 bytes. */
static __always_inline void es_jhash_mix(struct es_jhash *h)
{
	h->a -= h->c;
	h->a ^= es_rol32(h->c, 4);
	h->c += h->b;
	h->b -= h->a;
	h->b ^= es_rol32(h->a, 6);
	h->a += h->c;
	h->c -= h->b;
	h->c ^= es_rol32(h->b, 8);
	h->b += h->a;
	h->a -= h->c;
	h->a ^= es_rol32(h->c, 16);
	h->c += h->b;
	h->b -= h->a;
	h->b ^= es_rol32(h->a, 19);
	h->a += h->c;
	h->c -= h->b;
	h->c ^= es_rol32(h->b, 4);
	h->b += h->a;
}

static __always_inline __u32 es_jhash_final(struct es_jhash *h)
{
	h->c ^= h->b;
	h->c -= es_rol32(h->b, 14);
	h->a ^= h->c;
	h->a -= es_rol32(h->c, 11);
	h->b ^= h->a;
	h->b -= es_rol32(h->a, 25);
	h->c ^= h->b;
	h->c -= es_rol32(h->b, 16);
	h->a ^= h->c;
	h->a -= es_rol32(h->c, 4);
	h->b ^= h->a;
	h->b -= es_rol32(h->a, 14);
	h->c ^= h->b;
	h->c -= es_rol32(h->b, 24);
	return h->c;
}

/* Bytes as they lie in the packet, the first one the lowest: on every machine the same. */
static __always_inline __u32 es_jhash_word(__be32 word)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return (__u32)word;
#else
	return __builtin_bswap32((__u32)word);
#endif
}

/*
 * es_jhash_slot() - of a client's address and port, in the packet's byte order: one of 65536 nf_tables pad
 * each part to four bytes, and multiply to come to a number below 65536: these are the upper bits.
 */
static __always_inline __u32 es_jhash_slot(const struct es_addr *client, __be16 port, __u32 seed)
{
	__u32 padded = es_ntohs(port);
	struct es_jhash h;

	padded = (padded & 0xff) << 8 | padded >> 8;
	if (es_addr_is_v4(client)) {
		es_jhash_init(&h, 8, seed);
		h.a += es_jhash_word(client->w[3]);
		h.b += padded;
	} else {
		es_jhash_init(&h, 20, seed);
		h.a += es_jhash_word(client->w[0]);
		h.b += es_jhash_word(client->w[1]);
		h.c += es_jhash_word(client->w[2]);
		es_jhash_mix(&h);
		h.a += es_jhash_word(client->w[3]);
		h.b += padded;
	}
	return es_jhash_final(&h) >> 16;
}

#endif
