/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_REPLY_H
#define ES_BPF_REPLY_H

/*
 * Reads our servers' answers on the way out, to know where each response ends (kmod/core/response.h), and
 * which connections the stack has ended (kmod/core/resets.h). Drops only packets that a silent node must not
 * send, and changes packets only into the RSTs for a client that would wait for ever.
 */
#include "answer.h"
#include "download.h"
#include "other.h"
#include "settled.h"
#include "tracks.h"
#include "kmod/core/reply.h"
#include "kmod/core/response.h"

#define ES_REPLY_CHUNK 64
#define ES_REPLY_TOLD  0x45535453 /* in cb[0]: what es_reply_tell() sends, which ends nothing here */
#define ES_REPLY_STEPS 32768	  /* for one packet; one with more chunks than that is unclear */

union es_reply_chunk {
	__u8 bytes[ES_REPLY_CHUNK];
	__u64 words[ES_REPLY_CHUNK / 8];
};

struct es_reply_scan {
	struct es_response response;
	const union es_reply_chunk *chunk;
	__u32 used;
	__u32 len;
};

/*
 * A byte of a response; returns whether it wants more of them. A global function: verified once, and not for
 * each state in which the loop below may be, which Linux 7.3 finds too complex.
 */
__noinline int es_reply_byte(struct es_response *response, __u32 byte)
{
	if (!response)
		return 0;
	es_response_byte(response, (__u8)byte);
	return es_response_reads(response);
}

/* A byte, or a whole word where that will do. */
static long es_reply_unit(__u32 i, void *data)
{
	struct es_reply_scan *scan = data;
	__u32 at = scan->used & (ES_REPLY_CHUNK - 1);

	(void)i;
	if (scan->used >= scan->len)
		return 1;
	if (!(at & 7) && scan->used + 8 <= scan->len &&
	    es_response_word(&scan->response, scan->chunk->words[at / 8])) {
		scan->used += 8;
		return 0;
	}
	scan->used++;
	return es_reply_byte(&scan->response, scan->chunk->bytes[at]) ? 0 : 1;
}

/*
 * Read up to @len bytes; returns how many were read before the response stopped to want them. A global
 * function, so that the verifier follows its branches once and not for each state of the caller's loop.
 */
__noinline int es_reply_scan(struct es_response *response, const union es_reply_chunk *chunk, __u32 len)
{
	struct es_reply_scan scan = {.len = len};

	if (!response || !chunk)
		return 0;
	scan.response = *response;
	scan.chunk = chunk;
	bpf_loop(len, es_reply_unit, &scan, 0);
	*response = scan.response;
	return (int)scan.used;
}

struct es_reply_loop {
	struct __sk_buff *skb;
	struct es_response response;
	__u32 at;  /* offset in the packet of the next byte */
	__u32 end; /* of the packet */
	union es_reply_chunk chunk;
};

static long es_reply_step(__u32 i, void *data)
{
	struct es_reply_loop *loop = data;
	__u32 len;

	(void)i;
	if (loop->at >= loop->end)
		return 1;
	len = loop->end - loop->at;
	if (!es_response_reads(&loop->response)) {
		loop->at += es_response_skip(&loop->response, len);
		return 0;
	}
	if (len > ES_REPLY_CHUNK)
		len = ES_REPLY_CHUNK;
	asm volatile("" : "+r"(len)); /* or the compiler drops the check that the verifier wants */
	if (!len || len > ES_REPLY_CHUNK || bpf_skb_load_bytes(loop->skb, loop->at, loop->chunk.bytes, len)) {
		loop->response.phase = ES_RESPONSE_UNCLEAR;
		return 1;
	}
	loop->at += (__u32)es_reply_scan(&loop->response, &loop->chunk, len);
	return 0;
}

/**
 * es_reply_tell() - send the client es_reply_resets() in place of a packet
 * They leave as copies: for the stack, its packet was lost, so that the client is told again when it tries
 * again. Returns the program's verdict.
 */
static __noinline int es_reply_tell(struct __sk_buff *skb, const struct es_packet *pkt, __u32 snd_una,
				    __u32 snd_nxt)
{
	__u32 seq[2], count;
	struct es_answer rst;

	if (!pkt)
		return TC_ACT_SHOT;
	es_answer_reset(pkt, 0, &rst);
	skb->cb[0] = ES_REPLY_TOLD;
	count = es_reply_resets(snd_una, snd_nxt, seq);
	for (__u32 i = 0; i < 2; i++) {
		rst.seq = seq[i];
		if (es_answer_put_any(skb, &rst)) {
			es_count(ES_COUNT_answer_failed);
			return TC_ACT_SHOT;
		}
		es_count(ES_COUNT_reply_told);
		bpf_clone_redirect(skb, skb->ifindex, 0);
		if (count == 1)
			break;
	}
	return TC_ACT_SHOT;
}

