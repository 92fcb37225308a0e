/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECT_STRAY_H
#define ES_INSPECT_STRAY_H

/*
 * Questions to all nodes about segments that no node acknowledges (stray.c): whose are they?
 */
#include "inspector/packet/packet.h"
#include "kmod/core/abi.h"
#include "kmod/core/handover.h"
#include "inspector/inspect/survive.h"
#include "inspector/inspect/waiting.h"
#include "kmod/core/strays.h"

#define ES_STRAY_GROUPS	    32
#define ES_STRAY_SOURCES    256
#define ES_STRAY_PACKET_MAX 101 /* both headers, IPv6 without extensions, and one byte */

/**
 * struct es_stray_case - a stray segment that the nodes are asked about
 * @seq: of its first byte
 * @is_earlier: if no node has its connection, it is a first request (earlier.c)
 * @is_owned: ES_SURVIVES_OWNED
 * @version: the inspector's (struct es_inspector) when the segment arrived
 * @survivor: if no node has its connection, another one goes on with it (survive.c); else NULL
 */
struct es_stray_case {
	__u64 flow_hash;
	size_t len;
	uint32_t seq;
	uint32_t ack;
	uint32_t version;
	uint8_t is_earlier;
	uint8_t is_owned;
	struct es_survivor *survivor;
	uint8_t packet[ES_STRAY_PACKET_MAX];
};

/* The strays of a group are all of one kind. */
enum es_stray_kind {
	ES_STRAY_OF_ANY,
	ES_STRAY_OF_SURVIVORS, /* requests on idle connections of lost nodes (survive.c) */
	ES_STRAY_OF_WAITING,   /* clients that wait for an answer (waiting.h) */
};

enum es_stray_state {
	ES_STRAY_FREE,
	ES_STRAY_GATHERING,
	ES_STRAY_ASKED_AWAY, /* the nodes that are not members */
	ES_STRAY_ASKED,	     /* one member, in one of the rounds */
};

/**
 * struct es_stray_group - strays of one service and one family that the nodes are asked about together
 * @id: of the questions about them
 * @kind: an enum es_stray_kind
 * @node, @round: the member that is being asked, and how often all members were asked before
 * @away: the nodes that were not members when the first question was sent
 * @open: a bit for each stray that no node has claimed; @said: a bit for each that @node has said something
 * about
 */
struct es_stray_group {
	enum es_stray_state state;
	uint32_t id;
	unsigned int service, is_v6, kind, count, node, round;
	__u64 open, said;
	unsigned long long deadline_ns;
	uint8_t away[ES_NODES_MAX];
	struct es_stray_case stray[ES_STRAYS_MANY];
};

/* struct es_stray_budget - @bytes: that questions may cost now; @since_ns: when that was counted, 0: never */
struct es_stray_budget {
	double bytes;
	unsigned long long since_ns;
};

/**
 * struct es_stray_source - clients whose addresses share this slot
 * @bytes: what questions about them have cost in the @second, beyond what their segments earned
 */
struct es_stray_source {
	unsigned int second;
	double bytes;
};

/**
 * struct es_strays - all that stray.c keeps
 * @id: of the last group that was asked about
 * @budget: for flows of which only this segment is known, and for flows that are known to have existed
 */
struct es_strays {
	struct es_stray_group group[ES_STRAY_GROUPS];
	uint32_t id;
	struct es_stray_budget budget[2];
	struct es_stray_source source[ES_STRAY_SOURCES];
};

struct es_inspector;

/* es_inspect_stray() - a segment that no node takes has arrived again: ask all nodes whose it is */
void es_inspect_stray(struct es_inspector *in, const struct es_record *record,
		      const struct es_ip_packet *packet);

/* es_inspect_waiting() - ask all nodes whose connection it is; its client is told if it is nobody's */
void es_inspect_waiting(struct es_inspector *in, const struct es_waiting_client *client);

/* es_inspect_strays_answer() - a node's answer about the strays of one message */
void es_inspect_strays_answer(struct es_inspector *in, const struct es_handover *nack);

/* es_inspect_stray_answer() - the same from a node that is asked about each stray alone, and sends it back */
void es_inspect_stray_answer(struct es_inspector *in, const struct es_handover *nack,
			     const struct es_ip_packet *packet);

/**
 * es_inspect_strays_due() - send the questions that have been gathered for long enough; give up late answers
 */
void es_inspect_strays_due(struct es_inspector *in);

/* es_inspect_strays_forget() - forget all questions; the clients send again */
void es_inspect_strays_forget(struct es_inspector *in);

#endif
