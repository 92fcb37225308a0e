/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DATAGRAM_MAC_H
#define ES_DATAGRAM_MAC_H

/*
 * The signature of what nodes tell each other in datagrams and frames, but for handovers
 * (kmod/core/message.h).
 */
#include <stddef.h>
#include <string.h>
#include "kmod/core/siphash.h"
#include "kmod/core/types.h"

/**
 * es_datagram_mac() - the SipHash of @len bytes at @data, the eight at @mac_at being zero
 * @mac_at: a multiple of 8, where the signature itself stands; @len, if it stands behind them. Data that end
 * within a word are filled up with zeros; their length goes into the hash.
 */
static inline __be64 es_datagram_mac(const struct es_sipkey *key, const void *data, size_t len, size_t mac_at)
{
	struct es_sipstate sip;

	es_siphash_init(&sip, key);
	for (size_t at = 0; at < len; at += sizeof(__u64)) {
		__u64 word = 0;

		if (at != mac_at)
			memcpy(&word, (const __u8 *)data + at,
			       len - at < sizeof(word) ? len - at : sizeof(word));
		es_siphash_word(&sip, es_cpu_le64(word));
	}
	return (__be64)es_cpu_be64(es_siphash_final(&sip, 0, (__u32)len));
}

#endif
