/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECT_INTERNAL_H
#define ES_INSPECT_INTERNAL_H

/*
 * The inspector's functions, in the order of CMakeLists.txt: a file calls only what is declared before its
 * own.
 */
#include "inspector/http/boundary.h"
#include "inspector/inspect/asked.h"
#include "inspector/inspect/fate.h"
#include "inspector/inspect/gathered.h"
#include "inspector/inspect/inspect.h"
#include "inspector/inspect/poison.h"
#include "kmod/core/track.h"

#define ES_ATTEMPTS_MAX 255 /* of a request, on all its nodes together: a message has no higher number */

/**
 * struct es_known - what the tables have of the request that a packet belongs to, by one look at each
 * @gather: the segments that are kept of it; NULL: none. A function that begins to gather it, or forgets it,
 * says so here.
 */
struct es_known {
	struct es_decided decided;
	struct es_gather *gather;
	uint32_t cookie;
};

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

/* es_inspect_is_new() - is it a first request, on a connection without a socket? */
static inline int es_inspect_is_new(unsigned int flow)
{
	return flow == ES_FLOW_NEW || flow == ES_FLOW_DOUBTFUL || flow == ES_FLOW_UNSERVED;
}

/* es_inspect_is_kept() - is it on a connection of a lost node, with which this one goes on (survive.c)? */
static inline int es_inspect_is_kept(unsigned int flow)
{
	return flow == ES_FLOW_KEPT || flow == ES_FLOW_KEPT_DOUBTFUL;
}

/* es_inspect_is_layer4() - can nobody see in packets what clients send to @service? */
static inline int es_inspect_is_layer4(const struct es_inspector *in, unsigned int service)
{
	return service < in->cluster->conf->service_count && es_route_is_layer4(in->cluster, service);
}

/*
 * es_inspect_cedes() - may another node have a connection of @service that was here, as the lease is over?
 */
static inline int es_inspect_cedes(const struct es_inspector *in, unsigned int service)
{
	__u64 lease_ns = in->cluster->conf->services[service].survive
				 ? __atomic_load_n(in->params->lease_ns, __ATOMIC_ACQUIRE)
				 : 0;

	return lease_ns && in->now_ns >= lease_ns;
}

/* es_inspect_is_poison() - has this packet's request, or one with the same bytes, ended a daemon? */
static inline int es_inspect_is_poison(const struct es_inspector *in, __u64 flow_hash, const uint8_t *packet,
				       size_t len)
{
	return es_poison_is_known(in->params->poisons, &in->keys.ring, flow_hash, packet, len, in->now_ns);
}

/* A server reads urgent data apart, or not at all (RFC 6093): the inspector does not read what it reads. */
static inline int es_inspect_is_urgent(const struct es_ip_packet *packet)
{
	return (packet->seg.flags & ES_TCP_URG) != 0;
}

/* es_inspect_send() - send a packet in one or more messages; the first is of @order's kind, others follow */
void es_inspect_send(struct es_inspector *in, const struct es_handover_order *order,
		     const struct es_ip_packet *packet, size_t segment, unsigned int target);

/* The same for all segments of a gathered request. */
void es_inspect_send_gathered(struct es_inspector *in, const struct es_gather *g, unsigned int target);

/**
 * struct es_trace_subject - a decision to be shown (traced.c)
 * @text, @len: the request as far as it is known; @target: ES_NODE_REJECT if it is refused
 * @decision: of es_trace_decision_name()
 * @status, @bytes: of the inspector's own answer, and of its body; 0: a server answers
 */
struct es_trace_subject {
	const struct es_flow *flow;
	const char *text;
	size_t len;
	unsigned int target;
	unsigned int decision;
	unsigned long long decided_ns;
	unsigned int status;
	size_t bytes;
};

/* es_inspect_trace() - show it to those who watch, and to the log; one of them is there */
void es_inspect_trace(struct es_inspector *in, const struct es_handover_order *order,
		      const struct es_trace_subject *subject);

/* The same in two steps: make the entry, and show it. @order: of a service that is there */
void es_inspect_trace_entry(const struct es_inspector *in, const struct es_handover_order *order,
			    const struct es_trace_subject *subject, struct es_trace_entry *ret_entry);
void es_inspect_trace_put(struct es_inspector *in, const struct es_trace_entry *entry);

/* es_inspect_trace_decided() - the part of @entry that says what was decided, and why */
void es_inspect_trace_decided(const struct es_inspector *in, const struct es_handover_order *order,
			      unsigned int target, unsigned int decision, struct es_trace_entry *entry);

/* es_inspect_tally() - a request was decided at @decided_ns, and goes to @target: count and show it */
void es_inspect_tally(struct es_inspector *in, const struct es_ip_packet *packet,
		      const struct es_handover_order *order, unsigned int target,
		      enum es_tally_decision decision, unsigned long long decided_ns);
