/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILDING_H
#define ES_NETFILTER_REBUILDING_H

/*
 * Making a connection, once it is decided, and what this node remembers of it.
 */
#include "netfilter/node.h"

/**
 * es_nf_make() - make the connection of a request, which was noted before as ES_SETTLED_MAKE
 * @packet: the request's, @len bytes; @seq: of its first byte; @socket: as of struct es_nf_hands
 * Nobody tells whether a socket that was begun has come to something, so it is noted as made (ES_SETTLED_BUILT), and the request is this
 * node's for good. Returns 0; or -errno, if there is none: the caller then takes his note back (ES_SETTLED_FORGET). -ETIMEDOUT: as of
 * struct es_nf_hands.
 */
int es_nf_make(struct es_nf_node *node, __u64 flow_hash, __u32 seq, const uint8_t *packet, size_t len,
	       const struct es_tcp_options *options, const struct es_flow *socket);

#endif
