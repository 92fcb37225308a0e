// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes the view of a packet from the tables and sockets of this node. Decides nothing.
 */
#include "view.h"

/* Has this node ended the packet's connection? It is seldom asked: only for a while after it ended any. */
static int es_view_is_ended(const struct es_node *node, const struct es_view *v, u64 now_ns)
{
	struct es_reset *slot = es_reset_slot(node, v->flow_hash);

	if (v->seg.flags & ES_TCP_SYN)
		es_reset_forget(slot, v->flow_hash);
	return es_reset_is_of(slot, v->flow_hash, v->seg.ack, (u32)div_u64(now_ns, NSEC_PER_MSEC));
}

void es_view_complete(const struct es_node *node, const struct es_version *version,
		      const struct es_packet *pkt, struct es_view *v, u64 now_ns)
{
	const struct es_config *cfg = &version->config;
	const struct es_state *state = node->state;
	struct es_flow flow;
	u32 worker;

	es_packet_flow(pkt, &flow);
	v->flow_hash = es_flow_hash(&cfg->ring_key, &flow);
	if (v->socket == ES_SOCKET_NONE && es_resets_are_fresh(READ_ONCE(state->reset_ns), now_ns))
		v->ended = (u8)es_view_is_ended(node, v, now_ns);
	if (v->socket != ES_SOCKET_ESTABLISHED) {
		if (es_node_ring_answers(&version->ring, v->flow_hash)) {
			v->mine = READ_ONCE(state->attached) != 0;
			v->waits = es_node_ring_waits(&version->ring, v->flow_hash);
		}
		/* A request that moved its connection away from here concerns this node all the same, and so
		 * does the end of a connection that its inspector has answered. */
		if (!v->mine &&
		    (v->inspect != ES_INSPECT_EVERY || !(v->seg.len || (v->seg.flags & ES_TCP_FIN))))
			return;
	}
	v->now_ms = (u32)div_u64(now_ns, NSEC_PER_MSEC);
	if (cfg->slot_s)
		v->slot = (u32)div_u64(div_u64(now_ns + READ_ONCE(state->wall_offset_ns), NSEC_PER_SEC),
				       cfg->slot_s);
	worker = es_worker_of(v->flow_hash, cfg->workers) & (ES_WORKERS_MAX - 1);
	/* Signed: the coarse clock may lie a tick behind the worker's. */
	v->inspector_alive = cfg->workers && (s64)(now_ns - READ_ONCE(state->worker[worker].heartbeat_ns)) <
						     (s64)cfg->fallback_after_ms * NSEC_PER_MSEC;
	if (v->socket == ES_SOCKET_ESTABLISHED || !(v->seg.len || (v->seg.flags & ES_TCP_FIN)))
		return;
	v->decision = es_decision_lookup(es_decision_set_of(node, v->flow_hash),
					 es_decision_key(v->flow_hash, v->seg.ack - 1));
	if (v->mine)
		v->again_ms =
			es_stray_note(es_stray_slot(node, v->flow_hash), v->flow_hash, v->seg.seq, v->now_ms);
}

void es_track_pin(struct es_node *node, struct es_track *t, u32 pin)
{
	if (t->pin != ES_PIN_none || pin >= ES_PIN_COUNT || !pin)
		return;
	t->pin = (u8)pin;
	es_count(node, ES_COUNT_pin_pipelined + pin - ES_PIN_pipelined);
}

struct es_note *es_track_create(struct es_node *node, struct es_note_bucket *bucket, const struct sock *sk,
				u64 flow_hash, const struct es_packet *pkt)
{
	struct es_note *note = es_tracks_find(bucket, flow_hash, sk);
	u32 first_seq = es_socket_first_seq(sk);

	if (note && note->is_seen)
		return note;
	if (note)
		goto seen;
	/* Made this very moment, on another CPU, which has not got round to saying so? */
	note = es_tracks_pending(bucket, flow_hash, first_seq);
	if (!note) {
		note = es_tracks_add(bucket, flow_hash, first_seq, pkt);
		if (!note)
			return NULL;
		note->track.pin = ES_PIN_unknown;
		note->source = ES_NODE_NONE;
	}
	es_tracks_built(bucket, note, sk);
seen:
	note->is_seen = 1;
	if (note->track.pin)
		es_count(node, ES_COUNT_pin_pipelined + note->track.pin - ES_PIN_pipelined);
	return note;
}

void es_view_track(struct es_node *node, const struct es_version *version, const struct sock *sk,
		   const struct es_packet *pkt, struct es_view *v, u64 now_ns, struct es_record *ret_record)
{
	struct es_track_socket socket;
	struct es_note_bucket *bucket;
	struct es_note *note;
	struct es_track *t;
	u8 pin = ES_PIN_none;

	if (!es_socket_is_tcp(sk))
		return;
	es_socket_read(sk, &socket);
	if (!socket.is_established)
		return;
	es_view_complete(node, version, pkt, v, now_ns);
	bucket = es_tracks_lock(node->tracks, v->flow_hash);
	note = es_track_create(node, bucket, sk, v->flow_hash, pkt);
	if (!note)
		goto unlock;
	t = &note->track;
	/* Again under the lock: the track may have been served by the other CPU in between. */
	es_socket_read(sk, &socket);
	v->track = (u8)es_track_inbound(t, &v->seg, socket.rcv_nxt, v->inspector_alive, &pin);
	if (v->track == ES_TRACK_PIN) {
		es_track_pin(node, t, pin);
	} else if (v->track != ES_TRACK_DELIVER) {
		ret_record->flow = ES_FLOW_HERE;
		ret_record->options = t->options;
		ret_record->requests = t->requests;
		ret_record->moves = t->moves;
	}
unlock:
	es_tracks_unlock(bucket);
}
