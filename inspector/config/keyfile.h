/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECTOR_KEYFILE_H
#define ES_INSPECTOR_KEYFILE_H

/*
 * The cluster's secrets, one text file that is the same on all nodes:
 *
 *	# comment
 *	ring <64 hex digits>
 *	key <id> <64 hex digits>
 *	key <id> <64 hex digits>
 *
 * The first key signs, both verify. The second is the previous one, still valid, or (higher id) the next one,
 * already valid. The ring's secret stands apart because rotation must not move flows.
 */
#include <stddef.h>
#include "inspector/base/error.h"
#include "kmod/core/siphash.h"

#define ES_KEYS_MAX 2

/* struct es_key - the keys derived from one `key` line, one per use */
struct es_key {
	unsigned int id;
	struct es_sipkey cookie;
	struct es_sipkey handover;
	struct es_sipkey home;
};

/*
 * struct es_keys - @key[0] signs, all @count verify
 * @ring_seed: for es_flow_hash(), never 0; a caller whose cluster has ring_hash = siphash sets it to 0
 */
struct es_keys {
	struct es_sipkey ring;
	__u16 ring_seed;
	unsigned int count;
	struct es_key key[ES_KEYS_MAX];
};

/**
 * es_keys_read() - read a key file and derive the keys of each use
 * The derivation is HKDF-SHA256 (RFC 5869) without salt; info is "earshot ring", "earshot cookie", "earshot
 * handover", "earshot tls homes" (http/tls_home.h) or "earshot ring jhash", 16 bytes, k0 then k1, little
 * endian. The ring's seed is taken from the last of these: the lowest 16 bits of its k0 that are not all
 * zero, or 1 if k0 is 0. Return: 0; -EPERM when others than its owner may read the file or the owner is
 * neither root nor we; -EINVAL for its content; or the error of reading it. @err never holds key material.
 */
int es_keys_read(const char *path, struct es_keys *ret_keys, struct es_conf_error *err);

/**
 * es_keys_have_signed() - has a node of the cluster signed these @len bytes, with es_datagram_mac() and
 * one of the handover keys? @mac_at: where the signature stands, among them or right after them
 */
int es_keys_have_signed(const struct es_keys *keys, const void *data, size_t len, size_t mac_at);

/* Overwrites derived keys that are no longer needed. */
void es_keys_wipe(struct es_keys *keys);

/* Writes a new file, mode 0600, with fresh secrets. -EEXIST when there is one already. */
int es_keyfile_create(const char *path, struct es_conf_error *err);

/**
 * es_keyfile_stage() - add a fresh key as the second one: every node accepts it, none signs with it yet
 * The step before es_keyfile_rotate() that makes a rotation lossless: a node that signs with a key that
 * another does not have yet would have its handovers and cookies refused there. Return: as es_keys_read().
 */
int es_keyfile_stage(const char *path, struct es_conf_error *err);

/**
 * es_keyfile_rotate() - make the staged key, or else a fresh one, the current one; keep the old one as
 * previous
 * The file is replaced as a whole; its ring line stays. Return: as es_keys_read().
 */
int es_keyfile_rotate(const char *path, struct es_conf_error *err);

#endif
