/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_HANDOVER_H
#define ES_CORE_HANDOVER_H

/*
 * The handover message: one UDP datagram on the private network, this header and behind it the client's
 * original IP packet, bytes unchanged. All fields in network byte order.
 *
 * Authentic: @mac is SipHash-2-4 over the header (with mac = 0) and the packet, under the cluster's handover
 * key. Fresh: @sequence counts up per (source, stream); the receiver keeps a window (replay.h). A sender that
 * starts anew begins at its number clock's seconds << 24, which never goes back
 * (inspector/peers/own_clock.h). And timely:
 * @sent is when it was sent; the window of a node that has just started is empty, and would take what
 * somebody has recorded. A message that was sent before that node's own start is not taken at all, see
 * es_handover_is_early().
 */
#include "siphash.h"
#include "tcp.h"

#define ES_HANDOVER_MAGIC      0x45534831u /* "ESH1" */
#define ES_LOADS_MAGIC	       0x45534c31u /* "ESL1": not for the datapath (inspector/peers/exchange.h) */
#define ES_HANDOVER_VERSION    2
#define ES_HANDOVER_PACKET_MAX 9000 /* bytes of the client's packet: one frame of a jumbo network */
#define ES_STREAMS_MAX	       16   /* per node: one a worker, the last for the datapath's own NACKs */
#define ES_STREAM_DATAPATH     15
#define ES_STREAM_PROGRAMS     14 /* what programs hand over */

enum es_handover_kind {
	ES_HANDOVER_REQUEST = 1, /* rebuild the connection from this packet */
	ES_HANDOVER_FOLLOW = 2,	 /* a later segment of the same first request: deliver it to the socket */
	ES_HANDOVER_NACK = 3,	 /* a REQUEST that comes back: it cannot be served there */
	/* To oneself, about a later request on a connection whose socket is here: */
	ES_HANDOVER_STAY = 4, /* deliver it to the socket */
	ES_HANDOVER_END = 5,  /* end the socket, so that another node can have the connection */
	/* A connection that a program hands over (program.h); @program names the handover: */
	ES_HANDOVER_PROGRAM = 6, /* rebuild it on the server's listener */
	ES_HANDOVER_ASK = 7,	 /* what is there of it? */
	ES_HANDOVER_CANCEL = 8,	 /* never rebuild it, unless it is here already */
	ES_HANDOVER_ANSWER = 9,	 /* one of these three that comes back; @nack is the answer */
	/* Is the connection there of this segment, which nobody takes (strays.h)? A NACK is the answer: */
	ES_HANDOVER_STRAY = 10,
	ES_HANDOVER_STRAYS = 11, /* the same of many: behind the header, struct es_stray_service and so on */
	ES_HANDOVER_GONE = 12, /* to oneself, after END: is the socket gone? ES_RECORD_ENDED is the answer */
	ES_HANDOVER_STRAYS6 = 13, /* as STRAYS, of IPv6: struct es_stray_service6 and so on */
	/* What has become of the request that begins with this segment (settled.h)? A NACK is the answer: */
	ES_HANDOVER_FATE = 14,
};

enum es_nack_reason {
	ES_NACK_NO_LISTENER = 1,
	ES_NACK_REFUSED = 2,  /* the kernel would not rebuild on that listener */
	ES_NACK_SILENT = 4,   /* the target is not sure of its membership */
	ES_NACK_RETRY = 3,    /* an old socket was in the way and is gone now: the same node again */
	ES_NACK_NOT_HERE = 5, /* the answers to a STRAY */
	ES_NACK_HERE = 6,     /* or it may be */
	ES_NACK_STRAYS = 7,   /* the answer to STRAYS, see struct es_stray_service */
	ES_NACK_VANISHED = 8, /* its socket was to be made, and nothing was heard of it for seconds */
	ES_NACK_HEARD = 9,    /* the answers to a FATE: its socket has spoken */
	ES_NACK_UNHEARD =
		10, /* its socket was to be made a second ago or more, and nothing was heard of it */
	ES_NACK_UNKNOWN = 11, /* neither */
	/* ES_HANDOVER_F_UNSAFE only: the target may have executed it, and has ended its socket unheard */
	ES_NACK_DOUBTFUL = 12,
	ES_NACK_BEYOND = 13, /* a FOLLOW is beyond its socket's window; only with ES_FOLLOW_F_BACK */
	/* For a REQUEST of a handshake's ACK alone, which no client repeats: its socket is here, or was. */
	ES_NACK_MADE = 14,
};

