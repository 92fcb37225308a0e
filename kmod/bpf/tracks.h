/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_TRACKS_H
#define ES_BPF_TRACKS_H

/*
 * The request boundaries of the connections whose sockets are here (kmod/core/track.h), kept in the sockets'
 * own storage: a connection that ends takes its track along.
 */
#include "packet.h"
#include "maps.h"
#include "kmod/core/track.h"

static __always_inline void es_track_pin(struct es_track *t, __u32 pin)
{
	__u32 counter = es_track_set_pin(t, pin);

	if (counter < ES_COUNTER_COUNT)
		es_count(counter);
}

/* The note of a rebuilt socket: under the first byte of its request, and so of its stream. */
static __always_inline struct es_rebuilt *es_rebuilt_of(struct tcp_sock *tp, __u64 flow_hash)
{
	struct es_rebuilt_key key = {.flow_hash = flow_hash};
	struct es_rebuilt *rebuilt;

	key.seq = tp->rcv_nxt - (__u32)tp->bytes_received;
	rebuilt = bpf_map_lookup_elem(&es_rebuilts, &key);
	if (rebuilt)
		return rebuilt;
	/* Another CPU may have been between the two numbers; it is not twice in a row. */
	key.seq = tp->rcv_nxt - (__u32)tp->bytes_received;
	return bpf_map_lookup_elem(&es_rebuilts, &key);
}

/**
 * es_socket_is_unproven() - may the request that made this socket come again, to another node?
 * The client has acknowledged nothing of what was sent here, so it may not know that its request arrived. It
 * repeats it; and the node that hears that, because the ring names it or because it moved the connection
 * here, gives it to another one once this one is no member any more.
 */
static __always_inline int es_socket_is_unproven(const struct tcp_sock *tp)
{
	return !tp->bytes_acked;
}

/* The first look at a socket: what was noted when it was rebuilt, from now on with it. */
static __noinline struct es_track *es_track_create(struct bpf_sock *sk, __u64 flow_hash)
{
	struct es_track fresh = {};
	struct es_rebuilt *rebuilt;
	struct tcp_sock *tp;
	struct es_track *t;

	if (!sk)
		return (void *)0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return (void *)0;
	rebuilt = es_rebuilt_of(tp, flow_hash);
	if (rebuilt)
		fresh = rebuilt->track;
	else
		es_track_begin_unknown(&fresh);
	t = bpf_sk_storage_get(&es_tracks, sk, &fresh, BPF_SK_STORAGE_GET_F_CREATE);
	if (!t) /* another CPU was first */
		return bpf_sk_storage_get(&es_tracks, sk, (void *)0, 0);
	if (t->pin)
		es_count(es_track_counter(t));
	return t;
}

/*
 * The track of a socket, or what it will begin with when its server speaks for the first time, if its
 * requests are read. Returns 1, or 0: it has none.
 */
static __noinline int es_track_read(struct tcp_sock *tp, const struct es_flow *flow, struct es_track *ret)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct es_rebuilt *rebuilt;
	struct es_track *track;

	if (!cfg || !tp || !flow || !ret)
		return 0;
	track = bpf_sk_storage_get(&es_tracks, tp, (void *)0, 0);
	if (track) {
		*ret = *track;
		return 1;
	}
	rebuilt = es_rebuilt_of(tp, es_flow_hash(&cfg->ring_key, cfg->ring_seed, flow));
	if (!rebuilt || rebuilt->track.pin)
		return 0;
	*ret = rebuilt->track;
	return 1;
}

static __always_inline struct es_track *es_track_of(struct bpf_sock *sk)
{
	return bpf_sk_storage_get(&es_tracks, sk, (void *)0, 0);
}

/* es_track_is_ceded() of a service that survives */
static __noinline int es_track_of_is_ceded(const struct es_track *t, __u32 snd_una)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;

	return cfg && t && cfg->service[t->service & (ES_SERVICES_MAX - 1)].survives &&
	       es_track_is_ceded(t, snd_una);
}

/* es_socket_is_ceded() - may another node go on with the connection of @sk, without a lease here? */
static __always_inline int es_socket_is_ceded(struct bpf_sock *sk)
{
	struct es_track *t = sk ? es_track_of(sk) : (void *)0;
	struct tcp_sock *tp = t ? bpf_skc_to_tcp_sock(sk) : (void *)0;

	return tp && es_track_of_is_ceded(t, tp->snd_una);
}

static __always_inline void es_track_socket_read(struct bpf_sock *sk, struct es_track_socket *ret)
{
	struct tcp_sock *tp = bpf_skc_to_tcp_sock(sk);

	if (!tp)
		return;
	ret->rcv_nxt = tp->rcv_nxt;
	ret->copied_seq = tp->copied_seq;
	ret->snd_una = tp->snd_una;
	ret->write_seq = tp->write_seq;
	ret->rcv_wnd = tp->rcv_wnd;
	ret->max_wnd = tp->max_window;
	ret->is_established = sk->state == TCP_STATE_ESTABLISHED;
}

#endif
