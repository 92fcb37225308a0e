// SPDX-License-Identifier: GPL-2.0-or-later
/* Hides a node's number in a ticket's IV, and finds it there. */
#include "inspector/http/tls_home.h"

#define HIDDEN (ES_TLS_TICKET_IV - ES_TLS_TICKET_RANDOM)

static __u64 word(const uint8_t *bytes, unsigned int count)
{
	__u64 w = 0;

	for (unsigned int i = 0; i < count; i++)
		w |= (__u64)bytes[i] << (8 * i);
	return w;
}

static __u64 mask_of(const struct es_sipkey *key, const uint8_t *name, const uint8_t *iv)
{
	struct es_sipstate s;

	es_siphash_init(&s, key);
	es_siphash_word(&s, word(name, 8));
	es_siphash_word(&s, word(name + 8, 8));
	es_siphash_word(&s, word(iv, 8));
	return es_siphash_final(&s, word(iv + 8, ES_TLS_TICKET_RANDOM - 8),
				ES_TLS_TICKET_NAME + ES_TLS_TICKET_RANDOM);
}

void es_tls_home_put(const struct es_sipkey *key, const uint8_t name[ES_TLS_TICKET_NAME], uint8_t home,
		     uint8_t iv[ES_TLS_TICKET_IV])
{
	__u64 hidden = mask_of(key, name, iv) ^ home;

	for (unsigned int i = 0; i < HIDDEN; i++)
		iv[ES_TLS_TICKET_RANDOM + i] = (uint8_t)(hidden >> (8 * i));
}

int es_tls_home_get(const struct es_sipkey *key, const uint8_t front[ES_TLS_TICKET_NAME + ES_TLS_TICKET_IV])
{
	const uint8_t *iv = front + ES_TLS_TICKET_NAME;
	__u64 mask = mask_of(key, front, iv) & ((1ULL << (8 * HIDDEN)) - 1);
	__u64 found = word(iv + ES_TLS_TICKET_RANDOM, HIDDEN) ^ mask;

	return found > UINT8_MAX ? -1 : (int)found;
}
