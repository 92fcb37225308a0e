/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_SIPHASH_H
#define ES_CORE_SIPHASH_H

/*
 * SipHash-2-4 (Aumasson and Bernstein, 2012), the one keyed function of Earshot: ring positions of flows,
 * cookies and the MAC of handover messages. The incremental form takes 64-bit words, little endian as in the
 * paper; es_siphash_final() takes the last, partial word and the total length.
 */
#include "types.h"

struct es_sipkey {
	__u64 k0;
	__u64 k1;
};

struct es_sipstate {
	__u64 v0, v1, v2, v3;
};

static __always_inline __u64 es_rol64(__u64 x, unsigned int n)
{
	return (x << n) | (x >> (64 - n));
}

static __always_inline void es_sip_round(struct es_sipstate *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = es_rol64(s->v1, 13) ^ s->v0;
	s->v3 = es_rol64(s->v3, 16) ^ s->v2;
	s->v0 = es_rol64(s->v0, 32);
	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = es_rol64(s->v1, 17) ^ s->v2;
	s->v3 = es_rol64(s->v3, 21) ^ s->v0;
	s->v2 = es_rol64(s->v2, 32);
}

static __always_inline void es_siphash_init(struct es_sipstate *s, const struct es_sipkey *key)
{
	s->v0 = 0x736f6d6570736575ULL ^ key->k0;
	s->v1 = 0x646f72616e646f6dULL ^ key->k1;
	s->v2 = 0x6c7967656e657261ULL ^ key->k0;
	s->v3 = 0x7465646279746573ULL ^ key->k1;
}

static __always_inline void es_siphash_word(struct es_sipstate *s, __u64 word)
{
	s->v3 ^= word;
	es_sip_round(s);
	es_sip_round(s);
	s->v0 ^= word;
}

/* @tail: the last len % 8 bytes of the input, little endian, zero in the upper bytes. */
static __always_inline __u64 es_siphash_final(struct es_sipstate *s, __u64 tail, __u32 len)
{
	es_siphash_word(s, tail | ((__u64)(len & 0xff) << 56));
	s->v2 ^= 0xff;
	es_sip_round(s);
	es_sip_round(s);
	es_sip_round(s);
	es_sip_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

#endif
