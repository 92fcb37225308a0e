/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_STRAYS_H
#define ES_CORE_STRAYS_H

/*
 * Segments of connections that are not here, and that their clients send again and again: nobody acknowledges
 * them. Then nobody may have the connection any more: its node has lost its power, or the server has closed
 * it while the client slept. A stack would answer with a RST (RFC 9293 section 3.10.7.1); a node that knows
 * of its own sockets only must ask the others first, see inspector/inspect/stray.c. Here is what makes it
 * ask.
 *
 * One entry a slot, the newest; any CPU writes, none locks. If two write at once, a segment seems to be
 * repeated that was not, or the other way round: a question too many, or a later one.
 */
#include "decisions.h"
#include "overheard.h"
#include "packet.h"
#include "tcp.h"

#define ES_STRAYS 16384 /* a power of two; 256 KB */

/*
 * The node that has the connection acknowledges what arrives; the client has waited for that twice and more
 * in this time (Linux sends again after 200 ms, 400 ms, ...; others after 1 s, RFC 6298).
 */
#define ES_STRAY_AGAIN_MS 500

/*
 * So long for what may be a later segment of a request whose first one was lost: nobody has that connection
 * yet. A client sends such a segment a second time only as a tail loss probe, two round trips behind the
 * first (RFC 8985 section 7.2), and then its first segment, again and again.
 */
#define ES_STRAY_AGAIN_LATER_MS 3000

/*
 * So long may a request that was given to a node, and what follows it, be on its way there.
 */
#define ES_STRAY_ON_ITS_WAY_MS 5000

/*
 * Flows of which a SYN was heard, whoever answered it: questions about these have a budget of their own, so
 * that invented segments do not use up that of the connections that were lost. A power of two; 1 MB. One in
 * 16 of the flows without a SYN is found, too, where 1,000 connections a second are made.
 */
#define ES_HEARD_FLOWS 65536

/* So long, and up to twice that, a SYN vouches for its flow. */
#define ES_HEARD_FLOW_LIFE_S 600

static __always_inline __u64 es_heard_flow_key(__u64 flow_hash)
{
	return es_overheard_key(flow_hash, 0);
}

static __always_inline __u32 es_heard_flow_generation(__u32 now_s)
{
	return es_overheard_generation(now_s, ES_HEARD_FLOW_LIFE_S);
}

/**
 * struct es_stray - a segment that was not for this node's sockets
 * @seq: of its first byte; @at_ms: monotonic, when it came first or was last asked about
 */
struct es_stray {
	__u64 flow_hash;
	__u32 seq;
	__u32 at_ms;
};
_Static_assert(sizeof(struct es_stray) == 16, "no padding");

static __always_inline __u32 es_stray_index(__u64 flow_hash)
{
	return (__u32)(flow_hash >> 20) & (ES_STRAYS - 1);
}

/* es_stray_note() - a segment came; for how many milliseconds has its client been sending it? */
static __always_inline __u32 es_stray_note(struct es_stray *slot, __u64 flow_hash, __u32 seq, __u32 now_ms)
{
	volatile struct es_stray *s = slot;

	if (s->flow_hash == flow_hash && s->seq == seq)
		return now_ms - s->at_ms;
	s->flow_hash = flow_hash;
	s->seq = seq;
	s->at_ms = now_ms;
	return 0;
}

/* es_stray_asked() - all are asked about the segment: not again at once */
static __always_inline void es_stray_asked(struct es_stray *slot, __u32 now_ms)
{
	((volatile struct es_stray *)slot)->at_ms = now_ms;
}

/*
 * A question is some time on its way: it is gathered, and nodes are asked one after another. Its client may
 * have been answered meanwhile, and its connection may move from node to node, with a request a few
 * milliseconds, and be nowhere where and when somebody looks. The node that decided about its last segment
 * knows that.
 */
static __always_inline int es_stray_is_outdated(const struct es_decision_set *set, __u64 flow_hash, __u32 ack,
						__u32 now_ms)
{
	for (int i = 0; i < ES_DECISION_WAYS; i++) {
		const volatile struct es_decision *d = &set->way[i];
		__u64 key = d->key, value = d->value;

		if (key && (__u32)key == (__u32)flow_hash && d->key == key &&
		    es_seq_before(ack - 1, (__u32)(key >> 32)) &&
		    es_decision_age_ms(value, now_ms) < ES_STRAY_ON_ITS_WAY_MS)
			return 1;
	}
	return 0;
}

/*
 * es_stray_is_on_its_way() - may the connection of a segment be under way from here to another node?
 * @set: of its flow, with what this node has decided; @mine: this node inspects its flow; @seq, @ack: the
 * segment's
 * If the segment is the first one of a request that was decided here, this node sends it again, unless the
 * request was a first one and the ring names another node by now. One behind it is repeated by the client
 * only when the target has acknowledged the first: that is there, or was.
 */
static __always_inline int es_stray_is_on_its_way(const struct es_decision_set *set, __u64 flow_hash,
						  int mine, __u32 seq, __u32 ack, __u32 now_ms)
{
	__u64 decision = es_decision_lookup(set, es_decision_key(flow_hash, ack - 1));

	if (decision && ((es_decision_isn(decision) == seq - 1 && (mine || es_decision_is_moved(decision))) ||
			 es_decision_age_ms(decision, now_ms) < ES_STRAY_ON_ITS_WAY_MS))
		return 1;
	return es_stray_is_outdated(set, flow_hash, ack, now_ms);
}

/*
 * So many are asked about in one message, a bit each in the answer's field here; of IPv6 no more than fit
 * into the smallest frame that IPv6 may have to do with, of 1280 bytes (RFC 8200, 5).
 */
