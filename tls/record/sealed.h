/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TLS_SEALED_H
#define ES_TLS_SEALED_H

/*
 * A connection's state on its way to another node: encrypted and authenticated (AES-256-GCM) under a key that
 * is derived from the cluster's, bound to the connection and to the node it goes to, and taken once. It stands
 * in front of the bytes that request_handover() gives back, so the accepting process reads it first; its first
 * byte is no content type of TLS.
 */
#include "inspector/base/sockaddr.h"
#include "kmod/core/flow.h"
#include "tls/record/state.h"

#define ES_TLS_SEALED_FIRST   0xe5
#define ES_TLS_SEALED_BYTES   (40 + ES_TLS_STATE_BYTES + 16)
#define ES_TLS_SEALED_LATE_NS 10000000000ULL /* older ones are refused */

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
 * es_tls_seal() - @target: the node's name; @flow: the connection; @wall_ns: CLOCK_REALTIME as the daemon's
 * (inspector/base/wall.h). The nonce is random, so one key may seal 2^32 states (NIST SP 800-38D section 8.3).
 * Returns 0 or -errno.
 */
int es_tls_seal(const struct es_tls_seal_keys *keys, const struct es_flow *flow, const char *target,
		uint64_t wall_ns, const struct es_tls_state *state, uint8_t ret_sealed[ES_TLS_SEALED_BYTES]);

enum es_tls_opened {
	ES_TLS_OPENED,
	ES_TLS_SEALED_BAD,	/* not made by a node of this cluster for this connection and this node */
	ES_TLS_SEALED_LATE,	/* made too long ago, or before @since_ns */
	ES_TLS_SEALED_REPEATED, /* taken before */
	ES_TLS_SEALED_UNKNOWN,	/* authentic, but of a layout that is not known: a later version's */
};

/* Which have been taken lately: shared by the processes of a node (memory that they inherit). */
struct es_tls_taken;
struct es_tls_taken *es_tls_taken_new(uint64_t since_wall_ns);
void es_tls_taken_free(struct es_tls_taken **taken);

/* es_tls_unseal() - open it, once; @self: this node's name */
enum es_tls_opened es_tls_unseal(const struct es_tls_seal_keys *keys, struct es_tls_taken *taken,
				 const struct es_flow *flow, const char *self, uint64_t wall_ns,
				 const uint8_t sealed[ES_TLS_SEALED_BYTES], struct es_tls_state *ret_state);

#endif
