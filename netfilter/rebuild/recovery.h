/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_RECOVERY_H
#define ES_NETFILTER_REBUILD_RECOVERY_H

/*
 * Makes entries again that the connection tracking has forgotten (kept.h), as it tells of its losses (losses.h). After
 * `conntrack -F` that may be hundreds of thousands, each of which costs three questions to the kernel. So it goes by turns,
 * between which packets are decided; a connection whose packet comes meanwhile is not left waiting for its turn.
 */
#include "netfilter/rebuild/kept.h"
#include "netfilter/rebuild/losses.h"

/* So many entries are looked at in one turn: some milliseconds. */
#define ES_NF_RECOVERY_TURN 64

/**
 * struct es_nf_recovery - for one thread
 * @ct, @diag: not owned; as of es_nf_kept_restore()
 * @is_behind: some losses have not been read yet
 */
struct es_nf_recovery {
	struct es_nf_losses losses;
	struct es_nf_kept *kept;
	struct es_nf_conntrack *ct;
	struct es_nf_netlink *diag;
	int is_behind;
};

/**
 * es_nf_recovery_open() - listen, and keep what the daemon before has left
 * @most: connections that are kept. Returns 0 or -errno; then, too, it is to be closed.
 */
int es_nf_recovery_open(struct es_nf_recovery *recovery, size_t most, struct es_nf_conntrack *ct,
			struct es_nf_netlink *diag);

/* es_nf_recovery_close() - may be called again, and for a zeroed one */
void es_nf_recovery_close(struct es_nf_recovery *recovery);

/* es_nf_recovery_turn() - one turn, without waiting. Returns how many entries are there again. */
size_t es_nf_recovery_turn(struct es_nf_recovery *recovery);

/* es_nf_recovery_is_due() - is another turn? */
int es_nf_recovery_is_due(const struct es_nf_recovery *recovery);

/**
 * es_nf_recovery_hurry() - a packet of this flow has come, and a turn is due: look at its entry now
 * Returns as es_nf_kept_restore().
 */
int es_nf_recovery_hurry(struct es_nf_recovery *recovery, const struct es_flow *flow);

#endif
