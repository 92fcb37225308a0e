// SPDX-License-Identifier: GPL-2.0-or-later
/* Makes a service's context of its settings and files, and keeps it while one of its handshakes goes on. */
#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <stdlib.h>
#include <string.h>

#include "inspector/base/wall.h"
#include "inspector/config/ciphers.h"
#include "tls/handshake/internal.h"

#define GROUPS	       "X25519:P-256:P-384"
#define SECURITY_LEVEL 2     /* no RSA below 2048 bits, no SHA-1, whatever openssl.cnf says */
#define SESSION_S      86400 /* a day, as their keys */
#define HANDSHAKE_MAX  65536 /* bytes of a client's certificates */
#define TICKETS	       2     /* browsers open some connections at once, and use each ticket once */

static int add_certificate(struct es_tls_context *context, const struct es_tls_certificate *files,
			   int is_lenient, struct es_conf_error *err)
{
	struct es_tls_shown *shown = &context->shown[context->shown_count];
	long long now_s = (long long)(es_wall_ns() / 1000000000ULL);
	int r;

	r = es_certificate_read(files->certificate_file, files->key_file, &shown->certificate, err);
	if (r)
		return r;
	context->shown_count++;
	snprintf(shown->certificate_file, sizeof(shown->certificate_file), "%s", files->certificate_file);
	snprintf(shown->ocsp_file, sizeof(shown->ocsp_file), "%s", files->ocsp_file ? files->ocsp_file : "");
	r = es_certificate_judge(&shown->certificate.facts, files->certificate_file, now_s, err);
	if (r && !(r == -EKEYEXPIRED && is_lenient))
		return r;
	if (!files->ocsp_file)
		return 0;
	r = es_certificate_staple_read(files->ocsp_file, &shown->certificate, &shown->staple,
				       &shown->no_staple);
	if (!r || is_lenient)
		return 0;
	*err = shown->no_staple;
	return r;
}

static int add_certificates(struct es_tls_context *context, const struct es_tls_settings *settings,
			    struct es_conf_error *err)
{
	const struct es_certificate_facts *first = &context->shown[0].certificate.facts;
	int r = 0;

	if (!settings->certificate_count || settings->certificate_count > ES_TLS_CERTIFICATES_MAX) {
		es_conf_error_set(err, "%u certificates: expected 1..%d", settings->certificate_count,
				  ES_TLS_CERTIFICATES_MAX);
		return -EINVAL;
	}
	for (unsigned int i = 0; !r && i < settings->certificate_count; i++)
		r = add_certificate(context, &settings->certificates[i], settings->is_lenient, err);
	if (!r)
		context->by_default = first->name_count ? es_tls_shown_for(context, first->name[0]) : 1;
	return r;
}

/* Others of the first one's name are for clients who cannot verify its kind of key. */
static int show_by_default(struct es_tls_context *context, const struct es_tls_settings *settings,
			   struct es_conf_error *err)
{
	for (unsigned int i = 0; i < context->shown_count; i++) {
		const struct es_certificate *certificate = &context->shown[i].certificate;
		const char *why;

		if (!(context->by_default & 1U << i))
			continue;
		if (SSL_CTX_use_cert_and_key(context->ssl, certificate->leaf, certificate->key,
					     certificate->chain, 1) == 1)
			continue;
		why = ERR_reason_error_string(ERR_peek_error());
		es_conf_error_set(err, "%s: OpenSSL refuses it: %s",
				  settings->certificates[i].certificate_file,
				  why ? why : "it does not say why");
		return -EINVAL;
	}
	return 0;
}

/*
 * Which contexts may take each other's tickets: those of one service, which believe the same client
 * certificates, as OpenSSL does not look at those again.
 */
static int set_session_context(struct es_tls_context *context, const struct es_tls_settings *settings,
			       const uint8_t ca_digest[ES_TLS_DIGEST_SIZE])
{
	static const char label[] = "earshot tls session";
	const char *service = settings->service ? settings->service : "";
	uint8_t id[ES_TLS_DIGEST_SIZE], must = settings->client_must != 0;
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	int is_set = md && EVP_DigestInit_ex2(md, EVP_sha256(), NULL) &&
		     EVP_DigestUpdate(md, label, sizeof(label)) && EVP_DigestUpdate(md, &must, 1) &&
		     EVP_DigestUpdate(md, ca_digest, ES_TLS_DIGEST_SIZE) &&
		     EVP_DigestUpdate(md, service, strlen(service)) && EVP_DigestFinal_ex(md, id, NULL) &&
		     SSL_CTX_set_session_id_context(context->ssl, id, sizeof(id));

	EVP_MD_CTX_free(md);
	return is_set ? 0 : -EIO;
}

static int set_protocol(struct es_tls_context *context, const struct es_tls_settings *settings,
			struct es_conf_error *err)
{
	unsigned int minimum = settings->minimum ? settings->minimum : ES_TLS_1_2;
	SSL_CTX *ssl = context->ssl;

