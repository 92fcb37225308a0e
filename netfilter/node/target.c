// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Acts on handover messages about requests: rebuild, deliver, refuse, and for this node's own later requests
 * stay and end. The counterpart of kmod/bpf/target.h.
 */
#include <errno.h>
#include <netinet/in.h>
#include "kmod/core/plan.h"
#include "kmod/core/serving.h"
#include "netfilter/node/tracks.h"
#include "netfilter/node/message.h"
#include "netfilter/node/program.h"
#include "netfilter/node/make.h"
#include "netfilter/node/settled.h"
#include "netfilter/node/target.h"
#include "netfilter/node/unproven.h"
#include "netfilter/node/view.h"

/*
 * struct es_nf_received - a handover message that is authentic and fresh, with its plan, for the functions
 * below
 */
struct es_nf_received {
	struct es_nf_node *node;
	const struct es_nf_frame *frame;
	struct es_handover h;
	struct es_handover_view view;
	struct es_handover_plan plan;
	struct es_packet pkt;
	struct es_flow flow;
	struct es_nf_found found;
	struct es_connection_state open;
	struct es_nf_connection *connection;
	__u64 flow_hash;
	__u32 service;
};

static void es_nf_received_flow(struct es_nf_received *in)
{
	es_packet_flow(&in->pkt, &in->flow);
	in->flow_hash = es_flow_hash(&in->node->config.ring_key, in->node->config.ring_seed, &in->flow);
}

/* Returns 0; or -1: nobody can tell, so nothing may be concluded. */
static int es_nf_received_look(struct es_nf_received *in)
{
	if (es_nf_node_look(in->node, &in->flow, &in->found))
		return -1;
	in->view.socket = in->found.socket;
	return 0;
}

static struct es_challenge *es_nf_challenge_slot(const struct es_nf_received *in)
{
	return &in->node->challenges[es_challenge_index(in->flow_hash)];
}

/*
 * Fills in the view's facts about the socket of the packet in a message. Returns 0, or -1: nobody can tell.
 */
static int es_nf_handover_view_socket(struct es_nf_received *in)
{
	struct es_nf_node *node = in->node;
	struct es_handover_view *v = &in->view;

	if (es_nf_received_look(in))
		return -1;
	/*
	 * A new connection ends the old socket. A copy of the old connection's own request is told by what
	 * was noted.
	 */
	if (v->kind == ES_HANDOVER_REQUEST && in->found.is_old)
		v->socket = ES_SOCKET_NONE;
	v->listening = in->found.listening &&
		       !es_serving_refuses(node->memory.state, in->service, in->pkt.is_v6, node->now_ns);
	v->accept_full = in->found.accept_full;
	if (v->socket != ES_SOCKET_ESTABLISHED)
		return 0;
	if (in->connection && in->connection->track.pin != ES_PIN_unknown) {
		v->first_seq = in->connection->first_seq;
		/*
		 * The track may have been lost to another flow's; and conntrack may have the entry of a
		 * connection that is over.
		 */
	} else if (!es_nf_fresh_first(node->memory.fresh, in->flow_hash, &v->first_seq) &&
		   node->hands.first(node->hands.ctx, &in->flow, &v->first_seq)) {
		/*
		 * A connection of which nothing is known may well be that of this request: then the request
		 * is a duplicate.
		 */
		v->first_seq = v->seg.seq;
		v->rcv_nxt = v->first_seq + in->found.received;
		return 0;
	}
	es_handover_view_received(v, v->first_seq + in->found.received);
	es_handover_view_window(v, &in->h, v->rcv_nxt + in->found.rcv_wnd);
	/* The kernel is asked for more only if the socket is another connection's than the request's. */
	if (v->kind == ES_HANDOVER_REQUEST && v->seg.seq - v->first_seq > 1 &&
	    !node->hands.open(node->hands.ctx, &in->flow, &in->open))
		v->challenged = (__u8)es_challenge_look(es_nf_challenge_slot(in), in->flow_hash,
							in->found.heard_ms, es_ns_to_ms(node->now_ns));
	return 0;
}

/*
 * Fills in what was noted of the request. With this datapath, a note that has remained ES_SETTLED_MADE means
 * only that this process has stood still before it began (es_nf_make_begins()): it may go on with that.
 */
