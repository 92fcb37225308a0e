/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_WORLD_H
#define ES_TLS_WORLD_H

/* A client of OpenSSL, and a handshake with it, over memory. */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include "made_certificate.h"
#include "tls/handshake/handshake.h"
#include "tls_records.h"

#define BYTES_MAX 200000

/**
 * struct wish - what a client wants; 0 or NULL: as OpenSSL does
 * @cipher: TLS 1.2's, @suite: TLS 1.3's
 * @alpn: as on the wire
 * @own: its certificate
 * @fragment: of max_fragment_length
 * @request: written as soon as the client may
 */
struct wish {
	int version;
	const char *cipher;
	const char *suite;
	const char *name;
	const char *sigalgs;
	const char *groups;
	const char *alpn;
	SSL_SESSION *session;
	const struct pair *own;
	int asks_staple;
	uint8_t fragment;
	const char *request;
};

/**
 * struct world - the two
 * @chunk: bytes of the client that the handshake gets at once; 0: all that there are
 * @session: the client's last ticket; @tickets: how many it got
 * @home: that its tickets of TLS 1.3 shall name
 * @rest: what the client has sent after the handshake
 */
struct world {
	struct es_tls_context *context;
	struct es_tls_handshake *handshake;
	enum es_tls_progress progress;
	SSL_CTX *client_context;
	SSL *client;
	size_t chunk;
	SSL_SESSION *session;
	unsigned int tickets;
	uint8_t home;
	struct es_tls_state state;
	uint8_t rest[BYTES_MAX];
	size_t rest_len;
};

static inline int keep_session(SSL *client, SSL_SESSION *session)
{
	struct world *w = SSL_get_app_data(client);

	SSL_SESSION_free(w->session);
	w->session = session;
	w->tickets++;
	return 1;
}

