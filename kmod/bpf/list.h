/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_BPF_LIST_H
#define ES_BPF_LIST_H

/*
 * The connections of this node, one struct es_track_entry each, for whoever reads the iterator (`earshot
 * flows`).
 */
#include "maps.h"
#include "kmod/core/flow.h"

SEC("iter/bpf_sk_storage_map")
int es_list(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct es_track_entry entry = {};
	struct es_track *track = ctx->value;
	struct sock *sk = ctx->sk;

	/* One that is over may be held by its server for a while. */
	if (!sk || !track || sk->__sk_common.skc_state == TCP_STATE_CLOSE)
		return 0;
	entry.track = *track;
	entry.flow.client = es_addr_from_v4(sk->__sk_common.skc_daddr);
	entry.flow.service = es_addr_from_v4(sk->__sk_common.skc_rcv_saddr);
	entry.flow.client_port = sk->__sk_common.skc_dport;
	entry.flow.service_port = es_htons(sk->__sk_common.skc_num);
	entry.tcp_state = sk->__sk_common.skc_state;
	bpf_seq_write(ctx->meta->seq, &entry, sizeof(entry));
	return 0;
}

#endif
