/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_MAKE_H
#define ES_NETFILTER_NODE_MAKE_H

/*
 * Making a connection, once it is decided, and what this node remembers of it.
 */
#include "netfilter/node/node.h"

/**
 * es_nf_make() - make the connection of a request, which was noted before as ES_SETTLED_MAKE
 * @making: all of it is set; @packet: the request's, @len bytes; @socket: as of struct es_nf_hands
 * Nobody tells whether a socket that was begun has come to something, so it is noted as made
 * (ES_SETTLED_BUILT), and the request is this node's for good. @making's function is called when it is known,
 * mostly before this returns: 0; or -errno, if there is none: that takes the note back (ES_SETTLED_FORGET).
 * -ETIMEDOUT: as of struct es_nf_hands.
 */
void es_nf_make(const struct es_nf_making *making, const uint8_t *packet, size_t len,
		const struct es_flow *socket);

/* es_nf_made() - what has come of it */
void es_nf_made(const struct es_nf_making *making, int rc);

#endif
