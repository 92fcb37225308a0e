// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Steps of a handshake. OpenSSL is given one record at a time and asked no more once the handshake is over,
 * so no byte of application data reaches it: its keys may be taken from it without a record being lost or
 * read twice.
 */
#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

#include "tls/handshake/internal.h"

#define RECORD_MAX (SSL3_RT_HEADER_LENGTH + 16384 + 2048) /* RFC 5246 section 6.2.3, the longest of any */

int es_tls_handshake_new(struct es_tls_context *context, struct es_tls_handshake **ret_handshake)
{
	struct es_tls_handshake *handshake = calloc(1, sizeof(*handshake));
	BIO *bio;

	if (!handshake)
		return -ENOMEM;
	handshake->context = es_tls_context_get(context);
	handshake->ssl = SSL_new(context->ssl);
	bio = handshake->ssl ? es_tls_buffers_new(handshake) : NULL;
	if (!bio) {
		es_tls_handshake_free(&handshake);
		return -ENOMEM;
	}
	SSL_set_bio(handshake->ssl, bio, bio);
	SSL_set_app_data(handshake->ssl, handshake);
	SSL_set_accept_state(handshake->ssl);
	es_tls_tickets_begin(handshake);
	*ret_handshake = handshake;
	return 0;
}

void es_tls_handshake_free(struct es_tls_handshake **handshake)
{
	struct es_tls_handshake *h = *handshake;

	if (!h)
		return;
	SSL_free(h->ssl);
	es_tls_context_free(&h->context);
	free(h->part);
	free(h->out);
	OPENSSL_cleanse(h, sizeof(*h));
	free(h);
	*handshake = NULL;
}

static void fail(struct es_tls_handshake *handshake, const char *why)
{
	handshake->progress = ES_TLS_SHAKE_BAD;
	handshake->why = why;
}

static enum es_tls_failure failure_of(unsigned long error)
{
	int reason = ERR_GET_REASON(error);

	if (reason > SSL_AD_REASON_OFFSET)
		return ES_TLS_FAILED_ALERT;
	switch (reason) {
	case SSL_R_HTTP_REQUEST:
	case SSL_R_HTTPS_PROXY_REQUEST:
	case SSL_R_WRONG_VERSION_NUMBER:
	case SSL_R_UNEXPECTED_MESSAGE:
	case SSL_R_BAD_PACKET_LENGTH:
	case SSL_R_PACKET_LENGTH_TOO_LONG:
		return ES_TLS_FAILED_NO_TLS;
	case SSL_R_NO_SHARED_CIPHER:
	case SSL_R_NO_SUITABLE_GROUPS:
	case SSL_R_NO_SUITABLE_KEY_SHARE:
	case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
	case SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS:
	case SSL_R_NO_APPLICATION_PROTOCOL:
	case SSL_R_UNSUPPORTED_PROTOCOL:
	case SSL_R_VERSION_TOO_LOW:
		return ES_TLS_FAILED_NOTHING_COMMON;
	case SSL_R_CERTIFICATE_VERIFY_FAILED:
	case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
	case SSL_R_EXCESSIVE_MESSAGE_SIZE:
		return ES_TLS_FAILED_CERTIFICATE;
	default:
		return ES_TLS_FAILED_OTHER;
	}
}

static const char *reason(void)
{
	const char *text = ERR_reason_error_string(ERR_peek_error());

	return text ? text : "OpenSSL does not say why";
}

/* Gives OpenSSL @len bytes: a record, or so much of one that it can say what is wrong with it. */
static void feed(struct es_tls_handshake *handshake, const uint8_t *bytes, size_t len)
{
	int r;

	handshake->in = bytes;
	handshake->in_len = len;
	ERR_clear_error();
	r = SSL_do_handshake(handshake->ssl);
	if (r == 1) {
		handshake->progress = ES_TLS_SHAKEN;
		if (handshake->in_len || SSL_has_pending(handshake->ssl))
			fail(handshake, "more than the end of a handshake in its last record");
	} else if (SSL_get_error(handshake->ssl, r) != SSL_ERROR_WANT_READ) {
		fail(handshake, reason());
		handshake->failure = failure_of(ERR_peek_error());
	}
	ERR_clear_error();
	handshake->in = NULL;
	handshake->in_len = 0;
}

/* A whole record. In TLS 1.2 those after ChangeCipherSpec are protected as application data is. */
static void feed_record(struct es_tls_handshake *handshake, const uint8_t *bytes, size_t len)
{
	handshake->bytes += len;
	handshake->records++;
	if (handshake->bytes > ES_TLS_HANDSHAKE_BYTES_MAX ||
	    handshake->records > ES_TLS_HANDSHAKE_RECORDS_MAX) {
		fail(handshake, "a handshake without an end");
		return;
	}
	if (bytes[0] == SSL3_RT_CHANGE_CIPHER_SPEC)
		handshake->client.number = 0;
	else
		handshake->client.number++;
	feed(handshake, bytes, len);
}

