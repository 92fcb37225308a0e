/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_TCP_H
#define ES_CORE_TCP_H

/*
 * TCP segments as the decisions see them, and the option block of a SYN-ACK (RFC 9293, RFC 7323, RFC 2018).
 */
#include "types.h"

#define ES_TCP_FIN 0x01
#define ES_TCP_SYN 0x02
#define ES_TCP_RST 0x04
#define ES_TCP_PSH 0x08
#define ES_TCP_ACK 0x10
#define ES_TCP_URG 0x20
#define ES_TCP_ECE 0x40
#define ES_TCP_CWR 0x80
#define ES_TCP_AE  0x100 /* only in the word of the header that has all flags, at ES_TCP_FLAGS_AT */

#define ES_TCP_FLAGS_AT 12

/*
 * By so much the clock of a rebuilt connection's timestamps stands ahead of the SYN-ACK's, which its client
 * echoes in the request. Did it go on, that echo would be a first round-trip sample of 0: a retransmission
 * after 200 ms on a far longer way, and a BBR that sends no more than 1 ms' worth for the next 10 s. An echo
 * from more than INT_MAX us ago is no sample (tcp_rtt_tsopt_us()). To the client, this is 70 minutes later,
 * which PAWS likes. Its echoes from then on say that it has heard the connection.
 */
#define ES_REBUILD_CLOCK_AHEAD_MS (1u << 22)

#define ES_TCP_OPTIONS_MAX 40
#define ES_TCP_WSCALE_MAX  14
#define ES_TCP_MSS_MIN                                                                                       \
	536 /* RFC 9293 section 3.7.1: what a peer without the option takes; the kernel's floor too */

/* RFC 8200, 5: no link of IPv6 takes less than 1,280 bytes; the kernel's floor for IPv6 too. */
#define ES_TCP_MSS_MIN_V6 1220

/**
 * struct es_segment - one inbound TCP segment, host byte order
 * @len: payload bytes (without SYN and FIN); @is_v6: it came by IPv6
 * The fields from @mss to @sack_permitted are what the options say; absent ones are zero.
 */
struct es_segment {
	__u32 seq;
	__u32 ack;
	__u32 len;
	__u32 tsval;
	__u32 tsecr;
	__u16 mss;
	__u8 flags;
	__u8 has_ts;
	__u8 has_wscale;
	__u8 wscale;
	__u8 sack_permitted;
	__u8 is_v6;
};

/**
 * struct es_tcp_options - what client and cluster agreed on in the handshake
 * @mss: what the client takes; @snd_wscale: the client's shift; @rcv_wscale: ours
 */
struct es_tcp_options {
	__u16 mss;
	__u8 snd_wscale;
	__u8 rcv_wscale;
	__u8 wscale_ok;
	__u8 sack_ok;
	__u8 tstamp_ok;
	__u8 ecn_ok;
};
_Static_assert(sizeof(struct es_tcp_options) == 8, "es_tcp_options is 8 bytes");

/**
 * struct es_tcp_option_scan - walks an option block, one option a step
 * @block: the options, zero behind them; wider than any block, so that a step never reads outside
 * @at: where the next option starts; @len: bytes of options (0..40)
 * @is_refused: no stack takes a segment with these: they are malformed, or sign it (RFC 2385, RFC 5925), for
 * which no service's server has keys
 */
struct es_tcp_option_scan {
	__u8 block[56];
	__u32 at;
	__u32 len;
	__u32 is_refused;
	struct es_segment seg;
};

static __always_inline __u32 es_get_be32(const __u8 *p)
{
	return (__u32)p[0] << 24 | (__u32)p[1] << 16 | (__u32)p[2] << 8 | p[3];
}

/**
 * es_tcp_option_step() - read one option into @s->seg; returns 1 when there is no further one
 * A malformed block ends the walk; what was read before stands (as in the kernel's tcp_parse_options()).
 * A step at a time, because BPF's verifier follows a callback once where it would follow a loop forty times.
 */
static __always_inline int es_tcp_option_step(struct es_tcp_option_scan *s)
{
	__u32 at = s->at;
	const __u8 *opt;
	__u32 kind, size;

	if (at >= s->len || at >= ES_TCP_OPTIONS_MAX)
		return 1;
	opt = s->block + at;
	kind = opt[0];
	size = opt[1];
	if (kind == 0)
		return 1;
	if (kind == 1) {
		s->at = at + 1;
		return 0;
	}
	if (size < 2 || at + size > s->len) {
		s->is_refused = 1;
		return 1;
	}
	s->at = at + size;
	if (kind == 19 || kind == 29) {
		s->is_refused = 1;
	} else if (kind == 2 && size == 4) {
		s->seg.mss = (__u16)(opt[2] << 8 | opt[3]);
	} else if (kind == 3 && size == 3) {
		s->seg.has_wscale = 1;
		s->seg.wscale = opt[2] > ES_TCP_WSCALE_MAX ? ES_TCP_WSCALE_MAX : opt[2];
	} else if (kind == 4 && size == 2) {
		s->seg.sack_permitted = 1;
	} else if (kind == 8 && size == 10) {
		s->seg.has_ts = 1;
		s->seg.tsval = es_get_be32(opt + 2);
		s->seg.tsecr = es_get_be32(opt + 6);
	}
	return 0;
}

