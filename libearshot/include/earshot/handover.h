/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef EARSHOT_HANDOVER_H
#define EARSHOT_HANDOVER_H

/**
 * request_handover() for programs: accept a connection, read as much of the request as you want, decide, and
 * give the established connection away. DTS (Fujita, Ishikawa 2010), section 2.1 and Fig. 3. What the cluster
 * needs for it, and what happens when something fails, is in docs/programs.md.
 *
 * A minimal inspector:
 *
 *	int fd = accept(listener, NULL, NULL);
 *	ssize_t len = read(fd, buf, sizeof(buf));
 *	if (len > 0 && request_handover(fd, choose_node(buf, len), buf, (size_t)len) < 0)
 *		answer_yourself(fd, buf, len);
 *	close(fd);
 */
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes that can be given back with one handover. What was received but not read yet has a bound of its own. */
#define ES_HANDOVER_BYTES_MAX 65536

/**
 * request_handover() - give an established connection to the server of a node
 * @fd: a connected TCP socket of this process, accepted on the address and port of a service that has a
 *	server_port; of IPv4 or IPv6, or of IPv4 on a socket of IPv6 (::ffff:a.b.c.d)
 * @node: the node's name in Earshot's configuration; NULL for this one, to give the connection to the local
 *	server
 * @buf: the last bytes that were read from @fd, which the server shall read again; may be NULL if @len is 0
 * @len: how many, at most ES_HANDOVER_BYTES_MAX
 *
 * The server there accepts a connection from the client's own address and reads exactly @buf, what was
 * received here but not read yet, and all that the client sends later: no byte is lost, doubled or reordered,
 * and the client notices nothing. The connection may have carried earlier requests, if their answers were
 * acknowledged.
 *
 * Context: blocks until the node has confirmed the handover: usually a millisecond, 5 to 30 ms for this node,
 * which waits for the kernel's grace period, and some seconds at worst. Any thread may call it, and several at a time with different sockets; another
 * thread that uses @fd meanwhile gets an error. Not async-signal-safe. It needs no privileges, only access to
 * earshotd's socket (environment variable EARSHOT_HANDOVER_SOCKET; otherwise the one in /run/earshot that ends
 * in ".handover").
 *
 * Ownership: @fd and @buf stay the caller's. After success @fd is dead: read() and write() fail, close() does
 * nothing but close it. Children and threads with copies of the descriptor find the same.
 *
 * Return: 0, or a negative errno.
 *
 * The connection is still yours, unchanged, and can be served or given to another node:
 *	-ECONNREFUSED	the node refused: no server listens there, its accept queue is full, the node is not
 *			sure of its membership
 *	-EHOSTUNREACH	the node does not answer
 *	-ENOENT		there is no node of that name
 *	-EBUSY		the client has not acknowledged all that was written to @fd; or there is urgent data
 *	-EAGAIN		too many handovers at a time, or the ring changes; try again
 *	-EINVAL		@len is more than was ever read from @fd
 *	-EMSGSIZE	@len is above ES_HANDOVER_BYTES_MAX, or more than 1 MiB lies unread
 *	-EPIPE		the client has closed its side; answer it
 *	-ENOTCONN	@fd is no established connection (any more)
 *	-EOPNOTSUPP	@fd is no plain TCP connection of a service with a server_port: MPTCP, TLS in the
 *			kernel, a socket filter, another network namespace, a client of IPv4 or IPv6 for which
 *			there is no server_address, or one with a link-local address
 *	-ENOLINK	earshotd does not run on this machine, or its socket was not found
 *	-EACCES		this process may not use earshotd's socket
 *	-EMFILE, -ENFILE, -ENOMEM	as usual
 *
 * The connection is lost to you, close @fd:
 *	-ECONNRESET	it ended in the middle: the server died, or earshotd did. The client hears of it, except
 *			when earshotd died
 *	-ETIMEDOUT	the node agreed and then fell silent. It may have the connection, so the client was told
 *			nothing
 */
int request_handover(int fd, const char *node, const void *buf, size_t len)
	__attribute__((visibility("default")));

#ifdef __cplusplus
}
#endif

#endif
