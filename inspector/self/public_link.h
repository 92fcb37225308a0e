/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_PUBLIC_LINK_H
#define ES_PUBLIC_LINK_H

/*
 * Does this node hear the clients' network, and is it heard there? A cable that was pulled has no carrier; a
 * switch that loses everything has one. So each node sends a small frame to the cluster MAC some times a
 * second, which all others receive: one that receives nothing for a while that is sent there, though there
 * are others, is deaf (deaf.h); one that the others do not hear is mute (hearing.h).
 */
#include <linux/types.h>
#include <stdint.h>
#include "inspector/config/config.h"
#include "inspector/config/keyfile.h"
#include "inspector/self/deaf.h"
#include "membership/hearing.h"

#define ES_PUBLIC_LINK_MAGIC   0x45736850 /* "EshP" */
#define ES_PUBLIC_LINK_VERSION 1
#define ES_PUBLIC_LINK_STEADY  1 /* in flags */

/**
 * struct es_public_link_message - what the frame says, behind its Ethernet header; in network byte order
 * Authentic by SipHash-2-4 under the ring's secret, since that is the same on all nodes while keys rotate.
 * @sequence counts up, with the number clock (base/wall.h).
 */
struct es_public_link_message {
	__be32 magic;
	__u8 version;
	__u8 source;
	__u8 flags;
	__u8 spare;
	__be64 sequence;
	__be64 hears[ES_HEARING_WORDS];
	__be64 mac;
};
_Static_assert(sizeof(struct es_public_link_message) == 40, "it fits into the smallest frame");

/* struct es_public_link - @ring: the secret, which outlives it; @sequence_of: the last one of each node */
struct es_public_link {
	int fd;
	unsigned int ifindex;
	const struct es_sipkey *ring;
	unsigned char frame[60];
	uint64_t sequence;
	uint64_t sequence_of[ES_NODES_MAX];
	struct es_hearing hearing;
	struct es_deaf deaf;
	int began_deaf;
	uint64_t probe_ms; /* the last frame of another node */
	uint64_t probed_ms;
	char mute[ES_GROUP_TEXT_SIZE];
};

/* es_public_link_open() - @self: of the nodes; @public_mac: its own there. Returns 0 or -errno. */
int es_public_link_open(struct es_public_link *link, const struct es_conf *conf, unsigned int self,
			unsigned int ifindex, const unsigned char *public_mac, const struct es_sipkey *ring);

/*
 * es_public_link_bind() - to another interface, or the same made anew; what was heard stays. Returns 0 or
 * -errno.
 */
int es_public_link_bind(struct es_public_link *link, unsigned int ifindex, const unsigned char *public_mac);

/* es_public_link_begin_deaf() - after open: so the daemon before this one has ended; @clients as below */
void es_public_link_begin_deaf(struct es_public_link *link, uint64_t clients, uint64_t now_ms);
void es_public_link_close(struct es_public_link *link);

/* es_public_link_put(), es_public_link_get() - a message of node @source; the latter: 0 or -EBADMSG */
void es_public_link_put(struct es_public_link_message *ret_message, const struct es_sipkey *ring,
			unsigned int source, uint64_t sequence, const struct es_hearing_word *word);
int es_public_link_get(const struct es_public_link_message *message, const struct es_sipkey *ring,
		       struct es_hearing_word *ret_word);

/**
 * struct es_public_link_others - what is known of the cluster by other ways
 * @has_others: there are members that do the same
 * @is_there: does the node tell its load? @clients: clients' packets that arrived here; with @ctx. Both are
 * asked only when no frame of another node comes.
 */
struct es_public_link_others {
	int has_others;
	int (*is_there)(void *ctx, unsigned int node);
	uint64_t (*clients)(void *ctx);
	void *ctx;
};

/**
 * es_public_link_check() - say that we are here, and look what we heard; call it often
 * Returns what is wrong, for the operator, or NULL.
 */
const char *es_public_link_check(struct es_public_link *link, const struct es_conf *conf,
				 const struct es_public_link_others *others, uint64_t now_ms);

#endif