/**
 * enum es_program_answer - what a target says of a program's handover
 * Only these say that nothing was or will be rebuilt: READY, if it was asked before the first CONNECTION;
 * CANCELLED, always.
 */
enum es_program_answer {
	ES_PROGRAM_ANSWER_READY = 1,	 /* nothing of it is here, and a server listens */
	ES_PROGRAM_ANSWER_HERE = 2,	 /* its socket is here; @next_request_seq is what that expects next */
	ES_PROGRAM_ANSWER_OVER = 3,	 /* it was to be rebuilt, and there is no socket now */
	ES_PROGRAM_ANSWER_CANCELLED = 4, /* it was not rebuilt, and will never be */
	ES_PROGRAM_ANSWER_NO_LISTENER = 5, /* refused: no server listens */
	ES_PROGRAM_ANSWER_FULL = 6,	   /* refused: the server's accept queue is full */
	ES_PROGRAM_ANSWER_SILENT =
		7, /* refused: the node is not sure of its membership, or has another ring */
	ES_PROGRAM_ANSWER_OCCUPIED = 8, /* refused: another connection of these ports is here */
	ES_PROGRAM_ANSWER_REFUSED = 9,	/* refused by the kernel */
	ES_PROGRAM_ANSWER_SERVED = 10,	/* it was rebuilt, and its socket has ended since */
};

/**
 * struct es_handover - header of a handover message
 * @source, @target: node ids; @service: index in the cluster's service list
 * @attempt: how many nodes were tried before, of STRAY and STRAYS how often
 * @nack: reason, in a NACK or ANSWER; @sent_low: in any other, a part of when it was sent
 * @sent_high, @sent: when it was sent, see es_handover_sent()
 * @packet_len: bytes of the original IP packet behind this header
 * @requests, @moves: of this connection, before this request and with this move
 * @next_request_seq: client sequence number at which the next request starts, unless @pin says that it is
 * unknown
 * @request_flags: ES_REQUEST_F_*; @pin: an enum es_pin, of a service that inspects every request
 * @cost: of serving the request, in response packets; 65535: so much or more; 0: not known
 * @url_key: the hash of what is asked for (struct es_request_view's), 0: not known; tells apart what the
 * node measures. @program: from ES_HANDOVER_PROGRAM to ES_HANDOVER_ANSWER, the number of the program's
 * handover. @here: in the answer to ES_HANDOVER_STRAYS and ES_HANDOVER_STRAYS6, see struct es_stray_service
 */
struct es_handover {
	__be32 magic;
	__u8 version;
	__u8 kind;
	__u8 source;
	__u8 target;
	__be32 epoch;
	__u8 service;
	__u8 stream;
	__u8 attempt;
	union {
		__u8 nack;
		__u8 sent_low;
	};
	__be64 sequence;
	__be16 packet_len;
	__be16 mss;
	__u8 snd_wscale;
	__u8 rcv_wscale;
	__u8 flags;
	__u8 sent_high;
	__be32 requests;
	__be32 next_request_seq;
	__be16 moves;
	__u8 request_flags;
	__u8 pin;
	__be16 cost;
	__be16 sent;
	union {
		__be64 url_key;
		__be64 program;
		__be64 here;
	};
	__be64 mac;
};
_Static_assert(sizeof(struct es_handover) == 64, "the header of version 2 is 64 bytes");

/*
 * In the request_flags of a FOLLOW: its sender knows ES_NACK_BEYOND. One of a version before would take that
 * for the request's.
 */
#define ES_FOLLOW_F_BACK 0x80

#define ES_HANDOVER_F_WSCALE 0x01
#define ES_HANDOVER_F_SACK   0x02
#define ES_HANDOVER_F_TS     0x04
#define ES_HANDOVER_F_ECN    0x08
#define ES_HANDOVER_F_MOVED  0x10 /* a later request of a connection that was on another node */
#define ES_HANDOVER_F_REPEAT 0x20 /* the client sent it again: an earlier message may have been received */
#define ES_HANDOVER_F_UNSAFE 0x40 /* it must not be executed twice; a former version does not say so */

/* A message that was sent so long ago, or will be, is not taken: it was recorded, or a clock is wrong. */
#define ES_HANDOVER_LATE_S 120

enum es_handover_time {
	ES_HANDOVER_TIMELY,
	ES_HANDOVER_UNTIMED, /* of a version before the time was told */
	ES_HANDOVER_LATE,
};

/* A stamp is a wall clock's time in so many nanoseconds, 1/256 s, its lower 32 bits: half a year. */
#define ES_HANDOVER_STAMP_NS 3906250

