// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads and moves the tracks of connections. */
#include "netfilter/node/tracks.h"

struct es_nf_connection *es_nf_track_made(const struct es_nf_node *node, __u32 service, __u64 flow_hash,
					  const struct es_segment *seg)
{
	if (node->config.service[service].inspect != ES_INSPECT_EVERY)
		return NULL;
	return es_nf_connection_begin(node->memory.connections, flow_hash, seg->seq, seg->ack,
				      es_ns_to_ms(node->now_ns));
}

void es_nf_track_begun(const struct es_nf_node *node, const struct es_nf_connection *c)
{
	es_nf_count(node, es_track_counter(&c->track));
}

/* For a connection that was made before its service inspected every request, or whose place was lost. */
static struct es_nf_connection *es_nf_track_unknown(const struct es_nf_node *node, const struct es_view *v)
{
	struct es_nf_connection *c = es_nf_connection_begin(
		node->memory.connections, v->flow_hash, v->seg.seq, v->seg.ack, es_ns_to_ms(node->now_ns));

	es_track_begin_unknown(&c->track);
	es_nf_track_begun(node, c);
	return c;
}

int es_nf_track_is_ending(const struct es_nf_node *node, const struct es_flow *flow)
{
	const struct es_nf_connection *c = es_nf_connection_find(
		node->memory.connections, es_flow_hash(&node->config.ring_key, node->config.ring_seed, flow));

	return c && c->track.state == ES_TRACK_ENDING;
}

void es_nf_track_socket(const struct es_nf_connection *c, const struct es_nf_found *found,
			struct es_track_socket *ret)
{
	ret->rcv_nxt = c->first_seq + found->received;
	ret->copied_seq = ret->rcv_nxt - found->unread;
	ret->snd_una = c->first_ack + found->acked;
	ret->write_seq = ret->snd_una + found->unacked;
	ret->rcv_wnd = found->rcv_wnd;
	ret->max_wnd = found->max_wnd;
	ret->is_established = found->socket == ES_SOCKET_ESTABLISHED && found->is_open;
}

struct es_nf_connection *es_nf_track_view(const struct es_nf_node *node, const struct es_nf_found *found,
					  struct es_view *v)
{
	struct es_nf_connection *c = es_nf_connection_find(node->memory.connections, v->flow_hash);
	struct es_track_socket socket;
	__u8 pin = ES_PIN_none;
	struct es_track *t;

	if (c)
		c->used_ms = es_ns_to_ms(node->now_ns);
	if (c && es_nf_track_is_inside(c, &v->seg))
		return NULL;
	if (!v->seg.len && !(v->seg.flags & ES_TCP_URG) && (!c || c->track.state == ES_TRACK_SERVED))
		return NULL; /* the client's end, without a request that the inspector has */
	if (!found->is_open)
		return NULL;
	if (!c)
		c = es_nf_track_unknown(node, v);
	t = &c->track;
	es_nf_track_socket(c, found, &socket);
	v->track = (__u8)es_track_inbound(t, &v->seg, &socket, v->inspector_alive, &pin);
	if (v->track == ES_TRACK_PIN) {
		es_nf_count(node, es_track_set_pin(t, pin));
		v->track = (__u8)es_track_pinned(t, &v->seg);
	}
	return c;
}
