/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_SOCKET_H
#define ES_NETFILTER_KERNEL_SOCKET_H

/* Which socket a flow has here, by sock_diag. */
#include "kmod/core/flow.h"
#include "netfilter/kernel/netlink.h"

/* The kernel's states. netinet/tcp.h and linux/tcp.h define them, but cannot be included together. */
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
 * @rqueue, @wqueue: bytes that the server has not read, and that the client has not acknowledged; for a
 * listening socket, connections that wait, and how many may. If the server listens with MPTCP, this is the
 * first subflow's socket, in whose queue they wait.
 * @state: the kernel's; ES_NF_TCP_LISTEN: the flow has no socket, and this one listens for it
 * @is_accepted: the server has accepted the connection
 * @received: bytes received from the client; @acked: bytes that the client has acknowledged; @sent: bytes
 * sent to it, 0 where the kernel does not tell (before 4.19)
 * @unsent: the part of @wqueue that was not sent yet
 * @heard_ms: since the client's last acknowledgement
 * @quiet_ms: since data was last received or sent; @said_last: data was sent, and none received since
 * @rcv_wscale, @snd_wscale: the window scales in use
 * @rcv_wnd: the receive window; its maximum where the kernel does not tell (before 6.2)
 * @cookie: identifies this very socket
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

/*
 * es_nf_socket_look() - @nl: NETLINK_SOCK_DIAG. Returns 0; -ENOENT: no socket, and none listens; or -errno.
 */
int es_nf_socket_look(struct es_nf_netlink *nl, const struct es_flow *flow, struct es_nf_socket *ret_socket);

/**
 * es_nf_socket_end() - destroy it. If es_nf_socket_is_over(), the client gets no RST.
 * Returns 0, also if it is already gone; -EOPNOTSUPP where the kernel cannot (CONFIG_INET_DIAG_DESTROY; older
 * kernels, if it is over); or -errno.
 */
int es_nf_socket_end(struct es_nf_netlink *nl, const struct es_flow *flow, const struct es_nf_socket *socket);

/*
 * es_nf_socket_is_over() - has its server closed it, and does no process have it any more? It answers late
 * packets, and would also answer a new connection of the same ports. In FIN_WAIT2 it waits for the client's
 * FIN, which may never arrive.
 */
static inline int es_nf_socket_is_over(const struct es_nf_socket *socket)
{
	return socket->state == ES_NF_TCP_TIME_WAIT ||
	       (socket->state == ES_NF_TCP_FIN_WAIT2 && !socket->is_accepted);
}

/* es_nf_socket_is_half() - is its handshake unfinished? */
static inline int es_nf_socket_is_half(const struct es_nf_socket *socket)
{
	return socket->state == ES_NF_TCP_SYN_RECV || socket->state == ES_NF_TCP_NEW_SYN_RECV;
}

/*
 * es_nf_socket_is_connection() - is it a connection that gets the flow's packets, and neither listening, half
 * open nor in TIME_WAIT?
 */
static inline int es_nf_socket_is_connection(const struct es_nf_socket *socket)
{
	return socket->state != ES_NF_TCP_LISTEN && socket->state != ES_NF_TCP_TIME_WAIT &&
	       !es_nf_socket_is_half(socket);
}

#endif