static void es_nf_handover_view_settled(struct es_nf_received *in)
{
	struct es_nf_node *node = in->node;
	struct es_handover_view *v = &in->view;
	struct es_settled_answer settled = es_nf_settle(node, in->flow_hash, v->seg.seq, ES_SETTLED_LOOK, 0);

	es_handover_view_settled(v, &in->h, &in->pkt, &settled);
	v->rebuilt |= settled.has_vanished;
	v->vanished = !v->rebuilt &&
		      es_nf_swallowed_is(node->swallowed, es_settled_request(in->flow_hash, v->seg.seq),
					 es_ns_to_ms(node->now_ns)) &&
		      node->hands.is_withdrawn(node->hands.ctx, &in->flow, v->seg.seq);
}

/*
 * Notes that no socket has come of an attempt. If that is certain (-ETIMEDOUT), the second in which attempts
 * fail goes on (swallowed.h); if not, it begins anew.
 */
static void es_nf_handover_refused(const struct es_nf_making *making, int rc)
{
	struct es_nf_node *node = making->node;
	__u64 request = es_settled_request(making->flow_hash, making->seg.seq);

	es_nf_unproven_forget(node, &making->flow);
	es_nf_settle(node, making->flow_hash, making->seg.seq, es_plan_undo(ES_WAY_HANDS), 0);
	if (rc == -ETIMEDOUT)
		es_nf_swallowed_note(node->swallowed, request, es_ns_to_ms(node->now_ns));
	else
		es_nf_swallowed_forget(node->swallowed, request);
	es_nf_count(node, ES_COUNT_rebuild_refused);
}

/* The attempt is over. Its service may have gone since it began, with a new configuration. */
static void es_nf_handover_made(const struct es_nf_making *making, int rc)
{
	struct es_nf_node *node = making->node;
	int service = es_nf_service_find(node, &making->flow.service, making->flow.service_port);
	struct es_nf_connection *connection = NULL;

	if (rc) {
		es_nf_handover_refused(making, rc);
		return;
	}
	if (service >= 0)
		connection = es_nf_track_made(node, (__u32)service, making->flow_hash, &making->seg);
	if (connection) {
		es_track_begin(&connection->track, making->seg.ack, &making->h, node->now_ns);
		if (making->seg.len || (making->seg.flags & ES_TCP_FIN))
			es_nf_track_begun(node, connection);
	}
	es_nf_count(node, making->counter);
}

static int es_nf_hold(const struct es_nf_received *in, int is_held)
{
	return in->node->hands.hold(in->node->hands.ctx, &in->flow, is_held);
}

/*
 * Fills in the view for ES_HANDOVER_END and _GONE: may the connection leave, or is it leaving already? Its
 * socket is looked at after the kernel has been told to let nothing out any more that its server says.
 */
static void es_nf_leave_begin(struct es_nf_received *in)
{
	struct es_nf_connection *c = in->connection;
	struct es_track_socket socket = {};
	int rc;

	if (!c || !es_leave_begins(&in->view, &c->track))
		return;
	rc = es_nf_hold(in, 1);
	/* A socket of all zeros may not leave. */
	if (!rc && !es_nf_received_look(in))
		es_nf_track_socket(c, &in->found, &socket);
	es_leave_looked(&in->view, &c->track, &socket);
	if (!in->view.may_leave && !rc)
		es_nf_hold(in, 0);
}

/* The steps of a plan (kmod/core/plan.h). Each returns 0, or anything else if it has failed. */
static int es_nf_handover_settle(struct es_nf_received *in)
{
	struct es_settled_answer settled =
		es_nf_settle(in->node, in->flow_hash, in->view.seg.seq, in->plan.settle, in->h.attempt);

	return es_handover_is_settled(in->plan.settle, &settled, 0, &in->h) ? 0 : -1;
}

/* Packets that arrive from now on meet no connection here. */
static int es_nf_handover_forget(const struct es_nf_received *in)
{
	in->node->hands.forget(in->node->hands.ctx, &in->flow);
	return 0;
}

/*
 * A request has come again, and its socket is here. The kernel may have made that socket after es_nf_make()
 * gave it up, so that nothing is noted of it. Returns -1 if there is no room for a note, or if the request
 * was given back, so that another node may have it: then nothing may come of the socket.
 */
