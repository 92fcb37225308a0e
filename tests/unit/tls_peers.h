/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_PEERS_H
#define ES_TLS_PEERS_H

/*
 * A client of OpenSSL after a real handshake with a server of OpenSSL, of which nothing is left but the state
 * of the connection: from then on the test is the server.
 */
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tls/record/bytes.h"
#include "tls/record/record.h"
#include "tls/record/suite.h"

#define PEERS_BYTES 65536

/* struct peers - @from: what the client sends; @to: what it receives */
struct peers {
	SSL_CTX *client_ctx;
	SSL *client;
	BIO *from;
	BIO *to;
	struct es_tls_state state;
	struct es_tls_records *records;
};

struct peers_kind {
	uint16_t version;
	uint16_t suite;
	const char *key; /* of the certificate */
};

static const struct peers_kind peers_kinds[] = {
	{ES_TLS_1_3, 0x1301, "EC"},  {ES_TLS_1_3, 0x1302, "EC"},  {ES_TLS_1_3, 0x1303, "EC"},
	{ES_TLS_1_2, 0xc02b, "EC"},  {ES_TLS_1_2, 0xc02f, "RSA"}, {ES_TLS_1_2, 0xc02c, "EC"},
	{ES_TLS_1_2, 0xc030, "RSA"}, {ES_TLS_1_2, 0xcca9, "EC"},  {ES_TLS_1_2, 0xcca8, "RSA"},
	{ES_TLS_1_2, 0x009e, "RSA"}, {ES_TLS_1_2, 0x009f, "RSA"}, {ES_TLS_1_2, 0xccaa, "RSA"},
};
#define PEERS_KINDS (sizeof(peers_kinds) / sizeof(peers_kinds[0]))

static EVP_PKEY *peers_key(const char *type)
{
	static EVP_PKEY *ec, *rsa;

	if (!strcmp(type, "EC")) {
		ec = ec ? ec : EVP_EC_gen("P-256");
		return ec;
	}
	rsa = rsa ? rsa : EVP_RSA_gen(2048);
	return rsa;
}

static SSL_CTX *peers_server_ctx(const char *key_type)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	EVP_PKEY *key = peers_key(key_type);
	X509 *certificate = X509_new();

	ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
	X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
	X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
	X509_set_pubkey(certificate, key);
	X509_sign(certificate, key, EVP_sha256());
	assert_int_equal(SSL_CTX_use_certificate(ctx, certificate), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(ctx, key), 1);
	SSL_CTX_set_dh_auto(ctx, 1);
	X509_free(certificate);
	return ctx;
}

static void peers_secret(const char *line, const char *label, struct es_tls_half *half)
{
	if (strncmp(line, label, strlen(label)) != 0 || line[strlen(label)] != ' ')
		return;
	line = strrchr(line, ' ') + 1;
	for (size_t i = 0; line[2 * i] && i < ES_TLS_SECRET_MAX; i++) {
		char digits[3] = {line[2 * i], line[2 * i + 1], '\0'};

		half->secret[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
}

/* TLS 1.3's secrets, as OpenSSL tells them. */
static void peers_keylog(const SSL *ssl, const char *line)
{
	struct peers *p = SSL_get_app_data(ssl);

	peers_secret(line, "CLIENT_TRAFFIC_SECRET_0", &p->state.client);
	peers_secret(line, "SERVER_TRAFFIC_SECRET_0", &p->state.server);
}

/* TLS 1.2's key block (RFC 5246 section 6.3), from the master secret. */
static void peers_key_block(const SSL *server, struct es_tls_state *state)
{
	const struct es_tls_suite *suite = es_tls_suite_find(state->version, state->suite);
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "TLS1-PRF", NULL);
	EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(kdf);
	uint8_t master[48], seed[13 + 64] = "key expansion", block[128], *at = block;
	OSSL_PARAM params[4];

	SSL_get_server_random(server, seed + 13, 32);
	SSL_get_client_random(server, seed + 45, 32);
	assert_int_equal(SSL_SESSION_get_master_key(SSL_get_session(server), master, sizeof(master)), 48);
	params[0] = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST,
						     suite->hash_size == 48 ? "SHA384" : "SHA256", 0);
	params[1] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SECRET, master, sizeof(master));
	params[2] = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SEED, seed, sizeof(seed));
	params[3] = OSSL_PARAM_construct_end();
	assert_int_equal(EVP_KDF_derive(ctx, block, 2 * (suite->key_size + suite->fixed_size), params), 1);
	memcpy(state->client.secret, at, suite->key_size);
	memcpy(state->server.secret, at + suite->key_size, suite->key_size);
	at += 2 * suite->key_size;
	memcpy(state->client.secret + suite->key_size, at, suite->fixed_size);
	memcpy(state->server.secret + suite->key_size, at + suite->fixed_size, suite->fixed_size);
	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
}

