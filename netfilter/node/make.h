/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_MAKE_H
#define ES_NETFILTER_NODE_MAKE_H

/* Makes connections, once that is decided, and notes what this node has to remember of them. */
#include "netfilter/node/node.h"

/**
 * es_nf_make() - make the connection of a request, which was noted before as ES_SETTLED_MAKE
 * @making: all of it is set; @packet: the request's, @len bytes; @socket: see @rebuild of struct es_nf_hands
 * When the outcome is known, mostly before this returns, @making's function is called: with 0, or with -errno
 * if there is no socket, and then it takes the notes back (ES_SETTLED_FORGET). -ETIMEDOUT: see @rebuild of
 * struct es_nf_hands.
 */
void es_nf_make(const struct es_nf_making *making, const uint8_t *packet, size_t len,
		const struct es_flow *socket);

/**
 * es_nf_make_begins() - the hands are about to write the packet that may make the socket
 * Nobody tells whether an attempt that was begun has made a socket, so it is noted as made (ES_SETTLED_BUILT)
 * at this last moment, and the request is this node's for good, also if the daemon dies. If it dies before,
 * nothing comes of the attempt, and the next daemon makes another one (es_nf_node_new()). Returns 0; or
 * -ENOBUFS: the note is gone, so nothing may be written.
 */
int es_nf_make_begins(struct es_nf_node *node, const struct es_flow *flow, __u32 seq);

/* es_nf_made() - the attempt is over, with the result @rc */
void es_nf_made(const struct es_nf_making *making, int rc);

#endif
