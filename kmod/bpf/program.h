/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_PROGRAM_H
#define ES_BPF_PROGRAM_H

/*
 * Carries out messages about a program's connection (kmod/core/program.h), and reads for the daemon that
 * sends them its own sockets.
 */
#include "target.h"
#include "kmod/core/program.h"

/* The packet that a message is about, and the byte that its server expects next. */
struct es_program_found {
	struct es_packet pkt;
	struct es_segment seg;
	struct es_rebuilt_key key;
	__u32 rcv_nxt;
};

/* The packet in the message; -1 if it is none of a service that has a server here. */
static __always_inline int es_program_parse(struct __sk_buff *skb, const struct es_handover *h,
					    struct es_program_found *ret)
{
	if (es_inner_read(skb, h, &ret->pkt, &ret->seg))
		return -1;
	return es_message_is_connections(&ret->seg) ? 0 : -1;
}

/* The socket that listens for the server; the caller releases it. A function of its own, for its stack. */
static __noinline struct bpf_sock *es_program_server(struct __sk_buff *skb, const struct es_packet *pkt,
						     const struct es_service_entry *service)
{
	struct bpf_sock_tuple tuple = {};
	const struct es_addr *server;

	if (!pkt || !service)
		return (void *)0;
	server = es_program_server_of(service, pkt->is_v6);
	if (!server)
		return (void *)0;
	if (pkt->is_v6) {
		__builtin_memcpy(tuple.ipv6.saddr, &pkt->source, sizeof(pkt->source));
		__builtin_memcpy(tuple.ipv6.daddr, server, sizeof(*server));
		tuple.ipv6.sport = pkt->sport;
		tuple.ipv6.dport = service->server_port;
		return bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple.ipv6), BPF_F_CURRENT_NETNS, 0);
	}
	tuple.ipv4.saddr = pkt->saddr;
	tuple.ipv4.daddr = server->w[3];
	tuple.ipv4.sport = pkt->sport;
	tuple.ipv4.dport = service->server_port;
	return bpf_skc_lookup_tcp(skb, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
}

/* Fill in what the sockets say. */
static __noinline int es_program_look(struct __sk_buff *skb, struct es_program_found *f,
				      struct es_program_view *v, const struct es_service_entry *service)
{
	__u32 nothing = 0;
	struct bpf_sock *sk;
	__u8 listening = 0;

	if (!f || !v || !service)
		return -1;
	sk = es_socket_lookup(skb, &f->pkt);
	v->socket = es_socket_classify(sk, &nothing, &listening);
	if (sk) {
		struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);

		if (tp && v->socket == ES_SOCKET_ESTABLISHED)
			f->rcv_nxt = tp->rcv_nxt;
		bpf_sk_release(sk);
	}
	sk = es_program_server(skb, &f->pkt, service);
	if (sk) {
		es_socket_classify(sk, &nothing, &v->listening);
		v->accept_full = v->listening && es_listener_is_full(sk);
		bpf_sk_release(sk);
	}
	return 0;
}

/* Have the socket made; 0 or -1. */
static __noinline int es_program_rebuild(struct __sk_buff *skb, const struct es_handover *h,
					 const struct es_program_found *f)
{
	struct es_rebuilt rebuilt = {};

	if (!h || !f)
		return -1;
	rebuilt.at_ns = bpf_ktime_get_coarse_ns();
	rebuilt.source = h->source;
	rebuilt.acknowledged = 1; /* by the node that had it: its client does not repeat it */
	rebuilt.handover = h->program;
	rebuilt.is_pending = 1;
	es_track_begin_program(&rebuilt.track, h);
	return es_opened_make(skb, &f->pkt, &f->key, &rebuilt);
}

static __noinline int es_program_cancel(const struct es_handover *h, const struct es_rebuilt_key *key)
{
	struct es_rebuilt rebuilt = {.is_cancelled = 1};

	if (!h || !key)
		return -1;
	rebuilt.source = h->source;
	rebuilt.handover = h->program;
	return es_rebuilt_note(key->flow_hash, key->seq, &rebuilt);
}

/*
 * Returns the answer to be sent; 0 for a packet with which there is nothing more to do; ES_PROGRAM_WAITS for
 * one that asks about packets ahead of it, which have not arrived yet. A function of its own, so that its
 * stack is free again when the answer is made.
 */