static void peers_pump(BIO *from, BIO *to)
{
	uint8_t bytes[4096];
	int len;

	while ((len = BIO_read(from, bytes, sizeof(bytes))) > 0)
		assert_int_equal(BIO_write(to, bytes, len), len);
}

/* peers_shake() - @ret_server: OpenSSL's server, for who wants to go on with it; NULL: it is freed */
static void peers_shake(struct peers *p, const struct peers_kind *kind, SSL **ret_server)
{
	const struct es_tls_suite *suite = es_tls_suite_find(kind->version, kind->suite);
	SSL_CTX *server_ctx = peers_server_ctx(kind->key);
	SSL *server = SSL_new(server_ctx);
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	int is_1_3 = kind->version == ES_TLS_1_3;

	memset(p, 0, sizeof(*p));
	p->state.version = kind->version;
	p->state.suite = kind->suite;
	p->client_ctx = SSL_CTX_new(TLS_client_method());
	p->client = SSL_new(p->client_ctx);
	p->from = BIO_new(BIO_s_mem());
	p->to = BIO_new(BIO_s_mem());
	BIO_set_mem_eof_return(p->to, -1);
	BIO_set_mem_eof_return(in, -1);
	SSL_set_bio(p->client, p->to, p->from);
	SSL_set_bio(server, in, out);
	SSL_CTX_set_keylog_callback(server_ctx, peers_keylog);
	SSL_set_app_data(server, p);
	SSL_set_min_proto_version(p->client, kind->version);
	SSL_set_max_proto_version(p->client, kind->version);
	assert_int_equal((is_1_3 ? SSL_set_ciphersuites : SSL_set_cipher_list)(p->client, suite->name), 1);
	SSL_set_connect_state(p->client);
	SSL_set_accept_state(server);
	for (int i = 0; i < 8 && !(SSL_is_init_finished(p->client) && SSL_is_init_finished(server)); i++) {
		SSL_do_handshake(p->client);
		peers_pump(p->from, in);
		SSL_do_handshake(server);
		peers_pump(out, p->to);
	}
	assert_true(SSL_is_init_finished(p->client) && SSL_is_init_finished(server));
	assert_string_equal(SSL_get_cipher_name(p->client), suite->name);
	if (!is_1_3)
		peers_key_block(server, &p->state);
	/* Finished, or two tickets. */
	p->state.client.number = is_1_3 ? 0 : 1;
	p->state.server.number = is_1_3 ? 2 : 1;
	SSL_CTX_free(server_ctx);
	if (ret_server)
		*ret_server = server;
	else
		SSL_free(server);
	assert_int_equal(es_tls_records_new(&p->state, &p->records), 0);
	ERR_clear_error();
}

static void peers_free(struct peers *p)
{
	es_tls_records_free(&p->records);
	SSL_free(p->client);
	SSL_CTX_free(p->client_ctx);
	ERR_clear_error();
}

/* peers_sent() - all that the client has to send, in memory of just that size, which the caller frees */
static uint8_t *peers_sent(struct peers *p, size_t *ret_len)
{
	size_t len = BIO_ctrl_pending(p->from);
	uint8_t *bytes = malloc(len ? len : 1);

	assert_non_null(bytes);
	if (len)
		assert_int_equal(BIO_read(p->from, bytes, (int)len), (int)len);
	*ret_len = len;
	return bytes;
}

/* peers_tell() - give the client bytes */
static void peers_tell(struct peers *p, const uint8_t *bytes, size_t len)
{
	assert_int_equal(BIO_write(p->to, bytes, (int)len), (int)len);
}

/* peers_reason() - why the client cannot read on: OpenSSL's reason, 0: it wants more */
static int peers_reason(struct peers *p)
{
	uint8_t bytes[16];
	int rc, reason;

	ERR_clear_error();
	rc = SSL_read(p->client, bytes, sizeof(bytes));
	assert_true(rc <= 0);
	reason = ERR_GET_REASON(ERR_peek_error());
	ERR_clear_error();
	return reason;
}

#endif
