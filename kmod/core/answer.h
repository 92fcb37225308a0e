/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ES_CORE_ANSWER_H
#define ES_CORE_ANSWER_H

/*
 * Segments that no socket sends: what an answer says, and its bytes from the IP header on. How it leaves the
 * node is the datapath's.
 */
#include "checksum.h"
#include "decide.h"
#include "packet.h"

/**
 * struct es_answer - a segment without payload
 * @options_len: 0, ES_TIMESTAMP_OPTION_LEN or ES_SYNACK_OPTIONS_LEN; @options: zero behind that
 */
struct es_answer {
	union {
		struct es_addr source;
		struct {
			__be32 source_high[3];
			__be32 saddr;
		};
	};
	union {
		struct es_addr dest;
		struct {
			__be32 dest_high[3];
			__be32 daddr;
		};
	};
	__be16 sport;
	__be16 dport;
	__u32 seq;
	__u32 ack;
	__u16 window;
	__u8 flags;
	__u8 options_len;
	__u8 options[ES_SYNACK_OPTIONS_LEN];
	__u32 is_v6;
};

/* struct es_answer_headers - IPv4 (RFC 791, 3.1) and TCP (RFC 9293, 3.1) */
struct es_answer_headers {
	__u8 version_ihl;
	__u8 tos;
	__be16 tot_len;
	__be16 id;
	__be16 frag_off;
	__u8 ttl;
	__u8 protocol;
	__u16 ip_check;
	__be32 saddr;
	__be32 daddr;
	__be16 sport;
	__be16 dport;
	__be32 seq;
	__be32 ack;
	__u8 doff;
	__u8 flags;
	__be16 window;
	__u16 tcp_check;
	__be16 urgent;
	__u8 options[ES_SYNACK_OPTIONS_LEN];
};

/* struct es_answer_headers6 - IPv6 (RFC 8200, 3) and TCP */
struct es_answer_headers6 {
	__be32 version_class_label;
	__be16 payload_len;
	__u8 next_header;
	__u8 hop_limit;
	struct es_addr source;
	struct es_addr dest;
	__be16 sport;
	__be16 dport;
	__be32 seq;
	__be32 ack;
	__u8 doff;
	__u8 flags;
	__be16 window;
	__u16 tcp_check;
	__be16 urgent;
	__u8 options[ES_SYNACK_OPTIONS_LEN];
};

#define ES_ANSWER_MORE_V6 20 /* bytes that IPv6's header is longer */
#define ES_ANSWER_LEN	  40 /* without options */
#define ES_ANSWER_MAX	  (ES_ANSWER_LEN + ES_SYNACK_OPTIONS_LEN)

union es_answer_wire {
	struct es_answer_headers headers;
	__u16 words[ES_ANSWER_MAX / 2];
	__u8 bytes[ES_ANSWER_MAX];
};
_Static_assert(sizeof(union es_answer_wire) == ES_ANSWER_MAX, "no padding: it is sent");

#define ES_ANSWER_TTL		64
#define ES_ANSWER_DF		0x4000
#define ES_ANSWER_TCP		6 /* IPPROTO_TCP */
#define ES_ANSWER_IP_WORDS	10
#define ES_ANSWER_TCP_WORDS	((ES_ANSWER_MAX - 20) / 2)
#define ES_ANSWER_ADDRESS_WORDS 16 /* of IPv6 */

/**
 * es_answer_write() - the bytes of @a
 * @is_partial: the rest of the TCP checksum is left to hardware: its field then holds the pseudo header's sum
 * only. Returns how many bytes are to be sent.
 */
static __always_inline __u32 es_answer_write(const struct es_answer *a, int is_partial,
					     union es_answer_wire *ret)
{
	struct es_answer_headers *h = &ret->headers;
	__u32 tcp_len = 20 + (__u32)a->options_len, sum;

