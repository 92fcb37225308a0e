/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_ENGINE_KERNEL_H
#define ES_NETFILTER_ENGINE_KERNEL_H

/*
 * What the hands of a node (hands.h) work with; private to them.
 */
#include "netfilter/engine/attempts.h"
#include "netfilter/engine/frames.h"
#include "netfilter/engine/hands.h"
#include "netfilter/kernel/raw.h"
#include "netfilter/rebuild/reach.h"
#include "netfilter/rebuild/recovery.h"

struct es_nf_kernel {
	struct es_nf_frames frames;
	struct es_nf_raw datagrams;
	struct es_nf_raw marked; /* no rule and no conntrack changes what leaves by them */
	struct es_nf_tun tun;
	struct es_nf_rebuild rebuild;
	struct es_nf_attempts *attempts;
	es_nf_kernel_kept_fn kept_fn;
	void *kept_ctx;
	struct es_nf_recovery recovery;
	struct es_nf_reach reach;
	struct es_nf_hook hook;
	__u16 zone;
};

/* es_nf_hand_on_attempt() - an attempt is over that was not at once: es_nf_attempts_fn */
void es_nf_hand_on_attempt(void *ctx, const struct es_nf_request *request, const struct es_nf_making *making,
			   int rc);

/* es_nf_hand_on_kept() - a packet that was kept is to be decided: es_nf_attempts_kept_fn */
void es_nf_hand_on_kept(void *ctx, const struct es_nf_frame *frame);

#endif