	if (minimum != ES_TLS_1_2 && minimum != ES_TLS_1_3) {
		es_conf_error_set(err, "TLS version %#x: expected 1.2 or 1.3", minimum);
		return -EINVAL;
	}
	SSL_CTX_clear_options(ssl, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_ENABLE_KTLS);
	SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_read_ahead(ssl, 0);
	SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_timeout(ssl, SESSION_S);
	SSL_CTX_set_max_early_data(ssl, 0);
	SSL_CTX_set_max_cert_list(ssl, HANDSHAKE_MAX);
	if (SSL_CTX_set_min_proto_version(ssl, (int)minimum) &&
	    SSL_CTX_set_max_proto_version(ssl, ES_TLS_1_3) && SSL_CTX_set1_groups_list(ssl, GROUPS))
		return 0;
	es_conf_error_set(err, "OpenSSL has no TLS 1.2 and 1.3 with the groups %s", GROUPS);
	return -EIO;
}

static int make(struct es_tls_context *context, const struct es_tls_settings *settings,
		struct es_conf_error *err)
{
	uint8_t ca_digest[ES_TLS_DIGEST_SIZE] = {};
	int r;

	context->ssl = SSL_CTX_new(TLS_server_method());
	context->ticket_cipher = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
	context->prf = EVP_KDF_fetch(NULL, OSSL_KDF_NAME_TLS1_PRF, NULL);
	if (!context->ssl || !context->ticket_cipher || !context->prf) {
		es_conf_error_set(err, "OpenSSL cannot be used: expected its default provider");
		return -EIO;
	}
	r = set_protocol(context, settings, err);
	if (!r)
		r = es_ciphers_set(context->ssl, settings->ciphers, settings->suites, err);
	SSL_CTX_set_security_level(context->ssl, SECURITY_LEVEL); /* a list of ciphers can set it, too */
	if (!r && settings->client_ca_file)
		r = es_tls_client_ca_set(context->ssl, settings->client_ca_file, settings->client_must,
					 ca_digest, err);
	if (!r)
		r = add_certificates(context, settings, err);
	if (!r)
		r = show_by_default(context, settings, err);
	if (!r && set_session_context(context, settings, ca_digest)) {
		es_conf_error_set(err, "OpenSSL has no SHA-256: expected its default provider");
		r = -EIO;
	}
	return r;
}

int es_tls_context_new(const struct es_tls_settings *settings, struct es_tls_context **ret_context,
		       struct es_conf_error *err)
{
	struct es_tls_context *context = calloc(1, sizeof(*context));
	int r;

	if (!context) {
		es_conf_error_set(err, "out of memory");
		return -ENOMEM;
	}
	context->refs = 1;
	context->ticket_count = TICKETS;
	memcpy(context->alpn, settings->alpn, sizeof(context->alpn));
	ERR_clear_error();
	r = make(context, settings, err);
	ERR_clear_error();
	if (r) {
		es_tls_context_free(&context);
		return r;
	}
	es_tls_hello_attach(context);
	es_tls_tickets_attach(context);
	es_tls_secrets_attach(context);
	*ret_context = context;
	return 0;
}

void es_tls_context_problem(const struct es_tls_context *context, long long wall_s,
			    struct es_conf_error *ret_problem)
{
	ret_problem->text[0] = 0;
	for (unsigned int i = 0; i < context->shown_count; i++)
		if (es_certificate_judge(&context->shown[i].certificate.facts,
					 context->shown[i].certificate_file, wall_s, ret_problem))
			return;
	for (unsigned int i = 0; i < context->shown_count; i++) {
		const struct es_tls_shown *shown = &context->shown[i];

		if (shown->staple.len && shown->staple.until_s < wall_s)
			es_conf_error_set(ret_problem, "%s: the OCSP answer is over, and is not shown",
					  shown->ocsp_file);
		else if (shown->no_staple.text[0])
			es_conf_error_set(ret_problem, "%s; it is not shown", shown->no_staple.text);
		if (ret_problem->text[0])
			return;
	}
}

struct es_tls_context *es_tls_context_get(struct es_tls_context *context)
{
	context->refs++;
	return context;
}

void es_tls_context_free(struct es_tls_context **context)
{
	struct es_tls_context *c = *context;

	*context = NULL;
	if (!c || --c->refs)
		return;
	for (unsigned int i = 0; i < c->shown_count; i++) {
		es_certificate_fini(&c->shown[i].certificate);
		es_certificate_staple_fini(&c->shown[i].staple);
	}
	SSL_CTX_free(c->ssl);
	EVP_CIPHER_free(c->ticket_cipher);
	EVP_KDF_free(c->prf);
	OPENSSL_cleanse(c, sizeof(*c));
	free(c);
}