/* Tell the daemon how long a response was, and how long it took. It looks by itself; nobody is woken. */
static __noinline int es_reply_measured(struct es_track *t)
{
	struct es_response_entry *entry;

	if (!t)
		return 0;
	entry = bpf_ringbuf_reserve(&es_responses, sizeof(*entry), 0);
	if (!entry) {
		es_count(ES_COUNT_response_unmeasured);
		return 0;
	}
	es_reply_entry(t, bpf_ktime_get_ns(), entry);
	bpf_ringbuf_submit(entry, BPF_RB_NO_WAKEUP);
	return 0;
}

/*
 * Read the payload of a segment, whose first byte is at @off in the packet, from byte @from on. Returns 1 if
 * it completes a response that is to be measured.
 */
static __always_inline int es_reply_scan_segment(struct __sk_buff *skb, struct es_track *t,
						 const struct es_segment *seg, __u32 off, __u32 from)
{
	struct es_reply_loop loop = {.skb = skb, .end = off + seg->len};

	loop.at = off + from;
	loop.response = t->response;
	bpf_loop(ES_REPLY_STEPS, es_reply_step, &loop, 0);
	if (loop.at < loop.end)
		loop.response.phase = ES_RESPONSE_UNCLEAR;
	t->response = loop.response;
	return es_reply_read(t, seg, from);
}

/* The enum es_inspect of the service that a packet leaves, or -1. */
static __noinline int es_reply_inspect(const struct es_packet *pkt)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	int service;

	if (!cfg || !pkt)
		return -1;
	service = pkt->is_v6 ? es_service_find6(&pkt->source, pkt->sport)
			     : es_service_find(pkt->saddr, pkt->sport);
	return service < 0 ? -1 : cfg->service[service & (ES_SERVICES_MAX - 1)].inspect;
}

/* The hash of the flow of a packet that leaves here. */
static __noinline __u64 es_reply_flow(const struct es_packet *pkt)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_packet client;
	struct es_flow flow;

	if (!cfg || !pkt)
		return 0;
	/* The client's view of the flow. */
	es_packet_turn(pkt, &client);
	es_packet_flow(&client, &flow);
	return es_flow_hash(&cfg->ring_key, cfg->ring_seed, &flow);
}

/*
 * The connection that a packet is sent by, NULL if by none. Linux 6.12 sends what has none, RSTs and the ACKs
 * of TIME_WAIT, in the name of a raw socket of its own, and that passes for a TCP socket, too.
 */
static __always_inline struct tcp_sock *es_reply_connection(struct bpf_sock *sk)
{
	struct bpf_sock *full = sk ? bpf_sk_fullsock(sk) : (void *)0;

	return full && full->type == SOCKET_TYPE_STREAM ? bpf_skc_to_tcp_sock(sk) : (void *)0;
}

/* A socket speaks, of whose request the first byte is @seq, or the one before: it was made. */
static __always_inline void es_reply_settled(__u64 flow_hash, __u32 seq)
{
	/* Whether a FIN counts as a received byte differs between kernels. */
	if (ES_SETTLED_AS(es_settle(flow_hash, seq, ES_SETTLED_SEEN, 0)) == ES_SETTLED_NOT)
		es_settle(flow_hash, seq - 1, ES_SETTLED_SEEN, 0);
}

/* Is the lease over, and may another node go on with the connection? Then nothing of it leaves. */
static __noinline int es_reply_is_ceded(struct bpf_sock *sk)
{
	struct es_state *state = es_state_get();

	return state && es_lease_is_over(state->lease_ns, bpf_ktime_get_coarse_ns()) &&
	       es_socket_is_ceded(sk);
}

static __always_inline int es_reply_goes_on(struct bpf_sock *sk, const struct tcp_sock *tp)
{
	const struct es_track *t = es_track_of(sk);

	return t && es_track_goes_on(t, tp->snd_una);
}

