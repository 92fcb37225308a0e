// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's table of established sockets, bucket by bucket, each under its lock; and the table of notes.
 */
#include <linux/sched.h>
#include <net/inet_hashtables.h>

#include "kept.h"
#include "other.h"
#include "settled.h"
#include "socket.h"
#include "walk.h"

#define ES_ABORT_BATCH 16

/* A socket of one of our services, with all that the walks need to know of it. */
struct es_walked {
	struct sock *sk;
	struct es_packet pkt;
	u64 flow_hash;
	int service;
};

static int es_walk_is_ours(const struct es_node *node, const struct es_version *version, struct sock *sk,
			   struct es_walked *ret)
{
	struct es_flow flow;
	u8 tcp_state;

	if (!net_eq(sock_net(sk), node->net) || !es_socket_is_tcp(sk))
		return 0;
	tcp_state = READ_ONCE(sk->sk_state);
	if (tcp_state == TCP_LISTEN || tcp_state == TCP_CLOSE)
		return 0;
	es_socket_flow(sk, &flow);
	es_packet_of_flow(&flow, &ret->pkt);
	ret->service = es_service_of(version, &ret->pkt);
	if (ret->service < 0 || es_flow_is_own(&flow))
		return 0;
	ret->flow_hash = es_flow_hash(&version->config.ring_key, version->config.ring_seed, &flow);
	ret->sk = sk;
	return 1;
}

/* Calls @fn for each socket of a service in one bucket, under the bucket's lock,
 * until it returns non-zero. */
typedef int (*es_walk_fn)(struct es_node *node, const struct es_version *version,
			  const struct es_walked *walked, void *ctx);
static int es_walk_bucket(struct es_node *node, unsigned int slot, es_walk_fn fn, void *ctx)
{
	struct inet_hashinfo *hashinfo = es_hashinfo(node->net);
	const struct hlist_nulls_node *position;
	spinlock_t *lock = inet_ehash_lockp(hashinfo, slot);
	const struct es_version *version;
	struct es_walked walked;
	struct sock *sk;
	int rc = 0;

	if (hlist_nulls_empty(&hashinfo->ehash[slot].chain))
		return 0;
	rcu_read_lock();
	version = es_version_get(node);
	spin_lock_bh(lock);
	sk_nulls_for_each(sk, position, &hashinfo->ehash[slot].chain)
	{
		if (version && es_walk_is_ours(node, version, sk, &walked))
			rc = fn(node, version, &walked, ctx);
		if (rc)
			break;
	}
	spin_unlock_bh(lock);
	rcu_read_unlock();
	return rc;
}

/* Sockets that are to be ended, with a reference each: a socket's own lock may sleep. */
struct es_abort_batch {
	struct sock *sk[ES_ABORT_BATCH];
	unsigned int count;
};

static void es_abort_batch_add(struct es_abort_batch *batch, struct sock *sk)
{
	if (batch->count < ES_ABORT_BATCH && refcount_inc_not_zero(&sk->sk_refcnt))
		batch->sk[batch->count++] = sk;
}

/* The sums of loads, and the sockets found that should have ended. */
struct es_walk_sums {
	struct es_load_sums *sums;
	struct es_abort_batch ending;
};

static int es_walk_load(struct es_node *node, const struct es_version *version,
			const struct es_walked *walked, void *ctx)
{
	struct es_walk_sums *to = ctx;
	struct es_load_sum *sum = &to->sums->service[walked->service];
	const struct tcp_sock *tp = tcp_sk(walked->sk);
	const struct es_note *note = NULL;
	struct es_note_bucket *bucket;
	u64 now_us = div_u64(ktime_get_ns(), NSEC_PER_USEC), last_us = READ_ONCE(tp->tcp_mstamp);
	int is_ending, is_idle, has_open, said_last;
	u32 cost;

	has_open = READ_ONCE(tp->snd_una) != READ_ONCE(tp->write_seq) ||
		   READ_ONCE(tp->rcv_nxt) != READ_ONCE(tp->copied_seq);
	/*
	 * If client and server have spoken in the same jiffy, the server counts as the later one: it has
	 * answered.
	 */
	said_last = READ_ONCE(tp->data_segs_out) &&
		    (s32)(READ_ONCE(tp->lsndtime) - READ_ONCE(inet_csk(walked->sk)->icsk_ack.lrcvtime)) >= 0;
	bucket = es_tracks_lock(node->tracks, walked->flow_hash);
	if (version->config.service[walked->service].inspect == ES_INSPECT_EVERY)
		note = es_tracks_find(bucket, walked->flow_hash, walked->sk);
	cost = es_load_cost(note ? &note->track : NULL, walked->sk->sk_state,
			    READ_ONCE(tp->snd_nxt) != READ_ONCE(tp->write_seq));
	is_idle = cost && es_load_is_idle(note ? &note->track : NULL, has_open, said_last,
					  now_us > last_us ? now_us - last_us : 0);
	is_ending = note && note->track.state == ES_TRACK_ENDING;
	es_tracks_unlock(bucket);
	if (is_ending) {
		/* The client hears nothing of it, see es_reply_track(). */
		es_abort_batch_add(&to->ending, walked->sk);
		return 0;
	}
	es_load_add(sum, cost);
	to->sums->idle[walked->service] += is_idle;
	return 0;
}

