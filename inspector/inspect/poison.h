/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_POISON_H
#define ES_POISON_H

/*
 * Requests that end daemons (kmod/core/poison.h): marks, the table that is made of them, and the message that
 * tells the other nodes. Nothing here allocates or takes a lock, since the keeper, a child of a process with
 * threads, uses it, too.
 */
#include <stddef.h>
#include <stdint.h>
#include "inspector/base/datagram.h"
#include "inspector/config/keyfile.h"
#include "kmod/core/handover.h"
#include "kmod/core/poison.h"

/* How many of a request's bytes are compared. */
#define ES_POISON_REQUEST_BYTES 900

/* es_mark_set() - @packet is inspected from now on, until es_mark_clear(). @mark: NULL does nothing. */
void es_mark_set(struct es_mark *mark, __u64 flow_hash, unsigned int service, const uint8_t *packet,
		 size_t len);
void es_mark_clear(struct es_mark *mark);

/* es_poison_request() - the hash of a packet's payload; 0 if it has none. @key: the ring's, alike on all
 * nodes. */
__u64 es_poison_request(const struct es_sipkey *key, const uint8_t *packet, size_t len);

/**
 * es_poison_of_mark() - the request that a worker was busy with
 * Returns 0, or -ENOENT if it was idle, or busy with an operator's question, which has no packet. The caller
 * fills in @ret_poison's node and time.
 */
int es_poison_of_mark(const struct es_mark *mark, const struct es_sipkey *key, struct es_poison *ret_poison);

/**
 * es_poison_note() - remember it; control thread
 * Takes an empty place, else the oldest one. Returns 1, or 0 if it is known already.
 */
int es_poison_note(struct es_poisons *poisons, const struct es_poison *poison, unsigned long long now_ns);

/* es_poison_forget() - the daemon that hung with it goes on after all, so it is not poison; control thread */
void es_poison_forget(struct es_poisons *poisons, const struct es_poison *poison, unsigned long long now_ns);

/* es_poison_find() - poison of this flow, or with these bytes; NULL if there is none */
const struct es_poison *es_poison_find(const struct es_poisons *poisons, __u64 flow_hash, __u64 request,
				       unsigned long long now_ns);

/**
 * es_poison_is_known() - the same for a packet; @key: of es_poison_request(); @poisons may be NULL: none are
 * known
 */
int es_poison_is_known(const struct es_poisons *poisons, const struct es_sipkey *key, __u64 flow_hash,
		       const uint8_t *packet, size_t len, unsigned long long now_ns);

/**
 * struct es_poison_message - in network byte order; a datagram to the handover port of each other node The
 * datapath lets it pass to the socket of loads. Authentic by SipHash-2-4 under the handover key. Fresh by the
 * wall clock, in nanoseconds, within two minutes: a repeated message does no harm.
 */
struct es_poison_message {
	__be32 magic;
	__u8 version;
	__u8 source;
	__u8 service;
	__u8 kind;
	__be64 wall_ns;
	__be64 flow_hash;
	__be64 request;
	struct es_addr client;
	__be16 client_port;
	__u8 spare[6];
	__be64 mac;
};
_Static_assert(sizeof(struct es_poison_message) == sizeof(struct es_handover), "one size");

void es_poison_message_make(const struct es_poison *poison, unsigned int self, const struct es_sipkey *key,
			    unsigned long long wall_ns, struct es_poison_message *ret_message);

/* es_poison_message_read() - returns 0, or -EBADMSG if it is not authentic, too old, or not another node's */
int es_poison_message_read(const void *data, size_t len, unsigned int self, unsigned int node_count,
			   const struct es_keys *keys, unsigned long long wall_ns,
			   struct es_poison *ret_poison);

#endif
