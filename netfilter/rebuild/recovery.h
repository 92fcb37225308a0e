/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_RECOVERY_H
#define ES_NETFILTER_REBUILD_RECOVERY_H

/*
 * Makes entries again (kept.h) that conntrack reports as lost (losses.h). After `conntrack -F` that may be
 * hundreds of thousands, and each costs three questions to the kernel. So it goes by turns, between which
 * packets are decided. A connection whose packet arrives meanwhile does not wait for its turn.
 */
#include "netfilter/rebuild/kept.h"
#include "netfilter/rebuild/losses.h"

/* Entries in one turn: some milliseconds. */
#define ES_NF_RECOVERY_TURN 64

/**
 * struct es_nf_recovery - for one thread
 * @ct, @diag: not owned; for es_nf_kept_restore()
 * @is_behind: there are unread reports of losses
 */
struct es_nf_recovery {
	struct es_nf_losses losses;
	struct es_nf_kept *kept;
	struct es_nf_conntrack *ct;
	struct es_nf_netlink *diag;
	int is_behind;
};

/**
 * es_nf_recovery_open() - listen, and keep the entries that the previous daemon has left
 * @most: entries to keep. Returns 0 or -errno; close it in either case.
 */
int es_nf_recovery_open(struct es_nf_recovery *recovery, size_t most, struct es_nf_conntrack *ct,
			struct es_nf_netlink *diag);

/* es_nf_recovery_close() - may be called again, and on a zeroed structure */
void es_nf_recovery_close(struct es_nf_recovery *recovery);

/* es_nf_recovery_turn() - one turn, without waiting. Returns how many entries were made again. */
size_t es_nf_recovery_turn(struct es_nf_recovery *recovery);

/* es_nf_recovery_is_due() - is there something to do for another turn? */
int es_nf_recovery_is_due(const struct es_nf_recovery *recovery);

/**
 * es_nf_recovery_hurry() - a packet of this flow has arrived while a turn is due: look at its entry now
 * Returns as es_nf_kept_restore() does.
 */
int es_nf_recovery_hurry(struct es_nf_recovery *recovery, const struct es_flow *flow);

#endif
