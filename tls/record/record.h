/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_RECORD_H
#define ES_TLS_RECORD_H

/*
 * Records of an established TLS connection, the server's side, over OpenSSL's EVP: AES-128-GCM, AES-256-GCM
 * and ChaCha20-Poly1305, TLS 1.2 and 1.3. It is fed bytes and gives bytes; it has no socket.
 */
#include <stddef.h>
#include <stdint.h>
#include "tls/record/state.h"

#define ES_TLS_RECORD_HEADER 5
#define ES_TLS_TEXT_MAX	     16384		/* bytes of text in a record (RFC 8446 section 5.1) */
#define ES_TLS_RECORD_MAX    (5 + 16384 + 256)	/* RFC 8446 section 5.2 */
#define ES_TLS12_RECORD_MAX  (5 + 16384 + 2048) /* RFC 5246 section 6.2.3 */
#define ES_TLS_RECORD_EXTRA  (5 + 8 + 1 + 16)	/* what protection adds to a text, at most */

struct es_tls_records;

/* es_tls_records_new() - go on from @state; 0, -ENOMEM or -EPROTO: a suite or version that is not known */
int es_tls_records_new(const struct es_tls_state *state, struct es_tls_records **ret_records);
void es_tls_records_free(struct es_tls_records **records);

/* es_tls_records_state() - where it stands now, between two records */
void es_tls_records_state(const struct es_tls_records *records, struct es_tls_state *ret_state);

enum es_tls_event {
	ES_TLS_EVENT_MORE,  /* @used is 0: no whole record is here yet */
	ES_TLS_EVENT_TEXT,  /* application data, which may be empty */
	ES_TLS_EVENT_NONE,  /* a record that says nothing to the caller; @reply_len may have an answer */
	ES_TLS_EVENT_CLOSE, /* close_notify: the client will send nothing more */
	ES_TLS_EVENT_END,   /* over, without a fault of this side: the client's fatal alert */
	ES_TLS_EVENT_ERROR, /* over: @reply has the alert that says why */
};

/**
 * struct es_tls_got - what one record was
 * @used: bytes of the input that the record took
 * @text_len: bytes written to the caller's @text
 * @reply, @reply_len: protected bytes that are to be sent to the client at once (KeyUpdate, an alert)
 * @why: words for the log and the counters, of ES_TLS_EVENT_END and ES_TLS_EVENT_ERROR; a constant
 */
struct es_tls_got {
	enum es_tls_event event;
	size_t used;
	size_t text_len;
	size_t reply_len;
	uint8_t reply[64];
	const char *why;
};

/**
 * es_tls_records_read() - read one record
 * @bytes, @len: what has come from the client; @text: of ES_TLS_TEXT_MAX bytes; may be the place of @bytes
 * @now_ns: of CLOCK_MONOTONIC; bounds KeyUpdates and empty records of a client, a few a second
 */
void es_tls_records_read(struct es_tls_records *records, const uint8_t *bytes, size_t len, uint64_t now_ns,
			 uint8_t *text, struct es_tls_got *ret_got);

/**
 * es_tls_records_write() - protect up to ES_TLS_TEXT_MAX bytes of @text as one record
 * @out: with room for @len + ES_TLS_RECORD_EXTRA bytes (twice that before the limit of a key, where KeyUpdate
 * comes first: es_tls_records_write_room())
 * Returns the bytes written; -EMSGSIZE: @len is too long; -EKEYEXPIRED: TLS 1.2 cannot change its key, and the
 * connection must end (RFC 8446 section 5.5).
 */
long es_tls_records_write(struct es_tls_records *records, const uint8_t *text, size_t len, uint8_t *out);
size_t es_tls_records_write_room(size_t len);

/* es_tls_records_close() - write close_notify; returns its bytes, at most 64 */
size_t es_tls_records_close(struct es_tls_records *records, uint8_t *out);

#endif
