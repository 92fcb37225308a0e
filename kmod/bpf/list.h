/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_LIST_H
#define ES_BPF_LIST_H

/*
 * The connections of this node that have a track, or will with their first answer, one struct es_track_entry
 * each, for whoever reads the iterator (`earshot flows`). It walks the sockets and not the tracks' map: some
 * kernels refuse an iterator that is given a map's elements (EPERM).
 */
#include "maps.h"
#include "other.h"
#include "tracks.h"
#include "kmod/core/flow.h"

SEC("iter/tcp")
int es_list(struct bpf_iter__tcp *ctx)
{
	struct es_track_entry entry = {};
	struct sock_common *skc = ctx->sk_common;
	struct tcp_sock *tp = skc ? bpf_skc_to_tcp_sock(skc) : (void *)0;

	/* One that is over may be held by its server for a while. */
	if (!tp || skc->skc_state == TCP_STATE_CLOSE || skc->skc_state == TCP_STATE_LISTEN)
		return 0;
	es_flow_of_socket(skc, &entry.flow);
	if (!es_track_read(tp, &entry.flow, &entry.track))
		return 0;
	entry.tcp_state = skc->skc_state;
	entry.is_unacknowledged = tp->snd_una != tp->write_seq;
	entry.tsval = es_ns_to_ms(bpf_ktime_get_ns()) + tp->tsoffset;
	bpf_seq_write(ctx->meta->seq, &entry, sizeof(entry));
	return 0;
}

#endif