void es_inspect_tally_gathered(struct es_inspector *in, const struct es_gather *g, unsigned int target,
			       enum es_tally_decision decision, unsigned long long decided_ns);

/* es_inspect_is_mine() - may this node answer for the flow? After its lease, another one may have it. */
int es_inspect_is_mine(const struct es_inspector *in, __u64 flow_hash);

/*
 * es_inspect_is_overtaken() - did a plugin take so long that the decision must not be carried out?
 * Others may have served meanwhile what the client has repeated.
 */
int es_inspect_is_overtaken(struct es_inspector *in, enum es_record_flow flow, __u64 flow_hash);

/* es_inspect_describe() - es_request_describe() by the service's settings; until the next request's */
void es_inspect_describe(struct es_inspector *in, unsigned int service, struct es_request_view *request,
			 const struct es_http_head *head, const char *text, size_t len);

/* es_inspect_route_hello() - as es_inspect_route(), for the first bytes of a service with tls { } */
int es_inspect_route_hello(struct es_inspector *in, unsigned int service, struct es_request_view *request,
			   struct es_rejection *ret_rejection);

/**
 * es_inspect_route() - ask rules, plugins and policy, and count what kind of request it was
 * Returns the node, -1 for none, ES_ROUTE_REJECT or ES_ROUTE_MORE, each with @ret_rejection.
 */
int es_inspect_route(struct es_inspector *in, unsigned int service, struct es_request_view *request,
		     struct es_rejection *ret_rejection);

/* es_inspect_reply() - send a packet of the inspector's own making to a client */
void es_inspect_reply(struct es_inspector *in, const struct es_flow *flow, const uint8_t *bytes, size_t len);

/* es_inspect_reset() - tell a client with a RST that its connection does not exist */
void es_inspect_reset(struct es_inspector *in, const uint8_t *bytes, size_t len);

/* es_inspect_refuse() - no node can serve this packet's request: tell its client with a RST */
void es_inspect_refuse(struct es_inspector *in, const uint8_t *bytes, size_t len);

#define ES_ANSWER_SIZE ES_ASKED_ANSWER_MAX

/**
 * es_inspect_answer_text() - the whole response to a request that is refused as @order says
 * @text: room for ES_ANSWER_SIZE. Returns its length, of which @ret_body is the body's; 0: it has none
 */
size_t es_inspect_answer_text(const struct es_handover_order *order, char *text, size_t *ret_body);

/**
 * es_inspect_reject() - answer a request in the server's place, and end its connection, which has no socket
 * @packet: its first segment; @end_seq: the number after its last byte that is here; @order: has the
 * rejection
 */
void es_inspect_reject(struct es_inspector *in, __u64 flow_hash, const struct es_ip_packet *packet,
		       uint32_t end_seq, const struct es_handover_order *order);
void es_inspect_reject_gathered(struct es_inspector *in, const struct es_gather *g);

/* es_inspect_reject_again() - its client has not heard the answer, or goes on sending */
void es_inspect_reject_again(struct es_inspector *in, const struct es_record *record,
			     const struct es_ip_packet *packet, const struct es_handover_order *order);

/**
 * es_inspect_is_unsafe() - must the request not be executed twice? The service's setting "unsafe" decides.
 * @head: scanned from @text, which is what is here of the request
 */
int es_inspect_is_unsafe(const struct es_inspector *in, unsigned int service, const struct es_http_head *head,
			 const char *text, size_t len);

/* The same for a request that must not be read, by its first bytes; in doubt it is. */
int es_inspect_bytes_are_unsafe(const struct es_inspector *in, unsigned int service, const char *text,
				size_t len);

/* The same for the packet with which a request begins; uses the inspector's head. */
int es_inspect_packet_is_unsafe(struct es_inspector *in, unsigned int service,
				const struct es_ip_packet *packet);

/* es_inspect_was_lost() - was its node lost since? Then the request may have been executed. */
int es_inspect_was_lost(const struct es_inspector *in, const struct es_record *record,
			const struct es_decided *decided);

/* es_inspect_doubt() - nobody can say whether this packet's request was executed: its client gets a RST */
void es_inspect_doubt(struct es_inspector *in, const uint8_t *bytes, size_t len);

/* es_inspect_order() - fill in what is known of a connection from one of its packets */
void es_inspect_order(const struct es_inspector *in, const struct es_record *record,
		      const struct es_ip_packet *packet, const struct es_decided *decided,
		      struct es_handover_order *ret_order);

/* es_inspect_complete() - add where the next request begins, the cost, and whether to measure the response */
void es_inspect_complete(struct es_inspector *in, const struct es_request_view *request, uint32_t first_seq,
			 struct es_handover_order *order);

/* The same for a repeated request; one that had to be gathered is not gathered again for this. */
void es_inspect_bound_again(struct es_inspector *in, const struct es_ip_packet *packet,
			    struct es_handover_order *order);

