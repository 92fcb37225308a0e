/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_LOSSES_H
#define ES_NETFILTER_REBUILD_LOSSES_H

/* Conntrack entries that vanish: by `conntrack -F`, by their timeout, or since their connection has ended. */
#include <stddef.h>
#include "kmod/core/flow.h"
#include "netfilter/kernel/netlink.h"

struct es_nf_losses {
	struct es_nf_netlink nl;
};

/*
 * es_nf_losses_open() - listen. The descriptor is readable when an entry has vanished. Returns 0 or -errno.
 */
int es_nf_losses_open(struct es_nf_losses *losses);
void es_nf_losses_close(struct es_nf_losses *losses);
int es_nf_losses_fd(const struct es_nf_losses *losses);

/**
 * es_nf_losses_read() - call @fn for each TCP entry that has vanished, without waiting; for at most @most of
 * them
 * @flow: its original direction; @state: its enum tcp_conntrack at that time, 0 if the kernel does not tell
 * (before 5.9) Returns 0; 1 if there may be more; -ENOBUFS if the kernel had no room to report some, so that
 * all kept entries must be checked; or -errno.
 */
typedef void (*es_nf_loss_fn)(void *ctx, const struct es_flow *flow, __u8 state);
int es_nf_losses_read(struct es_nf_losses *losses, size_t most, es_nf_loss_fn fn, void *ctx);

#endif
