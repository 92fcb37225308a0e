// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Puts back what open connections need and somebody has taken away.
 */
#include <errno.h>
#include <string.h>
#include "netfilter/recovery.h"

int es_nf_recovery_open(struct es_nf_recovery *recovery, struct es_nf_rebuild *rebuild,
			const struct es_nf_hook *hook, size_t most, struct es_nf_why *why)
{
	int rc;

	*recovery = (struct es_nf_recovery){.rebuild = rebuild, .hook = *hook};
	/* Listening comes first, so that nothing is lost between. */
	rc = es_nf_losses_open(&recovery->losses);
	if (!rc)
		rc = es_nf_hook_watch(&recovery->watch);
	if (!rc)
		rc = es_nf_netlink_open(&recovery->rules, NETLINK_NETFILTER);
	if (!rc)
		rc = es_nf_kept_new(most, &recovery->kept);
	if (!rc)
		rc = es_nf_kept_look_all(recovery->kept, &rebuild->ct);
	if (!rc || rc == -ENOSPC) /* those above the limit are the price of it */
		return 0;
	es_nf_recovery_close(recovery);
	return es_nf_why(why, rc, "events of the connection tracking (CONFIG_NF_CONNTRACK_EVENTS): %s",
			 strerror(-rc));
}

void es_nf_recovery_close(struct es_nf_recovery *recovery)
{
	es_nf_kept_free(&recovery->kept);
	es_nf_netlink_close(&recovery->rules);
	es_nf_netlink_close(&recovery->watch);
	es_nf_losses_close(&recovery->losses);
}

void es_nf_recovery_fds(const struct es_nf_recovery *recovery, int ret_fds[ES_NF_RECOVERY_FDS])
{
	ret_fds[0] = es_nf_losses_fd(&recovery->losses);
	ret_fds[1] = mnl_socket_get_fd(recovery->watch.socket);
}

static void note(struct es_nf_recovery *recovery, int error)
{
	recovery->failed++;
	recovery->error = error;
}

static void on_loss(void *ctx, const struct es_flow *flow, __u8 state)
{
	struct es_nf_recovery *r = ctx;
	int rc = es_nf_kept_restore(r->kept, &r->rebuild->ct, &r->rebuild->diag, flow);

	(void)state; /* the socket knows better whether the connection is over */
	if (rc < 0)
		note(r, rc);
	else
		r->restored += (unsigned long)rc;
}

/* The hook first: without it, entries that are made are of no use. */
void es_nf_recovery_run(struct es_nf_recovery *recovery)
{
	const struct es_nf_tun *tun = recovery->rebuild->tun;
	int rc = es_nf_hook_watched(&recovery->watch);

	if (!rc)
		rc = es_nf_hook_is_set(&recovery->rules, &recovery->hook);
	if (!rc) {
		rc = es_nf_hook_set_as(&recovery->rules, tun->is_marked ? tun->name : NULL, &recovery->hook);
		recovery->hooked += !rc;
	}
	if (rc < 0)
		note(recovery, rc);
	rc = es_nf_losses_read(&recovery->losses, on_loss, recovery);
	if (rc == -ENOBUFS)
		recovery->restored += es_nf_kept_restore_all(recovery->kept, &recovery->rebuild->ct,
							     &recovery->rebuild->diag);
	else if (rc)
		note(recovery, rc);
}

void es_nf_recovery_made(struct es_nf_recovery *recovery, const struct es_flow *flow)
{
	int rc = es_nf_kept_look(recovery->kept, &recovery->rebuild->ct, flow);

	if (rc && rc != -ENOENT) /* it may be over already */
		note(recovery, rc);
}

void es_nf_recovery_left(struct es_nf_recovery *recovery, const struct es_flow *flow)
{
	es_nf_kept_forget(recovery->kept, flow);
}