/* es_inspect_remember() - a request went to @target as @order says: its copies go there, too */
void es_inspect_remember(struct es_inspector *in, __u64 flow_hash, uint32_t cookie, uint32_t first_seq,
			 unsigned int target, const struct es_handover_order *order);

/* es_inspect_note() - the same, and its node has more to do */
void es_inspect_note(struct es_inspector *in, __u64 flow_hash, uint32_t cookie, uint32_t first_seq,
		     unsigned int target, const struct es_handover_order *order);
/* es_inspect_note_first() - the same for a first request, which is counted */
void es_inspect_note_first(struct es_inspector *in, __u64 flow_hash, uint32_t cookie, uint32_t first_seq,
			   unsigned int target, const struct es_handover_order *order);

/* es_inspect_give() - a first request in one packet is @target's: note, count and send it */
void es_inspect_give(struct es_inspector *in, const struct es_record *record,
		     const struct es_ip_packet *packet, const struct es_handover_order *order,
		     unsigned int target);

/* es_inspect_give_gathered() - the same for a gathered one, which stays in the table */
void es_inspect_give_gathered(struct es_inspector *in, const struct es_gather *g, unsigned int target);

/* es_inspect_give_again() - a repeated first request goes to its node again, as the same attempt */
void es_inspect_give_again(struct es_inspector *in, const struct es_record *record,
			   const struct es_ip_packet *packet, struct es_handover_order *order,
			   const struct es_decided *decided);

/**
 * es_inspect_may_leave() - may the connection leave this node with this request, which is for another one?
 * Not with one whose framing is in doubt, nor with one for whose content the connection has just come back.
 */
int es_inspect_may_leave(struct es_inspector *in, __u64 flow_hash, const struct es_handover_order *order);

/* es_inspect_count_move() - a later request has moved its connection: count it, by why it has */
void es_inspect_count_move(struct es_inspector *in, const struct es_handover_order *order);

/* es_inspect_left_for_content() - its connection has left: remember it, if that was for its content */
void es_inspect_left_for_content(struct es_inspector *in, __u64 flow_hash,
				 const struct es_handover_order *order);

/* es_inspect_move() - carry out the policy's word, @target, -1 for none, on a later request in one segment */
void es_inspect_move(struct es_inspector *in, const struct es_record *record,
		     const struct es_ip_packet *packet, struct es_known *known,
		     const struct es_handover_order *order, int target);

/* The same for a gathered one, which is kept until its socket is ended, or let go of. */
void es_inspect_move_gathered(struct es_inspector *in, struct es_gather *g, int target);

/**
 * es_inspect_stay_again() - a later request's first segment is repeated: if the request has stayed, so does
 * it
 * Returns 0 if the request is not known to have stayed.
 */
int es_inspect_stay_again(struct es_inspector *in, const struct es_record *record,
			  const struct es_ip_packet *packet, const struct es_known *known);

#define ES_LEAVE_MS 5000.0 /* see es_inspect_left() */

/* es_inspect_leave_again() - ask the datapath again to end the socket, or whether it is gone */
void es_inspect_leave_again(struct es_inspector *in, const struct es_gather *g);

/**
 * es_inspect_left() - the datapath has answered
 * That takes microseconds, unless this thread does not run or the RST does not reach the socket. The request
 * is kept for ES_LEAVE_MS, since nobody else has it.
 */
void es_inspect_left(struct es_inspector *in, const struct es_record *record, struct es_gather *g);

/* es_inspect_is_left() - is it the datapath's answer to ES_HANDOVER_END or _GONE? */
static inline int es_inspect_is_left(const struct es_record *record)
{
	return record->kind == ES_RECORD_ENDING || record->kind == ES_RECORD_ENDED ||
	       record->kind == ES_RECORD_KEPT;
}

/* es_inspect_moved() - a segment of a request that has moved its connection away, or was rejected */
void es_inspect_moved(struct es_inspector *in, const struct es_record *record,
		      const struct es_ip_packet *packet, const struct es_known *known);

/* es_inspect_earlier_blind() - a first request (earlier.h) that nobody reads is for the server here */
void es_inspect_earlier_blind(struct es_inspector *in, const struct es_record *record,
			      const struct es_ip_packet *packet, const struct es_known *known);

/* es_inspect_probe() - ask its client for an open connection here, which @next would continue */
void es_inspect_probe(struct es_inspector *in, const struct es_ip_packet *next);

/* es_inspect_is_poisoned() - must this packet's request not be read? */
int es_inspect_is_poisoned(const struct es_inspector *in, const struct es_record *record,
			   const struct es_ip_packet *packet);

/* es_inspect_poison() - serve such a request without reading it, or refuse it */
void es_inspect_poison(struct es_inspector *in, const struct es_record *record,
		       const struct es_ip_packet *packet, struct es_known *known);

#endif
