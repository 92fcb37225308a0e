// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Listens to the kernel's DESTROY events of conntrack entries.
 */
#include <errno.h>
#include <linux/netfilter/nfnetlink_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <sys/socket.h>
#include "netfilter/kernel/entry.h"
#include "netfilter/rebuild/losses.h"

/* `conntrack -F` reports all entries at once. */
#define ES_RECEIVE_BUFFER (4 << 20)

int es_nf_losses_open(struct es_nf_losses *losses)
{
	unsigned int group = NFNLGRP_CONNTRACK_DESTROY;
	int room = ES_RECEIVE_BUFFER, rc = es_nf_netlink_open(&losses->nl, NETLINK_NETFILTER);

	if (rc)
		return rc;
	/* CAP_NET_ADMIN may exceed the system's limit. */
	(void)setsockopt(es_nf_losses_fd(losses), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
	if (mnl_socket_setsockopt(losses->nl.socket, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) < 0) {
		rc = -errno;
		es_nf_losses_close(losses);
	}
	return rc;
}

void es_nf_losses_close(struct es_nf_losses *losses)
{
	es_nf_netlink_close(&losses->nl);
}

int es_nf_losses_fd(const struct es_nf_losses *losses)
{
	return mnl_socket_get_fd(losses->nl.socket);
}

int es_nf_losses_read(struct es_nf_losses *losses, size_t most, es_nf_loss_fn fn, void *ctx)
{
	char buf[ES_NF_NETLINK_ROOM];

	/* One datagram for each entry. */
	for (size_t n = 0; n < most; n++) {
		ssize_t got = recv(es_nf_losses_fd(losses), buf, sizeof(buf), MSG_DONTWAIT);
		const struct nlmsghdr *nlh = (const struct nlmsghdr *)buf;
		struct es_nf_entry entry;
		int left = (int)got;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno == EAGAIN ? 0 : -errno;
		for (; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left))
			if (nlh->nlmsg_type == (NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE) &&
			    !es_nf_entry_read(nlh, &entry))
				fn(ctx, &entry.flow, entry.state);
	}
	return 1;
}