static int es_nf_handover_adopt(const struct es_nf_received *in)
{
	if (in->view.kind != ES_HANDOVER_REQUEST || in->found.acked)
		return 0;
	if (in->view.refused || es_nf_unproven_note(in->node, &in->flow, &in->view.seg, in->h.source,
						    in->h.flags & ES_HANDOVER_F_MOVED))
		return -1;
	es_nf_settle(in->node, in->flow_hash, in->view.seg.seq, ES_SETTLED_MAKE, in->h.attempt);
	es_nf_settle(in->node, in->flow_hash, in->view.seg.seq, ES_SETTLED_SEEN, 0);
	return 0;
}

static int es_nf_handover_stay(const struct es_nf_received *in)
{
	const struct es_segment *seg = &in->view.seg;
	struct es_nf_connection *c = in->connection;

	if (!c)
		return 0;
	/* Otherwise the request has come again: the socket has it already. */
	if (es_track_has_queued(&c->track, seg->seq) &&
	    es_track_step(&c->track, ES_TRACK_QUEUED, ES_TRACK_SERVED))
		es_nf_count(in->node, es_track_set_pin(&c->track, es_track_stay(&c->track, seg, &in->h,
										in->node->now_ns)));
	return es_track_is_leaving(&c->track) ? -1 : 0;
}

static int es_nf_handover_clear(const struct es_nf_received *in)
{
	return in->node->hands.end(in->node->hands.ctx, &in->flow, in->view.rcv_nxt);
}

static int es_nf_handover_retry(const struct es_nf_received *in)
{
	es_nf_message_answer(in->node, in->frame, &in->h, ES_HANDOVER_NACK, ES_NACK_RETRY);
	return 0;
}

static int es_nf_handover_sweep(const struct es_nf_received *in)
{
	es_nf_node_end_old(in->node, &in->flow, &in->found);
	return 0;
}

static int es_nf_handover_first(const struct es_nf_received *in)
{
	es_nf_first_note(in->node, in->flow_hash, in->view.seg.seq);
	return 0;
}

static int es_nf_handover_ask(const struct es_nf_received *in)
{
	__u32 now_ms = es_ns_to_ms(in->node->now_ns);

	es_challenge_note(es_nf_challenge_slot(in), in->flow_hash, in->view.challenged, now_ms, now_ms);
	return 0;
}

/*
 * A link-local client is refused (es_nf_is_refused()). Only nodes of an earlier version hand over its
 * requests.
 */
static int es_nf_handover_note(const struct es_nf_received *in)
{
	if (es_addr_is_link_local(&in->flow.client))
		return -1;
	return es_nf_unproven_note(in->node, &in->flow, &in->view.seg, in->h.source,
				   in->h.flags & ES_HANDOVER_F_MOVED);
}

static int es_nf_tell(const struct es_nf_received *in, const void *packet, __u32 len)
{
	struct es_nf_node *node = in->node;
	__u32 worker = es_worker_of(in->flow_hash, node->config.workers) & (ES_WORKERS_MAX - 1);
	const struct es_record record = {
		.flow_hash = in->flow_hash,
		.len = len,
		.kind = in->plan.record,
		.service = (__u8)in->service,
		.flow = ES_FLOW_HERE,
	};

	if (!node->queue[worker])
		return -1;
	return es_nf_queue_push(node->queue[worker], &node->memory.state->worker[worker].awake, &record,
				packet);
}

/*
 * Tells the inspector the question to the client that ES_ASK is about. It has no timestamps: what the
 * socket's clock shows to the client is not known here, and Linux does not answer one from the past.
 */
static int es_nf_tell_probe(const struct es_nf_received *in)
{
	union es_answer_wire6 wire6;
	union es_answer_wire wire;
	struct es_answer next;

	es_answer_next(&in->pkt, in->open.rcv_nxt, in->open.snd_una, 0, 0, 0, &next);
	return next.is_v6 ? es_nf_tell(in, wire6.bytes, es_answer_write6(&next, 0, &wire6))
			  : es_nf_tell(in, wire.bytes, es_answer_write(&next, 0, &wire));
}

