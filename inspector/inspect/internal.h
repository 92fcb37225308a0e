/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECT_INTERNAL_H
#define ES_INSPECT_INTERNAL_H

/*
 * What the inspector's files share: inspect.c, which has the decision about a packet, and those that it calls.
 */
#include "inspector/http/boundary.h"
#include "inspector/inspect/inspect.h"
#include "inspector/inspect/poison.h"
#include "kmod/core/track.h"

/*
 * So long is a request kept whose socket is being ended. That takes microseconds; but if this thread does not
 * run for a while, or the RST does not reach the socket, nobody else has the request.
 */
#define ES_LEAVE_MS 5000.0

static inline void es_inspect_count(struct es_inspector *in, enum es_worker_counter counter)
{
	unsigned long long n = atomic_load_explicit(&in->count[counter], memory_order_relaxed);

	/* This thread is the only writer: no locked addition needed. */
	atomic_store_explicit(&in->count[counter], n + 1, memory_order_relaxed);
}

static inline uint32_t es_inspect_now_ms(const struct es_inspector *in)
{
	return (uint32_t)(in->now_ns / 1000000);
}

/**
 * struct es_known - what the tables have of the request that a packet belongs to, by one look at each
 * @gather: what is kept of it; NULL: nothing. Who begins to gather it, or forgets it, says so here.
 */
struct es_known {
	struct es_decided decided;
	struct es_gather *gather;
	uint32_t cookie;
};

/* Send a packet of our own making to a client. */
void es_inspect_reply(struct es_inspector *in, const struct es_flow *flow, const uint8_t *bytes, size_t len);

/* A request's attempts, by all its nodes together: as many as a message can number. */
#define ES_ATTEMPTS_MAX 255

/**
 * es_inspect_reject() - answer a request in the server's place, and end the connection (reject.c)
 * @packet: its first segment; @end_seq: behind what there is of it; @order: with the rejection
 * There is no socket: a first request's was never made, a later one's is ended.
 */
void es_inspect_reject(struct es_inspector *in, __u64 flow_hash, const struct es_ip_packet *packet,
		       uint32_t end_seq, const struct es_handover_order *order);
void es_inspect_reject_gathered(struct es_inspector *in, const struct es_gather *g);

/* The client has not heard the answer, or goes on sending. */
void es_inspect_reject_again(struct es_inspector *in, const struct es_record *record,
			     const struct es_ip_packet *packet, const struct es_handover_order *order);

/* es_inspect_beyond() - a segment came back: its socket's window has no room for it yet (beyond.c) */
void es_inspect_beyond(struct es_inspector *in, const struct es_handover *nack,
		       const struct es_ip_packet *packet);
void es_inspect_beyond_due(struct es_inspector *in);
void es_inspect_beyond_forget(struct es_inspector *in);

/* Tell a client with a RST that there is no such connection. */
void es_inspect_reset(struct es_inspector *in, const uint8_t *bytes, size_t len);

/**
 * es_inspect_stray() - a segment that nobody takes has come again: ask all nodes whose it is
 * (stray.c)
 */
void es_inspect_stray(struct es_inspector *in, const struct es_record *record,
		      const struct es_ip_packet *packet);

/* Is it a stray that would be a first request, if it were nobody's? */
static inline int es_inspect_is_earlier(unsigned int flow)
{
	return flow == ES_FLOW_EARLIER || flow == ES_FLOW_EARLIER_DOUBTFUL;
}

/* es_inspect_earlier_note() - such a segment is nobody's (earlier.c) */
void es_inspect_earlier_note(struct es_inspector *in, const struct es_stray_case *stray);

/* es_inspect_earlier_is_nobodys() - was that found out of a segment that has come again? */
int es_inspect_earlier_is_nobodys(struct es_inspector *in, __u64 flow_hash, const struct es_segment *seg);

/* es_inspect_earlier_blind() - where nobody inspects, it is for the server here; @record: of a first request */
void es_inspect_earlier_blind(struct es_inspector *in, const struct es_record *record,
			      const struct es_ip_packet *packet, const struct es_known *known);

/* es_inspect_strays_answer() - what a node says about the strays that it was asked about */
void es_inspect_strays_answer(struct es_inspector *in, const struct es_handover *nack);

/* The same of one that is asked about each alone; the segment comes back in @nack. */
void es_inspect_stray_answer(struct es_inspector *in, const struct es_handover *nack,
			     const struct es_ip_packet *packet);

/* es_inspect_strays_due() - enough is gathered, or who has not answered does not */
void es_inspect_strays_due(struct es_inspector *in);

/* es_inspect_strays_forget() - all that is asked about; clients send again */
void es_inspect_strays_forget(struct es_inspector *in);

