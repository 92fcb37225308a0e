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
#include "tls/record/suite.h"

#define ES_TLS_RECORD_HEADER 5
#define ES_TLS_TEXT_MAX	     16384		/* bytes of text in a record (RFC 8446 section 5.1) */
#define ES_TLS_RECORD_MAX    (5 + 16384 + 256)	/* RFC 8446 section 5.2 */
#define ES_TLS12_RECORD_MAX  (5 + 16384 + 2048) /* RFC 5246 section 6.2.3 */

/* Content types (RFC 8446 section 5.1). */
enum es_tls_type {
	ES_TLS_CHANGE_CIPHER_SPEC = 20,
	ES_TLS_ALERT = 21,
	ES_TLS_HANDSHAKE = 22,
	ES_TLS_APPLICATION_DATA = 23,
};

/*
 * The most that es_tls_records_write() adds to a text: a nonce, a type and a tag; and before the limit of a
 * key a record of its own, KeyUpdate.
 */
#define ES_TLS_RECORD_EXTRA (5 + 8 + 1 + 16 + 5 + 5 + 1 + 16)

struct es_tls_records;

/* es_tls_records_new() - go on from @state; 0, -ENOMEM or -EPROTO: a suite or version that is not known */
int es_tls_records_new(const struct es_tls_state *state, struct es_tls_records **ret_records);
void es_tls_records_free(struct es_tls_records **records);

/**
 * struct es_tls_write_key - all that protects what the client is sent, for a record layer that is elsewhere
 * @key: of @suite->key_size bytes; @iv: TLS 1.3 and ChaCha20: the nonce of record 0; otherwise the first
 * @suite->fixed_size bytes, and each record's number is the rest (es_tls_protect_seal())
 * @number: of the next record
 */
struct es_tls_write_key {
	const struct es_tls_suite *suite;
	uint8_t key[ES_TLS_KEY_SIZE];
	uint8_t iv[ES_TLS_NONCE_SIZE];
	uint64_t number;
};

/* es_tls_records_key() - returns 0; -EPIPE: it is over or closed; or -ENOMEM. The caller wipes @ret_key. */
int es_tls_records_key(const struct es_tls_records *records, struct es_tls_write_key *ret_key);

/*
 * es_tls_records_lend() - who has got the key protects what the client is sent, from now on to the end.
 * es_tls_records_write() refuses, and what this one has to say is plain text.
 */
void es_tls_records_lend(struct es_tls_records *records);

/* es_tls_records_lent() - the other's next record has this @number; for es_tls_records_state() */
void es_tls_records_lent(struct es_tls_records *records, uint64_t number);

/*
 * es_tls_records_is_used_up() - must the connection end, since a new key is wanted that the other record
 * layer cannot be given? No further response should be begun (RFC 8446 sections 4.6.3 and 5.5).
 */
int es_tls_records_is_used_up(const struct es_tls_records *records);

/**
 * es_tls_records_state() - where it stands now, between two records
 * @consumed is 0: it is the caller's. A process that is given records of the client again which have been
 * read here is given their half of then, and the server's half of now, since each number protects one record:
 * it answers a KeyUpdate among them once more, which a client takes.
 */
void es_tls_records_state(const struct es_tls_records *records, struct es_tls_state *ret_state);

/**
 * es_tls_records_pass() - somebody else has protected the server's next @count records
 * Only before anything is written here. Negative: nobody knows how many, and nothing will be written.
 */
void es_tls_records_pass(struct es_tls_records *records, int count);

enum es_tls_event {
	ES_TLS_EVENT_MORE,  /* @used is 0: no whole record is here yet */
	ES_TLS_EVENT_TEXT,  /* application data, which may be empty */
	ES_TLS_EVENT_NONE,  /* a record that says nothing to the caller; @reply_len may have an answer */
	ES_TLS_EVENT_CLOSE, /* close_notify: what the client still sends is passed over */
	ES_TLS_EVENT_END,   /* over, without a fault of this side: the client's fatal alert */
	ES_TLS_EVENT_ERROR, /* over: @reply has the alert that says why */
};

/**
 * struct es_tls_got - what one record was
 * @used: bytes of the input that the record took; 0 after ES_TLS_EVENT_ERROR, and when it was over before
 * @text_len: bytes written to the caller's @text
 * @reply, @reply_len: protected bytes that are to be sent to the client, after all that was written before
 * and before all that is written later (KeyUpdate, an alert). After es_tls_records_lend(): an alert's text.
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
 * @bytes, @len: what has come from the client
 * @text: of ES_TLS_TEXT_MAX bytes, whatever the event; may be @bytes, and must not overlap it otherwise
 * @now_ns: of CLOCK_MONOTONIC; bounds KeyUpdates, empty records and warnings of a client: 4 a second, and
 * more at once
 * After ES_TLS_EVENT_END or ES_TLS_EVENT_ERROR each further call says ES_TLS_EVENT_END, without a reply.
 */
void es_tls_records_read(struct es_tls_records *records, const uint8_t *bytes, size_t len, uint64_t now_ns,
			 uint8_t *text, struct es_tls_got *ret_got);

/**
 * es_tls_records_write() - protect up to ES_TLS_TEXT_MAX bytes of @text as one record
 * @out: with room for es_tls_records_write_room() bytes; must not overlap @text
 * Returns the bytes written; -EMSGSIZE: @len is too long; -EKEYEXPIRED: TLS 1.2 cannot change its key, and
 * the connection must end (RFC 8446 section 5.5); -EPIPE: it is over, or closed by es_tls_records_close();
 * -ENOMEM: OpenSSL has refused, and it is over.
 */
long es_tls_records_write(struct es_tls_records *records, const uint8_t *text, size_t len, uint8_t *out);

static inline size_t es_tls_records_write_room(size_t len)
{
	return len + ES_TLS_RECORD_EXTRA;
}

/*
 * es_tls_records_close() - write close_notify, or its text after es_tls_records_lend(); returns its bytes, at
 * most 64; 0: it is over or closed already
 */
size_t es_tls_records_close(struct es_tls_records *records, uint8_t *out);

#endif
