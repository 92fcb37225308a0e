// SPDX-License-Identifier: GPL-2.0-or-later
/* setsockopt(ES_WINDOW_OPTION): the congestion window that a connection begins with (window.h). */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "tls/serve/window.h"

char LICENSE[] SEC("license") = "GPL";

/* Returns whether the call may go on; with optlen = -1, the kernel takes it for done. */
SEC("cgroup/setsockopt")
int es_window(struct bpf_sockopt *ctx)
{
	int *segments = ctx->optval, begin;

	if (ctx->level != ES_WINDOW_LEVEL || ctx->optname != ES_WINDOW_OPTION)
		return 1;
	if ((void *)(segments + 1) > ctx->optval_end || !ctx->sk)
		return 0;
	begin = *segments;
	/* The kernel refuses it once data was sent. */
	if (bpf_setsockopt(ctx->sk, ES_WINDOW_LEVEL, TCP_BPF_IW, &begin, sizeof(begin)))
		return 0;
	ctx->optlen = -1;
	return 1;
}
