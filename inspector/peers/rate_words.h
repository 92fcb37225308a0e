/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_RATE_WORDS_H
#define ES_RATE_WORDS_H

/*
 * Nodes tell each other of requests that they have admitted (rules/rates.h), in datagrams that go where loads
 * go, and begin as those do (ES_LOADS_MAGIC). Authentic by SipHash-2-4 under the cluster's handover key, over
 * all of the datagram; fresh by
 * @sequence, which goes up with the number clock. A version that does not know them ignores them, and does
 * not know the key rate either. A word that is lost is not said again.
 */
#include "inspector/base/datagram.h"
#include "inspector/config/keyfile.h"
#include "inspector/rules/rates.h"
#include "kmod/core/handover.h"

#define ES_RATES_WORDS_MAX 40

struct es_rate_wire {
	__be64 key;
	__be64 increment_ns;
	__be32 count;
	__be32 spare;
};

/*
 * struct es_rates_message - in network byte order; the header is as long as a handover message's, which the
 * datapath reads first
 */
struct es_rates_message {
	__be32 magic;
	__u8 version;
	__u8 source;
	__be16 count; /* of @word */
	__be64 sequence;
	__u8 spare[40];
	__be64 mac;
	struct es_rate_wire word[ES_RATES_WORDS_MAX];
};
_Static_assert(sizeof(struct es_rates_message) <= ES_DATAGRAM_MAX, "it is received whole");
_Static_assert(offsetof(struct es_rates_message, word) == sizeof(struct es_handover), "one size");

/* es_rates_message_make() - returns its bytes */
size_t es_rates_message_make(struct es_rates_message *message, unsigned int self, __u64 sequence,
			     const struct es_rate_word *words, unsigned int count,
			     const struct es_sipkey *key);

/**
 * es_rates_message_read() - is it an authentic message of another node, newer than @heard (by node), which it
 * is noted in?
 * @ret_words: room for ES_RATES_WORDS_MAX. Returns how many words, or -EBADMSG.
 */
int es_rates_message_read(const void *data, size_t len, unsigned int self, unsigned int node_count,
			  const struct es_keys *keys, __u64 *heard, struct es_rate_word *ret_words);

#endif
