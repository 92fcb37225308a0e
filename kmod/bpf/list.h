/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_LIST_H
#define ES_BPF_LIST_H

/*
 * The connections of this node that have a track, one struct es_track_entry each, for whoever reads the
 * iterator (`earshot flows`). It walks the sockets and not the tracks' map: some kernels refuse an iterator
 * that is given a map's elements (EPERM).
 */
#include "maps.h"
#include "other.h"
#include "kmod/core/flow.h"

SEC("iter/tcp")
int es_list(struct bpf_iter__tcp *ctx)
{
	struct es_track_entry entry = {};
	struct sock_common *skc = ctx->sk_common;
	struct tcp_sock *tp = skc ? bpf_skc_to_tcp_sock(skc) : (void *)0;
	struct es_track *track = tp ? bpf_sk_storage_get(&es_tracks, tp, (void *)0, 0) : (void *)0;

	/* One that is over may be held by its server for a while. */
	if (!track || skc->skc_state == TCP_STATE_CLOSE)
		return 0;
	entry.track = *track;
	es_flow_of_socket(skc, &entry.flow);
	entry.tcp_state = skc->skc_state;
	bpf_seq_write(ctx->meta->seq, &entry, sizeof(entry));
	return 0;
}

#endif
