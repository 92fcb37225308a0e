// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes a connection, and notes what became of it.
 */
#include <errno.h>
#include "netfilter/node/make.h"
#include "netfilter/node/settled.h"

void es_nf_make(const struct es_nf_making *making, const uint8_t *packet, size_t len,
		const struct es_flow *socket)
{
	struct es_nf_node *node = making->node;
	int rc;

	/*
	 * The new socket must not be taken for that of an earlier connection of these ports, which has left:
	 * such a socket is ended where it is found.
	 */
	es_nf_connection_forget(node->memory.connections, making->flow_hash);
	rc = node->hands.rebuild(node->hands.ctx, packet, len, socket, making, node->now_ns);
	if (rc != -EINPROGRESS)
		es_nf_made(making, rc);
}

int es_nf_make_begins(struct es_nf_node *node, const struct es_flow *flow, __u32 seq)
{
	__u64 flow_hash = es_flow_hash(&node->config.ring_key, node->config.ring_seed, flow);

	/*
	 * From now on there may be a socket. It may be over before anybody looks, and nobody can know of it
	 * if this process ends meanwhile. Only the function that knows better takes the note back.
	 */
	return es_nf_settle(node, flow_hash, seq, ES_SETTLED_SEEN, 0).as == ES_SETTLED_BUILT ? 0 : -ENOBUFS;
}

void es_nf_made(const struct es_nf_making *making, int rc)
{
	const struct es_nf_node *node = making->node;

	if (!rc)
		es_nf_fresh_note(node->memory.fresh, making->flow_hash, making->seg.seq,
				 es_ns_to_ms(node->now_ns));
	making->made(making, rc);
}
