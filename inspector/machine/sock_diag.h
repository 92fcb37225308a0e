/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SOCK_DIAG_H
#define ES_SOCK_DIAG_H

/*
 * The kernel's TCP sockets, by NETLINK_SOCK_DIAG: listed, and ended; those of the calling thread's network
 * namespace.
 */
#include "kmod/core/flow.h"

/**
 * struct es_sock_diag_id - names one socket, and never a later one of the same flow
 * @cookie: the kernel's number for it; @state: when it was listed, an enum es_tcp_state
 * @unacked: so many bytes of its own, a FIN counting as one, have not been acknowledged then, be they sent or
 * not
 * @unread: bytes of the peer's that nobody has read yet
 */
struct es_sock_diag_id {
	struct es_flow flow;
	unsigned int cookie[2];
	unsigned int unacked;
	unsigned int unread;
	unsigned char state;
};

/**
 * es_sock_diag_walk() - call @fn for each TCP socket that has a peer and is not in TIME_WAIT
 * Those that come or go meanwhile may be missed. @fn: may end the socket. Returns 0 or -errno.
 */
typedef void (*es_sock_diag_fn)(void *ctx, const struct es_sock_diag_id *id);
int es_sock_diag_walk(es_sock_diag_fn fn, void *ctx);

/**
 * es_sock_diag_end() - end a socket as its kernel would for an administrator: RST to the peer, error to its
 * owner
 * Needs CAP_NET_ADMIN. Returns 0; -ENOENT if it is gone; -EOPNOTSUPP for a kernel without
 * CONFIG_INET_DIAG_DESTROY; or -errno.
 */
int es_sock_diag_end(const struct es_sock_diag_id *id);

/**
 * struct es_sock_diag_listener - a socket that listens, of IPv4 or IPv6
 * @cookie: the kernel's number for it
 * @address: all zero: any; @waiting: connections that wait to be accepted, of at most @backlog
 * @interface: to which it is bound, 0: to none
 * @is_mptcp: it is the first subflow of a socket of MPTCP, which accepts from this one's queue
 */
struct es_sock_diag_listener {
	unsigned int cookie[2];
	struct es_addr address;
	unsigned int port;
	unsigned int backlog;
	unsigned int waiting;
	unsigned int interface;
	int is_v6;
	int is_v6only;
	int is_mptcp;
};

/* es_sock_diag_listeners() - call @fn for each. Returns 0 or -errno. */
typedef void (*es_sock_diag_listener_fn)(void *ctx, const struct es_sock_diag_listener *listener);
int es_sock_diag_listeners(es_sock_diag_listener_fn fn, void *ctx);

/**
 * es_sock_diag_is_waiting() - has nobody accepted this connection yet?
 * @service, @port: the server's side; @client, @client_port: the other, both ports in host byte order
 * Returns 1: it waits in the accept queue; 0: it was accepted, or its server waits for data before it is told
 * of it; -ENOENT: there is no such connection (any more); or -errno.
 */
int es_sock_diag_is_waiting(const struct es_addr *service, unsigned int port, const struct es_addr *client,
			    unsigned int client_port);

/* es_sock_diag_takes() - would the kernel give it a connection to @address and @port? */
int es_sock_diag_takes(const struct es_sock_diag_listener *listener, const struct es_addr *address,
		       unsigned int port);

#endif
