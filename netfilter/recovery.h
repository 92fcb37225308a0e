/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_RECOVERY_H
#define ES_NETFILTER_RECOVERY_H

/*
 * What open connections need in the kernel besides their sockets, and administrators take away without knowing: their
 * conntrack entries (`conntrack -F`), and the SYNPROXY hook (`nft flush ruleset`, as a firewall's reload does it). The
 * kernel tells of both, and both are put back at once.
 */
#include "netfilter/hook.h"
#include "netfilter/kept.h"
#include "netfilter/losses.h"
#include "netfilter/rebuild.h"

/**
 * struct es_nf_recovery - for the thread that @rebuild is for
 * @restored: entries that were made again; @hooked: how often the hook was; @failed: what could not be, @error being the last reason
 */
struct es_nf_recovery {
	struct es_nf_rebuild *rebuild;
	struct es_nf_hook hook;
	struct es_nf_netlink rules;
	struct es_nf_netlink watch;
	struct es_nf_losses losses;
	struct es_nf_kept *kept;
	unsigned long restored;
	unsigned long hooked;
	unsigned long failed;
	int error;
};

/**
 * es_nf_recovery_open() - begin to listen, and keep what is there already
 * @rebuild: is open, and stays so; @hook: what es_nf_hook_set() has made; @most: connections that are kept
 * Returns 0 or -errno, with @why.
 */
int es_nf_recovery_open(struct es_nf_recovery *recovery, struct es_nf_rebuild *rebuild,
			const struct es_nf_hook *hook, size_t most, struct es_nf_why *why);
void es_nf_recovery_close(struct es_nf_recovery *recovery);

/* es_nf_recovery_fds() - descriptors that are readable when es_nf_recovery_run() has something to do */
#define ES_NF_RECOVERY_FDS 2
void es_nf_recovery_fds(const struct es_nf_recovery *recovery, int ret_fds[ES_NF_RECOVERY_FDS]);

/* es_nf_recovery_run() - put back what is missing, without waiting */
void es_nf_recovery_run(struct es_nf_recovery *recovery);

/* es_nf_recovery_made() - a connection was rebuilt; es_nf_recovery_left() - it has left (es_nf_leave()) */
void es_nf_recovery_made(struct es_nf_recovery *recovery, const struct es_flow *flow);
void es_nf_recovery_left(struct es_nf_recovery *recovery, const struct es_flow *flow);

#endif