static __always_inline int es_handover_is_answer(__u8 kind)
{
	return kind == ES_HANDOVER_NACK || kind == ES_HANDOVER_ANSWER;
}

/* The sender's wall-clock seconds, their lower 24 bits; never 0, which says that it is not told. */
static __always_inline __u32 es_handover_sent(const struct es_handover *h)
{
	return (__u32)h->sent_high << 16 | es_ntohs(h->sent);
}

/* A time that is told in seconds only means the end of the second. */
static __always_inline __u32 es_handover_stamp(const struct es_handover *h)
{
	return es_handover_sent(h) << 8 | (es_handover_is_answer(h->kind) ? 0xff : h->sent_low);
}

/* For an answer: its seconds. */
static __always_inline void es_handover_sent_put(struct es_handover *h, __u32 stamp)
{
	__u32 sent = stamp >> 8;

	if (!sent)
		sent = 1;
	h->sent_high = (__u8)(sent >> 16);
	h->sent = es_htons(sent);
}

/* For any other message. */
static __always_inline void es_handover_stamp_put(struct es_handover *h, __u32 stamp)
{
	es_handover_sent_put(h, stamp);
	h->sent_low = (__u8)stamp;
}

/* es_handover_time() - is an authentic message timely, by this node's wall clock? */
static __always_inline enum es_handover_time es_handover_time(const struct es_handover *h, __u32 stamp)
{
	__u32 sent = es_handover_sent(h), age;

	if (!sent)
		return ES_HANDOVER_UNTIMED;
	/* From -LATE_S to +LATE_S, on a circle of 2^24. */
	age = ((stamp >> 8) - sent + ES_HANDOVER_LATE_S) & 0xffffff;
	return age <= 2 * ES_HANDOVER_LATE_S ? ES_HANDOVER_TIMELY : ES_HANDOVER_LATE;
}

/*
 * es_handover_time_set() - the same, where somebody may have set this node's clock a moment ago
 * @wall_ns: its time; @before_ns: by the clock before that, else the same. A sender that still goes by the
 * other clock has sent a message that is not older for it.
 */
static __always_inline enum es_handover_time es_handover_time_set(const struct es_handover *h, __u64 wall_ns,
								  __u64 before_ns)
{
	enum es_handover_time time = es_handover_time(h, (__u32)es_div64(wall_ns, ES_HANDOVER_STAMP_NS));

	if (time != ES_HANDOVER_LATE || wall_ns == before_ns)
		return time;
	return es_handover_time(h, (__u32)es_div64(before_ns, ES_HANDOVER_STAMP_NS));
}

/*
 * For so long after its start, something that was sent before may pass for timely: clocks differ by less than
 * ES_HANDOVER_LATE_S.
 */
#define ES_HANDOVER_EARLY_NS (2 * ES_HANDOVER_LATE_S * 1000000000ULL)

/* For so long, nothing is taken of a node that has not told its time; then it has ours, as far as we know. */
#define ES_HANDOVER_UNTOLD_NS 2000000000ULL

/**
 * es_handover_is_early() - may a message have been sent before this node began to take any?
 * Then its sequence number says nothing: the window is empty. Honest ones, of the moment of the start, are
 * dropped with the recorded ones: the client repeats its request, and its inspecting node the message. No
 * NACK, which a recorded one would have, too, and its sender would act upon.
 * @began: the moment of the start as a stamp of the sender's clock, 0 if that is not known; @own: of this
 * node's, 0 if no daemon has started it; @since_ns: how long ago it was
 */
static __always_inline int es_handover_is_early(const struct es_handover *h, __u32 began, __u32 own,
						__u64 since_ns)
{
	if (!own || since_ns >= ES_HANDOVER_EARLY_NS || !es_handover_sent(h))
		return 0;
	if (!began && since_ns < ES_HANDOVER_UNTOLD_NS)
		return 1;
	return (__s32)(es_handover_stamp(h) - (began ? began : own)) < 0;
}

static __always_inline int es_nack_is_stray(__u8 reason)
{
	return reason == ES_NACK_NOT_HERE || reason == ES_NACK_HERE || reason == ES_NACK_STRAYS;
}

static __always_inline int es_nack_is_fate(__u8 reason)
{
	return reason == ES_NACK_HEARD || reason == ES_NACK_UNHEARD || reason == ES_NACK_UNKNOWN;
}

