/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_UNPROVEN_H
#define ES_BPF_UNPROVEN_H

/*
 * This node's connections to services, as membership needs them: which of them another node could be asked
 * to make once more (es_socket_is_unproven()), to tell that node of them, or to end them before it is asked.
 */
#include "maps.h"
#include "other.h"
#include "settled.h"
#include "tracks.h"
#include "kmod/core/flow.h"

/* Is it a connection, of a service? Fills in everything but the flags. */
static __noinline int es_connection_read(struct tcp_sock *tp, struct es_connection_entry *ret)
{
	struct es_state *state = es_state_get();
	struct es_config *cfg = state ? es_config_get(state) : (void *)0;
	struct sock_common *skc = (struct sock_common *)tp;
	struct es_rebuilt *rebuilt;
	struct es_flow flow;
	__u8 tcp_state;

	if (!cfg || !tp || !ret)
		return 0;
	tcp_state = skc->skc_state;
	if (tcp_state == TCP_STATE_LISTEN || tcp_state == TCP_STATE_TIME_WAIT || tcp_state == TCP_STATE_CLOSE)
		return 0;
	es_flow_of_socket(skc, &flow);
	if (es_flow_is_own(&flow) || es_service_of_flow(&flow) < 0)
		return 0;
	ret->flow_hash = es_flow_hash(&cfg->ring_key, cfg->ring_seed, &flow);
	ret->cookie = tp->snd_una - 1;
	ret->first_seq = tp->rcv_nxt - (__u32)tp->bytes_received;
	ret->tcp_state = tcp_state;
	rebuilt = es_rebuilt_of(tp, ret->flow_hash);
	ret->made_ns = rebuilt ? rebuilt->at_ns : 0;
	ret->is_moved = rebuilt && rebuilt->track.moves;
	ret->source = rebuilt ? (__u16)rebuilt->source : ES_NODE_NONE;
	return 1;
}

SEC("iter/tcp")
int es_connections(struct bpf_iter__tcp *ctx)
{
	struct es_connection_entry entry = {};
	struct sock_common *skc = ctx->sk_common;
	struct tcp_sock *tp = skc ? bpf_skc_to_tcp_sock(skc) : (void *)0;

	if (!tp || !es_connection_read(tp, &entry))
		return 0;
	entry.unproven = (__u8)es_socket_is_unproven(tp);
	bpf_seq_write(ctx->meta->seq, &entry, sizeof(entry));
	return 0;
}

/*
 * End what is unproven, or ceded. While the node is silent only: the kernel tells the client with a RST,
 * which es_reply() drops, but for clients whose request was acknowledged here.
 */
SEC("iter/tcp")
int es_unproven_end(struct bpf_iter__tcp *ctx)
{
	struct es_state *state = es_state_get();
	struct es_connection_entry entry = {};
	struct sock_common *skc = ctx->sk_common;
	struct tcp_sock *tp = skc ? bpf_skc_to_tcp_sock(skc) : (void *)0;
	struct es_track *track;

	if (!tp || !state || !es_lease_is_over(state->lease_ns, bpf_ktime_get_ns()) ||
	    !es_connection_read(tp, &entry))
		return 0;
	track = bpf_sk_storage_get(&es_tracks, tp, (void *)0, 0);
	if (!es_socket_is_unproven(tp) && !(track && es_track_of_is_ceded(track, tp->snd_una)))
		return 0;
	if (bpf_sock_destroy(skc))
		return 0;
	/* Nobody has heard of it: its client's request may be served here, if it may be executed twice. */
	es_settle(entry.flow_hash, entry.first_seq, ES_SETTLED_END, 0);
	entry.unproven = 1;
	bpf_seq_write(ctx->meta->seq, &entry, sizeof(entry));
	return 0;
}

#endif