/* A SYN of a client's, as es_decide() answers it. */
static __always_inline int es_tcp_is_syn(const struct es_segment *seg)
{
	return (seg->flags & (ES_TCP_SYN | ES_TCP_ACK | ES_TCP_RST | ES_TCP_FIN)) == ES_TCP_SYN;
}

/*
 * es_tcp_options_are_taken() - may a socket come of the segment with these options, which are read? A SYN
 * makes none, and is answered. Linux drops the others since 6.7, and what is signed always; that says nothing
 * of the node on which it does.
 */
static __always_inline int es_tcp_options_are_taken(const struct es_tcp_option_scan *s)
{
	return !s->is_refused || es_tcp_is_syn(&s->seg);
}

/**
 * es_tcp_making_flags() - the flags of a packet that a socket is made from, without those that it must not
 * have
 * @flags: the word of its header at ES_TCP_FLAGS_AT
 *
 * FIN: the stack's connection tracking sees this packet first, and calls a connection invalid that begins
 * with one; packet filters drop that. So the FIN comes behind it (es_answer_fin()).
 *
 * CWR and AE: the SYN-ACK has agreed on RFC 3168's ECN, where CWR asks a receiver to say ECE no longer; a
 * socket that is just made says none. To accurate ECN (RFC 9768), both are part of a counter. A socket that
 * Linux makes from a packet with either (from 6.18 on) has such a counter, too, which the client reads as ECE
 * for ever.
 */
static __always_inline __be16 es_tcp_making_flags(__be16 flags)
{
	return flags & (__be16)~es_htons(ES_TCP_AE | ES_TCP_CWR | ES_TCP_FIN);
}

/* The layout that nearly every data segment has (RFC 7323 appendix A): NOP, NOP, timestamps. */
static __always_inline int es_tcp_options_are_ts(const struct es_tcp_option_scan *s)
{
	return s->len == 12 && s->block[0] == 1 && s->block[1] == 1 && s->block[2] == 8 && s->block[3] == 10;
}

/* es_tcp_options_parse() - the whole block at @s->block, results in @s->seg */
static __always_inline void es_tcp_options_parse(struct es_tcp_option_scan *s)
{
	for (int i = 0; i < ES_TCP_OPTIONS_MAX; i++)
		if (es_tcp_option_step(s))
			break;
}

static __always_inline void es_put_be32(__u8 *p, __u32 v)
{
	p[0] = (__u8)(v >> 24);
	p[1] = (__u8)(v >> 16);
	p[2] = (__u8)(v >> 8);
	p[3] = (__u8)v;
}

#define ES_SYNACK_OPTIONS_LEN 20

/**
 * es_synack_options_write() - the options of our SYN-ACK
 * @out: ES_SYNACK_OPTIONS_LEN bytes, always all written (unused places are NOPs, so every SYN-ACK has one
 * length)
 * @mss: what we take per segment
 */
static __always_inline void es_synack_options_write(__u8 *out, const struct es_tcp_options *o, __u16 mss,
						    __u32 tsval, __u32 tsecr)
{
	out[0] = 2;
	out[1] = 4;
	out[2] = (__u8)(mss >> 8);
	out[3] = (__u8)mss;
	out[4] = o->sack_ok ? 4 : 1;
	out[5] = o->sack_ok ? 2 : 1;
	if (o->tstamp_ok) {
		out[6] = 8;
		out[7] = 10;
		es_put_be32(out + 8, tsval);
		es_put_be32(out + 12, tsecr);
	} else {
		out[6] = 1;
		out[7] = 1;
		es_put_be32(out + 8, 0x01010101);
		es_put_be32(out + 12, 0x01010101);
	}
	out[16] = 1;
	out[17] = o->wscale_ok ? 3 : 1;
	out[18] = o->wscale_ok ? 3 : 1;
	out[19] = o->wscale_ok ? o->rcv_wscale : 1;
}

#define ES_TIMESTAMP_OPTION_LEN 12

static __always_inline void es_timestamp_option_write(__u8 *out, __u32 tsval, __u32 tsecr)
{
	out[0] = 1;
	out[1] = 1;
	out[2] = 8;
	out[3] = 10;
	es_put_be32(out + 4, tsval);
	es_put_be32(out + 8, tsecr);
}

#endif
