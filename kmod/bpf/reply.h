/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_REPLY_H
#define ES_BPF_REPLY_H

/*
 * What our servers answer, read on the way out to know where each response ends (kmod/core/response.h), and
 * which connections the stack has ended (kmod/core/resets.h). Drops no packet but what a silent node must not
 * say, and changes none but into the RSTs for a client that would wait for ever.
 */
#include "answer.h"
#include "other.h"
#include "tracks.h"
#include "kmod/core/response.h"

#define ES_REPLY_CHUNK 64
#define ES_REPLY_STEPS 32768 /* for one packet; one with more chunks than that is unclear */

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

/*
 * A client whose request was acknowledged by a node that then lost its lease: it does not repeat the request,
 * so nobody else is asked, and this node may not answer. It may not know of the acknowledgement, though, and
 * repeat: so first there is time for the lease to begin anew, or for another node to answer. Then this RST
 * means nothing to it.
 */
#define ES_REPLY_TELL_NS 1000000000ULL

enum es_reply_fate { ES_REPLY_LEAVES, ES_REPLY_STAYS, ES_REPLY_TELLS };

/* An acknowledgement and nothing else. */
static __always_inline int es_reply_is_bare(const struct es_segment *seg)
{
	return !seg->len && !(seg->flags & (ES_TCP_SYN | ES_TCP_FIN | ES_TCP_RST));
}

/**
 * es_reply_tell() - send the client RSTs in place of a packet
 * A client takes one whose sequence number is the very byte that it expects next (RFC 5961, 3.2). That is the
 * first one that it has not acknowledged, @snd_una, if nothing of the answer has arrived; and the first one
 * that was not sent, @snd_nxt, if all has and its acknowledgement came too late. A client that has a part of
 * it takes neither. Nor does one that another node has answered, because our acknowledgement was lost, too;
 * unless that answer is just as long: then its connection ends behind it. They leave as copies: for the
 * stack, its packet was lost, so that the client is told again when it tries again. Returns the program's
 * verdict.
 */
static __noinline int es_reply_tell(struct __sk_buff *skb, const struct iphdr *ip,
				    const struct es_packet *pkt, __u32 snd_una, __u32 snd_nxt)
{
	struct es_answer answer = {};

	if (!ip || !pkt)
		return TC_ACT_SHOT;
	answer.saddr = ip->saddr;
	answer.daddr = ip->daddr;
	answer.sport = pkt->sport;
	answer.dport = pkt->dport;
	answer.flags = ES_TCP_RST;
	for (int i = 0; i < 2; i++) {
		answer.seq = i ? snd_nxt : snd_una;
		if (es_answer_write(skb, &answer)) {
			es_count(ES_COUNT_answer_failed);
			return TC_ACT_SHOT;
		}
		es_count(ES_COUNT_reply_told);
		bpf_clone_redirect(skb, skb->ifindex, 0);
		if (snd_nxt == snd_una)
			break;
	}
	return TC_ACT_SHOT;
}

/* Tell the daemon how long a response was. It looks by itself; nobody is woken. */
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
	entry->content = t->content;
	entry->bytes = t->response_bytes;
	entry->status = t->response.status;
	entry->service = t->service;
	entry->request_flags = t->request_flags;
	bpf_ringbuf_submit(entry, BPF_RB_NO_WAKEUP);
	return 0;
}

/*
 * Payload bytes [@off, @end) of the packet, the first of which is @seq and not behind those that were read.
 * Returns 1 if they complete a response that is to be measured.
 */
static __always_inline int es_reply_read(struct __sk_buff *skb, struct es_track *t, __u32 seq, __u32 off,
					 __u32 end)
{
	struct es_reply_loop loop = {.skb = skb, .end = end};
	__u32 known = t->response_seq - seq;

	if (known >= end - off)
		return 0; /* a retransmission */
	loop.at = off + known;
	loop.response = t->response;
	bpf_loop(ES_REPLY_STEPS, es_reply_step, &loop, 0);
	if (loop.at < end)
		loop.response.phase = ES_RESPONSE_UNCLEAR;
	t->response = loop.response;
	t->response_seq = seq + (end - off);
	return es_track_answered(t, end - off - known);
}

/* The enum es_inspect of the service that a packet leaves, or -1. */
static __noinline int es_reply_inspect(const struct iphdr *ip, const struct es_packet *pkt)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	int service;

	if (!cfg || !ip || !pkt)
		return -1;
	service = es_service_find(ip->saddr, pkt->sport);
	return service < 0 ? -1 : cfg->service[service & (ES_SERVICES_MAX - 1)].inspect;
}