/* es_inspect_fate_given() - a first request, or its first segment @packet, was given to @node (fate.c) */
void es_inspect_fate_given(struct es_inspector *in, unsigned int service, const struct es_ip_packet *packet,
			   unsigned int node);

/* es_inspect_fate_again() - its client has sent it again, and it goes to the same node once more */
void es_inspect_fate_again(struct es_inspector *in, unsigned int service, const struct es_ip_packet *packet,
			   const struct es_decided *decided);

/**
 * es_inspect_fate_vanished() - @node says that nothing was heard of a request, and gives it back
 * @ret_nodes: the nodes on which nothing was heard of its client. Returns whether that is the client's own affair.
 */
int es_inspect_fate_vanished(struct es_inspector *in, unsigned int service, const struct es_ip_packet *packet,
			     __u64 flow_hash, unsigned int node, struct es_node_set *ret_nodes);

/* es_inspect_fate_target() - the node for a first request, of which a policy has said @target: a client who is its own affair
 * costs no handover; one of whom nothing was heard on one node twice is given to another */
int es_inspect_fate_target(struct es_inspector *in, unsigned int service,
			   const struct es_request_view *request, int target);

/* es_inspect_fate_answer() - what a node says about a request that it was asked about; its segment comes back */
void es_inspect_fate_answer(struct es_inspector *in, const struct es_handover *nack,
			    const struct es_ip_packet *packet);

/* es_inspect_fates_due() - what is to be asked by now, or was not answered */
void es_inspect_fates_due(struct es_inspector *in);
void es_inspect_fates_forget(struct es_inspector *in);

/* es_inspect_is_layer4() - does nobody read what clients send to @service? */
static inline int es_inspect_is_layer4(const struct es_inspector *in, unsigned int service)
{
	return service < in->cluster->conf->service_count && es_route_is_layer4(in->cluster, service);
}

/* es_inspect_layer4() - a connection of such a service that is not simply this node's: @packet is its handshake's ACK, or its first
 * bytes */
void es_inspect_layer4(struct es_inspector *in, const struct es_record *record,
		       const struct es_ip_packet *packet, const struct es_known *known);

/* es_inspect_layer4_route() - the node for it; -1 for none; ES_ROUTE_MORE: for none that takes it before its first bytes */
int es_inspect_layer4_route(struct es_inspector *in, unsigned int service, struct es_request_view *request,
			    const struct es_ip_packet *packet);

/* es_inspect_layer4_order() - what such a connection's order has that a request's has not */
void es_inspect_layer4_order(struct es_handover_order *order);

/* es_inspect_layer4_given() - it was sent to @target: an ACK alone is repeated until that one has it */
void es_inspect_layer4_given(struct es_inspector *in, __u64 flow_hash, const struct es_ip_packet *packet,
			     const struct es_handover_order *order, unsigned int target);

/* es_inspect_layer4_answered() - @node says that it has it, or will not have it */
void es_inspect_layer4_answered(struct es_inspector *in, __u64 flow_hash, unsigned int node);

/* es_inspect_layer4_due() - what is to be repeated by now */
void es_inspect_layer4_due(struct es_inspector *in);
void es_inspect_layer4_forget(struct es_inspector *in);

/* No node can serve this packet's request: tell the client with a RST. */
void es_inspect_refuse(struct es_inspector *in, const uint8_t *bytes, size_t len);

/* Is it a first request, on a connection without a socket? */
static inline int es_inspect_is_new(unsigned int flow)
{
	return flow == ES_FLOW_NEW || flow == ES_FLOW_DOUBTFUL || flow == ES_FLOW_UNSERVED;
}

/**
 * es_inspect_is_unsafe() - must a request not be executed twice? (doubt.c)
 * @head: of what there is of it, @text; the service's setting unsafe decides
 */
int es_inspect_is_unsafe(const struct es_inspector *in, unsigned int service, const struct es_http_head *head,
			 const char *text, size_t len);

/* The same by a request's first bytes, for one that must not be read: when in doubt, it is. */
int es_inspect_bytes_are_unsafe(const struct es_inspector *in, unsigned int service, const char *text,
				size_t len);

/* The same for a packet with which a request begins. Uses the inspector's head. */
int es_inspect_packet_is_unsafe(struct es_inspector *in, unsigned int service,
				const struct es_ip_packet *packet);

/* es_inspect_was_lost() - was its node lost since this request was given to it? It may have been executed. */
int es_inspect_was_lost(const struct es_inspector *in, const struct es_record *record,
			const struct es_decided *decided);

/* es_inspect_doubt() - nobody can say whether this packet's request was executed: its client gets a RST */
void es_inspect_doubt(struct es_inspector *in, const uint8_t *bytes, size_t len);

/* Send one packet to @target, cut into messages; the first is of the order's kind, the others follow it. */
void es_inspect_send(struct es_inspector *in, const struct es_handover_order *order,
		     const struct es_ip_packet *packet, size_t segment, unsigned int target);