	es_memset(ret, 0, sizeof(*ret));
	h->version_ihl = 0x45;
	h->tot_len = es_htons(20 + tcp_len);
	h->frag_off = es_htons(ES_ANSWER_DF);
	h->ttl = ES_ANSWER_TTL;
	h->protocol = ES_ANSWER_TCP;
	h->saddr = a->saddr;
	h->daddr = a->daddr;
	h->ip_check = (__u16)~es_csum_fold(es_csum_words(ret->words, ES_ANSWER_IP_WORDS));
	h->sport = a->sport;
	h->dport = a->dport;
	h->seq = es_htonl(a->seq);
	h->ack = es_htonl(a->ack);
	h->doff = (__u8)(tcp_len / 4 << 4);
	h->flags = a->flags;
	h->window = es_htons(a->window);
	es_memcpy(h->options, a->options, ES_SYNACK_OPTIONS_LEN);
	sum = ((__u32)a->saddr & 0xffff) + ((__u32)a->saddr >> 16) + ((__u32)a->daddr & 0xffff) +
	      ((__u32)a->daddr >> 16) + (__u16)es_htons(ES_ANSWER_TCP) + (__u16)es_htons(tcp_len);
	if (is_partial)
		h->tcp_check = es_csum_fold(sum);
	else /* option bytes that are not used are zero, and add nothing */
		h->tcp_check = (__u16)~es_csum_fold(
			sum + es_csum_words(ret->words + ES_ANSWER_IP_WORDS, ES_ANSWER_TCP_WORDS));
	return 20 + tcp_len;
}

#define ES_ANSWER_LEN_V6 (ES_ANSWER_LEN + ES_ANSWER_MORE_V6)
#define ES_ANSWER_MAX_V6 (ES_ANSWER_MAX + ES_ANSWER_MORE_V6)

union es_answer_wire6 {
	struct es_answer_headers6 headers;
	__u16 words[ES_ANSWER_MAX_V6 / 2];
	__u8 bytes[ES_ANSWER_MAX_V6];
};
_Static_assert(sizeof(union es_answer_wire6) == ES_ANSWER_MAX_V6, "no padding: it is sent");

/* es_answer_write6() - the same as es_answer_write() for IPv6, whose pseudo header is in RFC 8200, 8.1 */
static __always_inline __u32 es_answer_write6(const struct es_answer *a, int is_partial,
					      union es_answer_wire6 *ret)
{
	struct es_answer_headers6 *h = &ret->headers;
	__u32 tcp_len = 20 + (__u32)a->options_len, sum;

	es_memset(ret, 0, sizeof(*ret));
	h->version_class_label = es_htonl(0x60000000);
	h->payload_len = es_htons(tcp_len);
	h->next_header = ES_ANSWER_TCP;
	h->hop_limit = ES_ANSWER_TTL;
	h->source = a->source;
	h->dest = a->dest;
	h->sport = a->sport;
	h->dport = a->dport;
	h->seq = es_htonl(a->seq);
	h->ack = es_htonl(a->ack);
	h->doff = (__u8)(tcp_len / 4 << 4);
	h->flags = a->flags;
	h->window = es_htons(a->window);
	es_memcpy(h->options, a->options, ES_SYNACK_OPTIONS_LEN);
	/* The addresses lie from word 4 on, and the TCP header behind them. */
	sum = es_csum_words(ret->words + 4, ES_ANSWER_ADDRESS_WORDS) + (__u16)es_htons(ES_ANSWER_TCP) +
	      (__u16)es_htons(tcp_len);
	if (is_partial)
		h->tcp_check = es_csum_fold(sum);
	else
		h->tcp_check =
			(__u16)~es_csum_fold(sum + es_csum_words(ret->words + 20, ES_ANSWER_TCP_WORDS));
	return 40 + tcp_len;
}

