/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_PROGRAM_SOCKET_H
#define ES_PROGRAM_SOCKET_H

/*
 * An established connection that a program has accepted on this node, and that is to leave it. It is
 * silenced, read, and then either ended without a packet or given back. Needs CAP_NET_ADMIN (TCP_REPAIR).
 *
 * A socket in TCP_REPAIR goes on receiving and acknowledging, so a socket filter drops everything that
 * arrives. A packet that a CPU took up before the filter was there may still be received, and acknowledged,
 * until a grace period of the kernel has passed (es_datapath_settle()), or until the socket is closed: a
 * closed one discards it, and its client repeats it. The client repeats what it sends later, and gets its
 * answer from whichever socket then has the connection.
 */
#include <stddef.h>
#include <stdint.h>
#include "inspector/datapath/datapath.h"
#include "kmod/core/flow.h"
#include "kmod/core/tcp.h"

/* At most this many bytes that the program has not yet read travel along. */
#define ES_PROGRAM_UNREAD_MAX (1u << 20)

/**
 * struct es_program_socket - a connection and what travels with it
 * @first_seq: the client's sequence number of the first of @len @bytes
 * @received: bytes that the kernel had received when it was read; @looked_nxt: what it expected next when it
 * was looked at last; @has_fin: after @bytes, the client has closed its side; @is_over: it has reset all
 * @is_gone: es_program_socket_vanish() has ended it, so that a new connection of its client may have the same
 * ports
 * @sends_tls: the kernel protects what the program sends on it (kTLS): it is there until the program closes
 * it
 * @front: so many of them may be other ones than those that were read
 * @clock: the current value of our timestamps, as the client is shown them; @clock_ahead: the socket's own
 * are so much later
 */
struct es_program_socket {
	int fd;
	int reuse; /* SO_REUSEADDR, which freezing disturbs */
	int is_gone;
	int has_fin;
	int is_over;
	int sends_tls;
	uint64_t received;
	uint32_t looked_nxt;
	struct es_flow flow;
	struct es_tcp_options options;
	struct es_connection_state state;
	uint32_t first_seq;
	uint32_t clock;
	uint32_t clock_ahead;
	uint8_t *bytes;
	size_t len;
	size_t given;
	size_t front;
};

/**
 * es_program_socket_init() - is @fd a connection that can leave?
 * @bytes: what the program has read last and the server shall read again, @len of them; taken over on success
 * @fd is the caller's, and so is @front. Returns 0; -EOPNOTSUPP for what is no plain TCP connection of this
 * network namespace (MPTCP, TLS in the kernel unless it only sends and has a @front, with a socket filter);
 * -ENOTCONN; -EPIPE if the client has
 * closed its side.
 */
int es_program_socket_init(struct es_program_socket *connection, int fd, uint8_t *bytes, size_t len);

/* es_program_socket_fini() - free the bytes */
void es_program_socket_fini(struct es_program_socket *connection);

/**
 * es_program_socket_look() - could it leave now?
 * Fills in @state and @first_seq. Returns 0; -EBUSY while the client has not acknowledged everything; -EINVAL
 * if more bytes were given than the program can have read; -EMSGSIZE; or -errno.
 */
int es_program_socket_look(struct es_program_socket *connection, struct es_datapath *datapath);

/*
 * es_program_socket_freeze() - stop it from sending and receiving, and the program from reading and writing
 * it.
 */
int es_program_socket_freeze(struct es_program_socket *connection);

/* es_program_socket_thaw() - undo that. The client's retransmissions bring what was missed. */
void es_program_socket_thaw(struct es_program_socket *connection);

/**
 * es_program_socket_read() - read all that its successor needs, from a frozen socket
 * Bytes that the program has not read yet are added after those that it gave. Returns as
 * es_program_socket_look().
 */
int es_program_socket_read(struct es_program_socket *connection, struct es_datapath *datapath);

/**
 * es_program_socket_late() - what has it received since it was read?
 * Adds that to @bytes, and sets @has_fin. Returns 0, also if it is over, or -errno: there are bytes that
 * cannot be read, like urgent ones.
 */
int es_program_socket_late(struct es_program_socket *connection);

/* es_program_socket_end() - how far its successor must have come to have all, its client's FIN included */
static inline size_t es_program_socket_end(const struct es_program_socket *c)
{
	return c->len + (c->has_fin != 0);
}

/*
 * es_program_socket_vanish() - end the frozen socket without a packet, whoever has descriptors of it, or, if
 * it @sends_tls, as soon as nobody has any; once. Returns 0 or -errno.
 */
int es_program_socket_vanish(struct es_program_socket *connection, struct es_datapath *datapath);

/**
 * es_program_socket_missed() - has a socket that vanished received something after es_program_socket_late()?
 * The client may know that it arrived, so nobody will ever have it. Returns 0 or 1.
 */
int es_program_socket_missed(const struct es_program_socket *connection);

/**
 * es_program_socket_packet() - the packet that brings @len of its bytes from @offset on
 * @fin: and then its client's FIN
 * @ret_packet: room for ES_ANSWER_HEADER_MAX + @len. Returns the packet's length.
 */
size_t es_program_socket_packet(const struct es_program_socket *connection, size_t offset, size_t len,
				int fin, uint8_t *ret_packet);

#endif
