/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_MAKE_H
#define ES_NETFILTER_NODE_MAKE_H

/* Makes connections, once that is decided, and notes what this node has to remember of them. */
#include "netfilter/node/node.h"

/**
 * es_nf_make() - make the connection of a request, which was noted before as ES_SETTLED_MAKE
 * @making: all of it is set; @packet: the request's, @len bytes; @socket: see @rebuild of struct es_nf_hands
 * Nobody tells whether an attempt that was begun has made a socket, so a socket is noted as made
 * (ES_SETTLED_BUILT) first, and the request is this node's for good. When the outcome is known, mostly before
 * this returns, @making's function is called: with 0, or with -errno if there is no socket, and then it takes
 * the note back (ES_SETTLED_FORGET). -ETIMEDOUT: see @rebuild of struct es_nf_hands.
 */
void es_nf_make(const struct es_nf_making *making, const uint8_t *packet, size_t len,
		const struct es_flow *socket);

/* es_nf_made() - the attempt is over, with the result @rc */
void es_nf_made(const struct es_nf_making *making, int rc);

#endif