/* es_inspect_send() for all segments of a gathered request */
void es_inspect_send_gathered(struct es_inspector *in, const struct es_gather *g, unsigned int target);

/* es_inspect_remember() - a request went to @target as @order says: for its retransmissions */
void es_inspect_remember(struct es_inspector *in, __u64 flow_hash, uint32_t cookie, uint32_t first_seq,
			 unsigned int target, const struct es_handover_order *order);

/* es_inspect_note() - the same, and for the load there */
void es_inspect_note(struct es_inspector *in, __u64 flow_hash, uint32_t cookie, uint32_t first_seq,
		     unsigned int target, const struct es_handover_order *order);

/* es_inspect_tally() - count for the metrics that a request, decided on at @decided_ns, is given to @target, and show
 * it to those who watch; @packet: with which it begins */
void es_inspect_tally(struct es_inspector *in, const struct es_ip_packet *packet,
		      const struct es_handover_order *order, unsigned int target,
		      enum es_tally_decision decision, unsigned long long decided_ns);

/* The same for a gathered one. */
void es_inspect_tally_gathered(struct es_inspector *in, const struct es_gather *g, unsigned int target,
			       enum es_tally_decision decision, unsigned long long decided_ns);

/**
 * struct es_trace_subject - the decision to be shown (traced.c)
 * @text, @len: the request as far as it is known; @target: ES_NODE_REJECT if it is refused
 * @decision: of es_trace_decision_name()
 * @status, @bytes: of the answer that it gets from here, and of its body
 */
struct es_trace_subject {
	const struct es_ip_packet *packet;
	const char *text;
	size_t len;
	unsigned int target;
	unsigned int decision;
	unsigned long long decided_ns;
	unsigned int status;
	size_t bytes;
};

/* es_inspect_trace() - for those who watch and for the log; of those there is one at least */
void es_inspect_trace(struct es_inspector *in, const struct es_handover_order *order,
		      const struct es_trace_subject *subject);

/* The same as es_inspect_note() for a first request, and count it. */
void es_inspect_note_first(struct es_inspector *in, __u64 flow_hash, uint32_t cookie, uint32_t first_seq,
			   unsigned int target, const struct es_handover_order *order);

/* es_inspect_give() - a first request in one packet is @target's: note, count and send it */
void es_inspect_give(struct es_inspector *in, const struct es_record *record,
		     const struct es_ip_packet *packet, const struct es_handover_order *order,
		     unsigned int target);

/* The same for a gathered one, which is still there afterwards. */
void es_inspect_give_gathered(struct es_inspector *in, const struct es_gather *g, unsigned int target);

/* es_inspect_give_again() - a first request comes again: to the node that it was given to, as the same
 * attempt */
void es_inspect_give_again(struct es_inspector *in, const struct es_record *record,
			   const struct es_ip_packet *packet, struct es_handover_order *order,
			   const struct es_decided *decided);

/* es_inspect_describe() - es_request_describe() as the service has it; until the next request is described */
void es_inspect_describe(struct es_inspector *in, unsigned int service, struct es_request_view *request,
			 const struct es_http_head *head, const char *text, size_t len);

/**
 * es_inspect_route() - ask rules, plugins and policy, and count what kind of request it was
 * Returns the node, -1 for none, ES_ROUTE_REJECT or ES_ROUTE_MORE, each with @ret_rejection.
 */
int es_inspect_route(struct es_inspector *in, unsigned int service, struct es_request_view *request,
		     struct es_rejection *ret_rejection);

/* Add to @order what the whole request tells: where the next one starts, what it costs, whether to measure
 * it. */
void es_inspect_complete(struct es_inspector *in, const struct es_request_view *request, uint32_t first_seq,
			 struct es_handover_order *order);

/* The same for a request that comes again. One that had to be gathered is not gathered twice for this. */
void es_inspect_bound_again(struct es_inspector *in, const struct es_ip_packet *packet,
			    struct es_handover_order *order);

/*
 * Rules of others' making may have taken their time, a plugin that did not return most of all: others may
 * have served meanwhile what the client has sent again.
 */
int es_inspect_is_overtaken(struct es_inspector *in, enum es_record_flow flow, __u64 flow_hash);

/*
 * A server reads urgent data apart from the rest, or not at all (RFC 6093), at a place that its stack
 * chooses: what the inspector reads is not what it reads.
 */
static inline int es_inspect_is_urgent(const struct es_ip_packet *packet)
{
	return (packet->seg.flags & ES_TCP_URG) != 0;
}

/* Is this first request still this node's?
 * What came before the lease was over may be another one's by now. */
int es_inspect_is_mine(const struct es_inspector *in, __u64 flow_hash);

