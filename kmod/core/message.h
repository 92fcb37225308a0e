/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_MESSAGE_H
#define ES_CORE_MESSAGE_H

/*
 * Decides what becomes of a datagram to or from the handover port, and fills in the header of an answer. As
 * in decide.h: views in, a verdict out. In this order: es_decide_envelope() before anything is believed, the
 * MAC, es_decide_authentic(), the replay window (replay.h), es_decide_fresh(). The request in the message is
 * then decided about in target.h, program.h and strays.h.
 */
#include "abi.h"
#include "counters.h"
#include "handover.h"
#include "replay.h"
#include "ring.h"
#include "strays.h"
#include "wall.h"

#define ES_MESSAGE_PACKET_MAX 9216 /* jumbo frames */

enum es_message_action {
	ES_MESSAGE_REFUSE, /* drop it */
	ES_MESSAGE_PASS,   /* to its own socket: the datapath has nothing to do with it */
	ES_MESSAGE_GO_ON,  /* the answer to the function's question is yes */
	/* A fresh message is about: */
	ES_MESSAGE_PROGRAM, /* a program's connection (program.h) */
	ES_MESSAGE_STRAYS,  /* many segments that nobody takes (strays.h) */
	ES_MESSAGE_SEGMENT, /* a client's segment, see es_message_packet_ok() */
};

/* struct es_message_verdict - @counter: the reason, ES_COUNTER_COUNT if nothing is counted */
struct es_message_verdict {
	__u32 action;
	__u32 counter;
};

#define ES_MESSAGE_VERDICT(ret, a, c)                                                                        \
	do {                                                                                                 \
		(ret)->action = (a);                                                                         \
		(ret)->counter = (c);                                                                        \
		return;                                                                                      \
	} while (0)

/**
 * struct es_message_envelope - what the headers around a message say
 * @ip_len: how many bytes follow the IP header; @udp_len: the length of the datagram, with its header
 * @is_short: there is no room for struct es_handover; @is_partial: a fragment, or several datagrams in one
 */
struct es_message_envelope {
	__u32 ip_len;
	__u16 udp_len;
	__u8 is_short;
	__u8 is_partial;
};

/**
 * es_decide_envelope() - is a datagram a message at all, and one for this node?
 * @h: meaningless if it @is_short; @self: this node's id
 * ES_MESSAGE_GO_ON: its lengths are true.
 */
static __always_inline void es_decide_envelope(const struct es_message_envelope *v,
					       const struct es_handover *h, __u32 self,
					       struct es_message_verdict *ret)
{
	/* The daemons tell each other their loads on the same port. */
	if (!v->is_short && h->magic == es_htonl(ES_LOADS_MAGIC))
		ES_MESSAGE_VERDICT(ret, ES_MESSAGE_PASS, ES_COUNTER_COUNT);
	if (v->is_partial)
		ES_MESSAGE_VERDICT(ret, ES_MESSAGE_REFUSE, ES_COUNT_handover_partial);
	if (v->is_short || h->magic != es_htonl(ES_HANDOVER_MAGIC) || h->version != ES_HANDOVER_VERSION ||
	    v->udp_len != ES_HANDOVER_OVERHEAD_UDP + es_ntohs(h->packet_len) || v->ip_len != v->udp_len)
		ES_MESSAGE_VERDICT(ret, ES_MESSAGE_REFUSE, ES_COUNT_handover_malformed);
	if (h->target != self)
		ES_MESSAGE_VERDICT(ret, ES_MESSAGE_REFUSE, ES_COUNT_handover_wrong_target);
	/* Nothing is kept for an id beyond the tables: neither a replay window nor a start. */
	if (h->source >= ES_NODES_MAX)
		ES_MESSAGE_VERDICT(ret, ES_MESSAGE_REFUSE, ES_COUNT_handover_malformed);
	ES_MESSAGE_VERDICT(ret, ES_MESSAGE_GO_ON, ES_COUNTER_COUNT);
}

/**
 * struct es_message_moment - when a message has arrived
 * @wall_ns, @before_ns: by this node's wall clock, and by the one before it was set (wall.h)
 * @began, @own_began: struct es_state's @began of the source and of this node
 * @since_ns: how long ago this node began
 */
struct es_message_moment {
	__u64 wall_ns;
	__u64 before_ns;
	__u64 since_ns;
	__u32 began;
	__u32 own_began;
};

/* es_message_moment_get() - @h has arrived at @now_ns; @exact_ns: the same by a clock without ticks */
static __always_inline void es_message_moment_get(const struct es_state *state, const struct es_config *cfg,
						  const struct es_handover *h, __u64 now_ns, __u64 exact_ns,
						  struct es_message_moment *ret)
{
	ret->wall_ns = now_ns + *(const volatile __u64 *)&state->wall_offset_ns;
	ret->before_ns = now_ns + es_wall_before(state, now_ns);
	ret->since_ns = exact_ns - *(const volatile __u64 *)&state->began_ns;
	ret->began = *(const volatile __u32 *)&state->began[h->source & (ES_NODES_MAX - 1)];
	ret->own_began = *(const volatile __u32 *)&state->began[cfg->self & (ES_NODES_MAX - 1)];
}

/**
 * es_decide_authentic() - may a message with the right MAC be taken, if it has not been already?
 * ES_MESSAGE_GO_ON: ask the replay window.
 */
static __always_inline void es_decide_authentic(const struct es_config *cfg, const struct es_handover *h,
						const struct es_message_moment *at,
						struct es_message_verdict *ret)
{
	enum es_handover_time time;

