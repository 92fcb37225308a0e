/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_HANDSHAKE_INTERNAL_H
#define ES_TLS_HANDSHAKE_INTERNAL_H

/* The parts of this room; nobody else includes this. Contexts and handshakes belong to one thread. */
#include <openssl/ssl.h>
#include "inspector/certificate/pem.h"
#include "inspector/certificate/staple.h"
#include "inspector/config/list.h"
#include "tls/handshake/handshake.h"

#define ES_TLS_CERTIFICATES_MAX 32

/*
 * struct es_tls_shown - a certificate of a context; @staple.len is 0 if it has none, and @no_staple says why
 * if there is a file; @certificate_file, @ocsp_file: for people
 */
struct es_tls_shown {
	char certificate_file[ES_CONF_PATH_SIZE];
	char ocsp_file[ES_CONF_PATH_SIZE];
	struct es_conf_error no_staple;
	struct es_certificate certificate;
	struct es_certificate_staple staple;
};

/**
 * struct es_tls_context - what handshakes share
 * @refs: whoever has made it, and each handshake
 * @by_default: a bit for each of @shown that clients see who ask for no name, or for one that none has
 */
struct es_tls_context {
	unsigned int refs;
	SSL_CTX *ssl;
	unsigned int shown_count;
	struct es_tls_shown shown[ES_TLS_CERTIFICATES_MAX];
	uint32_t by_default;
	enum es_tls_alpn alpn[ES_TLS_ALPN_COUNT];
	struct es_tls_ticket_keys tickets;
	unsigned int ticket_count;
	uint8_t home;
	EVP_CIPHER *ticket_cipher;
	EVP_KDF *prf;
};

/**
 * struct es_tls_handshake - OpenSSL's handshake, between two buffers
 * @in, @in_len: the record that OpenSSL reads now; @part: one that has not come whole, of @part_len bytes so
 * far
 * @out: bytes for the client, from @out_at to @out_len
 * @bytes, @records: from the client so far
 * @client, @server: their secrets in TLS 1.3; and in both versions how many records each has protected with
 * what is no longer the handshake's
 * @sent_told, @sent_seen: records for the client, as OpenSSL tells and as they stand in its bytes
 * @home: from the client's ticket; @named: for its next ones; @name: in lower case
 */
struct es_tls_handshake {
	struct es_tls_context *context;
	SSL *ssl;
	enum es_tls_progress progress;
	const char *why;
	enum es_tls_failure failure;

	const uint8_t *in;
	size_t in_len;
	uint8_t *part;
	size_t part_len;
	size_t bytes;
	unsigned int records;

	uint8_t *out;
	size_t out_at;
	size_t out_len;
	size_t out_size;
	uint64_t sent_told;
	uint64_t sent_seen;
	uint8_t sent_header[SSL3_RT_HEADER_LENGTH];
	size_t sent_header_len;
	size_t sent_body_left;

	struct es_tls_half client;
	struct es_tls_half server;
	int has_client_secret;
	int has_server_secret;
	uint8_t home;
	uint8_t named;
	char name[ES_TLS_NAME_SIZE];
};

static inline struct es_tls_handshake *es_tls_handshake_of(const SSL *ssl)
{
	return SSL_get_app_data(ssl);
}

/* es_tls_records_agree() - have as many records left whole as OpenSSL tells? */
static inline int es_tls_records_agree(const struct es_tls_handshake *handshake)
{
	return handshake->sent_told == handshake->sent_seen && !handshake->sent_header_len &&
	       !handshake->sent_body_left;
}

/* The context of a handshake; the last one to let go frees it. */
struct es_tls_context *es_tls_context_get(struct es_tls_context *context);

/* es_tls_client_ca_set() - ask for client certificates; @ret_digest: of the file */
int es_tls_client_ca_set(SSL_CTX *ssl, const char *file, int must, uint8_t ret_digest[ES_TLS_DIGEST_SIZE],
			 struct es_conf_error *err);

/* Names, certificates by them, OCSP responses, ALPN: how a context answers a ClientHello. */
uint32_t es_tls_shown_for(const struct es_tls_context *context, const char *name);
void es_tls_hello_attach(struct es_tls_context *context);

/* Tickets of a context; es_tls_tickets_begin(): of a handshake. */
void es_tls_tickets_attach(struct es_tls_context *context);
void es_tls_tickets_begin(struct es_tls_handshake *handshake);

/* Listens to what OpenSSL tells of secrets and of the records that it makes. */
void es_tls_secrets_attach(struct es_tls_context *context);

/* A BIO that reads @in and writes @out of a handshake. */
BIO *es_tls_buffers_new(struct es_tls_handshake *handshake);

#endif