void es_walk_loads(struct es_node *node, struct es_load_sums *ret_sums)
{
	unsigned int mask = es_hashinfo(node->net)->ehash_mask;
	struct es_walk_sums to = {.sums = ret_sums};

	memset(ret_sums, 0, sizeof(*ret_sums));
	for (unsigned int slot = 0; slot <= mask; slot++) {
		es_walk_bucket(node, slot, es_walk_load, &to);
		while (to.ending.count) {
			struct sock *sk = to.ending.sk[--to.ending.count];

			if (!es_socket_abort(sk))
				es_count(node, ES_COUNT_end_late);
			sock_put(sk);
		}
		cond_resched();
	}
}

/* The list that entries are written to; @skip sockets of this bucket were written before. */
struct es_walk_list {
	struct es_connection_entry *entries;
	unsigned int count;
	unsigned int room;
	unsigned long skip;
	unsigned long seen;
};

static int es_walk_connection(struct es_node *node, const struct es_version *version,
			      const struct es_walked *walked, void *ctx)
{
	struct es_walk_list *list = ctx;
	struct es_connection_entry *entry;
	struct es_note_bucket *bucket;
	const struct es_note *note;

	if (list->seen++ < list->skip)
		return 0;
	if (list->count == list->room)
		return -ENOSPC;
	entry = &list->entries[list->count++];
	memset(entry, 0, sizeof(*entry));
	entry->flow_hash = walked->flow_hash;
	entry->cookie = READ_ONCE(tcp_sk(walked->sk)->snd_una) - 1;
	entry->first_seq = es_socket_first_seq(walked->sk);
	entry->tcp_state = READ_ONCE(walked->sk->sk_state);
	entry->unproven = (u8)es_socket_is_unproven(walked->sk);
	bucket = es_tracks_lock(node->tracks, walked->flow_hash);
	note = es_tracks_find(bucket, walked->flow_hash, walked->sk);
	entry->source = note ? note->source : ES_NODE_NONE;
	entry->made_ns = note ? note->at_ns : 0;
	entry->is_moved = note && note->track.moves;
	es_tracks_unlock(bucket);
	return 0;
}

unsigned int es_walk_connections(struct es_node *node, unsigned long at[2],
				 struct es_connection_entry *entries, unsigned int room)
{
	struct es_walk_list list = {.entries = entries, .room = room};
	unsigned int mask = es_hashinfo(node->net)->ehash_mask;

	for (; at[0] <= mask; at[0]++, at[1] = 0) {
		list.skip = at[1];
		list.seen = 0;
		if (es_walk_bucket(node, (unsigned int)at[0], es_walk_connection, &list)) {
			at[1] = list.seen - 1; /* the entry that had no room is the next */
			return list.count;
		}
		cond_resched();
	}
	return list.count;
}

unsigned int es_walk_flows(struct es_node *node, unsigned long at[2], struct es_track_entry *entries,
			   unsigned int room)
{
	unsigned int count = 0;

	for (; at[0] < ES_NOTE_BUCKETS; at[0]++, at[1] = 0) {
		struct es_note_bucket *bucket = &node->tracks->bucket[at[0]];
		const struct es_note *note;
		unsigned long seen = 0;

		if (hlist_empty(&bucket->notes))
			continue;
		spin_lock_bh(&bucket->lock);
		hlist_for_each_entry(note, &bucket->notes, node)
		{
			u8 tcp_state = es_note_tcp_state(node->net, note);

			if (seen++ < at[1] || !note->is_seen || !tcp_state)
				continue;
			if (count == room) {
				at[1] = seen - 1;
				spin_unlock_bh(&bucket->lock);
				return count;
			}
			memset(&entries[count], 0, sizeof(entries[count]));
			entries[count].flow = note->flow;
			entries[count].track = note->track;
			entries[count].tcp_state = tcp_state;
			count++;
		}
		spin_unlock_bh(&bucket->lock);
		cond_resched();
	}
	return count;
}

static int es_walk_unproven(struct es_node *node, const struct es_version *version,
			    const struct es_walked *walked, void *ctx)
{
	struct es_abort_batch *batch = ctx;

	unsigned int count = batch->count;

	if (!es_socket_is_unproven(walked->sk) &&
	    !es_socket_is_ceded(node, &version->config, (u32)walked->service, walked->flow_hash, walked->sk))
		return 0;
	es_abort_batch_add(batch, walked->sk);
	if (batch->count == count)
		return 0;
	/* Nobody has heard of it: its client's request may be served here, if it may be executed twice. */
	es_settle(node, &version->config, walked->flow_hash, es_socket_first_seq(walked->sk), ES_SETTLED_END,
		  0);
	return batch->count == ES_ABORT_BATCH;
}

unsigned int es_walk_end_unproven(struct es_node *node)
{
	unsigned int mask = es_hashinfo(node->net)->ehash_mask, ended = 0;
	struct es_abort_batch batch;
	int more;

	for (unsigned int slot = 0; slot <= mask; slot++) {
		do {
			batch.count = 0;
			if (!es_lease_is_over(READ_ONCE(node->state->lease_ns), ktime_get_ns()))
				return ended;
			more = es_walk_bucket(node, slot, es_walk_unproven, &batch);
			for (unsigned int i = 0; i < batch.count; i++) {
				/* Once ended it is in no bucket, so the next round does not find it. */
				if (!es_socket_abort(batch.sk[i]))
					ended++;
				else
					more = 0;
				sock_put(batch.sk[i]);
			}
		} while (more);
		cond_resched();
	}
	return ended;
}
