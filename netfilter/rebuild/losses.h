/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_LOSSES_H
#define ES_NETFILTER_REBUILD_LOSSES_H

/*
 * Conntrack entries that go: by `conntrack -F`, because their time is over, or because their connection has ended.
 */
#include <stddef.h>
#include "kmod/core/flow.h"
#include "netfilter/kernel/netlink.h"

struct es_nf_losses {
	struct es_nf_netlink nl;
};

/* es_nf_losses_open() - listen. The socket's descriptor is readable when something is lost. Returns 0 or -errno. */
int es_nf_losses_open(struct es_nf_losses *losses);
void es_nf_losses_close(struct es_nf_losses *losses);
int es_nf_losses_fd(const struct es_nf_losses *losses);

/**
 * es_nf_losses_read() - call @fn for each TCP entry that has gone, without waiting; for @most of them
 * @flow: by its original direction; @state: enum tcp_conntrack when it went, 0 if the kernel does not tell (before 5.9)
 * Returns 0; 1 if there may be more; -ENOBUFS if the kernel had no room and entries went that nobody is told of: what is kept must be
 * compared with what is there; or -errno.
 */
typedef void (*es_nf_loss_fn)(void *ctx, const struct es_flow *flow, __u8 state);
int es_nf_losses_read(struct es_nf_losses *losses, size_t most, es_nf_loss_fn fn, void *ctx);

#endif
