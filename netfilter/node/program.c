// SPDX-License-Identifier: GPL-2.0-or-later
/* Carries out what kmod/core/program.h decides about programs' connections. */
#include <errno.h>
#include "kmod/core/headers.h"
#include "kmod/core/program.h"
#include "kmod/core/serving.h"
#include "netfilter/node/make.h"
#include "netfilter/node/message.h"
#include "netfilter/node/program.h"
#include "netfilter/node/program_name.h"
#include "netfilter/node/settled.h"
#include "netfilter/node/unproven.h"

/* struct es_nf_given - a message; @seg: of the packet in it; @seg.seq: the handover's first byte; @is_old: an
 * old connection of these ports has left a socket */
struct es_nf_given {
	struct es_nf_node *node;
	const struct es_nf_frame *frame;
	const struct es_handover *h;
	__u32 service;
	struct es_segment seg;
	struct es_flow flow;
	struct es_flow socket;
	__u64 flow_hash;
	__u32 received;
	__u8 is_old;
};

/* Reads the message. Returns 0, or -1 with the counter to count by. */
static int es_nf_given_read(struct es_nf_given *in, __u32 *ret_counter)
{
	struct es_nf_node *node = in->node;
	struct es_packet pkt;
	int service;

	*ret_counter = ES_COUNT_handover_malformed;
	if (es_nf_message_packet(in->frame, in->h, &pkt, &in->seg) || !es_message_is_connections(&in->seg))
		return -1;
	es_packet_flow(&pkt, &in->flow);
	service = es_nf_service_find(node, &in->flow.service, in->flow.service_port);
	if (service < 0) {
		*ret_counter = ES_COUNT_handover_wrong_target;
		return -1;
	}
	in->service = (__u32)service;
	in->flow_hash = es_flow_hash(&node->config.ring_key, node->config.ring_seed, &in->flow);
	return 0;
}

/* Looks at the server's socket, and if it has none for the flow, at the program's. Returns 0 or -1. */
static int es_nf_given_look(struct es_nf_given *in, struct es_program_view *v)
{
	struct es_nf_node *node = in->node;
	struct es_nf_found found = {}, server = {};

	if (es_nf_program_socket(&node->config, in->service, &in->flow, &in->socket) &&
	    node->hands.look(node->hands.ctx, &in->socket, &server))
		return -1;
	v->listening =
		server.listening && !es_serving_refuses(node->memory.state, in->service,
							!es_addr_is_v4(&in->flow.client), node->now_ns);
	v->accept_full = server.accept_full;
	if (server.socket == ES_SOCKET_NONE && node->hands.look(node->hands.ctx, &in->flow, &found))
		return -1;
	v->socket = server.socket ?: found.socket;
	in->received = server.received;
	in->is_old = server.is_old || found.is_old;
	return 0;
}

static const struct es_nf_program_note *es_nf_given_noted(const struct es_nf_given *in)
{
	return es_nf_program_note_find(in->node->memory.programs, in->flow_hash, in->seg.seq,
				       es_ns_to_ms(in->node->now_ns));
}

static struct es_nf_program_note *es_nf_given_note(const struct es_nf_given *in, int is_cancelled)
{
	const struct es_nf_program_note note = {
		.flow_hash = in->flow_hash,
		.id = es_cpu_be64((__u64)in->h->program),
		.seq = in->seg.seq,
		.at_ms = es_ns_to_ms(in->node->now_ns),
		.source = in->h->source,
		.is_cancelled = (__u8)is_cancelled,
	};

	return es_nf_program_note_put(in->node->memory.programs, &note);
}

/* Did the kernel refuse before anything was begun? After any other error, a socket may still appear. */
static int es_nf_never_began(int rc)
{
	return rc == -EADDRINUSE || rc == -EEXIST || rc == -ENOSPC || rc == -ENOMEM || rc == -EBADMSG;
}

static void es_nf_given_made(const struct es_nf_making *making, int rc)
{
	struct es_nf_node *node = making->node;
	struct es_nf_program_note *note = es_nf_program_note_find(node->memory.programs, making->flow_hash,
								  making->seg.seq, es_ns_to_ms(node->now_ns));

	int is_unsure = rc && (making->was_unsure || !es_nf_never_began(rc));

	es_nf_count(node, rc ? ES_COUNT_rebuild_refused : making->counter);
	/* Without a note, so many newer ones have come that it was replaced. */
	if (note)
		note->is_unsure = (__u8)is_unsure;
	if (!rc || is_unsure)
		return;
	es_nf_unproven_forget(node, &making->flow);
	if (note)
		*note = (struct es_nf_program_note){};
	if (making->is_new)
		es_nf_settle(node, making->flow_hash, making->seg.seq, ES_SETTLED_FORGET, 0);
}

