// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tickets (RFC 5077 section 4, as OpenSSL makes them: AES-256-CBC, then HMAC-SHA256) under keys that all
 * nodes have. In each stands what this project adds: a version, the home and the server's name; and the home
 * once more where the daemon reads it (http/tls_home.h).
 */
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <string.h>

#include "inspector/base/wall.h"
#include "inspector/http/tls_home.h"
#include "tls/handshake/internal.h"

#define LAYOUT	    1
#define NAME_DIGEST 16

/* Read by nodes of other versions: another layout is another number, and not taken. */
struct note {
	uint8_t layout;
	uint8_t home;
	uint8_t name_digest[NAME_DIGEST];
};
_Static_assert(sizeof(struct note) == 2 + NAME_DIGEST, "no padding");

static int make_note(const struct es_tls_handshake *handshake, struct note *note)
{
	uint8_t digest[EVP_MAX_MD_SIZE];

	note->layout = LAYOUT;
	note->home = handshake->named;
	if (!EVP_Digest(handshake->name, strlen(handshake->name), digest, NULL, EVP_sha256(), NULL))
		return -1;
	memcpy(note->name_digest, digest, NAME_DIGEST);
	return 0;
}

static int write_note(SSL *ssl, void *argument)
{
	struct note note;

	(void)argument;
	return !make_note(es_tls_handshake_of(ssl), &note) &&
	       SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), &note, sizeof(note));
}

/* OpenSSL does not look at a client's certificate again: one that has expired since is asked for anew. */
static int is_client_valid(const SSL_SESSION *session)
{
	const X509 *x = SSL_SESSION_get0_peer((SSL_SESSION *)session);
	time_t now = (time_t)(es_wall_ns() / 1000000000ULL);

	return !x || X509_cmp_time(X509_get0_notAfter(x), &now) > 0;
}

/* A session belongs to one server's name: what holds of one host need not hold of another. */
static SSL_TICKET_RETURN read_note(SSL *ssl, SSL_SESSION *session, const unsigned char *key_name,
				   size_t key_name_len, SSL_TICKET_STATUS status, void *argument)
{
	struct es_tls_handshake *handshake = es_tls_handshake_of(ssl);
	struct note own, *note;
	void *data;
	size_t len;

	(void)key_name;
	(void)key_name_len;
	(void)argument;
	if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW)
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	if (!SSL_SESSION_get0_ticket_appdata(session, &data, &len) || len != sizeof(*note) ||
	    make_note(handshake, &own))
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	note = data;
	if (note->layout != LAYOUT || memcmp(note->name_digest, own.name_digest, NAME_DIGEST) != 0 ||
	    !is_client_valid(session))
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	handshake->home = note->home;
	/* in TLS 1.3 a client uses a ticket once (RFC 8446 appendix C.4), and needs the next one */
	return status == SSL_TICKET_SUCCESS_RENEW || SSL_version(ssl) == ES_TLS_1_3
		       ? SSL_TICKET_RETURN_USE_RENEW
		       : SSL_TICKET_RETURN_USE;
}

static int prepare(struct es_tls_context *context, unsigned int key, const unsigned char *iv,
		   EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int is_encrypting)
{
	char digest[] = "SHA256";
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, context->tickets.mac[key],
						  sizeof(context->tickets.mac[key])),
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_end(),
	};

	return EVP_CipherInit_ex2(cipher, context->ticket_cipher, context->tickets.aes[key], iv,
				  is_encrypting, NULL) &&
	       EVP_MAC_CTX_set_params(mac, params);
}

/* As SSL_CTX_set_tlsext_ticket_key_evp_cb(3) wants it: 1, or 2: read, and to be made anew; 0: no key; -1. */
static int use_key(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac,
		   int is_encrypting)
{
	struct es_tls_context *context = es_tls_handshake_of(ssl)->context;
	struct es_tls_ticket_keys *keys = &context->tickets;

	if (is_encrypting) {
		if (!keys->count)
			return 0;
		memcpy(name, keys->name[0], sizeof(keys->name[0]));
		if (RAND_bytes(iv, ES_TLS_TICKET_RANDOM) <= 0)
			return -1;
		es_tls_home_put(&keys->home[0], name, es_tls_handshake_of(ssl)->named, iv);
		return prepare(context, 0, iv, cipher, mac, 1) ? 1 : -1;
	}
	for (unsigned int i = 0; i < keys->count; i++)
		if (!memcmp(name, keys->name[i], sizeof(keys->name[i]))) {
			if (!prepare(context, i, iv, cipher, mac, 0))
				return -1;
			return i ? 2 : 1;
		}
	return 0;
}

void es_tls_tickets_attach(struct es_tls_context *context)
{
	SSL_CTX_set_session_ticket_cb(context->ssl, write_note, read_note, NULL);
	SSL_CTX_set_tlsext_ticket_key_evp_cb(context->ssl, use_key);
}

void es_tls_tickets_begin(struct es_tls_handshake *handshake)
{
	const struct es_tls_context *context = handshake->context;

	if (!context->tickets.count)
		SSL_set_options(handshake->ssl, SSL_OP_NO_TICKET);
	SSL_set_num_tickets(handshake->ssl, 0); /* es_tls_handshake_tickets() */
	handshake->named = context->home;
}

int es_tls_handshake_tickets(struct es_tls_handshake *handshake, uint8_t home, uint64_t number)
{
	const struct es_tls_context *context = handshake->context;
	unsigned int count = SSL_session_reused(handshake->ssl) ? 1 : context->ticket_count;

	if (handshake->progress != ES_TLS_SHAKEN || SSL_version(handshake->ssl) != ES_TLS_1_3 ||
	    !context->tickets.count)
		return 0;
	if (handshake->server.number != number)
		return -EPROTO;
	handshake->named = home;
	for (unsigned int i = 0; i < count; i++)
		if (!SSL_new_session_ticket(handshake->ssl))
			return -EPROTO;
	ERR_clear_error();
	if (count && SSL_do_handshake(handshake->ssl) != 1)
		handshake->progress = ES_TLS_SHAKE_BAD;
	ERR_clear_error();
	if (handshake->progress != ES_TLS_SHAKEN || !es_tls_records_agree(handshake))
		return -EPROTO;
	return (int)(handshake->server.number - number);
}

void es_tls_context_tickets(struct es_tls_context *context, const struct es_tls_ticket_keys *keys,
			    uint8_t home)
{
	context->tickets = *keys;
	context->home = home;
}

void es_tls_context_ticket_count(struct es_tls_context *context, unsigned int count)
{
	context->ticket_count = count;
}
