// SPDX-License-Identifier: GPL-2.0-or-later
/* The datagrams by which nodes tell each other which clients' requests they have admitted. */
#include <errno.h>
#include <string.h>
#include "inspector/base/datagram_mac.h"
#include "inspector/peers/rate_words.h"

#define HEADER offsetof(struct es_rates_message, word)
#define MAC_AT offsetof(struct es_rates_message, mac)

size_t es_rates_message_make(struct es_rates_message *message, unsigned int self, __u64 sequence,
			     const struct es_rate_word *words, unsigned int count,
			     const struct es_sipkey *key)
{
	size_t len = HEADER + count * sizeof(message->word[0]);

	memset(message, 0, sizeof(*message));
	message->magic = es_htonl(ES_LOADS_MAGIC);
	message->version = ES_DATAGRAM_RATES;
	message->source = (__u8)self;
	message->count = es_htons((__u16)count);
	message->sequence = (__be64)es_cpu_be64(sequence);
	for (unsigned int i = 0; i < count; i++) {
		message->word[i].key = (__be64)es_cpu_be64(words[i].key);
		message->word[i].increment_ns = (__be64)es_cpu_be64(words[i].increment_ns);
		message->word[i].count = es_htonl(words[i].count);
	}
	message->mac = es_datagram_mac(key, message, len, MAC_AT);
	return len;
}

int es_rates_message_read(const void *data, size_t len, unsigned int self, unsigned int node_count,
			  const struct es_keys *keys, __u64 *heard, struct es_rate_word *ret_words)
{
	struct es_rates_message message = {};
	unsigned int count;
	__u64 sequence;

	if (len < HEADER || len > sizeof(message))
		return -EBADMSG;
	memcpy(&message, data, len);
	count = es_ntohs(message.count);
	if (message.magic != es_htonl(ES_LOADS_MAGIC) || message.version != ES_DATAGRAM_RATES ||
	    message.source == self || message.source >= node_count || count > ES_RATES_WORDS_MAX ||
	    len != HEADER + count * sizeof(message.word[0]))
		return -EBADMSG;
	sequence = es_cpu_be64((__u64)message.sequence);
	if (!es_keys_have_signed(keys, &message, len, MAC_AT) || sequence <= heard[message.source])
		return -EBADMSG;
	heard[message.source] = sequence;
	for (unsigned int i = 0; i < count; i++) {
		ret_words[i].key = es_cpu_be64((__u64)message.word[i].key);
		ret_words[i].increment_ns = es_cpu_be64((__u64)message.word[i].increment_ns);
		ret_words[i].count = es_ntohl(message.word[i].count);
	}
	return (int)count;
}