/* The hash of the flow of a packet that leaves here. */
static __noinline __u64 es_reply_flow(const struct iphdr *ip, const struct es_packet *pkt)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_flow flow;

	if (!cfg || !ip || !pkt)
		return 0;
	/* The client's view of the flow. */
	flow.client = es_addr_from_v4(ip->daddr);
	flow.service = es_addr_from_v4(ip->saddr);
	flow.client_port = pkt->dport;
	flow.service_port = pkt->sport;
	return es_flow_hash(&cfg->ring_key, &flow);
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

/*
 * What of a connection that is not proven may leave: everything while the lease holds, and nothing when it is
 * over. In between, what keeps the client from repeating its request does not leave any more; and who was
 * kept from it is told.
 */
static __noinline int es_reply_fate(struct bpf_sock *sk, const struct iphdr *ip, const struct es_packet *pkt,
				    const struct es_segment *seg)
{
	struct es_state *state = es_state_get();
	struct es_rebuilt *rebuilt;
	struct tcp_sock *tp;
	__u64 now_ns;
	int silent;

	if (!state || !state->lease_ns || !sk || !seg)
		return ES_REPLY_LEAVES;
	now_ns = bpf_ktime_get_coarse_ns();
	silent = es_lease_is_over(state, now_ns);
	if (!silent && !es_reply_is_bare(seg))
		return ES_REPLY_LEAVES;
	tp = es_reply_connection(sk);
	if (!tp || !es_socket_is_unproven(tp))
		return ES_REPLY_LEAVES;
	if (!silent && (__s64)(now_ns - state->firm_ns) >= 0) {
		es_count(ES_COUNT_reply_unsure);
		return ES_REPLY_STAYS;
	}
	rebuilt = es_rebuilt_of(tp, es_reply_flow(ip, pkt));
	if (!silent) {
		if (rebuilt)
			rebuilt->acknowledged = 1;
		return ES_REPLY_LEAVES;
	}
	if (rebuilt && rebuilt->acknowledged &&
	    ((seg->flags & ES_TCP_RST) || now_ns - state->lease_ns >= ES_REPLY_TELL_NS))
		return ES_REPLY_TELLS;
	es_count(ES_COUNT_reply_silent);
	return ES_REPLY_STAYS;
}

/* The stack ends a connection: from now on this node says so whenever it is asked. */
static __noinline int es_reply_ended(struct bpf_sock *sk, const struct iphdr *ip, const struct es_packet *pkt,
				     __u32 seq)
{
	struct es_state *state = es_state_get();
	struct tcp_sock *tp = es_reply_connection(sk);
	struct es_reset *slot;
	__u64 flow_hash, now_ns;

	if (!state)
		return 0;
	flow_hash = es_reply_flow(ip, pkt);
	slot = es_reset_slot(flow_hash);
	if (!slot)
		return 0;
	now_ns = bpf_ktime_get_coarse_ns();
	es_reset_note(slot, flow_hash, tp ? tp->snd_una : seq,
		      tp ? tp->snd_nxt - tp->snd_una : ES_RESET_UNDER_WAY, (__u32)(now_ns / 1000000));
	state->reset_ns = now_ns;
	return 0;
}

/* Read what the server says, for the connection's track; also what is kept back, since it comes again. */
static __always_inline void es_reply_track(struct __sk_buff *skb, struct bpf_sock *sk, const struct iphdr *ip,
					   const struct es_packet *pkt, const struct es_segment *seg)
{
	struct es_track *t = es_track_of(sk);
	struct tcp_sock *tp;
	int complete;
	__u32 off;

	if (!t)
		t = es_track_create(sk, es_reply_flow(ip, pkt));
	tp = bpf_skc_to_tcp_sock(sk);
	if (!t || t->pin || !tp)
		return;
	complete = es_track_skip(t, seg->seq);
	if (!es_seq_before(t->response_seq, seg->seq)) {
		off = ETH_HLEN + sizeof(struct iphdr) + sizeof(struct tcphdr) + pkt->options_len;
		complete |= es_reply_read(skb, t, seg->seq, off, off + seg->len);
	} else if (es_seq_before(t->response_seq, tp->snd_una)) {
		es_track_pin(t, ES_PIN_response_unclear); /* acknowledged, so gone */
	}
	complete |= es_track_skip(t, tp->snd_nxt);
	if (complete)
		es_reply_measured(t);
}

#endif
