/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_VIEW_H
#define ES_MODULE_VIEW_H

/*
 * Gathers the facts that es_decide() needs about a packet: those of its flow, its socket and that socket's
 * track.
 */
#include "kmod/core/view.h"
#include "node.h"
#include "packet.h"
#include "socket.h"

/* Fill in the facts about a flow that the packet and its socket do not tell. */
void es_view_complete(const struct es_node *node, const struct es_version *version,
		      const struct es_packet *pkt, struct es_view *v, u64 now_ns);

/*
 * es_view_heard() - has this node heard the SYN that the segment may prove? Asked where
 * es_view_needs_heard().
 */
void es_view_heard(const struct es_node *node, const struct es_version *version, struct es_view *v,
		   u64 now_ns);

/* es_flow_was_heard() - was a SYN of the flow heard, in the last ten minutes or some more? */
int es_flow_was_heard(const struct es_node *node, u64 flow_hash, u64 now_ns);

/*
 * es_view_doubt() - may a lost node have had the request? Asked where there are doubts, after
 * es_view_heard().
 */
void es_view_doubt(const struct es_node *node, struct es_view *v, u64 now_ns);

/* es_first_note() - this first request was heard, or is executed here */
void es_first_note(const struct es_node *node, u64 flow_hash, u32 seq, u64 now_ns);

/**
 * es_view_track() - a client's payload for @sk, where each request is inspected: does it begin one?
 * Sets v->track; if the packet is to be queued, also the connection's part of @ret_record.
 */
void es_view_track(struct es_node *node, const struct es_version *version, const struct sock *sk,
		   const struct es_packet *pkt, struct es_view *v, u64 now_ns, struct es_record *ret_record);

/**
 * es_track_create() - the first look at a socket: its note, made when it was rebuilt, or a new one
 * @bucket: locked, of @flow_hash; @pkt: client and service, as on the way in. A socket that was not made here
 * is pinned. Returns NULL if there is no memory.
 */
struct es_note *es_track_create(struct es_node *node, struct es_note_bucket *bucket, const struct sock *sk,
				u64 flow_hash, const struct es_packet *pkt);

/* es_track_pin() - for good, and counted; what is pinned stays so */
void es_track_pin(struct es_node *node, struct es_track *t, u32 pin);

#endif