/* Makes the view for es_decide_reply(). Returns an enum es_reply_action. */
static __noinline int es_reply_fate(struct bpf_sock *sk, const struct es_packet *pkt,
				    const struct es_segment *seg)
{
	struct es_rebuilt *rebuilt = (void *)0;
	struct es_state *state = es_state_get();
	struct es_reply_verdict verdict;
	struct es_reply_view view = {};
	struct tcp_sock *tp;

	if (!state || !state->lease_ns || !sk || !seg)
		return ES_REPLY_LEAVES;
	view.now_ns = bpf_ktime_get_coarse_ns();
	view.lease_ns = state->lease_ns;
	view.firm_ns = state->firm_ns;
	view.len = seg->len;
	view.flags = seg->flags;
	if (!es_reply_needs_proof(&view))
		return ES_REPLY_LEAVES;
	tp = es_reply_connection(sk);
	if (!tp || (!es_socket_is_unproven(tp) && !es_socket_is_ceded(sk)))
		return ES_REPLY_LEAVES;
	view.unproven = 1;
	rebuilt = es_rebuilt_of(tp, es_reply_flow(pkt));
	view.acknowledged = rebuilt && rebuilt->acknowledged && !es_reply_goes_on(sk, tp);
	es_decide_reply(&view, &verdict);
	if (rebuilt && verdict.acknowledges)
		rebuilt->acknowledged = 1;
	if (verdict.counter < ES_COUNTER_COUNT)
		es_count(verdict.counter);
	return (int)verdict.action;
}

/*
 * Is a packet of no socket a RST of the stack's? Before 6.13, Linux sends so what answers a segment by IPv6
 * that no connection takes.
 */
static __always_inline int es_reply_is_stacks(const struct __sk_buff *skb, const struct es_packet *pkt,
					      const struct es_segment *seg)
{
	return pkt->is_v6 && (seg->flags & ES_TCP_RST) && skb->cb[0] != ES_REPLY_TOLD;
}

/*
 * Does the stack refuse what was to become a socket? A packet that address translation has sent to another
 * port finds nobody there, and the RST comes back translated. Its client is told nothing: another node serves
 * it, as if the packet had been dropped. A packet that a packet filter rejects has no socket at all, and is
 * refused as its rule wants.
 */
static __noinline int es_reply_is_astray(struct bpf_sock *sk, const struct es_packet *pkt)
{
	return sk && !es_reply_connection(sk) && es_settle_reset(es_reply_flow(pkt));
}

/* The stack ends a connection, @sk's or NULL: from now on this node says so whenever it is asked. */
static __noinline int es_reply_ended(struct bpf_sock *sk, const struct es_packet *pkt, __u32 seq)
{
	struct es_state *state = es_state_get();
	struct tcp_sock *tp = es_reply_connection(sk);
	struct es_reset *slot;
	struct bpf_sock *full;
	__u64 flow_hash, now_ns;

	if (!state)
		return 0;
	flow_hash = es_reply_flow(pkt);
	slot = es_reset_slot(flow_hash);
	if (!slot)
		return 0;
	now_ns = bpf_ktime_get_coarse_ns();
	full = sk ? bpf_sk_fullsock(sk) : (void *)0;
	es_reset_note(slot, flow_hash, tp ? tp->snd_una : seq,
		      tp ? tp->snd_nxt - tp->snd_una : es_reset_under_way(full ? full->protocol : 0),
		      es_ns_to_ms(now_ns));
	state->reset_ns = now_ns;
	return 0;
}

/* Does the server say something on a connection that is just leaving it? */
static __noinline int es_reply_is_held(struct bpf_sock *sk, const struct es_segment *seg)
{
	const struct es_track *t;

	if (!sk || !seg || es_reply_is_bare(seg->len, seg->flags))
		return 0;
	t = es_track_of(sk);
	return t && es_track_holds(t, seg);
}

/* Read what the server says, for the connection's track; also what is kept back, since it comes again. */
static __always_inline void es_reply_track(struct __sk_buff *skb, struct bpf_sock *sk,
					   const struct es_packet *pkt, const struct es_segment *seg)
{
	struct es_track *t = es_track_of(sk);
	__u8 pin = ES_PIN_none;
	struct tcp_sock *tp;
	int complete, begins;
	__u32 off, from;

	if (!t)
		t = es_track_create(sk, es_reply_flow(pkt));
	tp = bpf_skc_to_tcp_sock(sk);
	if (!t || t->pin || !tp)
		return;
	complete = es_track_skip(t, seg->seq);
	from = es_reply_unread(t, seg, tp->snd_una, &pin);
	es_track_pin(t, pin);
	if (from < seg->len) {
		off = es_packet_tcp_off(pkt) + sizeof(struct tcphdr) + pkt->options_len;
		begins = es_download_begins(t);
		complete |= es_reply_scan_segment(skb, t, seg, off, from);
		if (begins && es_download_is_long(t))
			es_download_answered(skb, t, pkt, es_ns_to_ms(bpf_ktime_get_ns()) + tp->tsoffset,
					     off + from);
	}
	complete |= es_track_skip(t, tp->snd_nxt);
	if (complete)
		es_reply_measured(t);
}

#endif
