/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_KEPT_WORDS_H
#define ES_KEPT_WORDS_H

/*
 * A node tells another one of its idle connections (cluster/directory.h), many in a datagram. A version
 * passes over the words in one that it does not know. One that is lost is made up for when the connections
 * are told again.
 */
#include "inspector/cluster/directory.h"
#include "inspector/peers/flow_datagram.h"

#define ES_KEPT_WORDS_MAX 22

enum es_kept_what {
	ES_KEPT_KEEP = 1,
	ES_KEPT_FORGET = 2, /* of @kept only the flow matters */
	ES_KEPT_ORPHAN = 3, /* another node's, which is lost, with its lease */
	/*
	 * A request on it is in hand for long: nobody else can answer it, but its client can be told at once.
	 * @kept.seq: behind the request; @kept.ack: where its response begins; @kept.requests: the
	 * timestamp, in ms, that its node would send
	 */
	ES_KEPT_WAITS = 4,
	ES_KEPT_ANSWERED = 5, /* so it is not any more; of @kept only the flow matters */
};

struct es_kept_word {
	enum es_kept_what what;
	struct es_kept kept;
};

/* struct es_kept_wire - @options: ES_HANDOVER_F_*; @owner: of ES_KEPT_ORPHAN */
struct es_kept_wire {
	__be32 client[4];
	__be32 service_address[4];
	__be16 client_port;
	__be16 service_port;
	__be32 seq;
	__be32 ack;
	__be32 requests;
	__be16 moves;
	__be16 mss;
	__u8 what;
	__u8 service;
	__u8 snd_wscale;
	__u8 rcv_wscale;
	__u8 options;
	__u8 owner;
	__u8 spare[2];
};
_Static_assert(sizeof(struct es_kept_wire) == 60, "no padding");

struct es_kept_message {
	struct es_flow_datagram header; /* with the count of @word */
	struct es_kept_wire word[ES_KEPT_WORDS_MAX];
};
_Static_assert(offsetof(struct es_kept_message, word) == sizeof(struct es_flow_datagram), "no padding");
_Static_assert(sizeof(struct es_kept_message) <= ES_DATAGRAM_MAX, "it is received whole");

/**
 * es_kept_message_make() - from @self to @target; @wall_ns: this node's wall clock
 * Returns its bytes.
 */
size_t es_kept_message_make(struct es_kept_message *message, unsigned int self, unsigned int target,
			    __u64 sequence, __u64 wall_ns, const struct es_kept_word *words,
			    unsigned int count, const struct es_sipkey *key);

/**
 * es_kept_message_read() - is it an authentic message of another node to this one, timely, and newer than
 * @heard (by node), which it is noted in?
 * @ret_words: room for ES_KEPT_WORDS_MAX; their owner is the sender, but for orphans. Returns how many
 * words, or -EBADMSG.
 */
int es_kept_message_read(const void *data, size_t len, unsigned int self, unsigned int node_count,
			 const struct es_keys *keys, __u64 wall_ns, __u64 *heard,
			 struct es_kept_word *ret_words);

#endif
