// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes a connection, and notes what became of it.
 */
#include "netfilter/rebuilding.h"
#include "netfilter/settled.h"

int es_nf_make(struct es_nf_node *node, __u64 flow_hash, __u32 seq, const uint8_t *packet, size_t len,
	       const struct es_tcp_options *options, const struct es_flow *socket)
{
	int rc;

	/*
	 * From now on there may be a socket, which may be over before anybody looks; nor is it known if this process ends meanwhile. Only
	 * who knows better takes that back.
	 */
	es_nf_settle(node, flow_hash, seq, ES_SETTLED_SEEN, 0);
	/* Its socket must not be taken for that of a connection of these ports which has left: who finds that, ends it. */
	es_nf_connection_forget(node->tables.connections, flow_hash);
	rc = node->hands.rebuild(node->hands.ctx, packet, len, options, socket, node->now_ns);
	if (rc < 0)
		return rc;
	es_nf_track_note(node->tables.tracks, flow_hash, seq, es_ns_to_ms(node->now_ns));
	return 0;
}