static inline void client_new(struct world *w, const struct wish *wish)
{
	w->client_context = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_session_cache_mode(w->client_context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(w->client_context, keep_session);
	w->client = SSL_new(w->client_context);
	SSL_set_app_data(w->client, w);
	SSL_set_bio(w->client, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	SSL_set_connect_state(w->client);
	if (wish->version) {
		assert_true(SSL_set_min_proto_version(w->client, wish->version));
		assert_true(SSL_set_max_proto_version(w->client, wish->version));
	}
	if (wish->cipher)
		assert_true(SSL_set_cipher_list(w->client, wish->cipher));
	if (wish->suite)
		assert_true(SSL_set_ciphersuites(w->client, wish->suite));
	if (wish->name)
		assert_true(SSL_set_tlsext_host_name(w->client, wish->name));
	if (wish->sigalgs)
		assert_true(SSL_set1_sigalgs_list(w->client, wish->sigalgs));
	if (wish->groups)
		assert_true(SSL_set1_groups_list(w->client, wish->groups));
	if (wish->alpn)
		assert_int_equal(SSL_set_alpn_protos(w->client, (const unsigned char *)wish->alpn,
						     (unsigned int)strlen(wish->alpn)),
				 0);
	if (wish->session)
		assert_true(SSL_set_session(w->client, wish->session));
	if (wish->own)
		assert_true(SSL_use_cert_and_key(w->client, wish->own->x, wish->own->key, NULL, 1));
	if (wish->asks_staple)
		SSL_set_tlsext_status_type(w->client, TLSEXT_STATUSTYPE_ocsp);
	if (wish->fragment)
		SSL_set_tlsext_max_fragment_length(w->client, wish->fragment);
}

/* Gives the handshake what the client has written; returns the bytes. */
static inline size_t to_server(struct world *w)
{
	static uint8_t bytes[BYTES_MAX];
	int n = BIO_read(SSL_get_wbio(w->client), bytes, sizeof(bytes));
	size_t len = n > 0 ? (size_t)n : 0, at = 0, used;

	while (at < len && w->progress == ES_TLS_SHAKING) {
		size_t give = w->chunk && w->chunk < len - at ? w->chunk : len - at;

		w->progress = es_tls_handshake_step(w->handshake, bytes + at, give, &used);
		if (w->progress == ES_TLS_SHAKING)
			assert_int_equal(used, give);
		at += used;
	}
	assert_true(w->rest_len + len - at <= sizeof(w->rest));
	memcpy(w->rest + w->rest_len, bytes + at, len - at);
	w->rest_len += len - at;
	return len;
}

/* Gives the client what the handshake has for it, in two pieces. */
static inline size_t to_client(struct world *w)
{
	const uint8_t *bytes;
	size_t all = 0, len;

	while ((len = es_tls_handshake_pending(w->handshake, &bytes)) > 0) {
		len = (len + 1) / 2;
		assert_int_equal(BIO_write(SSL_get_rbio(w->client), bytes, (int)len), len);
		es_tls_handshake_sent(w->handshake, len);
		all += len;
	}
	return all;
}

/* Records that are made from the state later have the numbers after the tickets'. */
static inline void give_tickets(struct world *w)
{
	struct es_tls_state before, after;
	int count;

	assert_int_equal(es_tls_handshake_state(w->handshake, &before), 0);
	count = es_tls_handshake_tickets(w->handshake, w->home, before.server.number);
	assert_true(count >= 0);
	assert_int_equal(es_tls_handshake_state(w->handshake, &after), 0);
	assert_int_equal(after.server.number, before.server.number + (unsigned int)count);
}

static inline void shake(struct world *w, const struct wish *wish)
{
	int is_asked = 0, is_given = 0;
	size_t moved;

	ERR_clear_error();
	w->progress = ES_TLS_SHAKING;
	assert_int_equal(es_tls_handshake_new(w->context, &w->handshake), 0);
	client_new(w, wish);
	do {
		int is_done = SSL_do_handshake(w->client) == 1;

		if (is_done && wish->request && !is_asked) {
			assert_int_equal(SSL_write(w->client, wish->request, (int)strlen(wish->request)),
					 strlen(wish->request));
			is_asked = 1;
		}
		moved = to_server(w);
		if (w->progress == ES_TLS_SHAKEN && !is_given) {
			give_tickets(w);
			is_given = 1;
		}
		moved += to_client(w);
	} while (moved);
}

/* Ends both; the session stays with the world, to be resumed. */
static inline void part(struct world *w)
{
	es_tls_handshake_free(&w->handshake);
	SSL_set_shutdown(w->client, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); /* or it would not resume */
	SSL_free(w->client);
	SSL_CTX_free(w->client_context);
	w->client = NULL;
	w->client_context = NULL;
	w->rest_len = 0;
	w->tickets = 0;
}

static inline void forget_session(struct world *w)
{
	SSL_SESSION_free(w->session);
	w->session = NULL;
}

/* The client's next record, opened. */
static inline void expect_record(struct world *w, int type, const void *text, size_t len)
{
	static uint8_t got[20000];
	size_t got_len = 0, record;

	to_server(w);
	assert_true(w->rest_len > 5);
	record = 5 + (size_t)(w->rest[3] << 8 | w->rest[4]);
	assert_true(w->rest_len >= record);
	assert_int_equal(open_record(&w->state, w->rest, record, got, &got_len), type);
	assert_int_equal(got_len, len);
	assert_memory_equal(got, text, len);
	w->rest_len -= record;
	memmove(w->rest, w->rest + record, w->rest_len);
}

static inline void send_record(struct world *w, uint8_t type, const void *text, size_t len)
{
	static uint8_t record[20000];
	size_t record_len = seal_record(&w->state, type, text, len, record);

	assert_int_equal(BIO_write(SSL_get_rbio(w->client), record, (int)record_len), record_len);
}

/* go_on() - requests and responses as @request was the first, then both sides close: no byte is lost */
static inline void go_on(struct world *w, const char *request)
{
	char text[64], got[64];

	if (w->progress == ES_TLS_SHAKE_BAD)
		fail_msg("%s", es_tls_handshake_why(w->handshake));
	assert_int_equal(w->progress, ES_TLS_SHAKEN);
	assert_true(SSL_is_init_finished(w->client));
	assert_int_equal(es_tls_handshake_state(w->handshake, &w->state), 0);
	for (int i = 0; i < 3; i++) {
		int len = snprintf(text, sizeof(text), "%s %d", request, i);

		if (!i)
			expect_record(w, TYPE_DATA, request, strlen(request));
		assert_int_equal(SSL_write(w->client, text, len), len);
		expect_record(w, TYPE_DATA, text, (size_t)len);
		send_record(w, TYPE_DATA, text, (size_t)len);
		assert_int_equal(SSL_read(w->client, got, sizeof(got)), len);
		assert_memory_equal(got, text, len);
	}
	assert_int_equal(SSL_shutdown(w->client), 0);
	expect_record(w, TYPE_ALERT, "\x01", 2); /* warning, close_notify: 0 */
	send_record(w, TYPE_ALERT, "\x01", 2);
	assert_int_equal(SSL_read(w->client, got, sizeof(got)), 0);
	assert_int_equal(SSL_get_error(w->client, 0), SSL_ERROR_ZERO_RETURN);
	assert_int_equal(w->rest_len, 0);
}

#endif
