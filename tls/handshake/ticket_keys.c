// SPDX-License-Identifier: GPL-2.0-or-later
/* Which keys a node has for tickets on a day. */
#include "tls/handshake/ticket_keys.h"

#include <openssl/crypto.h>
#include <string.h>

_Static_assert(ES_TLS_TICKET_KEYS_MAX == 3 * ES_KEYS_MAX, "three days of each line");

static int add(const struct es_tls_key *key, const char *service, unsigned long long day,
	       struct es_tls_ticket_keys *keys)
{
	unsigned char bytes[ES_TLS_TICKET_KEY_BYTES];
	unsigned int at = keys->count++;
	int r = es_tls_ticket_key(key, service, day, bytes);

	memcpy(keys->name[at], bytes, 16);
	memcpy(keys->aes[at], bytes + 16, 32);
	memcpy(keys->mac[at], bytes + 48, 32);
	keys->home[at] = key->home;
	OPENSSL_cleanse(bytes, sizeof(bytes));
	return r;
}

int es_tls_ticket_keys_of(const struct es_tls_keys *keys, const char *service, unsigned long long day,
			  struct es_tls_ticket_keys *ret_keys)
{
	const unsigned long long days[] = {day, day - 1, day + 1};
	struct es_tls_ticket_keys all = {};
	int r = 0;

	for (unsigned int i = 0; i < keys->count; i++)
		for (unsigned int j = 0; !r && j < 3; j++)
			r = add(&keys->key[i], service, days[j], &all);
	if (!r)
		*ret_keys = all;
	OPENSSL_cleanse(&all, sizeof(all));
	return r;
}
