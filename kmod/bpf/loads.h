/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_LOADS_H
#define ES_BPF_LOADS_H

/*
 * The requests that this node has in hand (kmod/core/load.h): one walk over its sockets adds it up in
 * es_load_table, which the daemon clears before. Nothing is written to the reader, who would have to be
 * called for each page of it. A connection that should have ended (ES_TRACK_ENDING) is ended; the client
 * hears nothing of it, see es_reply_is_held(). Where the kernel refuses es_loads, the daemon walks the
 * sockets itself (look.h).
 */
#include "maps.h"
#include "other.h"
#include "tracks.h"
#include "kmod/core/load.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct es_load_sums);
} es_load_table SEC(".maps");

/* A socket that has said nothing yet has its track where the rebuild left it. */
static __noinline struct es_rebuilt *es_load_rebuilt(struct tcp_sock *tp)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct sock_common *skc = (struct sock_common *)tp;
	struct es_flow flow;

	if (!cfg || !tp)
		return (void *)0;
	es_flow_of_socket(skc, &flow);
	return es_rebuilt_of(tp, es_flow_hash(&cfg->ring_key, cfg->ring_seed, &flow));
}

/*
 * If two events fall into the same jiffy, the server's counts as the later one: its answer to what had come.
 */
static __noinline int es_load_quiet(struct tcp_sock *tp, struct es_track *t)
{
	__u64 now_us = bpf_ktime_get_ns() / 1000, last_us;
	int has_open, said_last;

	if (!tp)
		return 0;
	last_us = tp->tcp_mstamp;
	has_open = tp->snd_una != tp->write_seq || tp->rcv_nxt != tp->copied_seq;
	said_last = tp->data_segs_out && (__s32)(tp->lsndtime - tp->inet_conn.icsk_ack.lrcvtime) >= 0;
	return es_load_is_idle(t, has_open, said_last, now_us > last_us ? now_us - last_us : 0);
}

/* Is it a connection of a service? Then @ret is its part of the sums. */
static __noinline int es_load_read(struct tcp_sock *tp, struct es_socket_load *ret)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct sock_common *skc = (struct sock_common *)tp;
	struct es_rebuilt *rebuilt;
	struct es_track *t = (void *)0;
	struct es_flow flow;
	__u8 tcp_state;
	int service;

	if (!cfg || !tp || !ret)
		return 0;
	tcp_state = skc->skc_state;
	if (tcp_state == TCP_STATE_LISTEN || tcp_state == TCP_STATE_TIME_WAIT || tcp_state == TCP_STATE_CLOSE)
		return 0;
	es_flow_of_socket(skc, &flow);
	service = es_flow_is_own(&flow) ? -1 : es_service_of_flow(&flow);
	if (service < 0)
		return 0;
	service &= ES_SERVICES_MAX - 1;
	if (cfg->service[service].inspect == ES_INSPECT_EVERY) {
		t = bpf_sk_storage_get(&es_tracks, tp, (void *)0, 0);
		rebuilt = t ? (void *)0 : es_load_rebuilt(tp);
		if (rebuilt)
			t = &rebuilt->track;
	}
	ret->service = (__u8)service;
	ret->is_ending = t && t->state == ES_TRACK_ENDING;
	ret->cost = es_load_cost(t, tcp_state, tp->snd_nxt != tp->write_seq);
	ret->is_idle = ret->cost && es_load_quiet(tp, t);
	return 1;
}

SEC("iter/tcp")
int es_loads(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct tcp_sock *tp = skc ? bpf_skc_to_tcp_sock(skc) : (void *)0;
	struct es_socket_load load = {};
	struct es_load_sums *sums;

	if (!tp || !es_load_read(tp, &load))
		return 0;
	if (load.is_ending) {
		if (!bpf_sock_destroy(skc))
			es_count(ES_COUNT_end_late);
		return 0;
	}
	sums = es_array_at(&es_load_table, 0);
	if (sums) {
		es_load_add(&sums->service[load.service & (ES_SERVICES_MAX - 1)], load.cost);
		sums->idle[load.service & (ES_SERVICES_MAX - 1)] += load.is_idle;
	}
	return 0;
}

#endif