	if (!es_handover_options_ok(h))
		ES_MESSAGE_VERDICT(ret, ES_MESSAGE_REFUSE, ES_COUNT_handover_malformed);
	time = es_handover_time_set(h, at->wall_ns, at->before_ns);
	if (time == ES_HANDOVER_LATE)
		ES_MESSAGE_VERDICT(ret, ES_MESSAGE_REFUSE, ES_COUNT_handover_late);
	if (time == ES_HANDOVER_UNTIMED && cfg->requires_time)
		ES_MESSAGE_VERDICT(ret, ES_MESSAGE_REFUSE, ES_COUNT_handover_untimed);
	/* A node's messages to itself are on no wire, so nobody can have recorded them. */
	if (h->source != cfg->self && es_handover_is_early(h, at->began, at->own_began, at->since_ns))
		ES_MESSAGE_VERDICT(ret, ES_MESSAGE_REFUSE, ES_COUNT_handover_early);
	ES_MESSAGE_VERDICT(ret, ES_MESSAGE_GO_ON, ES_COUNT_handover_received);
}

/* es_message_stream() - which replay window an authentic message asks */
static __always_inline __u32 es_message_stream(const struct es_handover *h)
{
	return (__u32)h->source * ES_STREAMS_MAX + (h->stream & (ES_STREAMS_MAX - 1));
}

/* es_message_accept() - ask its replay window, under its lock. Returns 1 if the message is new. */
static __always_inline int es_message_accept(struct es_replay *replay, const struct es_handover *h)
{
	return es_replay_accept(replay, es_cpu_be64((__u64)h->sequence));
}

/**
 * es_decide_fresh() - for whom is an authentic message that has not been here before?
 * @is_to_port: it came to the handover port; else from there, to the port of a worker of this node
 */
static __always_inline void es_decide_fresh(const struct es_handover *h, int is_to_port, __u32 self,
					    struct es_message_verdict *ret)
{
	/* Answers are checked here, and read by the one that has asked. */
	if (h->kind == ES_HANDOVER_NACK)
		ES_MESSAGE_VERDICT(ret, ES_MESSAGE_PASS,
				   es_nack_is_stray(h->nack)  ? ES_COUNT_stray_answered
				   : es_nack_is_fate(h->nack) ? ES_COUNT_fate_told
							      : ES_COUNT_handover_nack_received);
	if (h->kind == ES_HANDOVER_ANSWER)
		ES_MESSAGE_VERDICT(ret, ES_MESSAGE_PASS, ES_COUNTER_COUNT);
	if (!is_to_port)
		ES_MESSAGE_VERDICT(ret, ES_MESSAGE_REFUSE, ES_COUNT_handover_malformed);
	if (h->kind == ES_HANDOVER_PROGRAM || h->kind == ES_HANDOVER_ASK || h->kind == ES_HANDOVER_CANCEL)
		ES_MESSAGE_VERDICT(ret, ES_MESSAGE_PROGRAM, ES_COUNTER_COUNT);
	if (h->kind == ES_HANDOVER_STRAYS || h->kind == ES_HANDOVER_STRAYS6)
		ES_MESSAGE_VERDICT(ret, ES_MESSAGE_STRAYS, ES_COUNTER_COUNT);
	if (es_handover_is_for_target(h->kind, h->source == self))
		ES_MESSAGE_VERDICT(ret, ES_MESSAGE_SEGMENT, ES_COUNTER_COUNT);
	ES_MESSAGE_VERDICT(ret, ES_MESSAGE_REFUSE, ES_COUNT_handover_malformed);
}

/**
 * es_message_packet_ok() - can the packet in a message be a client's segment?
 * @ip: its first 20 bytes; @len: the message's packet_len
 * That is so for TCP over IPv4 without options, whole, and as long as the message says.
 */
static __always_inline int es_message_packet_ok(const __u8 *ip, __u32 len)
{
	return ip[0] == 0x45 && ip[9] == 6 && ((__u32)ip[2] << 8 | ip[3]) == len && !(ip[6] & 0x3f) && !ip[7];
}

/* es_message_is_connections() - may a message about a program's connection be about this segment? */
static __always_inline int es_message_is_connections(const struct es_segment *seg)
{
	return (seg->flags & (ES_TCP_SYN | ES_TCP_RST | ES_TCP_FIN | ES_TCP_ACK)) == ES_TCP_ACK;
}

/*
 * es_message_strays_put() - fill in what only the answer to a message about many strays has; @here: a bit for
 * each
 */
static __always_inline void es_message_strays_put(struct es_handover *h, __u64 here)
{
	h->here = (__be64)es_cpu_be64(here);
	h->packet_len = es_htons(ES_STRAYS_KEPT);
}

/**
 * es_message_answer_put() - make of a message's header the header of its answer
 * @h: fields that only this answer has are set already; @kind: ES_HANDOVER_NACK or _ANSWER; @reason: its
 * field nack; @wall_ns: now; @sequence: the next of the datapath's own stream. The MAC is the caller's.
 */
static __always_inline void es_message_answer_put(struct es_handover *h, __u32 self, __u8 kind, __u8 reason,
						  __u64 wall_ns, __u64 sequence)
{
	h->kind = kind;
	h->nack = reason;
	h->target = h->source;
	h->source = (__u8)self;
	h->stream = ES_STREAM_DATAPATH;
	es_handover_sent_put(h, (__u32)es_div64(wall_ns, ES_HANDOVER_STAMP_NS));
	h->sequence = (__be64)es_cpu_be64(sequence);
}

#endif