/* Is a message of this kind about a client's segment and its connection here, and may its source send it? */
static __always_inline int es_handover_is_for_target(__u8 kind, int is_own)
{
	switch (kind) {
	case ES_HANDOVER_REQUEST:
	case ES_HANDOVER_FOLLOW:
	case ES_HANDOVER_STRAY:
	case ES_HANDOVER_FATE:
		return 1;
	case ES_HANDOVER_STAY:
	case ES_HANDOVER_END:
	case ES_HANDOVER_GONE:
		return is_own;
	default:
		return 0;
	}
}

/* es_handover_is_about() - may a message of this kind be about this segment? Only one of an open connection
 * makes, or meets, a socket. */
static __always_inline int es_handover_is_about(__u8 kind, const struct es_segment *seg)
{
	if ((seg->flags & (ES_TCP_SYN | ES_TCP_RST | ES_TCP_ACK)) != ES_TCP_ACK)
		return 0;
	switch (kind) {
	case ES_HANDOVER_FOLLOW:
	case ES_HANDOVER_STRAY:
		return seg->len || (seg->flags & ES_TCP_FIN);
	case ES_HANDOVER_REQUEST: /* at layer 4, of the ACK that completes a handshake */
	case ES_HANDOVER_GONE:
		return 1;
	default:
		return seg->len != 0;
	}
}

#define ES_HANDOVER_HEADER_WORDS 7 /* 64-bit words before the MAC */

/*
 * Bytes that a handover adds to the packet after its IP header: UDP and this header. And with the IP header,
 * by family.
 */
#define ES_HANDOVER_OVERHEAD_UDP (8 + (__u32)sizeof(struct es_handover))
#define ES_HANDOVER_OVERHEAD_V4	 (20 + ES_HANDOVER_OVERHEAD_UDP)
#define ES_HANDOVER_OVERHEAD_V6	 (40 + ES_HANDOVER_OVERHEAD_UDP)

/* es_handover_overhead() - what a message to a node of this cluster address adds to the packet */
static __always_inline __u32 es_handover_overhead(const struct es_addr *node)
{
	return es_addr_is_v4(node) ? ES_HANDOVER_OVERHEAD_V4 : ES_HANDOVER_OVERHEAD_V6;
}

static __always_inline void es_handover_options_get(const struct es_handover *h, struct es_tcp_options *ret)
{
	ret->mss = es_ntohs(h->mss);
	ret->snd_wscale = h->snd_wscale;
	ret->rcv_wscale = h->rcv_wscale;
	ret->wscale_ok = !!(h->flags & ES_HANDOVER_F_WSCALE);
	ret->sack_ok = !!(h->flags & ES_HANDOVER_F_SACK);
	ret->tstamp_ok = !!(h->flags & ES_HANDOVER_F_TS);
	ret->ecn_ok = !!(h->flags & ES_HANDOVER_F_ECN);
}

/* Are the options some that a kernel makes a socket with? RFC 7323, 2.3: none shifts by more than 14. */
static __always_inline int es_handover_options_ok(const struct es_handover *h)
{
	return h->snd_wscale <= ES_TCP_WSCALE_MAX && h->rcv_wscale <= ES_TCP_WSCALE_MAX;
}

static __always_inline void es_handover_options_put(struct es_handover *h, const struct es_tcp_options *o)
{
	h->mss = es_htons(o->mss);
	h->snd_wscale = o->snd_wscale;
	h->rcv_wscale = o->rcv_wscale;
	h->flags = (__u8)((o->wscale_ok ? ES_HANDOVER_F_WSCALE : 0) | (o->sack_ok ? ES_HANDOVER_F_SACK : 0) |
			  (o->tstamp_ok ? ES_HANDOVER_F_TS : 0) | (o->ecn_ok ? ES_HANDOVER_F_ECN : 0));
}

static __always_inline __u16 es_handover_cost(__u32 cost)
{
	return cost > 0xffff ? 0xffff : (__u16)cost;
}

/* Begin the MAC with the header; the caller goes on with the packet's words. */
static __always_inline void es_handover_mac_begin(struct es_sipstate *sip, const struct es_sipkey *key,
						  const struct es_handover *h)
{
	es_siphash_init(sip, key);
	for (int i = 0; i < ES_HANDOVER_HEADER_WORDS; i++) {
		__u64 word;

		es_memcpy(&word, (const __u8 *)h + i * 8, sizeof(word));
		es_siphash_word(sip, es_cpu_le64(word));
	}
}

static __always_inline __be64 es_handover_mac_end(struct es_sipstate *sip, __u64 tail, __u32 packet_len)
{
	return (__be64)es_cpu_be64(
		es_siphash_final(sip, tail, (__u32)(ES_HANDOVER_HEADER_WORDS * 8) + packet_len));
}

#endif
