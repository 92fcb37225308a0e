/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECT_HELD_H
#define ES_INSPECT_HELD_H

/*
 * Requests that clients have sent on other nodes' idle connections, and repeated, since nobody answers; kept
 * until the connection's node is known to be lost, and its lease is over (held.c).
 */
#include "inspector/packet/packet.h"
#include "kmod/core/abi.h"

/* A worker keeps so many, and so many bytes: more are left to their clients. */
#define ES_HELD_SETS  2048 /* a power of two */
#define ES_HELD_WAYS  4
#define ES_HELD_BYTES (8u << 20)

/* So long after its client has repeated it last: clients wait longer each time. */
#define ES_HELD_LIFE_NS 30000000000ULL

/*
 * A client is asked so often, and not again before it may say the same once more: Linux answers such a
 * segment twice a second at the most (tcp_invalid_ratelimit).
 */
#define ES_HELD_ASKS   2
#define ES_HELD_ASK_NS 600000000ULL

/* So many clients are asked at a time: with a worker's clock, 5,000 a second. */
#define ES_HELD_ASK_MOST 100

/* So long the datapath watches for answers; those that come later are not needed. */
#define ES_HELD_ANSWERS_S 2

/**
 * struct es_held - the first segment of a request, as a whole
 * @record: as that of a stray
 * @heard_ns: when it came last
 * @owner: the node that has the connection; @told_ns: when that had said so last
 * @asked: how often its client was, last at @asked_ns
 */
struct es_held {
	struct es_record record;
	unsigned long long heard_ns;
	unsigned long long told_ns;
	unsigned long long asked_ns;
	unsigned int owner;
	unsigned int asked;
	uint8_t packet[];
};

/* struct es_holds - one worker's; @bytes: of all packets. All zero: empty */
struct es_holds {
	unsigned int count;
	size_t bytes;
	struct es_held *held[ES_HELD_SETS * ES_HELD_WAYS];
};

struct es_inspector;

/**
 * es_inspect_hold() - a segment has come that this node may not take now: keep it if it begins the request
 * that the connection's record waits for
 */
void es_inspect_hold(struct es_inspector *in, const struct es_record *record,
		     const struct es_ip_packet *packet);

/* es_inspect_held_due() - ask the clients of requests whose node is lost, with its lease; forget old ones */
void es_inspect_held_due(struct es_inspector *in);

/**
 * es_inspect_held_answer() - a client that was asked acknowledges what it has
 * Returns the request that it waits for the answer to, from its first byte on, which is the caller's to
 * free(); NULL: it does not.
 */
struct es_held *es_inspect_held_answer(struct es_inspector *in, __u64 flow_hash,
				       const struct es_ip_packet *answer);

/* es_inspect_held_forget() - forget all; the clients send again */
void es_inspect_held_forget(struct es_inspector *in);

#endif