/* es_answer_reset() - a RST that goes the way of @pkt: for the socket that this meets, or in its place */
static __always_inline void es_answer_reset(const struct es_packet *pkt, __u32 seq, struct es_answer *ret)
{
	es_memset(ret, 0, sizeof(*ret));
	ret->source = pkt->source;
	ret->dest = pkt->dest;
	ret->is_v6 = pkt->is_v6;
	ret->sport = pkt->sport;
	ret->dport = pkt->dport;
	ret->seq = seq;
	ret->flags = ES_TCP_RST;
}

/**
 * es_answer_next() - the segment without payload that comes next on an open connection, and goes the way of
 * @pkt
 * @has_ts, @tsval, @tsecr: what its timestamps say. By it the inspector is told of the connection
 * (ES_RECORD_OPEN).
 */
static __always_inline void es_answer_next(const struct es_packet *pkt, __u32 rcv_nxt, __u32 snd_una,
					   int has_ts, __u32 tsval, __u32 tsecr, struct es_answer *ret)
{
	es_answer_reset(pkt, rcv_nxt, ret);
	ret->ack = snd_una;
	ret->flags = ES_TCP_ACK;
	if (has_ts) {
		ret->options_len = ES_TIMESTAMP_OPTION_LEN;
		es_timestamp_option_write(ret->options, tsval, tsecr);
	}
}

/*
 * es_answer_fin() - the FIN alone of a client's segment, which goes the way of @pkt; @window: the segment's
 */
static __always_inline void es_answer_fin(const struct es_packet *pkt, const struct es_segment *seg,
					  __u16 window, struct es_answer *ret)
{
	es_answer_reset(pkt, seg->seq + seg->len, ret);
	ret->ack = seg->ack;
	ret->window = window;
	ret->flags = ES_TCP_ACK | ES_TCP_FIN;
	if (seg->has_ts) {
		ret->options_len = ES_TIMESTAMP_OPTION_LEN;
		es_timestamp_option_write(ret->options, seg->tsval, seg->tsecr);
	}
}

#define ES_TCP_WINDOW_AT 14

/**
 * es_answer_make() - the answer to a client's segment that @v asks for
 * A SYN-ACK or an ACK; a RST for every other verdict, as a stack without that connection sends.
 */
static __always_inline void es_answer_make(const struct es_config *cfg, const struct es_packet *pkt,
					   const struct es_segment *seg, const struct es_verdict *v,
					   struct es_answer *ret)
{
	struct es_tcp_options options;
	struct es_packet back;

	es_packet_turn(pkt, &back);
	es_answer_reset(&back, seg->ack, ret);
	switch (v->action) {
	case ES_SYNACK:
	case ES_END_OLD_AND_SYNACK:
		ret->seq = v->cookie;
		ret->ack = seg->seq + 1;
		ret->window = (__u16)cfg->synack_window;
		ret->flags = ES_TCP_SYN | ES_TCP_ACK | (v->options.ecn_ok ? ES_TCP_ECE : 0);
		ret->options_len = ES_SYNACK_OPTIONS_LEN;
		es_synack_options_write(ret->options, &v->options,
					cfg->mss - (seg->is_v6 ? ES_ANSWER_MORE_V6 : 0), v->tsval,
					seg->tsval);
		break;
	case ES_ANSWER_ACK:
		ret->ack = v->ack;
		ret->window = (__u16)cfg->synack_window;
		/*
		 * Before the first request, it is the cookie that is acknowledged. Bytes that are only
		 * dropped may be as many as the client likes.
		 */
		if (v->counter == ES_COUNT_keepalive_answered) {
			es_cookie_options_unpack(seg->ack - 1, &options); /* the shifts are no family's */
			ret->window >>= options.wscale_ok ? cfg->rcv_wscale : 0;
		}
		ret->flags = ES_TCP_ACK;
		if (seg->has_ts) {
			ret->options_len = ES_TIMESTAMP_OPTION_LEN;
			es_timestamp_option_write(ret->options, seg->tsecr, seg->tsval);
		}
		break;
	default:
		break;
	}
}

#endif