/* How long the record is that begins there; 0: nobody can tell, so far; -1: that is no record of TLS. */
static long record_len(const uint8_t *bytes, size_t len)
{
	size_t record;

	if (len < SSL3_RT_HEADER_LENGTH)
		return 0;
	record = SSL3_RT_HEADER_LENGTH + ((size_t)bytes[3] << 8 | bytes[4]);
	if (bytes[0] < SSL3_RT_CHANGE_CIPHER_SPEC || bytes[0] > SSL3_RT_APPLICATION_DATA ||
	    bytes[1] != SSL3_VERSION_MAJOR || record > RECORD_MAX)
		return -1;
	return (long)record;
}

/* Takes what is missing of the record's first @wanted bytes; how many that were. */
static size_t gather(struct es_tls_handshake *handshake, size_t wanted, const uint8_t *bytes, size_t len)
{
	size_t take = wanted - handshake->part_len;

	if (take > len)
		take = len;
	memcpy(handshake->part + handshake->part_len, bytes, take);
	handshake->part_len += take;
	return take;
}

/* OpenSSL has words and an alert for what is no record; five bytes are all that it needs for them. */
static size_t refuse_bytes(struct es_tls_handshake *handshake, const uint8_t *bytes)
{
	feed(handshake, bytes, SSL3_RT_HEADER_LENGTH);
	if (handshake->progress != ES_TLS_SHAKE_BAD)
		fail(handshake, "no record of TLS");
	handshake->failure = ES_TLS_FAILED_NO_TLS;
	return SSL3_RT_HEADER_LENGTH;
}

/* A record that comes in pieces. */
static size_t take_part(struct es_tls_handshake *handshake, const uint8_t *bytes, size_t len)
{
	size_t used = 0;
	long record;

	if (!handshake->part)
		handshake->part = calloc(1, RECORD_MAX);
	if (!handshake->part) {
		fail(handshake, "out of memory");
		return 0;
	}
	if (handshake->part_len < SSL3_RT_HEADER_LENGTH)
		used = gather(handshake, SSL3_RT_HEADER_LENGTH, bytes, len);
	record = record_len(handshake->part, handshake->part_len);
	if (record < 0)
		refuse_bytes(handshake, handshake->part);
	if (record <= 0)
		return used;
	used += gather(handshake, (size_t)record, bytes + used, len - used);
	if (handshake->part_len == (size_t)record) {
		handshake->part_len = 0;
		feed_record(handshake, handshake->part, (size_t)record);
	}
	return used;
}

static size_t take(struct es_tls_handshake *handshake, const uint8_t *bytes, size_t len)
{
	long record = record_len(bytes, len);

	if (handshake->part_len || !record || record > (long)len)
		return take_part(handshake, bytes, len);
	if (record < 0)
		return refuse_bytes(handshake, bytes);
	feed_record(handshake, bytes, (size_t)record);
	return (size_t)record;
}

enum es_tls_progress es_tls_handshake_step(struct es_tls_handshake *handshake, const uint8_t *bytes,
					   size_t len, size_t *ret_used)
{
	size_t used = 0;

	while (handshake->progress == ES_TLS_SHAKING && used < len)
		used += take(handshake, bytes + used, len - used);
	*ret_used = used;
	return handshake->progress;
}

size_t es_tls_handshake_pending(const struct es_tls_handshake *handshake, const uint8_t **ret_bytes)
{
	*ret_bytes = handshake->out + handshake->out_at;
	return handshake->out_len - handshake->out_at;
}

void es_tls_handshake_sent(struct es_tls_handshake *handshake, size_t len)
{
	handshake->out_at += len;
	if (handshake->out_at == handshake->out_len)
		handshake->out_at = handshake->out_len = 0;
}

size_t es_tls_handshake_text_max(const struct es_tls_handshake *handshake)
{
	const SSL_SESSION *session = SSL_get_session(handshake->ssl);
	unsigned int mode = session ? SSL_SESSION_get_max_fragment_length(session) : 0;

	return mode ? (size_t)256 << mode : SSL3_RT_MAX_PLAIN_LENGTH;
}

int es_tls_handshake_resumed(const struct es_tls_handshake *handshake, uint8_t *ret_home)
{
	if (!SSL_session_reused(handshake->ssl))
		return 0;
	*ret_home = handshake->home;
	return 1;
}

enum es_tls_failure es_tls_handshake_failure(const struct es_tls_handshake *handshake)
{
	return handshake->failure;
}

const char *es_tls_handshake_why(const struct es_tls_handshake *handshake)
{
	return handshake->why;
}