static int es_nf_handover_tell(const struct es_nf_received *in)
{
	if (in->plan.record == ES_RECORD_OPEN)
		return es_nf_tell_probe(in);
	return es_nf_tell(in, es_nf_message_bytes(in->frame), es_ntohs(in->h.packet_len));
}

static int es_nf_handover_leave(const struct es_nf_received *in)
{
	in->connection->track.state = ES_TRACK_ENDING;
	return 0;
}

/* es_nf_handover_made() counts the outcome, and takes the notes back if there is no socket. */
static int es_nf_handover_make(const struct es_nf_received *in)
{
	struct es_nf_making making = {
		.node = in->node,
		.made = es_nf_handover_made,
		.flow = in->flow,
		.flow_hash = in->flow_hash,
		.seg = in->view.seg,
		.h = in->h,
		.counter = ES_COUNT_handover_rebuilt,
	};

	es_handover_options_get(&in->h, &making.options);
	es_nf_make(&making, es_nf_message_bytes(in->frame), es_ntohs(in->h.packet_len), NULL);
	return 0;
}

/*
 * The socket has got a request that was held back, and with it the client's acknowledgement: most often, of
 * all before it.
 */
static void es_nf_handover_delivered(const struct es_nf_received *in)
{
	const struct es_nf_frame packet = {.bytes = es_nf_message_bytes(in->frame),
					   .len = es_ntohs(in->h.packet_len)};

	if (in->node->config.leased && in->view.kind == ES_HANDOVER_STAY)
		es_nf_unproven_look(in->node, &packet);
}

static int es_nf_handover_deliver(const struct es_nf_received *in)
{
	const struct es_nf_hands *hands = &in->node->hands;

	if (hands->inject(hands->ctx, es_nf_message_bytes(in->frame), es_ntohs(in->h.packet_len)))
		return -1;
	es_nf_handover_delivered(in);
	return 0;
}

/* If the server is in the middle of a system call, the socket ends after that: the inspector asks. */
static int es_nf_handover_end(const struct es_nf_received *in)
{
	(void)in->node->hands.end(in->node->hands.ctx, &in->flow, in->view.rcv_nxt);
	return 0;
}

static int es_nf_handover_answer(const struct es_nf_received *in)
{
	/* Under its next number, a refused request may be tried here, too. */
	if (in->plan.reason != ES_NACK_MADE)
		es_nf_swallowed_forget(in->node->swallowed,
				       es_settled_request(in->flow_hash, in->view.seg.seq));
	es_nf_message_answer(in->node, in->frame, &in->h, ES_HANDOVER_NACK, in->plan.reason);
	return 0;
}

static void es_nf_handover_undo(struct es_nf_received *in, __u32 step)
{
	struct es_nf_node *node = in->node;
	__u32 undo = es_handover_failed(&in->plan, step), seq = in->view.seg.seq;

	if (undo & ES_HANDOVER_UNDO_MADE) {
		es_nf_unproven_forget(node, &in->flow);
		es_nf_settle(node, in->flow_hash, seq, in->plan.undo, 0);
		es_nf_swallowed_forget(node->swallowed, es_settled_request(in->flow_hash, seq));
	}
	if (undo & ES_HANDOVER_UNDO_ASKED)
		es_challenge_forget(es_nf_challenge_slot(in));
	if (undo & ES_HANDOVER_UNDO_LEFT) {
		in->connection->track.state = ES_TRACK_QUEUED;
		es_nf_hold(in, 0);
	}
}

