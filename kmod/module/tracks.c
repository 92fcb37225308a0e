// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of notes, and the sweep that empties it.
 */
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "memory.h"
#include "socket.h"
#include "tracks.h"

/* The whole table every ES_SWEEP_STEPS / HZ * ES_SWEEP_DELAY seconds. */
#define ES_SWEEP_STEPS 8
#define ES_SWEEP_DELAY (HZ / 2)

static struct es_note_bucket *es_tracks_bucket(struct es_tracks *tracks, u64 flow_hash)
{
	return &tracks->bucket[(u32)(flow_hash >> 16) & (ES_NOTE_BUCKETS - 1)];
}

struct es_note_bucket *es_tracks_lock(struct es_tracks *tracks, u64 flow_hash)
{
	struct es_note_bucket *bucket = es_tracks_bucket(tracks, flow_hash);

	spin_lock_bh(&bucket->lock);
	return bucket;
}

void es_tracks_unlock(struct es_note_bucket *bucket)
{
	spin_unlock_bh(&bucket->lock);
}

struct es_note *es_tracks_find(const struct es_note_bucket *bucket, u64 flow_hash, const struct sock *sk)
{
	struct es_note *note;

	hlist_for_each_entry(note, &bucket->notes,
			     node) if (note->flow_hash == flow_hash && note->sk == sk) return note;
	return NULL;
}

struct es_note *es_tracks_request(const struct es_note_bucket *bucket, u64 flow_hash, u32 seq)
{
	struct es_note *note;

	hlist_for_each_entry(note, &bucket->notes, node)
	{
		if (note->flow_hash == flow_hash && note->seq == seq)
			return note;
	}
	return NULL;
}

struct es_note *es_tracks_pending(const struct es_note_bucket *bucket, u64 flow_hash, u32 seq)
{
	struct es_note *note = es_tracks_request(bucket, flow_hash, seq);

	return note && !note->is_built && !note->is_cancelled ? note : NULL;
}

void es_note_remove(struct es_note *note)
{
	hlist_del(&note->node);
	kfree(note);
}

/* Does its loss lose something: a connection's track, or a promise to a program? */
static int es_note_matters(const struct es_note *note)
{
	return note->sk || note->handover;
}

/* Make room for one more note. */
static void es_tracks_trim(struct es_note_bucket *bucket)
{
	struct es_note *note, *oldest = NULL;
	unsigned int count = 0;

	hlist_for_each_entry(note, &bucket->notes, node)
	{
		count++;
		/*
		 * A note without a socket and without a promise goes before others; among equals, the oldest
		 * goes.
		 */
		if (!oldest || (!es_note_matters(note) && es_note_matters(oldest)) ||
		    (es_note_matters(note) == es_note_matters(oldest) && note->at_ns < oldest->at_ns))
			oldest = note;
	}
	if (count >= ES_NOTE_WAYS)
		es_note_remove(oldest);
}

struct es_note *es_tracks_add(struct es_note_bucket *bucket, u64 flow_hash, u32 seq,
			      const struct es_packet *pkt)
{
	struct es_note *note = es_tracks_request(bucket, flow_hash, seq);

	if (note)
		es_note_remove(note);
	es_tracks_trim(bucket);
	note = kzalloc(sizeof(*note), GFP_ATOMIC | __GFP_NOWARN);
	if (!note)
		return NULL;
	note->flow_hash = flow_hash;
	note->seq = seq;
	es_packet_flow(pkt, &note->flow);
	note->at_ns = ktime_get_coarse_ns();
	hlist_add_head(&note->node, &bucket->notes);
	return note;
}

void es_tracks_built(struct es_note_bucket *bucket, struct es_note *note, const struct sock *sk)
{
	struct es_note *other;

	hlist_for_each_entry(other, &bucket->notes, node)
	{
		if (other->flow_hash == note->flow_hash)
			other->sk = NULL;
	}
	note->sk = sk;
	note->is_built = 1;
}

u8 es_note_tcp_state(struct net *net, const struct es_note *note)
{
	struct es_packet pkt;
	struct sock *sk;
	u8 rc = 0;

	if (!note->sk)
		return 0;
	es_packet_of_flow(&note->flow, &pkt);
	rcu_read_lock();
	sk = es_socket_find(net, &pkt, 0);
	if (sk == note->sk)
		rc = READ_ONCE(sk->sk_state);
	if (sk)
		sock_gen_put(sk);
	rcu_read_unlock();
	return rc;
}

static void es_tracks_sweep(struct work_struct *work)
{
	struct es_tracks *tracks = container_of(to_delayed_work(work), struct es_tracks, sweep);
	u32 end = tracks->swept + ES_NOTE_BUCKETS / ES_SWEEP_STEPS;

	for (; tracks->swept < end; tracks->swept++) {
		struct es_note_bucket *bucket = &tracks->bucket[tracks->swept];
		struct es_note *note;
		struct hlist_node *next;
		u64 now_ns;

		if (hlist_empty(&bucket->notes))
			continue;
		spin_lock_bh(&bucket->lock);
		now_ns = ktime_get_coarse_ns();
		hlist_for_each_entry_safe(note, next, &bucket->notes, node)
		{
			if (now_ns - note->at_ns >= ES_NOTE_HOLD_NS &&
			    (!note->handover || now_ns - note->handover_ns >= ES_HANDOVER_HOLD_NS) &&
			    !es_note_tcp_state(tracks->net, note))
				es_note_remove(note);
		}
		spin_unlock_bh(&bucket->lock);
		cond_resched();
	}
	if (tracks->swept >= ES_NOTE_BUCKETS)
		tracks->swept = 0;
	schedule_delayed_work(&tracks->sweep, ES_SWEEP_DELAY);
}

int es_tracks_new(struct net *net, struct es_tracks **ret_tracks)
{
	struct es_tracks *tracks = es_memory_zalloc(sizeof(*tracks));

	if (!tracks)
		return -ENOMEM;
	tracks->net = net;
	for (u32 i = 0; i < ES_NOTE_BUCKETS; i++)
		spin_lock_init(&tracks->bucket[i].lock);
	INIT_DELAYED_WORK(&tracks->sweep, es_tracks_sweep);
	schedule_delayed_work(&tracks->sweep, ES_SWEEP_DELAY);
	*ret_tracks = tracks;
	return 0;
}

void es_tracks_free(struct es_tracks **tracks)
{
	struct es_tracks *t = *tracks;

	if (!t)
		return;
	/* The sweep schedules itself anew; this waits for it and stops that. */
	cancel_delayed_work_sync(&t->sweep);
	for (u32 i = 0; i < ES_NOTE_BUCKETS; i++) {
		struct es_note *note;
		struct hlist_node *next;

		hlist_for_each_entry_safe(note, next, &t->bucket[i].notes, node) es_note_remove(note);
	}
	kvfree(t);
	*tracks = NULL;
}
