/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_OVERHEARD_H
#define ES_CORE_OVERHEARD_H

/*
 * Packets that this node has heard on the public network lately, whichever node they were for: a bitmap of
 * two generations. A key, a hash that says what was heard, sets three bits of a word. A key is remembered for
 * one life at least and for two at most. For so long, a key that was heard is always found. A key that was
 * not heard is found, too, where other keys have set the same bits, and the more was heard, the more often
 * that happens. So on "yes", the asker must do as it would without asking; only "no" proves something.
 *
 * A slot is two words, one of each generation, in one cache line. A word carries the number of its
 * generation, so a new one needs no sweep: the first to write into a word that is out of date replaces it.
 * Any CPU notes and asks, none locks. Bounded: the table never grows.
 */
#include "types.h"

#define ES_OVERHEARD_BITS 48 /* in a word; above them is the generation's number */

/* So often may other CPUs note something in the same word in between; then a note is lost. */
#define ES_OVERHEARD_TRIES 8

/* struct es_overheard - a slot of the table; all zero: nothing was heard */
struct es_overheard {
	__u64 word[2];
};
_Static_assert(sizeof(struct es_overheard) == 16, "both generations are in one cache line");

/**
 * es_overheard_key() - the key of something about a flow that has the number @what
 * @flow_hash is a keyed hash: nobody outside can aim at a bit.
 */
static __always_inline __u64 es_overheard_key(__u64 flow_hash, __u32 what)
{
	__u64 key = flow_hash ^ (__u64)what * 0x9e3779b97f4a7c15ULL;

	key = (key ^ key >> 32) * 0xd6e8feb86659fd93ULL;
	return key ^ key >> 32;
}

/* The index of the key's slot, out of @slots (a power of two). */
static __always_inline __u32 es_overheard_index(__u64 key, __u32 slots)
{
	return (__u32)key & (slots - 1);
}

static __always_inline __u64 es_overheard_bit(__u32 hash)
{
	return 1ULL << ((__u64)hash * ES_OVERHEARD_BITS >> 32);
}

/*
 * Three bits: by chance, a key that was not noted has all of them with the third power of the share that is
 * set.
 */
static __always_inline __u64 es_overheard_bits(__u64 key)
{
	__u32 hash = (__u32)(key >> 32);

	return es_overheard_bit(hash) | es_overheard_bit(hash * 0x9e3779b1U) |
	       es_overheard_bit(hash * 0x85ebca77U);
}

/* The generation of @now_s, in monotonic seconds. It lasts as long as a note must be remembered, @life_s. */
static __always_inline __u32 es_overheard_generation(__u32 now_s, __u32 life_s)
{
	return life_s ? now_s / life_s : 0;
}

static __always_inline void es_overheard_note(struct es_overheard *slot, __u64 key, __u32 generation)
{
	__u64 *word = &slot->word[generation & 1];
	__u64 empty = (__u64)generation << ES_OVERHEARD_BITS;
	__u64 bits = es_overheard_bits(key);

	for (int i = 0; i < ES_OVERHEARD_TRIES; i++) {
		__u64 old = *(volatile __u64 *)word;
		__u64 fresh = ((old ^ empty) >> ES_OVERHEARD_BITS ? empty : old) | bits;

		if (fresh == old || __sync_val_compare_and_swap(word, old, fresh) == old)
			return;
	}
}

/* es_overheard_has() - was @key noted, in this generation or the one before? */
static __always_inline int es_overheard_has(const struct es_overheard *slot, __u64 key, __u32 generation)
{
	__u64 bits = es_overheard_bits(key);

	for (__u32 i = 0; i < 2; i++) {
		__u64 word = *(const volatile __u64 *)&slot->word[(generation - i) & 1];
		__u64 of = (__u64)(generation - i) << ES_OVERHEARD_BITS;

		if (!((word ^ of) >> ES_OVERHEARD_BITS) && (word & bits) == bits)
			return 1;
	}
	return 0;
}

#endif