#define ES_NF_HANDOVER_TAKE_ALL(name)                                                                        \
	if ((in->plan.steps & ES_HANDOVER_STEP(name)) && es_nf_handover_##name(in))                          \
		return ES_HANDOVER_STEP(name);
#define ES_NF_HANDOVER_TAKE_HANDS ES_NF_HANDOVER_TAKE_ALL
#define ES_NF_HANDOVER_TAKE_PACKET(name)
#define ES_NF_HANDOVER_TAKE(name, ways) ES_NF_HANDOVER_TAKE_##ways(name)

/* Take the steps of the plan. Returns the one that has failed, or 0. */
static __u32 es_nf_handover_carry_out(struct es_nf_received *in)
{
	ES_HANDOVER_STEPS(ES_NF_HANDOVER_TAKE)
	return 0;
}

/* Does this node have the connection of a segment that no node takes (kmod/core/strays.h)? Counts. */
static enum es_nack_reason es_nf_stray_look(struct es_nf_received *in)
{
	struct es_handover_view *v = &in->view;
	struct es_settled_answer settled;
	enum es_nack_reason reason;
	__u32 counter;

	es_nf_received_flow(in);
	settled = es_nf_settle(in->node, in->flow_hash, v->seg.seq, ES_SETTLED_LOOK, 0);
	/* If nobody can tell, the connection may be here, and another node would end it by a RST. */
	if (es_nf_received_look(in))
		v->socket = ES_SOCKET_ESTABLISHED;
	if (in->found.time_wait) /* its client's FIN has an answer */
		v->socket = ES_SOCKET_TIME_WAIT;
	v->on_its_way =
		(__u8)es_stray_is_on_its_way(es_nf_decision_set(in->node, in->flow_hash), in->flow_hash,
					     es_node_ring_answers(&in->node->ring, in->flow_hash), v->seg.seq,
					     v->seg.ack, es_ns_to_ms(in->node->now_ns));
	reason = es_decide_stray(v, &settled, &counter);
	es_nf_count(in->node, counter);
	return reason;
}

/* What has become of a request here? Attempts that came to nothing were noted (swallowed.h). */
static enum es_nack_reason es_nf_fate_look(struct es_nf_received *in)
{
	struct es_nf_node *node = in->node;
	__u32 seq = in->view.seg.seq;
	struct es_settled_answer settled = es_nf_settle(node, in->flow_hash, seq, ES_SETTLED_LOOK, 0);

	es_nf_count(node, ES_COUNT_fate_asked);
	return es_fate_reason(&settled, &in->pkt,
			      es_nf_swallowed_is(node->swallowed, es_settled_request(in->flow_hash, seq),
						 es_ns_to_ms(node->now_ns)));
}

/* A message that asks about many strays. */
static void es_nf_strays_answer(struct es_nf_received *in)
{
	const uint8_t *packet = es_nf_message_bytes(in->frame);
	__u32 count = es_strays_begin(packet, es_ntohs(in->h.packet_len), in->h.kind == ES_HANDOVER_STRAYS6,
				      &in->pkt);
	__u64 here = 0;

	if (!count)
		goto malformed;
	es_nf_received_flow(in);
	if (es_nf_service_find(in->node, &in->flow.service, in->flow.service_port) < 0) {
		es_nf_count(in->node, ES_COUNT_handover_wrong_target);
		return;
	}
	for (__u32 i = 0; i < count; i++) {
		if (es_strays_question(packet, i, &in->pkt, &in->view.seg))
			goto malformed;
		if (es_nf_stray_look(in) != ES_NACK_NOT_HERE)
			here |= 1ULL << i;
	}
	es_message_strays_put(&in->h, here);
	es_nf_message_answer(in->node, in->frame, &in->h, ES_HANDOVER_NACK, ES_NACK_STRAYS);
	return;

malformed:
	es_nf_count(in->node, ES_COUNT_handover_malformed);
}

/* Reads the packet in the message. Returns 0, or the counter by which it is refused. */
static int es_nf_received_packet(struct es_nf_received *in, __u32 *ret_counter)
{
	int service;

	if (es_nf_message_packet(in->frame, &in->h, &in->pkt, &in->view.seg)) {
		*ret_counter = ES_COUNT_handover_malformed;
		return -1;
	}
	es_nf_received_flow(in);
	service = es_nf_service_find(in->node, &in->flow.service, in->flow.service_port);
	if (service < 0) {
		*ret_counter = ES_COUNT_handover_wrong_target;
		return -1;
	}
	in->service = (__u32)service;
	return 0;
}

/* The packet in the message: read it, look for its socket, decide. */
static void es_nf_received_segment(struct es_nf_received *in)
{
	struct es_nf_node *node = in->node;
	struct es_handover_view *v = &in->view;
	struct es_verdict verdict = {};
	__u32 counter = ES_COUNT_handover_malformed, failed;

	if (es_nf_received_packet(in, &counter) || !es_handover_is_about(in->h.kind, &v->seg)) {
		es_nf_count(node, counter);
		return;
	}
	if (in->h.kind == ES_HANDOVER_STRAY || in->h.kind == ES_HANDOVER_FATE) {
		es_nf_message_answer(node, in->frame, &in->h, ES_HANDOVER_NACK,
				     in->h.kind == ES_HANDOVER_STRAY ? es_nf_stray_look(in)
								     : es_nf_fate_look(in));
		return;
	}
	v->kind = in->h.kind;
	v->silent = (__u8)es_lease_refuses(es_nf_read64(&node->memory.state->lease_ns),
					   es_nf_read32(&node->memory.state->attached), node->now_ns);
	v->stale = (__u8)es_handover_is_stale(&node->config, &node->ring.table, &in->h, in->flow_hash);
	es_nf_handover_view_settled(in);
	in->connection = es_nf_connection_find(node->memory.connections, in->flow_hash);
	/* It comes again. */
	if (es_nf_handover_view_socket(in)) {
		es_nf_count(node, ES_COUNT_rebuild_refused);
		return;
	}
	if (v->kind == ES_HANDOVER_END || v->kind == ES_HANDOVER_GONE)
		es_nf_leave_begin(in);
	es_decide_handover(v, &verdict);
	es_plan_handover(v, &verdict, ES_WAY_HANDS, &in->plan);
	failed = es_nf_handover_carry_out(in);
	if (failed)
		es_nf_handover_undo(in, failed);
	es_nf_count(node, in->plan.counter);
}

/* Carry out what es_decide_fresh() says of a message. */
static enum es_nf_fate es_nf_cluster_carry_out(struct es_nf_received *in, int is_to_port)
{
	struct es_message_verdict verdict;

	es_decide_fresh(&in->h, is_to_port, in->node->config.self, &verdict);
	es_nf_count(in->node, verdict.counter);
	switch (verdict.action) {
	case ES_MESSAGE_PASS:
		return ES_NF_ACCEPT;
	case ES_MESSAGE_PROGRAM:
		es_nf_program_message(in->node, in->frame, &in->h);
		break;
	case ES_MESSAGE_STRAYS:
		es_nf_strays_answer(in);
		break;
	case ES_MESSAGE_SEGMENT:
		es_nf_received_segment(in);
		break;
	default:
		break;
	}
	return ES_NF_DROP;
}

enum es_nf_fate es_nf_cluster(struct es_nf_node *node, const struct es_nf_frame *frame)
{
	struct es_nf_received in = {.node = node, .frame = frame};
	const uint8_t *udp = frame->bytes + es_nf_message_udp_off(frame);
	struct es_message_envelope envelope = {};
	struct es_message_verdict verdict;
	struct es_nf_ip ip;
	__u32 counter;

	if (es_nf_ip_read(frame->bytes, frame->len, &ip) || ip.next != IPPROTO_UDP ||
	    ip.at != es_nf_message_udp_off(frame) || frame->len < ip.at + ES_NF_UDP_LEN ||
	    !es_addr_equal(&ip.dest, &node->config.self_address))
		return ES_NF_ACCEPT;
	/* NACKs come from the handover port to the worker's own; they are checked here and go up. */
	if (es_nf_be16(udp) != node->config.handover_port &&
	    es_nf_be16(udp + 2) != node->config.handover_port)
		return ES_NF_ACCEPT;
	envelope.ip_len = (__u32)(ip.len - ip.at);
	envelope.udp_len = es_ntohs(es_nf_be16(udp + 4));
	envelope.is_short = frame->len < es_nf_message_packet_off(frame);
	if (!envelope.is_short)
		memcpy(&in.h, frame->bytes + es_nf_message_header_off(frame), sizeof(in.h));
	es_decide_envelope(&envelope, &in.h, node->config.self, &verdict);
	if (verdict.action == ES_MESSAGE_PASS)
		return ES_NF_ACCEPT;
	if (verdict.action == ES_MESSAGE_REFUSE) {
		es_nf_count(node, verdict.counter);
		return ES_NF_DROP;
	}
	counter = es_nf_message_check(node, frame, &in.h);
	es_nf_count(node, counter);
	if (counter != ES_COUNT_handover_received)
		return ES_NF_DROP;
	return es_nf_cluster_carry_out(&in, es_nf_be16(udp + 2) == node->config.handover_port);
}
