// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How a ClientHello is answered: which certificate for its server's name, with which OCSP response, and which
 * protocol.
 */
#include <ctype.h>
#include <string.h>

#include "inspector/base/wall.h"
#include "tls/handshake/internal.h"

/*
 * @match[@a] is better than @match[@b], both of one kind of key: by name, then by the order of the settings.
 */
static int is_better(const enum es_certificate_match *match, unsigned int a, unsigned int b)
{
	return match[a] > match[b] || (match[a] == match[b] && a < b);
}

/* One certificate of each kind of key, of which OpenSSL takes the one that the client can verify; 0: none. */
uint32_t es_tls_shown_for(const struct es_tls_context *context, const char *name)
{
	enum es_certificate_match match[ES_TLS_CERTIFICATES_MAX];
	uint32_t all = 0;

	for (unsigned int i = 0; i < context->shown_count; i++)
		match[i] = es_certificate_match(&context->shown[i].certificate.facts, name);
	for (unsigned int i = 0; i < context->shown_count; i++) {
		int kind = EVP_PKEY_get_base_id(context->shown[i].certificate.key);
		int is_best = match[i] != ES_CERTIFICATE_OTHER;

		for (unsigned int j = 0; is_best && j < context->shown_count; j++)
			if (EVP_PKEY_get_base_id(context->shown[j].certificate.key) == kind &&
			    is_better(match, j, i))
				is_best = 0;
		if (is_best)
			all |= 1U << i;
	}
	return all;
}

/*
 * The name of server_name (RFC 6066 section 3), before OpenSSL reads it: tickets are judged earlier. Returns
 * 0, or -1 for what no host is called; a malformed extension is left to OpenSSL.
 */
static int take_name(struct es_tls_handshake *handshake, const unsigned char *data, size_t len)
{
	size_t name_len;

	if (len < 5 || data[2] != TLSEXT_NAMETYPE_host_name)
		return 0;
	name_len = (size_t)data[3] << 8 | data[4];
	if (name_len != len - 5 || name_len >= ES_TLS_NAME_SIZE)
		return 0;
	for (size_t i = 0; i < name_len; i++) {
		if (!isgraph(data[5 + i]) || strchr("\"'\\,;", data[5 + i]))
			return -1;
		handshake->name[i] = (char)tolower(data[5 + i]);
	}
	handshake->name[name_len] = 0;
	return 0;
}

static int see_hello(SSL *ssl, int *ret_alert, void *argument)
{
	struct es_tls_handshake *handshake = es_tls_handshake_of(ssl);
	const unsigned char *data;
	size_t len;

	(void)argument;
	handshake->name[0] = 0;
	if (!SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &data, &len) ||
	    !take_name(handshake, data, len))
		return SSL_CLIENT_HELLO_SUCCESS;
	handshake->name[0] = 0;
	*ret_alert = SSL_AD_ILLEGAL_PARAMETER;
	return SSL_CLIENT_HELLO_ERROR;
}

/* RFC 6066: a server that has used the name says so. */
static int answer_name(SSL *ssl, int *ret_alert, void *argument)
{
	const struct es_tls_handshake *handshake = es_tls_handshake_of(ssl);

	(void)ret_alert;
	(void)argument;
	return handshake->name[0] && es_tls_shown_for(handshake->context, handshake->name)
		       ? SSL_TLSEXT_ERR_OK
		       : SSL_TLSEXT_ERR_NOACK;
}

static int use_certificates(SSL *ssl, void *argument)
{
	const struct es_tls_handshake *handshake = es_tls_handshake_of(ssl);
	const struct es_tls_context *context = handshake->context;
	uint32_t shown = es_tls_shown_for(context, handshake->name);

	(void)argument;
	if (!shown || shown == context->by_default)
		return 1;
	SSL_certs_clear(ssl);
	for (unsigned int i = 0; i < context->shown_count; i++) {
		const struct es_certificate *certificate = &context->shown[i].certificate;

		if (shown & 1U << i && SSL_use_cert_and_key(ssl, certificate->leaf, certificate->key,
							    certificate->chain, 1) != 1)
			return 0;
	}
	return 1;
}

static int staple(SSL *ssl, void *argument)
{
	const struct es_tls_context *context = es_tls_handshake_of(ssl)->context;
	const X509 *leaf = SSL_get_certificate(ssl);
	long long now_s = (long long)(es_wall_ns() / 1000000000ULL);

	(void)argument;
	for (unsigned int i = 0; i < context->shown_count; i++) {
		const struct es_certificate_staple *own = &context->shown[i].staple;
		unsigned char *der;

		if (context->shown[i].certificate.leaf != leaf || !own->len || own->until_s < now_s)
			continue;
		der = OPENSSL_memdup(own->der, own->len);
		if (!der)
			break;
		SSL_set_tlsext_status_ocsp_resp(ssl, der, (long)own->len); /* owns it from now on */
		return SSL_TLSEXT_ERR_OK;
	}
	return SSL_TLSEXT_ERR_NOACK;
}

static const char *const protocols[ES_TLS_ALPN_COUNT] = {
	[ES_TLS_ALPN_HTTP1] = "\x08http/1.1",
	[ES_TLS_ALPN_HTTP2] = "\x02h2",
};

static int choose_protocol(SSL *ssl, const unsigned char **ret_name, unsigned char *ret_len,
			   const unsigned char *offered, unsigned int offered_len, void *argument)
{
	const struct es_tls_context *context = es_tls_handshake_of(ssl)->context;

	(void)argument;
	for (unsigned int i = 0; i < ES_TLS_ALPN_COUNT && context->alpn[i]; i++) {
		const char *own = protocols[context->alpn[i]];
		size_t size = (size_t)own[0] + 1;

		for (unsigned int at = 0; at + size <= offered_len; at += offered[at] + 1U)
			if (!memcmp(offered + at, own, size)) {
				*ret_name = offered + at + 1;
				*ret_len = offered[at];
				return SSL_TLSEXT_ERR_OK;
			}
	}
	return SSL_TLSEXT_ERR_ALERT_FATAL; /* no_application_protocol */
}

void es_tls_hello_attach(struct es_tls_context *context)
{
	SSL_CTX_set_client_hello_cb(context->ssl, see_hello, NULL);
	SSL_CTX_set_tlsext_servername_callback(context->ssl, answer_name);
	SSL_CTX_set_cert_cb(context->ssl, use_certificates, NULL);
	SSL_CTX_set_tlsext_status_cb(context->ssl, staple);
	if (context->alpn[0])
		SSL_CTX_set_alpn_select_cb(context->ssl, choose_protocol, NULL);
}
