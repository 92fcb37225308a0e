// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes the view of a packet from the tables and sockets of this node. Decides nothing.
 */
#include "kept.h"
#include "view.h"

static void es_syn_note(const struct es_node *node, const struct es_config *cfg, const struct es_view *v,
			u64 now_ns)
{
	u64 key = es_syn_key(v->flow_hash, v->seg.seq, READ_ONCE(node->state->hears_ns));

	es_overheard_note(es_syn_slot(node, key), key, es_syn_generation(es_ns_to_s(now_ns), cfg->slot_s));
}

static int es_syn_was_heard(const struct es_node *node, const struct es_config *cfg, const struct es_view *v,
			    u64 now_ns)
{
	u64 key = es_syn_key(v->flow_hash, es_syn_isn(&v->seg, v->inspect == ES_INSPECT_NEVER),
			     READ_ONCE(node->state->hears_ns));

	return es_overheard_has(es_syn_slot(node, key), key,
				es_syn_generation(es_ns_to_s(now_ns), cfg->slot_s));
}

static void es_flow_note(const struct es_node *node, u64 flow_hash, u64 now_ns)
{
	u64 key = es_heard_flow_key(flow_hash);

	es_overheard_note(es_heard_flow_slot(node, key), key, es_heard_flow_generation(es_ns_to_s(now_ns)));
}

int es_flow_was_heard(const struct es_node *node, u64 flow_hash, u64 now_ns)
{
	u64 key = es_heard_flow_key(flow_hash);

	return es_overheard_has(es_heard_flow_slot(node, key), key,
				es_heard_flow_generation(es_ns_to_s(now_ns)));
}

void es_view_heard(const struct es_node *node, const struct es_version *version, struct es_view *v,
		   u64 now_ns)
{
	const struct es_config *cfg = &version->config;

	v->heard = (u8)es_syn_was_heard(node, cfg, v, now_ns);
	v->heard_all = (u8)es_syns_are_complete(READ_ONCE(node->state->hears_ns), now_ns, cfg->slot_s);
	v->many_guesses = (u8)es_guesses_are_many(&node->state->guesses, es_ns_to_s(now_ns));
}

void es_view_doubt(const struct es_node *node, struct es_view *v, u64 now_ns)
{
	u64 key = es_overheard_key(v->flow_hash, v->seg.seq);

	v->doubtful = (u8)es_view_is_doubtful(
		v, es_overheard_has(es_first_slot(node, key), key, es_first_generation(es_ns_to_s(now_ns))));
}

void es_first_note(const struct es_node *node, u64 flow_hash, u32 seq, u64 now_ns)
{
	u64 key = es_overheard_key(flow_hash, seq);

	es_overheard_note(es_first_slot(node, key), key, es_first_generation(es_ns_to_s(now_ns)));
}

/* Another node takes the packet. If it is a first request, it must be known later on that it was heard. */
static void es_view_overhear(const struct es_node *node, const struct es_config *cfg, const struct es_view *v,
			     u64 now_ns)
{
	if (es_syn_was_heard(node, cfg, v, now_ns))
		es_first_note(node, v->flow_hash, v->seg.seq, now_ns);
}

void es_view_complete(const struct es_node *node, const struct es_version *version,
		      const struct es_packet *pkt, struct es_view *v, u64 now_ns)
{
	const struct es_config *cfg = &version->config;
	const struct es_state *state = node->state;
	struct es_kept_slot *kept;

	es_view_begin(v, cfg, pkt);
	if (es_view_opens(v)) {
		es_syn_note(node, cfg, v, now_ns);
		es_flow_note(node, v->flow_hash, now_ns);
	}
	if (es_view_may_be_ended(v, READ_ONCE(state->reset_ns), now_ns))
		es_view_ended(v, es_reset_slot(node, v->flow_hash), now_ns);
	if (v->socket != ES_SOCKET_ESTABLISHED) {
		es_view_ring(v, &version->ring, READ_ONCE(state->attached));
		if (cfg->leased && es_view_is_overheard(v))
			es_view_overhear(node, cfg, v, now_ns);
	}
	if (es_view_may_be_kept(v, READ_ONCE(state->asked_until_s), now_ns)) {
		kept = es_kept_slot(node, v->flow_hash);
		if (kept)
			es_view_kept_says(v, kept);
	}
	if (!es_view_concerns(v))
		return;
	es_view_time(v, cfg, state, READ_ONCE(state->worker[es_view_worker(v, cfg)].heartbeat_ns), now_ns);
	if (es_view_needs_decision(v))
		es_view_decision(v, es_decision_set_of(node, v->flow_hash),
				 es_stray_slot(node, v->flow_hash));
}

void es_track_pin(struct es_node *node, struct es_track *t, u32 pin)
{
	es_count(node, es_track_set_pin(t, pin));
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
		es_track_begin_unknown(&note->track);
		note->is_forgotten = 1;
		note->source = ES_NODE_NONE;
	}
	es_tracks_built(bucket, note, sk);
seen:
	note->is_seen = 1;
	es_count(node, es_track_counter(&note->track));
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
	if (v->seg.len || (v->seg.flags & ES_TCP_URG))
		note = es_track_create(node, bucket, sk, v->flow_hash, pkt);
	else
		note = es_tracks_find(bucket, v->flow_hash, sk);
	if (!note)
		goto unlock;
	t = &note->track;
	/* Again under the lock: the track may have been served by the other CPU in between. */
	es_socket_read(sk, &socket);
	v->track = (u8)es_track_inbound(t, &v->seg, &socket, v->inspector_alive, &pin);
	if (v->track == ES_TRACK_PIN) {
		es_track_pin(node, t, pin); /* under the lock: nobody was faster */
	} else if (v->track != ES_TRACK_DELIVER) {
		es_view_record_track(t, ret_record);
	}
unlock:
	es_tracks_unlock(bucket);
}