/* Keep a segment of a request, cut into pieces that fit into messages. */
enum es_gather_result es_inspect_keep(struct es_inspector *in, const struct es_record *record,
				      const struct es_ip_packet *packet, const struct es_known *known,
				      int is_first);

/* es_inspect_gather_begin() - begin to gather it, as @known's. Another flow may be forgotten for it. Returns 0 or -ENOMEM. */
int es_inspect_gather_begin(struct es_inspector *in, __u64 flow_hash, struct es_known *known);

/* es_inspect_gather() - keep a segment of an incomplete request; decide if that completes it
 * (gathered.c) */
void es_inspect_gather(struct es_inspector *in, const struct es_record *record,
		       const struct es_ip_packet *packet, const struct es_known *known, int is_first);

/*
 * es_inspect_is_unfinished() - is the request's head not at its end, though the client can send more, and may the rest of
 * it decide whether a rule refuses it? Then a pause gets it past none (waited.c).
 */
int es_inspect_is_unfinished(struct es_inspector *in, const struct es_gather *g);

/* es_inspect_is_waited_for() - the same when it was waited for long enough for others: it is waited for longer now */
int es_inspect_is_waited_for(struct es_inspector *in, struct es_gather *g);

/* es_inspect_is_waited_on() - the same when its client has repeated @packet, and is helped to go on */
int es_inspect_is_waited_on(struct es_inspector *in, struct es_gather *g, const struct es_ip_packet *packet);

/* es_inspect_given() - it was given to its node: it is over, or goes again in a moment, if its client does not send it again */
void es_inspect_given(struct es_inspector *in, struct es_gather *g);

/* es_inspect_forsake() - what is here of it will not be served: who will not send it again, is told */
void es_inspect_forsake(struct es_inspector *in, const struct es_gather *g);

/* Until when, from now on, is waited for the rest of a request. */
double es_inspect_deadline(const struct es_inspector *in);

/* Requests that have waited long enough: decide them with what there is, or forget them. */
void es_inspect_gathers_due(struct es_inspector *in);

void es_inspect_gathers_forget(struct es_inspector *in);

/**
 * es_inspect_move() - carry out what the policy says of a later request, in one segment
 * @target: the policy's node, -1 for none
 */
void es_inspect_move(struct es_inspector *in, const struct es_record *record,
		     const struct es_ip_packet *packet, struct es_known *known,
		     const struct es_handover_order *order, int target);

/* es_inspect_stay_again() - a later request's first segment comes again: if it has stayed, it goes to the socket as
 * before, and nobody is asked. Returns 0 if it is not known to have. */
int es_inspect_stay_again(struct es_inspector *in, const struct es_record *record,
			  const struct es_ip_packet *packet, const struct es_known *known);

/* The same for a gathered request, which is kept until its socket is ended, or let go of. */
void es_inspect_move_gathered(struct es_inspector *in, struct es_gather *g, int target);

/* es_inspect_is_poison() - has this packet's request, or one with its bytes, ended a daemon? */
static inline int es_inspect_is_poison(const struct es_inspector *in, __u64 flow_hash, const uint8_t *packet,
				       size_t len)
{
	return es_poison_is_known(in->params->poisons, &in->keys.ring, flow_hash, packet, len, in->now_ns);
}

/* es_inspect_is_poisoned() - is this packet's request not to be read? */
int es_inspect_is_poisoned(const struct es_inspector *in, const struct es_record *record,
			   const struct es_ip_packet *packet);

/* es_inspect_poison() - serve such a request without inspection, or refuse it */
void es_inspect_poison(struct es_inspector *in, const struct es_record *record,
		       const struct es_ip_packet *packet, struct es_known *known);

/* What is known of a connection from one of its packets. */
void es_inspect_order(const struct es_inspector *in, const struct es_record *record,
		      const struct es_ip_packet *packet, const struct es_decided *decided,
		      struct es_handover_order *ret_order);

/* Is it the datapath's answer to ES_HANDOVER_END or _GONE? */
static inline int es_inspect_is_left(const struct es_record *record)
{
	return record->kind == ES_RECORD_ENDING || record->kind == ES_RECORD_ENDED ||
	       record->kind == ES_RECORD_KEPT;
}

/* es_inspect_probe() - ask a client for its open connection; @next: what would come next on that */
void es_inspect_probe(struct es_inspector *in, const struct es_ip_packet *next);

/* Ask the datapath once more to end the socket of a request that leaves, or whether it is gone. */
void es_inspect_leave_again(struct es_inspector *in, const struct es_gather *g);

/* The datapath has answered. */
void es_inspect_left(struct es_inspector *in, const struct es_record *record, struct es_gather *g);

/* A segment of a request that has moved its connection away from this node. */
void es_inspect_moved(struct es_inspector *in, const struct es_record *record,
		      const struct es_ip_packet *packet, const struct es_known *known);

#endif
