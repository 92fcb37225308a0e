// SPDX-License-Identifier: GPL-2.0-or-later
/* Recovers lost entries by turns. */
#include <errno.h>
#include "netfilter/rebuild/recovery.h"

int es_nf_recovery_open(struct es_nf_recovery *recovery, size_t most, struct es_nf_conntrack *ct,
			struct es_nf_netlink *diag)
{
	int rc;

	*recovery = (struct es_nf_recovery){.ct = ct, .diag = diag};
	rc = es_nf_kept_new(most, &recovery->kept);
	if (!rc)
		rc = es_nf_losses_open(&recovery->losses);
	if (!rc)
		rc = es_nf_kept_look_all(recovery->kept, ct);
	/* The table changed during the walk: some entries may be missing. */
	return rc == -EINTR ? 0 : rc;
}

void es_nf_recovery_close(struct es_nf_recovery *recovery)
{
	es_nf_losses_close(&recovery->losses);
	es_nf_kept_free(&recovery->kept);
}

struct turn {
	struct es_nf_recovery *recovery;
	size_t restored;
};

static void on_loss(void *ctx, const struct es_flow *flow, __u8 state)
{
	struct turn *turn = ctx;
	const struct es_nf_recovery *r = turn->recovery;

	(void)state; /* the socket tells whether the connection is over */
	turn->restored += es_nf_kept_restore(r->kept, r->ct, r->diag, flow) == 1;
}

size_t es_nf_recovery_turn(struct es_nf_recovery *recovery)
{
	struct es_nf_recovery *r = recovery;
	struct turn turn = {.recovery = r};
	int rc = es_nf_losses_read(&r->losses, ES_NF_RECOVERY_TURN, on_loss, &turn);

	/* After ENOBUFS, unread reports may be incomplete as well. */
	r->is_behind = rc == 1 || rc == -ENOBUFS;
	if (rc == -ENOBUFS)
		es_nf_kept_restore_begin(r->kept);
	return turn.restored + es_nf_kept_restore_some(r->kept, r->ct, r->diag, ES_NF_RECOVERY_TURN);
}

int es_nf_recovery_is_due(const struct es_nf_recovery *recovery)
{
	return recovery->is_behind || es_nf_kept_is_restoring(recovery->kept);
}

int es_nf_recovery_hurry(struct es_nf_recovery *recovery, const struct es_flow *flow)
{
	struct es_nf_recovery *r = recovery;

	return es_nf_recovery_is_due(r) ? es_nf_kept_restore(r->kept, r->ct, r->diag, flow) : 0;
}
