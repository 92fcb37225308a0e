/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_SEALED_H
#define ES_TLS_SEALED_H

/*
 * A connection's state on its way to another node: encrypted and authenticated (AES-256-GCM) under a key that
 * is derived from the cluster's, bound to the connection and to the node it goes to, and taken once. It
 * stands in front of the bytes that request_handover() gives back, so the accepting process reads it first;
 * its first byte is no content type of TLS.
 */
#include <stdint.h>
#include "kmod/core/flow.h"
#include "tls/record/state.h"

/*
 *	0	1 byte	ES_TLS_SEALED_FIRST
 *	1	1	the layout: 1
 *	2	2	0
 *	4	4	the key's id
 *	8	8	when it was made: nanoseconds of the wall clock
 *	16	12	salt: HMAC-SHA256(key, salt) is the key of this one message
 *	28	12	nonce
 *	40	432	the state (state.h), encrypted
 *	472	16	tag; it covers these 40 bytes, struct es_flow and the target's name with its NUL, too
 *
 * Numbers are in network order.
 */
#define ES_TLS_SEALED_FIRST   0xe5
#define ES_TLS_SEALED_HEADER  40
#define ES_TLS_SEALED_BYTES   (ES_TLS_SEALED_HEADER + ES_TLS_STATE_BYTES + 16)
#define ES_TLS_SEALED_LATE_NS 10000000000ULL /* older ones are refused, and those of so far in the future */

/**
 * struct es_tls_seal_keys - @key[0] seals, all @count open; derived from the key file's lines by HKDF-SHA256
 * (RFC 5869), info "earshot tls handover"
 */
#define ES_TLS_SEAL_KEYS_MAX 2
struct es_tls_seal_keys {
	unsigned int count;
	unsigned int id[ES_TLS_SEAL_KEYS_MAX];
	uint8_t key[ES_TLS_SEAL_KEYS_MAX][32];
};

/**
 * es_tls_seal() - @target: the node's name; @flow: the connection; @wall_ns: es_wall_ns()
 * Salt and nonce are random, so one key may seal as many states as there will ever be: it is 24 bytes that
 * would have to repeat (NIST SP 800-38D section 8.3 has 2^32 for 12).
 * Returns 0, -ENOKEY: @keys has none, or -ENOMEM: OpenSSL has refused.
 */
int es_tls_seal(const struct es_tls_seal_keys *keys, const struct es_flow *flow, const char *target,
		uint64_t wall_ns, const struct es_tls_state *state, uint8_t ret_sealed[ES_TLS_SEALED_BYTES]);

enum es_tls_opened {
	ES_TLS_OPENED,
	ES_TLS_SEALED_BAD,	/* not made by a node of this cluster for this connection and this node */
	ES_TLS_SEALED_LATE,	/* made too long ago, or before what is remembered, or in the future */
	ES_TLS_SEALED_REPEATED, /* taken before */
	ES_TLS_SEALED_UNKNOWN,	/* of a layout that is not known: a later version's */
	ES_TLS_SEALED_FULL,	/* more than can be remembered were taken within ES_TLS_SEALED_LATE_NS */
	ES_TLS_OPENED_COUNT,
};

/*
 * Which have been taken lately: shared by the processes of a node, which inherit the memory. A process that
 * is killed while it looks at it leaves it usable.
 */
struct es_tls_taken;

/* How many it remembers: ES_TLS_SEALED_LATE_NS of 13,000 a second. All that fall to one set must fit it. */
#define ES_TLS_TAKEN_SETS 2048
#define ES_TLS_TAKEN_WAYS 128

/*
 * es_tls_taken_new() - what was made before @since_wall_ns is refused: nobody remembers it. NULL: no memory
 */
struct es_tls_taken *es_tls_taken_new(uint64_t since_wall_ns);
void es_tls_taken_free(struct es_tls_taken **taken);

/**
 * es_tls_unseal() - open it, once; @self: this node's name
 * @ret_state: is left as it is, unless ES_TLS_OPENED
 */
enum es_tls_opened es_tls_unseal(const struct es_tls_seal_keys *keys, struct es_tls_taken *taken,
				 const struct es_flow *flow, const char *self, uint64_t wall_ns,
				 const uint8_t sealed[ES_TLS_SEALED_BYTES], struct es_tls_state *ret_state);

#endif
