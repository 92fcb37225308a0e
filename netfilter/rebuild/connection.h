/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_CONNECTION_H
#define ES_NETFILTER_REBUILD_CONNECTION_H

/*
 * What a connection that was made here knows, in the numbers that its client knows. A socket has numbers of its own, which none
 * of its options tells; but how many bytes have come and gone it does tell, and its entry where they began and by how much the
 * clock is shifted.
 */
#include "kmod/core/abi.h"
#include "netfilter/rebuild/rebuild.h"

/**
 * es_nf_connection_read() - all of @ret_state but flow_hash
 * @client_ts: struct es_nf_entry's, which becomes ts_recent: nothing tells its client's last timestamp, but since timestamps
 * go round in 50 days, one that is older does as well for half of that (RFC 7323, 5.5)
 * @ret_ahead: the socket's clock is so many ticks ahead of the one that its client is shown
 * Returns 0; -ENOTCONN: there is no established socket; -EOPNOTSUPP: it was not made here, or by a version that did not
 * note where it began; -EAGAIN: it has timestamps, and @client_ts is 0; or -errno.
 */
int es_nf_connection_read(struct es_nf_rebuild *rebuild, const struct es_flow *flow, __u32 client_ts,
			  struct es_connection_state *ret_state, __u32 *ret_ahead);

#endif
