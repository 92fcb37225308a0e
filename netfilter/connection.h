/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_CONNECTION_H
#define ES_NETFILTER_CONNECTION_H

/*
 * What a connection that was made here knows, in the numbers that its client knows. A socket has numbers of its own, which none
 * of its options tells; but how many bytes have come and gone it does tell, and its entry where they began and by how much the
 * clock is shifted.
 */
#include "kmod/core/abi.h"
#include "netfilter/rebuild.h"

/**
 * es_nf_connection_read() - all of @ret_state but flow_hash
 * @ret_state: ts_recent is 0, which for TCP is a client that has told no time yet: it is told by nothing
 * @ret_ahead: the socket's clock is so many ticks ahead of the one that its client is shown
 * Returns 0; -ENOTCONN: there is no established socket; -EOPNOTSUPP: it was not made here, or by a version that did not
 * note where it began; or -errno.
 */
int es_nf_connection_read(struct es_nf_rebuild *rebuild, const struct es_flow *flow,
			  struct es_connection_state *ret_state, __u32 *ret_ahead);

#endif
