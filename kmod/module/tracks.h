/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_TRACKS_H
#define ES_MODULE_TRACKS_H

/*
 * A node's knowledge of the connections that it has made: one struct es_note for each. It replaces
 * es_rebuilts and es_tracks of kmod/bpf/: a module has no storage of its own in a socket, and must not hook a
 * socket's destructor, which would outlive it.
 *
 * A note begins as pending, when the decision to make a socket falls (on the interface), and becomes built
 * when the socket is made (behind routing and firewall). It names its socket by address and never looks into
 * it: es_tracks_find() compares the address of a socket that the caller holds. An address that was given to
 * another socket of the same flow meanwhile cannot be taken for it: every socket of a service's flow is made
 * by es_rebuild(), whose es_tracks_built() takes the address off all older notes of the flow. But for those
 * of the daemon, by which it goes on with a lost node's response (inspector/resume/): one that gets the
 * address of a socket of its flow that has ended in the last seconds is taken for that one, and may be broken
 * off.
 *
 * Bounded: ES_NOTE_WAYS in each of ES_NOTE_BUCKETS; a full bucket loses the oldest, whose connection is then
 * pinned. A sweep removes notes of connections that are over. All of a flow's notes are in one bucket, under
 * its lock, and valid only while that is held.
 */
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <net/sock.h>

#include "kmod/core/track.h"
#include "packet.h"

#define ES_NOTE_BUCKETS 32768 /* a power of two */
#define ES_NOTE_WAYS	16

/* How long to keep a note whose socket is not there, because it may still be being made. */
#define ES_NOTE_HOLD_NS 4000000000ULL

/* How long to remember a program's handover: longer than any of its messages can be on their way. */
#define ES_HANDOVER_HOLD_NS 60000000000ULL

/**
 * struct es_note - one connection
 * @sk: its socket's address, never looked into; NULL before it is made and when it is over
 * @seq: of its first request's first byte; @at_ns: when that was decided
 * @source: the node that inspected the request; @is_built: the socket was made; @is_seen: and a packet on it
 * was looked at, as es_track_create() does where each request is inspected
 * @is_forgotten: its connection had none any more when it was looked at
 * @is_end: the packet that makes it had a FIN, and no more (es_rebuild_split())
 * @handover: the id of the program's handover that it is about (kmod/core/program.h), 0 if of none;
 * @handover_source, @handover_ns: from which node, and when; @is_cancelled: it was called off, and makes no
 * socket
 */
struct es_note {
	struct hlist_node node;
	const struct sock *sk;
	u64 flow_hash;
	u64 at_ns;
	struct es_flow flow;
	u32 seq;
	u64 handover;
	u64 handover_ns;
	u16 source;
	u8 handover_source;
	u8 is_cancelled;
	u8 is_built;
	u8 is_seen;
	u8 is_forgotten;
	u8 is_end;
	u8 is_acknowledged; /* even without an answer, the client does not repeat its request any more */
	struct es_track track;
};

struct es_note_bucket {
	spinlock_t lock;
	struct hlist_head notes;
};

struct es_tracks {
	struct net *net;
	struct delayed_work sweep;
	u32 swept; /* the bucket where the next sweep goes on */
	struct es_note_bucket bucket[ES_NOTE_BUCKETS];
};

int es_tracks_new(struct net *net, struct es_tracks **ret_tracks);

/* es_tracks_free() - nobody may use it any more. Takes NULL. May sleep. */
void es_tracks_free(struct es_tracks **tracks);

/* es_tracks_lock() - the bucket of @flow_hash; es_tracks_unlock() gives it back.
 * From any context but irqs. */
struct es_note_bucket *es_tracks_lock(struct es_tracks *tracks, u64 flow_hash);
void es_tracks_unlock(struct es_note_bucket *bucket);

/* es_tracks_find() - the note of @sk, a socket of flow @flow_hash; NULL if it has none */
struct es_note *es_tracks_find(const struct es_note_bucket *bucket, u64 flow_hash, const struct sock *sk);

/* es_tracks_request() - the note of a request, of which @seq is the first byte; NULL if there is none */
struct es_note *es_tracks_request(const struct es_note_bucket *bucket, u64 flow_hash, u32 seq);

/**
 * es_tracks_add() - a note of a request, in the place of one of the same request
 * @pkt: its client and service. Returns NULL if there is no memory.
 */
struct es_note *es_tracks_add(struct es_note_bucket *bucket, u64 flow_hash, u32 seq,
			      const struct es_packet *pkt);

/* es_note_remove() - forget it. Under its bucket's lock. */
void es_note_remove(struct es_note *note);

/* es_tracks_pending() - the note of a request that is to be made a socket; NULL if there is none */
struct es_note *es_tracks_pending(const struct es_note_bucket *bucket, u64 flow_hash, u32 seq);

/* es_tracks_built() - @note's socket is @sk from now on, and no older note's */
void es_tracks_built(struct es_note_bucket *bucket, struct es_note *note, const struct sock *sk);

/* es_note_tcp_state() - the state of its socket, 0 if that is not in the kernel's table any more */
u8 es_note_tcp_state(struct net *net, const struct es_note *note);

#endif