#define ES_PROGRAM_WAITS 255
static __noinline int es_program_take(struct __sk_buff *skb, struct es_handover *h)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_program_found f = {};
	struct es_program_view v = {};
	struct es_verdict verdict = {};
	struct es_service_entry *entry;
	struct es_rebuilt *noted;
	int service, is_new;
	__u8 answer;

	if (!cfg || !h)
		return 0;
	if (es_program_parse(skb, h, &f)) {
		es_count(ES_COUNT_handover_malformed);
		return 0;
	}
	service = es_service_of(&f.pkt);
	if (service < 0 || service >= ES_SERVICES_MAX) {
		es_count(ES_COUNT_handover_wrong_target);
		return 0;
	}
	entry = &cfg->service[service];
	f.key.flow_hash = es_handover_flow(cfg, &f.pkt);
	f.key.seq = f.seg.seq;
	v.id = es_cpu_be64((__u64)h->program);
	v.kind = h->kind;
	v.source = h->source;
	v.is_self = h->source == cfg->self;
	v.silent = (__u8)es_handover_is_silent();
	v.stale = cfg->leased && h->epoch != es_htonl(cfg->epoch);
	noted = bpf_map_lookup_elem(&es_rebuilts, &f.key);
	if (noted) {
		v.noted_id = es_cpu_be64((__u64)noted->handover);
		v.noted_source = (__u8)noted->source;
		v.noted_cancelled = noted->is_cancelled;
		v.noted_pending = es_rebuilt_is_pending(noted, bpf_ktime_get_coarse_ns());
	}
	if (v.noted_id == v.id && skb->mark != ES_ASKED_MARK)
		return ES_PROGRAM_WAITS;
	if (es_program_look(skb, &f, &v, entry))
		return 0;
	/* Without a socket, only that can tell whether there was one. */
	if (v.noted_id == v.id)
		v.served = ES_SETTLED_AS(es_settle(f.key.flow_hash, f.seg.seq, ES_SETTLED_LOOK, 0)) ==
			   ES_SETTLED_BUILT;
	if (es_service_is_refused((__u32)service, f.pkt.is_v6))
		v.listening = 0;
	answer = es_decide_program(&v, &verdict);
	if (verdict.action == ES_REBUILD) {
		/* Its id has decided; but a client's request may be the same, and come again. */
		is_new = ES_SETTLED_AS(es_settle(f.key.flow_hash, f.seg.seq, ES_SETTLED_MAKE, 0xff)) ==
			 ES_SETTLED_NOT;
		/* Without its envelope it cannot be answered; who asks again is. */
		if (es_program_rebuild(skb, h, &f) && is_new)
			es_settle(f.key.flow_hash, f.seg.seq, ES_SETTLED_UNDO, 0);
		return 0;
	}
	if (es_program_is_new_promise(&v, answer) && es_program_cancel(h, &f.key))
		verdict.action = ES_DROP; /* no promise that is not kept */
	es_count(verdict.counter);
	if (verdict.action != ES_NACK)
		return 0;
	h->next_request_seq = es_htonl(f.rcv_nxt);
	return answer;
}

/* Returns the program's verdict. */
static __noinline int es_program_message(struct __sk_buff *skb, struct es_config *cfg, struct es_handover *h)
{
	int answer = es_program_take(skb, h);

	if (answer == ES_PROGRAM_WAITS) {
		skb->mark = ES_ASKED_MARK;
		return (int)bpf_redirect(skb->ifindex, BPF_F_INGRESS);
	}
	skb->mark = 0;
	return answer ? es_message_answer(skb, cfg, h, ES_HANDOVER_ANSWER, (__u32)answer) : TC_ACT_SHOT;
}

/*
 * The packet that es_connection() is run with: 0, or -1 if it is none of TCP. A function of its own, for its
 * stack.
 */
static __noinline int es_connection_packet(struct __sk_buff *skb, struct es_packet *ret)
{
	struct es_segment seg = {};

	return es_packet_read(skb, ret, &seg);
}

/*
 * Run by the daemon, never attached: a client's packet goes in, struct es_connection_state of the
 * connection's socket comes out in its place.
 */
SEC("tc")
int es_connection(struct __sk_buff *skb)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_connection_state s = {};
	struct es_packet pkt = {.off = ETH_HLEN};
	struct bpf_sock *sk;
	struct tcp_sock *tp;

	if (!cfg || es_connection_packet(skb, &pkt))
		return -1;
	s.flow_hash = es_handover_flow(cfg, &pkt);
	sk = es_socket_lookup(skb, &pkt);
	if (sk) {
		tp = bpf_skc_to_tcp_sock(sk);
		if (tp && sk->state == TCP_STATE_ESTABLISHED) {
			s.bytes_received = tp->bytes_received;
			s.bytes_acked = tp->bytes_acked;
			s.rcv_nxt = tp->rcv_nxt;
			s.copied_seq = tp->copied_seq;
			s.snd_una = tp->snd_una;
			s.write_seq = tp->write_seq;
			s.ts_recent = tp->rx_opt.ts_recent;
			s.is_found = 1;
		}
		bpf_sk_release(sk);
	}
	return (int)bpf_skb_store_bytes(skb, 0, &s, sizeof(s), 0);
}

#endif
