// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads the state of a connection from its socket and its entry.
 */
#include <errno.h>
#include "netfilter/rebuild/connection.h"

int es_nf_connection_read(struct es_nf_rebuild *rebuild, const struct es_flow *flow, __u32 client_ts,
			  struct es_connection_state *ret_state, __u32 *ret_ahead)
{
	struct es_nf_socket socket;
	struct es_nf_entry entry;
	__u32 first, first_ack;
	int rc = es_nf_conntrack_get(&rebuild->ct, flow, &entry);

	if (rc)
		return rc == -ENOENT ? -EOPNOTSUPP : rc;
	first = es_nf_entry_first(&entry);
	if (!es_nf_conntrack_is_ours(&rebuild->ct, &entry) || !first)
		return -EOPNOTSUPP;
	/* A node where these ports are in TIME_WAIT would refuse a SYN with an old timestamp. */
	if (entry.offsets.its && !client_ts)
		return -EAGAIN;
	rc = es_nf_socket_look(&rebuild->diag, &entry.socket, &socket);
	if (rc)
		return rc == -ENOENT ? -ENOTCONN : rc;
	if (socket.state != ES_NF_TCP_ESTABLISHED)
		return -ENOTCONN;
	first_ack = entry.offsets.isn + 1;
	*ret_state = (struct es_connection_state){
		.bytes_received = socket.received,
		.bytes_acked = socket.acked,
		.rcv_nxt = first + (__u32)socket.received,
		.copied_seq = first + (__u32)socket.received - socket.rqueue,
		.snd_una = first_ack + (__u32)socket.acked,
		.write_seq = first_ack + (__u32)socket.acked + socket.wqueue,
		.ts_recent = client_ts,
		.is_found = 1,
	};
	*ret_ahead = entry.offsets.tsoff;
	return 0;
}