#define ES_STRAYS_MANY	64
#define ES_STRAYS_MANY6 40

/**
 * struct es_stray_service - what is behind the header of ES_HANDOVER_STRAYS
 * @address, @port: the service; @count: so many struct es_stray_question follow, of its clients
 * The header's @requests names the message. It comes back in the answer, whose @here has a one for each
 * question whose connection may be at the answering node, the first question's in the lowest bit. Behind the
 * answer's header are the message's first ES_STRAYS_KEPT bytes.
 */
struct es_stray_service {
	__be32 address;
	__be16 port;
	__be16 count;
};
_Static_assert(sizeof(struct es_stray_service) == 8, "no padding");

#define ES_STRAYS_KEPT 8

/* struct es_stray_question - whose is this segment? @flags: its TCP flags */
struct es_stray_question {
	__be32 client;
	__be16 port;
	__u8 flags;
	__u8 pad;
	__be32 seq;
	__be32 ack;
};
_Static_assert(sizeof(struct es_stray_question) == 16, "no padding");

/*
 * The same of ES_HANDOVER_STRAYS6. Two formats, as questions are many, and few addresses need so much room.
 */
struct es_stray_service6 {
	struct es_addr address;
	__be16 port;
	__be16 count;
	__u32 pad;
};
_Static_assert(sizeof(struct es_stray_service6) == 24, "no padding");

struct es_stray_question6 {
	struct es_addr client;
	__be16 port;
	__u8 flags;
	__u8 pad;
	__be32 seq;
	__be32 ack;
};
_Static_assert(sizeof(struct es_stray_question6) == 28, "no padding");

/* Room for either, to read one into. */
union es_stray_service_any {
	struct es_stray_service v4;
	struct es_stray_service6 v6;
};

union es_stray_question_any {
	struct es_stray_question v4;
	struct es_stray_question6 v6;
};

static __always_inline __u32 es_strays_many(int is_v6)
{
	return is_v6 ? ES_STRAYS_MANY6 : ES_STRAYS_MANY;
}

static __always_inline __u32 es_stray_service_len(int is_v6)
{
	return is_v6 ? sizeof(struct es_stray_service6) : sizeof(struct es_stray_service);
}

static __always_inline __u32 es_stray_question_len(int is_v6)
{
	return is_v6 ? sizeof(struct es_stray_question6) : sizeof(struct es_stray_question);
}

/* es_strays_len() - of the message's packet_len, for so many questions; 0 if they cannot be so many */
static __always_inline __u32 es_strays_len(int is_v6, __u32 count)
{
	if (!count || count > es_strays_many(is_v6))
		return 0;
	return es_stray_service_len(is_v6) + count * es_stray_question_len(is_v6);
}

/*
 * es_stray_service_read() - the service's part of @ret, a packet of all zeros. Returns how many questions
 * there are.
 */
static __always_inline __u32 es_stray_service_read(const union es_stray_service_any *from, int is_v6,
						   struct es_packet *ret)
{
	if (is_v6) {
		ret->is_v6 = 1;
		ret->dest = from->v6.address;
		ret->dport = from->v6.port;
		return es_ntohs(from->v6.count);
	}
	ret->daddr = from->v4.address;
	ret->dport = from->v4.port;
	return es_ntohs(from->v4.count);
}

static __always_inline int es_stray_segment_put(__u8 flags, __be32 seq, __be32 ack, struct es_segment *ret)
{
	if ((flags & (ES_TCP_SYN | ES_TCP_RST | ES_TCP_ACK)) != ES_TCP_ACK)
		return -1;
	ret->seq = es_ntohl(seq);
	ret->ack = es_ntohl(ack);
	ret->flags = flags;
	return 0;
}

/**
 * es_stray_question_read() - the client's part of @pkt, whose service's has been read, and the segment
 * @ret: as es_decide_handover() wants it. Returns 0, or -1 if it is of no open connection.
 */
static __always_inline int es_stray_question_read(const union es_stray_question_any *from,
						  struct es_packet *pkt, struct es_segment *ret)
{
	if (pkt->is_v6) {
		pkt->source = from->v6.client;
		pkt->sport = from->v6.port;
		return es_stray_segment_put(from->v6.flags, from->v6.seq, from->v6.ack, ret);
	}
	pkt->saddr = from->v4.client;
	pkt->sport = from->v4.port;
	return es_stray_segment_put(from->v4.flags, from->v4.seq, from->v4.ack, ret);
}

/**
 * es_strays_begin() - how a message about many begins that is in memory as a whole
 * @packet: of @len bytes; @ret_pkt: a packet of all zeros, which gets the service's part. Returns how many
 * questions follow, 0 if their number contradicts the length.
 */
static __always_inline __u32 es_strays_begin(const __u8 *packet, __u32 len, int is_v6,
					     struct es_packet *ret_pkt)
{
	union es_stray_service_any service;
	__u32 count;

	if (len < es_stray_service_len(is_v6))
		return 0;
	es_memcpy(&service, packet, es_stray_service_len(is_v6));
	count = es_stray_service_read(&service, is_v6, ret_pkt);
	return len == es_strays_len(is_v6, count) ? count : 0;
}

/* es_strays_question() - question @i of it; as es_stray_question_read() */
static __always_inline int es_strays_question(const __u8 *packet, __u32 i, struct es_packet *pkt,
					      struct es_segment *ret)
{
	const __u32 len = es_stray_question_len(pkt->is_v6);
	union es_stray_question_any question;

	es_memcpy(&question, packet + es_stray_service_len(pkt->is_v6) + i * len, len);
	return es_stray_question_read(&question, pkt, ret);
}

#endif
