/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_ENGINE_HAND_STATE_H
#define ES_NETFILTER_ENGINE_HAND_STATE_H

/* The state of a node's hands (hands.h); private to them. */
#include "netfilter/engine/attempts.h"
#include "netfilter/engine/frames.h"
#include "netfilter/engine/hands.h"
#include "netfilter/kernel/raw.h"
#include "netfilter/rebuild/reach.h"
#include "netfilter/rebuild/recovery.h"

struct es_nf_hand_state {
	struct es_nf_frames frames;
	struct es_nf_raw datagrams;
	struct es_nf_raw marked; /* neither rules nor conntrack change what these sockets send */
	struct es_nf_tun tun;
	struct es_nf_rebuild rebuild;
	struct es_nf_attempts *attempts;
	es_nf_hand_state_kept_fn kept_fn;
	void *kept_ctx;
	struct es_nf_recovery recovery;
	struct es_nf_reach reach;
	struct es_nf_hook hook;
	__u16 zone;
};

/* es_nf_hand_on_attempt() - es_nf_attempts_fn: an attempt has ended that was not finished at once */
void es_nf_hand_on_attempt(void *ctx, const struct es_nf_request *request, const struct es_nf_making *making,
			   int rc);

/* es_nf_hand_on_kept() - es_nf_attempts_kept_fn: decide about a packet that was kept */
void es_nf_hand_on_kept(void *ctx, const struct es_nf_frame *frame);

#endif
