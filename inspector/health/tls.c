// SPDX-License-Identifier: GPL-2.0-or-later
/* Hands a check's connection to OpenSSL, and says in words what that finds wrong. */
#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include "inspector/health/tls.h"

static int context_new(struct es_tls *tls, const char *ca_file, char *why)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	if (!ctx) {
		snprintf(why, ES_TLS_WHY_SIZE, "no memory for TLS");
		return -ENOMEM;
	}
	if (ca_file[0] && SSL_CTX_load_verify_file(ctx, ca_file) != 1) {
		unsigned long error = ERR_peek_last_error();

		snprintf(why, ES_TLS_WHY_SIZE, "ca_file %.80s has no certificates: %.40s", ca_file,
			 errno ? strerror(errno) : ERR_reason_error_string(error));
		SSL_CTX_free(ctx);
		return -EINVAL;
	}
	SSL_CTX_set_verify(ctx, ca_file[0] ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
	/* A server that ends its answer without a farewell has ended it. */
	SSL_CTX_set_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(ctx, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	tls->ctx = ctx;
	return 0;
}

/* @host without its port, and without the brackets of an address. */
static void name_of(const char *host, char *name, size_t size)
{
	size_t begins = host[0] == '[', len = strcspn(host + begins, begins ? "]" : ":");

	snprintf(name, size, "%.*s", (int)len, host + begins);
}

static int is_address(const char *name)
{
	unsigned char address[16];

	return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

/* RFC 6066, 3: only a name is told. */
static int name_set(SSL *ssl, const char *host)
{
	char name[256];

	name_of(host, name, sizeof(name));
	if (!name[0])
		return 1;
	if (is_address(name))
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name);
	return SSL_set1_host(ssl, name) && SSL_set_tlsext_host_name(ssl, name);
}

/* The server speaks TLS as far as OpenSSL takes what it says for a message. */
static void on_message(int is_sent, int version, int type, const void *bytes, size_t len, SSL *ssl, void *arg)
{
	struct es_tls *tls = arg;

	(void)version;
	(void)bytes;
	(void)len;
	(void)ssl;
	if (!is_sent && (type == SSL3_RT_HANDSHAKE || type == SSL3_RT_ALERT))
		tls->is_spoken = 1;
}

int es_tls_open(struct es_tls *tls, int fd, const char *ca_file, const char *host, char *why)
{
	int rc;

	errno = 0;
	ERR_clear_error();
	rc = tls->ctx ? 0 : context_new(tls, ca_file, why);
	if (rc)
		return rc;
	tls->ssl = SSL_new(tls->ctx);
	if (!tls->ssl || !name_set(tls->ssl, host) || !SSL_set_fd(tls->ssl, fd)) {
		snprintf(why, ES_TLS_WHY_SIZE, "no memory for TLS");
		es_tls_close(tls);
		return -ENOMEM;
	}
	SSL_set_connect_state(tls->ssl);
	SSL_set_msg_callback(tls->ssl, on_message);
	SSL_set_msg_callback_arg(tls->ssl, tls);
	tls->is_spoken = 0;
	return 0;
}

/* The result of a call that returned @rc. */
static int result_of(struct es_tls *tls, int rc, char *why)
{
	int failed = errno, error = SSL_get_error(tls->ssl, rc);
	long verified = SSL_get_verify_result(tls->ssl);
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());

	tls->wants_write = error == SSL_ERROR_WANT_WRITE;
	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	if (!tls->is_spoken)
		snprintf(why, ES_TLS_WHY_SIZE, "the server %s: expected another type or port",
			 reason ? "does not speak TLS" : "ends the connection where TLS begins");
	else if (SSL_get_verify_mode(tls->ssl) != SSL_VERIFY_NONE && verified != X509_V_OK)
		snprintf(why, ES_TLS_WHY_SIZE, "the server's certificate: %.100s",
			 X509_verify_cert_error_string(verified));
	else
		snprintf(why, ES_TLS_WHY_SIZE, "TLS: %.100s",
			 reason	  ? reason
			 : failed ? strerror(failed)
				  : "the connection was closed");
	return -EPROTO;
}

int es_tls_shake(struct es_tls *tls, char *why)
{
	int rc;

	ERR_clear_error();
	errno = 0;
	rc = SSL_do_handshake(tls->ssl);
	return rc == 1 ? 0 : result_of(tls, rc, why);
}

ssize_t es_tls_send(struct es_tls *tls, const void *bytes, size_t len, char *why)
{
	int rc;

	ERR_clear_error();
	errno = 0;
	rc = SSL_write(tls->ssl, bytes, len < INT_MAX ? (int)len : INT_MAX);
	return rc > 0 ? rc : result_of(tls, rc, why);
}

ssize_t es_tls_recv(struct es_tls *tls, void *bytes, size_t size, char *why)
{
	int rc;

	ERR_clear_error();
	errno = 0;
	rc = SSL_read(tls->ssl, bytes, size < INT_MAX ? (int)size : INT_MAX);
	if (rc <= 0 && SSL_get_error(tls->ssl, rc) == SSL_ERROR_ZERO_RETURN)
		return 0;
	return rc > 0 ? rc : result_of(tls, rc, why);
}

void es_tls_close(struct es_tls *tls)
{
	SSL_free(tls->ssl);
	tls->ssl = NULL;
	tls->wants_write = 0;
}

void es_tls_fini(struct es_tls *tls)
{
	es_tls_close(tls);
	SSL_CTX_free(tls->ctx);
	tls->ctx = NULL;
}
