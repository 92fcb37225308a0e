/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_HANDSHAKE_H
#define ES_TLS_HANDSHAKE_H

/*
 * A server's TLS handshakes, by OpenSSL over memory: bytes in, bytes out, and in the end the state from which
 * tls/record/ goes on. OpenSSL never sees a record after that.
 */
#include <stddef.h>
#include <stdint.h>
#include "inspector/base/error.h"
#include "kmod/core/siphash.h"
#include "tls/record/state.h"

/**
 * struct es_tls_certificate - a certificate and its key
 * @names: of the certificate's subjectAltName decide for which server names it is shown (RFC 6066 section 3);
 * the first certificate is shown for all others
 */
struct es_tls_certificate {
	const char *certificate_file; /* PEM: the certificate, then its chain */
	const char *key_file;	      /* PEM */
	const char *ocsp_file;	      /* DER: a response that is stapled; NULL: none */
};

/**
 * struct es_tls_settings - of a service
 * @service: its name; a ticket of one is no good at another
 * @minimum: ES_TLS_1_2 (as 0 is) or ES_TLS_1_3
 * @ciphers: TLS 1.2's, as OpenSSL's list; @suites: TLS 1.3's; NULL: Mozilla's intermediate ones. Only those
 * that tls/record/ knows may be in them: ECDHE, with AES-GCM or ChaCha20-Poly1305
 * @alpn: in the order of preference, ended by ES_TLS_ALPN_NONE; a client that offers others alone is refused
 * (RFC 7301 section 3.2)
 * @client_ca_file: PEM; client certificates that one of these has issued are asked for; NULL: none are.
 * @client_must: a client without one is refused
 * @is_lenient: nobody is better off with nothing, as at a start: a certificate that is not valid now is
 * shown, and an OCSP response that cannot be used is left out; es_tls_context_problem() tells
 */
struct es_tls_settings {
	const char *service;
	const struct es_tls_certificate *certificates;
	unsigned int certificate_count;
	uint16_t minimum;
	const char *ciphers;
	const char *suites;
	enum es_tls_alpn alpn[ES_TLS_ALPN_COUNT];
	const char *client_ca_file;
	int client_must;
	int is_lenient;
};

/**
 * struct es_tls_ticket_keys - under which tickets are made (RFC 5077, RFC 8446 section 4.6.1)
 * @key[0] makes them, all @count are read: of today, of the day before and of the next one
 */
#define ES_TLS_TICKET_KEYS_MAX 6
struct es_tls_ticket_keys {
	unsigned int count;
	uint8_t name[ES_TLS_TICKET_KEYS_MAX][16];
	uint8_t aes[ES_TLS_TICKET_KEYS_MAX][32];
	uint8_t mac[ES_TLS_TICKET_KEYS_MAX][32];
	struct es_sipkey home[ES_TLS_TICKET_KEYS_MAX];
};

struct es_tls_context;

/**
 * es_tls_context_new() - read files and make ready; @err names the file and what is wrong with it
 * A certificate that is weak or not valid now is refused; an OCSP response whose time is over is not shown.
 * Returns 0 or -errno. The context may be freed while handshakes that it began go on.
 */
int es_tls_context_new(const struct es_tls_settings *settings, struct es_tls_context **ret_context,
		       struct es_conf_error *err);
void es_tls_context_free(struct es_tls_context **context);

/*
 * es_tls_context_problem() - is there one with its files at @wall_s, seconds since 1970? @ret_problem: the
 * first, or "": a certificate that is not valid, an OCSP response that is over, or was left out
 */
void es_tls_context_problem(const struct es_tls_context *context, long long wall_s,
			    struct es_conf_error *ret_problem);

/**
 * es_tls_context_tickets() - the keys from now on; until then there are no tickets
 * @home: this node's number, which the tickets of TLS 1.2 name: they are part of the handshake
 */
void es_tls_context_tickets(struct es_tls_context *context, const struct es_tls_ticket_keys *keys,
			    uint8_t home);

/* es_tls_context_ticket_count() - so many are made after a full handshake of TLS 1.3; 2 until then */
void es_tls_context_ticket_count(struct es_tls_context *context, unsigned int count);

struct es_tls_handshake;

int es_tls_handshake_new(struct es_tls_context *context, struct es_tls_handshake **ret_handshake);
void es_tls_handshake_free(struct es_tls_handshake **handshake);

enum es_tls_progress {
	ES_TLS_SHAKING,	 /* wants more of the client */
	ES_TLS_SHAKEN,	 /* over: es_tls_handshake_state() */
	ES_TLS_SHAKE_BAD /* over: an alert may be among the bytes to send */
};

#define ES_TLS_HANDSHAKE_BYTES_MAX   131072 /* of a client, client certificates among them */
#define ES_TLS_HANDSHAKE_RECORDS_MAX 1024

/**
 * es_tls_handshake_step() - take bytes from the client
 * @ret_used: so many were taken, all while the handshake goes on; after ES_TLS_SHAKEN the rest are the first
 * records of application data
 */
enum es_tls_progress es_tls_handshake_step(struct es_tls_handshake *handshake, const uint8_t *bytes,
					   size_t len, size_t *ret_used);

/*
 * es_tls_handshake_pending() - bytes to send to the client, valid until the next step; sent() takes off @len
 */
size_t es_tls_handshake_pending(const struct es_tls_handshake *handshake, const uint8_t **ret_bytes);
void es_tls_handshake_sent(struct es_tls_handshake *handshake, size_t len);

/**
 * es_tls_handshake_state() - after ES_TLS_SHAKEN
 * What is pending comes before the first record that is made from it. Returns 0 or -EPROTO: OpenSSL has not
 * told the secrets, or what it has sent.
 */
int es_tls_handshake_state(struct es_tls_handshake *handshake, struct es_tls_state *ret_state);

/**
 * es_tls_handshake_tickets() - in TLS 1.3, after ES_TLS_SHAKEN: make the client's tickets, which name @home
 * They are pending then, and come before all that is made from the state.
 * @number: of the server's next record, as the state has it, from which nothing was made yet
 * Returns how many records they are, 0 in TLS 1.2, or without keys; -EPROTO: it is not known how many records
 * OpenSSL has made, so the connection must end.
 */
int es_tls_handshake_tickets(struct es_tls_handshake *handshake, uint8_t home, uint64_t number);

/**
 * es_tls_handshake_text_max() - no record may have more bytes of text: ES_TLS_TEXT_MAX, or fewer, which the
 * client has asked for (RFC 6066 section 4)
 */
size_t es_tls_handshake_text_max(const struct es_tls_handshake *handshake);

/* es_tls_handshake_resumed() - was a ticket taken? @ret_home: the node's number in it */
int es_tls_handshake_resumed(const struct es_tls_handshake *handshake, uint8_t *ret_home);

/* es_tls_handshake_why() - after ES_TLS_SHAKE_BAD: words; a constant */
const char *es_tls_handshake_why(const struct es_tls_handshake *handshake);

/* es_tls_handshake_failure() - likewise: what is wrong, by kinds */
enum es_tls_failure {
	ES_TLS_FAILED_OTHER,
	ES_TLS_FAILED_NO_TLS,
	ES_TLS_FAILED_NOTHING_COMMON, /* no version, cipher, group or protocol */
	ES_TLS_FAILED_ALERT,	      /* the client's: as a rule, it does not trust the certificate */
	ES_TLS_FAILED_CERTIFICATE,    /* the client's own */
	ES_TLS_FAILURES,
};
enum es_tls_failure es_tls_handshake_failure(const struct es_tls_handshake *handshake);

#endif
