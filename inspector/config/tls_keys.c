// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Derives the keys of TLS from the key file's lines, each use having its own. They are apart from struct
 * es_keys, so that the daemon has none of these and earshot-tls none of those, but for the key of homes.
 */
#include "inspector/config/tls_keys.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "inspector/config/list.h"
#include "inspector/config/keyfile_internal.h"

_Static_assert(ES_TLS_KEY_BYTES == ES_SECRET_BYTES, "one may be derived from the other");

static int derive_all(EVP_KDF_CTX *kdf, const struct es_keyfile *file, void *argument)
{
	static const char handover[] = "earshot tls handover", tickets[] = "earshot tls tickets";
	struct es_tls_keys *keys = argument;
	int r = 0;

	for (unsigned int i = 0; !r && i < file->count; i++) {
		const unsigned char *secret = file->key[i].secret;
		struct es_tls_key *key = &keys->key[i];

		key->id = file->key[i].id;
		r = es_keyfile_derive(kdf, secret, handover, strlen(handover), key->handover,
				      ES_TLS_KEY_BYTES);
		if (!r)
			r = es_keyfile_derive(kdf, secret, tickets, strlen(tickets), key->tickets,
					      ES_TLS_KEY_BYTES);
		if (!r)
			r = es_keyfile_derive_sipkey(kdf, secret, ES_KEYFILE_HOMES, &key->home);
	}
	keys->count = file->count;
	return r;
}

int es_tls_keys_read(const char *path, struct es_tls_keys *ret_keys, struct es_conf_error *err)
{
	struct es_tls_keys keys = {.count = 0};
	int r = es_keyfile_use(path, derive_all, &keys, err);

	if (!r)
		*ret_keys = keys;
	OPENSSL_cleanse(&keys, sizeof(keys));
	return r;
}

void es_tls_keys_wipe(struct es_tls_keys *keys)
{
	OPENSSL_cleanse(keys, sizeof(*keys));
}

int es_tls_ticket_key(const struct es_tls_key *key, const char *service, unsigned long long day,
		      unsigned char ret_key[ES_TLS_TICKET_KEY_BYTES])
{
	static const char label[] = "earshot tls ticket";
	unsigned char info[sizeof(label) + ES_CONF_NAME_SIZE + 8];
	size_t service_size = strlen(service) + 1, len = sizeof(label);
	EVP_KDF_CTX *kdf;
	int r;

	if (service_size > ES_CONF_NAME_SIZE)
		return -EIO;
	memcpy(info, label, sizeof(label));
	memcpy(info + len, service, service_size);
	len += service_size;
	for (int shift = 56; shift >= 0; shift -= 8)
		info[len++] = (unsigned char)(day >> shift);
	kdf = es_keyfile_kdf_new();
	r = kdf ? es_keyfile_derive(kdf, key->tickets, info, len, ret_key, ES_TLS_TICKET_KEY_BYTES) : -EIO;
	EVP_KDF_CTX_free(kdf);
	return r;
}
