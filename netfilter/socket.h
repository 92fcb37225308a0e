/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_SOCKET_H
#define ES_NETFILTER_SOCKET_H

/*
 * What socket a flow has here, by sock_diag.
 */
#include "kmod/core/flow.h"
#include "netfilter/netlink.h"

/**
 * struct es_nf_socket
 * @state: TCP_ESTABLISHED, …, of netinet/tcp.h; TCP_LISTEN: the flow has none, but would get one from this
 * @is_accepted: a connection that its server has accepted
 * @rqueue, @wqueue: bytes that the server has not read, and that the client has not acknowledged; of a listening
 *                   socket, connections that wait, and how many may
 * @rcv_wscale, @snd_wscale: what the socket really uses, of a connection
 */
struct es_nf_socket {
	__u32 rqueue;
	__u32 wqueue;
	__u8 state;
	__u8 is_accepted;
	__u8 rcv_wscale;
	__u8 snd_wscale;
};

/* es_nf_socket_look() - @nl: NETLINK_SOCK_DIAG. Returns 0; -ENOENT: nothing listens, either; or -errno. */
int es_nf_socket_look(struct es_nf_netlink *nl, const struct es_flow *flow, struct es_nf_socket *ret_socket);

/* es_nf_socket_is_idle() - has the server read all, and the client acknowledged all? */
static inline int es_nf_socket_is_idle(const struct es_nf_socket *socket)
{
	return !socket->rqueue && !socket->wqueue;
}

#endif
