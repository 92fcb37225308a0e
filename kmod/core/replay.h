/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_REPLAY_H
#define ES_CORE_REPLAY_H

/*
 * Replay protection of handover messages: a sliding window of sequence numbers, as in RFC 6479 (IPsec
 * anti-replay without bit shifting). The caller serialises access to one window.
 */
#include "types.h"

#define ES_REPLAY_WORDS	 32 /* a power of two */
#define ES_REPLAY_WINDOW ((ES_REPLAY_WORDS - 1) * 64)

struct es_replay {
	__u64 last;
	__u64 seen[ES_REPLAY_WORDS];
};

/**
 * es_replay_accept() - take @sequence in, once
 * Returns 1 if it is new, 0 if it was seen before or is older than the window.
 */
static __always_inline int es_replay_accept(struct es_replay *r, __u64 sequence)
{
	__u64 word = sequence >> 6;
	__u64 bit = 1ULL << (sequence & 63);

	if (sequence + ES_REPLAY_WINDOW < r->last)
		return 0;
	if (sequence > r->last) {
		__u64 first = (r->last >> 6) + 1;
		__u64 count = word - (r->last >> 6);

		for (int i = 0; i < ES_REPLAY_WORDS; i++) {
			if ((__u64)i >= count)
				break;
			r->seen[(first + (__u64)i) & (ES_REPLAY_WORDS - 1)] = 0;
		}
		r->last = sequence;
	} else if (r->seen[word & (ES_REPLAY_WORDS - 1)] & bit) {
		return 0;
	}
	r->seen[word & (ES_REPLAY_WORDS - 1)] |= bit;
	return 1;
}

#endif