/* Makes the socket. Counts. */
static void es_nf_given_rebuild(const struct es_nf_given *in, __u32 counter)
{
	struct es_nf_node *node = in->node;
	const struct es_nf_program_note *before = es_nf_given_noted(in);
	struct es_nf_making making = {
		.node = node,
		.made = es_nf_given_made,
		.flow = in->flow,
		.flow_hash = in->flow_hash,
		.seg = in->seg,
		.h = *in->h,
		.counter = counter,
		.was_unsure = before && before->is_unsure,
	};
	struct es_nf_program_note *note;

	/* The client may not have received what the program's node has acknowledged. */
	if (es_nf_unproven_note(node, &in->flow, &in->seg, in->h->source, 0)) {
		es_nf_count(node, ES_COUNT_rebuild_refused);
		return;
	}
	note = es_nf_given_note(in, 0);
	if (!note) {
		es_nf_unproven_forget(node, &in->flow);
		es_nf_count(node, ES_COUNT_rebuild_refused);
		return;
	}
	/* until es_nf_given_made() */
	note->is_unsure = 1;
	es_handover_options_get(in->h, &making.options);
	/* The id has decided already. But a client's request may begin at the same byte, and be repeated. */
	making.is_new =
		es_nf_settle(node, in->flow_hash, in->seg.seq, ES_SETTLED_MAKE, 0xff).as == ES_SETTLED_NOT;
	/* It would answer the SYN itself, if that has a lower number and no later timestamp. */
	if (in->is_old)
		es_nf_node_end_old(node, &in->flow, &(const struct es_nf_found){.is_old = 1});
	es_nf_make(&making, es_nf_message_bytes(in->frame), es_ntohs(in->h->packet_len), &in->socket);
}

static void es_nf_given_answer(const struct es_nf_given *in, __u8 answer)
{
	struct es_handover h = *in->h;

	h.next_request_seq = es_htonl(in->seg.seq + in->received);
	es_nf_message_answer(in->node, in->frame, &h, ES_HANDOVER_ANSWER, answer);
}

void es_nf_program_message(struct es_nf_node *node, const struct es_nf_frame *frame,
			   const struct es_handover *h)
{
	struct es_nf_given in = {.node = node, .frame = frame, .h = h};
	const struct es_nf_program_note *note;
	struct es_verdict verdict = {};
	struct es_program_view v;
	__u32 counter;
	int is_unsure;
	__u8 answer;

	if (es_nf_given_read(&in, &counter)) {
		es_nf_count(node, counter);
		return;
	}
	v = (struct es_program_view){
		.id = es_cpu_be64((__u64)h->program),
		.kind = h->kind,
		.source = h->source,
		.is_self = h->source == node->config.self,
		.silent = (__u8)es_lease_refuses(es_nf_read64(&node->memory.state->lease_ns),
						 es_nf_read32(&node->memory.state->attached), node->now_ns),
		.stale = node->config.leased && h->epoch != es_htonl(node->config.epoch),
	};
	/* If the sockets cannot be looked at, there is no answer: the sender asks again. */
	if (es_nf_given_look(&in, &v))
		return;
	note = es_nf_given_noted(&in);
	is_unsure = note && note->is_unsure && v.socket != ES_SOCKET_ESTABLISHED;
	if (note && !is_unsure) {
		v.noted_id = note->id;
		v.noted_source = (__u8)note->source;
		v.noted_cancelled = note->is_cancelled;
		v.served = 1;
	}
	/* It has come here often in a minute: that is said before its sender lets go of it. */
	if (!note && v.kind == ES_HANDOVER_ASK &&
	    !es_nf_program_note_has_room(node->memory.programs, in.flow_hash, es_ns_to_ms(node->now_ns)))
		v.accept_full = 1;
	/* It cannot be promised that no socket will appear. */
	if (is_unsure && v.kind == ES_HANDOVER_CANCEL) {
		es_nf_count(node, ES_COUNT_connection_refused);
		return;
	}
	answer = es_decide_program(&v, &verdict);
	counter = verdict.counter;
	if (verdict.action == ES_REBUILD) {
		es_nf_given_rebuild(&in, counter);
		return;
	}
	if (verdict.action == ES_NACK && (!es_program_is_new_promise(&v, answer) || es_nf_given_note(&in, 1)))
		es_nf_given_answer(&in, answer);
	es_nf_count(node, counter);
}
