/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_REBUILD_CONNECTION_H
#define ES_NETFILTER_REBUILD_CONNECTION_H

/*
 * The state of a connection that was made here, in the numbers that its client knows. The socket has other
 * numbers, which no socket option tells. But it does tell how many bytes were received and sent, and the
 * entry tells where these began, and by how much the clock is shifted.
 */
#include "kmod/core/abi.h"
#include "netfilter/rebuild/rebuild.h"

/**
 * es_nf_connection_read() - all of @ret_state but flow_hash
 * @client_ts: client_ts of struct es_nf_entry; becomes ts_recent. Nothing tells the client's last timestamp,
 * but since timestamps wrap in 50 days, an older one will do for half of that time (RFC 7323, 5.5).
 * @ret_ahead: by how many ticks the socket's clock is ahead of the one that the client sees
 * Returns 0; -ENOTCONN: there is no established socket; -EOPNOTSUPP: it was not made here, or by a version
 * that did not note where it began; -EAGAIN: it has timestamps, and @client_ts is 0; or -errno.
 */
int es_nf_connection_read(struct es_nf_rebuild *rebuild, const struct es_flow *flow, __u32 client_ts,
			  struct es_connection_state *ret_state, __u32 *ret_ahead);

#endif
