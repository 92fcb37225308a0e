/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_SOCKET_H
#define ES_NETFILTER_KERNEL_SOCKET_H

/*
 * What socket a flow has here, by sock_diag.
 */
#include "kmod/core/flow.h"
#include "netfilter/kernel/netlink.h"

/* The kernel's states, which netinet/tcp.h and linux/tcp.h define in ways that exclude each other. */
enum es_nf_tcp_state {
	ES_NF_TCP_ESTABLISHED = 1,
	ES_NF_TCP_SYN_RECV = 3,
	ES_NF_TCP_FIN_WAIT2 = 5,
	ES_NF_TCP_TIME_WAIT = 6,
	ES_NF_TCP_LISTEN = 10,
	ES_NF_TCP_NEW_SYN_RECV = 12,
};

/**
 * struct es_nf_socket
 * @rqueue, @wqueue: bytes that the server has not read, and that the client has not acknowledged; of a listening
 *                   socket, connections that wait, and how many may
 *                   (where a server listens with MPTCP, it is the first subflow that listens, and in whose queue they wait)
 * @state: the kernel's; ES_NF_TCP_LISTEN: the flow has no socket, and would get one from this
 * @is_accepted: a connection that its server has accepted
 * @received: bytes of its client's that a connection has got; @acked: bytes that its client has acknowledged; @sent: bytes
 *            that were sent to it, 0 where the kernel does not tell (before 4.19)
 * @unsent: of @wqueue, what was not sent yet
 * @heard_ms: since its client acknowledged something last, or nothing anew
 * @quiet_ms: since data came or went last; @said_last: it has sent some, and nothing has come since
 * @rcv_wscale, @snd_wscale: of a connection, what it really uses
 * @rcv_wnd: how wide its window is; where the kernel does not tell (before 6.2), at the most
 * @cookie: by which the kernel knows this very socket
 */
struct es_nf_socket {
	__u64 received;
	__u64 acked;
	__u64 sent;
	__u32 rqueue;
	__u32 wqueue;
	__u32 unsent;
	__u32 heard_ms;
	__u32 quiet_ms;
	__u32 rcv_wnd;
	__u32 cookie[2];
	__u8 said_last;
	__u8 state;
	__u8 is_accepted;
	__u8 rcv_wscale;
	__u8 snd_wscale;
};

/* es_nf_socket_look() - @nl: NETLINK_SOCK_DIAG. Returns 0; -ENOENT: nothing listens, either; or -errno. */
int es_nf_socket_look(struct es_nf_netlink *nl, const struct es_flow *flow, struct es_nf_socket *ret_socket);

/**
 * es_nf_socket_end() - do away with it; its client hears nothing of one that es_nf_socket_is_over()
 * Returns 0, also if it is gone; -EOPNOTSUPP where the kernel cannot (CONFIG_INET_DIAG_DESTROY; older ones, what is over); or -errno.
 */
int es_nf_socket_end(struct es_nf_netlink *nl, const struct es_flow *flow, const struct es_nf_socket *socket);

/*
 * es_nf_socket_is_over() - has its server closed it, and does nobody have it any more? It answers what comes late, and would answer a new
 * connection of these ports, too: in FIN_WAIT2 it waits for the client's FIN, which may never come.
 */
static inline int es_nf_socket_is_over(const struct es_nf_socket *socket)
{
	return socket->state == ES_NF_TCP_TIME_WAIT ||
	       (socket->state == ES_NF_TCP_FIN_WAIT2 && !socket->is_accepted);
}

/* es_nf_socket_is_half() - is it of a handshake that is not over? */
static inline int es_nf_socket_is_half(const struct es_nf_socket *socket)
{
	return socket->state == ES_NF_TCP_SYN_RECV || socket->state == ES_NF_TCP_NEW_SYN_RECV;
}

/* es_nf_socket_is_connection() - is it one that packets of the flow go to, and not one that is over, or may be? */
static inline int es_nf_socket_is_connection(const struct es_nf_socket *socket)
{
	return socket->state != ES_NF_TCP_LISTEN && socket->state != ES_NF_TCP_TIME_WAIT &&
	       !es_nf_socket_is_half(socket);
}

#endif
