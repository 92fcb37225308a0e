/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECT_INTERNAL_H
#define ES_INSPECT_INTERNAL_H

/*
 * What inspect.c and inspect_move.c share.
 */
#include "inspector/boundary.h"
#include "inspector/inspect.h"
#include "kmod/core/track.h"

void es_inspect_count(struct es_inspector *in, enum es_worker_counter counter);
uint32_t es_inspect_now_ms(const struct es_inspector *in);

/* Send a packet of our own making to a client. */
void es_inspect_reply(struct es_inspector *in, const struct es_flow *flow, const uint8_t *bytes, size_t len);

/**
 * es_inspect_reject() - answer a request in the server's place, and end the connection (inspect_reject.c)
 * @packet: its first segment; @end_seq: behind what there is of it; @order: with the rejection
 * There is no socket: a first request's was never made, a later one's is ended.
 */
void es_inspect_reject(struct es_inspector *in, __u64 flow_hash, const struct es_ip_packet *packet,
		       uint32_t end_seq, const struct es_handover_order *order);
void es_inspect_reject_gathered(struct es_inspector *in, const struct es_gather *g);

/* The client has not heard the answer, or goes on sending. */
void es_inspect_reject_again(struct es_inspector *in, const struct es_record *record,
			     const struct es_ip_packet *packet, const struct es_handover_order *order);

/* Tell a client with a RST that there is no such connection. */
void es_inspect_reset(struct es_inspector *in, const uint8_t *bytes, size_t len);

/**
 * es_inspect_stray() - a segment that nobody takes has come again: ask all nodes whose it is
 * (inspect_stray.c)
 */
void es_inspect_stray(struct es_inspector *in, const struct es_record *record,
		      const struct es_ip_packet *packet);

/* es_inspect_stray_answer() - what the node says that a stray segment was sent to, which comes back in @nack
 */
void es_inspect_stray_answer(struct es_inspector *in, const struct es_handover *nack,
			     const struct es_ip_packet *packet);

/* es_inspect_strays_due() - those that are no members have had their time to answer */
void es_inspect_strays_due(struct es_inspector *in);

/* No node can serve this packet's request: tell the client with a RST. */
void es_inspect_refuse(struct es_inspector *in, const uint8_t *bytes, size_t len);

/* Send one packet to @target, cut into messages; the first is of the order's kind, the others follow it. */
void es_inspect_send(struct es_inspector *in, const struct es_handover_order *order,
		     const struct es_ip_packet *packet, size_t segment, unsigned int target);

/* es_inspect_send() for all segments of a gathered request */
void es_inspect_send_gathered(struct es_inspector *in, const struct es_gather *g, unsigned int target);

/* A request went to @target as @order says: remember it, for retransmissions and for the load there. */
void es_inspect_note(struct es_inspector *in, __u64 flow_hash, uint32_t cookie, uint32_t first_seq,
		     unsigned int target, const struct es_handover_order *order);

/* The same for a first request, and count it. */
void es_inspect_note_first(struct es_inspector *in, __u64 flow_hash, uint32_t cookie, uint32_t first_seq,
			   unsigned int target, const struct es_handover_order *order);

/* Is this first request still this node's? What came before the lease was over may be another one's by now.
 */
int es_inspect_is_mine(const struct es_inspector *in, __u64 flow_hash);

/* Keep a segment of a request, cut into pieces that fit into messages. */
enum es_gather_result es_inspect_keep(struct es_inspector *in, struct es_gather *g,
				      const struct es_record *record, const struct es_ip_packet *packet,
				      int is_first);

struct es_gather *es_inspect_gather_begin(struct es_inspector *in, __u64 flow_hash, uint32_t cookie);

/**
 * es_inspect_move() - carry out what the policy says of a later request, in one segment
 * @target: the policy's node, -1 for none
 */
void es_inspect_move(struct es_inspector *in, const struct es_record *record,
		     const struct es_ip_packet *packet, const struct es_handover_order *order, int target);

/* The same for a gathered request, which is kept until its socket is ended, or let go of. */
void es_inspect_move_gathered(struct es_inspector *in, struct es_gather *g, int target);

/* The datapath's answer to ES_HANDOVER_END. */
void es_inspect_left(struct es_inspector *in, const struct es_record *record, uint32_t cookie);

/* A segment of a request that has moved its connection away from this node. */
void es_inspect_moved(struct es_inspector *in, const struct es_record *record,
		      const struct es_ip_packet *packet, uint32_t cookie);

#endif
