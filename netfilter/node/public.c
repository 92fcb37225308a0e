// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Packets that arrive on the public interface: makes the view of a packet, has es_decide() decide, and
 * carries the verdict out. A packet of a connection that is here gets this far only if its service inspects
 * every request.
 */
#include <netinet/in.h>
#include "kmod/core/answer.h"
#include "kmod/core/headers.h"
#include "kmod/core/icmp.h"
#include "kmod/core/plan.h"
#include "kmod/core/serving.h"
#include "netfilter/node/answer.h"
#include "netfilter/node/tracks.h"
#include "netfilter/node/other.h"
#include "netfilter/node/public.h"
#include "netfilter/node/make.h"
#include "netfilter/node/settled.h"
#include "netfilter/node/unproven.h"
#include "netfilter/node/view.h"

/*
 * struct es_nf_inbound - a packet under decision, with its plan, and @fate; @connection: set if the inspector
 * may have to know of it
 */
struct es_nf_inbound {
	struct es_nf_node *node;
	const struct es_nf_frame *frame;
	struct es_packet pkt;
	struct es_flow flow;
	struct es_view view;
	struct es_verdict verdict;
	struct es_nf_found found;
	struct es_nf_connection *connection;
	struct es_public_plan plan;
	__u32 service;
	enum es_nf_fate fate;
};

static int es_nf_look(struct es_nf_inbound *in)
{
	return es_nf_node_look(in->node, &in->flow, &in->found);
}

/*
 * Is a link-local client refused a connection? Its address means nothing without an interface, and a socket
 * belongs to the interface on which its first packet arrives: here the tun device, where no client is.
 */
static int es_nf_is_refused(const struct es_nf_inbound *in)
{
	return es_addr_is_link_local(&in->flow.client) &&
	       (in->verdict.action == ES_SYNACK || in->verdict.action == ES_END_OLD_AND_SYNACK ||
		in->verdict.action == ES_REBUILD);
}

/* Tell the client at once, so that it tries another address. Returns the counter to count by. */
static __u32 es_nf_carry_out_refusal(const struct es_nf_inbound *in)
{
	const struct es_segment *seg = &in->view.seg;
	struct es_answer answer;
	struct es_packet back;

	es_packet_turn(&in->pkt, &back);
	es_answer_reset(&back, seg->ack, &answer);
	if (seg->flags & ES_TCP_SYN) { /* RFC 9293, 3.10.7.1 */
		answer.seq = 0;
		answer.ack = seg->seq + 1;
		answer.flags |= ES_TCP_ACK;
	}
	return es_nf_answer_send(in->node, in->frame, &answer) ? ES_COUNT_answer_failed
							       : ES_COUNT_rebuild_refused;
}

/* The attempt is over. Its service may have gone since it began, with a new configuration. */
static void es_nf_public_made(const struct es_nf_making *making, int rc)
{
	struct es_nf_node *node = making->node;
	int service = es_nf_service_find(node, &making->flow.service, making->flow.service_port);
	struct es_nf_connection *connection = NULL;

	if (rc) {
		es_nf_unproven_forget(node, &making->flow);
		es_nf_settle(node, making->flow_hash, making->seg.seq, es_plan_undo(ES_WAY_HANDS), 0);
		es_nf_count(node, ES_COUNT_rebuild_refused);
		return;
	}
	if (service >= 0)
		connection = es_nf_track_made(node, (__u32)service, making->flow_hash, &making->seg);
	if (connection) {
		es_track_begin_uninspected(&connection->track, &making->options);
		/* A client that closes at once has asked for nothing that could have been inspected. */
		if (making->seg.len)
			es_nf_track_begun(node, connection);
	}
	/* Noted because this node, too, may be lost, and be asked again when its sockets are gone. */
	if (node->config.leased)
		es_nf_first_note(node, making->flow_hash, making->seg.seq);
	es_nf_count(node, making->counter);
}

static struct es_settled_answer es_nf_public_settle(const struct es_nf_inbound *in, enum es_settled_step step)
{
	return es_nf_settle(in->node, in->view.flow_hash, in->view.seg.seq, step, 0);
}

/*
 * The steps of a plan (kmod/core/plan.h). Each returns 0, or anything else if it has failed. The stack would
 * drop a packet with a wrong checksum; the client sends it again, unharmed.
 */
static int es_nf_public_making(struct es_nf_inbound *in)
{
	struct es_nf_node *node = in->node;
	struct es_plan_server server = {};

	if (!es_nf_packet_is_whole(in->frame->bytes, &in->pkt, &in->view.seg)) {
		in->plan.steps = 0;
		return 0;
	}
	server.settled = es_nf_public_settle(in, ES_SETTLED_MAKE);
	if (es_plan_makes(ES_WAY_HANDS, &server.settled)) {
		server.is_unknown = es_nf_look(in) != 0;
		server.listening =
			!server.is_unknown && in->found.listening &&
			!es_serving_refuses(node->memory.state, in->service, in->pkt.is_v6, node->now_ns);
		server.is_full = in->found.accept_full;
	}
	es_plan_making(&in->view, &server, ES_WAY_HANDS, node->config.leased, &in->plan);
	return 0;
}

static int es_nf_public_undo(const struct es_nf_inbound *in)
{
	es_nf_public_settle(in, es_plan_undo(ES_WAY_HANDS));
	return 0;
}

static int es_nf_public_promise(const struct es_nf_inbound *in)
{
	struct es_settled_answer settled = es_nf_public_settle(in, ES_SETTLED_REFUSE);

	return es_view_may_be_given(&in->view, &settled) ? 0 : -1;
}

static int es_nf_public_asked(const struct es_nf_inbound *in)
{
	es_stray_asked(es_nf_stray_slot(in->node, in->view.flow_hash), in->view.now_ms);
	return 0;
}

static int es_nf_public_queue(const struct es_nf_inbound *in)
{
	struct es_nf_node *node = in->node;
	const struct es_view *v = &in->view;
	__u32 worker = es_view_worker(v, &node->config);
	int was_heard = es_verdict_needs_flow(&in->verdict) && es_nf_flow_was_heard(node, v->flow_hash);
	struct es_record record = {};

	if (!node->queue[worker])
		return -1;
	es_view_record(v, &in->verdict, &in->pkt, in->service, was_heard, &record);
	if (v->track && in->connection)
		es_view_record_track(&in->connection->track, &record);
	return es_nf_queue_push(node->queue[worker], &node->memory.state->worker[worker].awake, &record,
				in->frame->bytes);
}

static int es_nf_public_clear(const struct es_nf_inbound *in)
{
	es_nf_node_end_old(in->node, &in->flow, &in->found);
	return 0;
}

static int es_nf_public_answer(const struct es_nf_inbound *in)
{
	struct es_answer answer;

	es_answer_make(&in->node->config, &in->pkt, &in->view.seg, &in->verdict, &answer);
	return es_nf_answer_send(in->node, in->frame, &answer);
}

/* es_nf_public_made() counts the outcome, and takes the notes back if there is no socket. */
static int es_nf_public_make(const struct es_nf_inbound *in)
{
	const struct es_view *v = &in->view;
	const struct es_nf_making making = {
		.node = in->node,
		.made = es_nf_public_made,
		.flow = in->flow,
		.flow_hash = v->flow_hash,
		.seg = v->seg,
		.options = in->verdict.options,
		.counter = in->verdict.counter,
	};

	if (es_nf_unproven_note(in->node, &in->flow, &v->seg, (__u16)in->node->config.self, 0))
		return -1;
	es_nf_make(&making, in->frame->bytes, in->frame->len, NULL);
	return 0;
}

/*
 * A packet that was on its way before its connection was here has been taken by the kernel for one of another
 * connection. Given to the stack again, it is looked up again.
 */
static int es_nf_public_deliver(struct es_nf_inbound *in)
{
	const struct es_nf_hands *hands = &in->node->hands;

	if (!in->frame->is_here)
		return hands->inject(hands->ctx, in->frame->bytes, in->frame->len);
	in->fate = ES_NF_ACCEPT;
	return 0;
}

#define ES_NF_PUBLIC_TAKE_ALL(name)                                                                          \
	if ((in->plan.steps & ES_PUBLIC_STEP(name)) && es_nf_public_##name(in))                              \
		return ES_PUBLIC_STEP(name);
#define ES_NF_PUBLIC_TAKE_HANDS ES_NF_PUBLIC_TAKE_ALL
#define ES_NF_PUBLIC_TAKE_PACKET(name)
#define ES_NF_PUBLIC_TAKE(name, ways) ES_NF_PUBLIC_TAKE_##ways(name)

/* Take the steps of the plan. Returns the one that has failed, or 0. */
static __u32 es_nf_public_take(struct es_nf_inbound *in)
{
	ES_PUBLIC_STEPS(ES_NF_PUBLIC_TAKE)
	return 0;
}

static void es_nf_public_carry_out(struct es_nf_inbound *in)
{
	__u32 failed;

	if (es_nf_is_refused(in)) {
		es_nf_count(in->node, es_nf_carry_out_refusal(in));
		return;
	}
	es_plan_public(&in->view, &in->verdict, ES_WAY_HANDS, &in->plan);
	failed = es_nf_public_take(in);
	if (failed) {
		es_public_failed(&in->view, failed, &in->plan);
		if (in->plan.steps & ES_PUBLIC_STEP(undo))
			es_nf_public_undo(in);
	}
	es_nf_count(in->node, in->plan.counter);
}

/*
 * Is it worth asking the kernel whether the flow has a socket? Most packets are another node's. A flow of
 * this node has no socket before its request, unless conntrack knows the flow. If not even its SYN was heard,
 * the flow may have a connection that this datapath has not made, or that nobody remembers to have made.
 */
static int es_nf_may_have_socket(const struct es_nf_inbound *in)
{
	const struct es_nf_node *node = in->node;

	if (in->frame->is_known ||
	    es_nf_fresh_is(node->memory.fresh, in->view.flow_hash, es_ns_to_ms(node->now_ns)))
		return 1;
	return es_view_says(&in->view) && es_node_ring_answers(&node->ring, in->view.flow_hash) &&
	       (!es_nf_flow_was_heard(node, in->view.flow_hash) ||
		node->hands.may_have_made(node->hands.ctx, &in->flow));
}

/*
 * The kernel has been asked for the flow's socket. If there is none, conntrack's entry of the flow is that of
 * a connection which is gone. An old connection's socket counts as one in TIME_WAIT for a SYN only; for other
 * segments it is what the kernel says.
 */
static void es_nf_public_found(struct es_nf_inbound *in)
{
	const struct es_nf_hands *hands = &in->node->hands;
	int ends = in->found.is_old && es_tcp_is_syn(&in->view.seg);

	in->view.socket = ends ? ES_SOCKET_TIME_WAIT : in->found.socket;
	in->view.unproven = in->view.silent && !in->found.acked;
	if ((ends || in->view.socket == ES_SOCKET_NONE) && (in->frame->is_known || in->frame->is_here)) {
		es_nf_left_note(in->node->left, in->view.flow_hash, es_ns_to_ms(in->node->now_ns));
		hands->forget(hands->ctx, &in->flow);
	}
}

/*
 * Can a segment of a connection that conntrack knows go to the stack at once? Most are the inside of a body,
 * and what nobody decides about here is the stack's. Returns 1 with @ret_fate; or 0 if the rest must be
 * looked at.
 */
static int es_nf_public_is_stacks(struct es_nf_inbound *in, enum es_nf_fate *ret_fate)
{
	struct es_nf_node *node = in->node;
	struct es_view *v = &in->view;
	const struct es_nf_connection *c = es_nf_connection_find(node->memory.connections, v->flow_hash);
	int is_leaving = c && es_track_is_leaving(&c->track);

	*ret_fate = is_leaving ? ES_NF_DROP : ES_NF_ACCEPT;
	if (v->inspect != ES_INSPECT_EVERY)
		return 1;
	if (!v->silent && (!es_track_reads(&v->seg) || (c && es_nf_track_is_inside(c, &v->seg)))) {
		es_nf_count(node, ES_COUNT_deliver_established);
		return 1;
	}
	if (es_nf_look(in))
		return 1;
	if (in->found.socket == ES_SOCKET_NONE && !is_leaving)
		return 1; /* it is over */
	es_nf_public_found(in);
	return 0;
}

/*
 * Does this node know all that it needs for now of a flow that is another node's? With leases, it needs the
 * first request as well (es_view_is_overheard()). Where connections move, it needs every packet: it may have
 * had a connection that comes back to it.
 */
static int es_nf_public_has_heard_enough(const struct es_nf_node *node, const struct es_view *v)
{
	if (!node->remembers || !es_nf_read32(&node->memory.state->attached) ||
	    v->inspect == ES_INSPECT_EVERY)
		return 0;
	return !node->config.leased || (v->seg.len && !(v->seg.flags & ES_TCP_SYN));
}

/*
 * Has this node's inspector decided that another node has the flow's connection? Decisions are found by the
 * flow's tag alone, as packets name no request any more.
 */
static int es_nf_public_is_given_away(const struct es_nf_node *node, const struct es_view *v)
{
	const struct es_decision_set *set = es_nf_decision_set(node, v->flow_hash);

	for (int i = 0; i < ES_DECISION_WAYS; i++) {
		__u64 key = es_nf_read64(&set->way[i].key), value = es_nf_read64(&set->way[i].value);
		__u8 target = es_decision_node(value);

		if (key && value && (__u32)key == (__u32)v->flow_hash && target != node->config.self &&
		    target != ES_NODE_REJECT)
			return 1;
	}
	return 0;
}

/*
 * Returns the fate of a packet that is dropped: may the kernel drop more packets of its flow for a while?
 * - A client's acknowledgements say nothing to the node that has inspected its request. Nor does the ACK of
 *   the handshake once the SYN is answered: a client that asks whether its idle connection is still there
 *   (keepalive_answered) asks later than the kernel remembers the flow.
 * - A client that acknowledges something else than a cookie has heard from the node that has its connection,
 *   and that node hears the rest. But nothing in such a segment is authentic, so this node must know by
 *   itself that it has given the connection away. So nobody can forge segments that make it deaf to a
 *   connection whose request is yet to arrive.
 * - The kernel forgets the flow soon, so a client's repetitions reach this node, by which a lost node is
 *   found out (kmod/core/strays.h).
 */
static enum es_nf_fate es_nf_public_given(const struct es_nf_node *node, const struct es_nf_inbound *in)
{
	const struct es_view *v = &in->view;
	const struct es_segment *seg = &v->seg;
	__u32 counter = in->verdict.counter;

	if (!node->remembers || v->inspect != ES_INSPECT_FIRST)
		return ES_NF_DROP;
	if (in->verdict.action == ES_SYNACK || in->verdict.action == ES_END_OLD_AND_SYNACK)
		return ES_NF_DROP_GIVEN;
	if (in->verdict.action != ES_DROP || in->frame->is_known || !v->mine || v->socket != ES_SOCKET_NONE ||
	    seg->flags & (ES_TCP_SYN | ES_TCP_FIN | ES_TCP_RST | ES_TCP_URG))
		return ES_NF_DROP;
	if (counter != (seg->len ? ES_COUNT_cookie_invalid : ES_COUNT_drop_no_flow))
		return ES_NF_DROP;
	if (seg->has_ts && es_nf_public_is_given_away(node, v))
		return ES_NF_DROP_GONE;
	return seg->len ? ES_NF_DROP : ES_NF_DROP_GIVEN;
}

/* A TCP segment to a service, whose headers are read. */
static enum es_nf_fate es_nf_public_segment(struct es_nf_inbound *in)
{
	struct es_nf_node *node = in->node;
	const struct es_config *cfg = &node->config;
	struct es_view *v = &in->view;
	enum es_nf_fate fate = ES_NF_DROP;

	es_packet_flow(&in->pkt, &in->flow);
	v->flow_hash = es_flow_hash(&cfg->ring_key, cfg->ring_seed, &in->flow);
	v->inspect = es_view_inspect(&in->pkt, cfg->service[in->service].inspect);
	v->unsafe = cfg->service[in->service].unsafe;
	v->silent = (__u8)es_nf_is_silent(node);
	if (node->hands.keep(node->hands.ctx, &in->flow, &v->seg, in->frame))
		return ES_NF_DROP;
	if (in->frame->is_here) {
		/* Before the connection's handshake is over, the packet would be taken for a part of that. */
		if (node->hands.is_making(node->hands.ctx, &in->flow)) {
			es_nf_count(node, ES_COUNT_drop_no_flow);
			return ES_NF_DROP;
		}
		if (es_nf_public_is_stacks(in, &fate))
			return fate;
	} else if (es_nf_may_have_socket(in)) {
		/* If nobody can tell, nothing is concluded: the packet comes again. */
		if (es_nf_look(in)) {
			es_nf_count(node, ES_COUNT_rebuild_refused);
			return ES_NF_DROP;
		}
		es_nf_public_found(in);
	}
	es_nf_view_complete(node, &in->pkt, v);
	if (v->socket == ES_SOCKET_ESTABLISHED) {
		if (es_view_reads_track(v))
			in->connection = es_nf_track_view(node, &in->found, v);
	} else {
		if (es_is_anothers(v)) {
			es_nf_count(node, ES_COUNT_drop_not_mine);
			return es_nf_public_has_heard_enough(node, v) ? ES_NF_DROP_OTHERS : ES_NF_DROP;
		}
		if (v->mine && es_packet_is_martian(cfg, &in->pkt)) {
			es_nf_count(node, ES_COUNT_drop_martian);
			return ES_NF_DROP;
		}
		if (v->mine && es_nf_packet_options(in->frame->bytes, &in->pkt, &v->seg)) {
			es_nf_count(node, ES_COUNT_drop_malformed);
			return ES_NF_DROP;
		}
		es_view_layer4(v, node->memory.state, &cfg->service[in->service], in->service, &in->pkt,
			       node->now_ns);
		v->has_doubts =
			cfg->leased &&
			es_first_has_doubts(es_nf_read64(&node->memory.state->doubt_ns), node->now_ns);
		if (es_view_needs_heard(v))
			es_nf_view_heard(node, v);
		if (v->has_doubts && v->mine)
			es_nf_view_doubt(node, v);
	}
	es_decide(cfg, v, &in->verdict);
	if (es_verdict_may_collide(&in->verdict) &&
	    es_view_cookie_is_taken(v, es_nf_decision_set(node, v->flow_hash), in->verdict.cookie)) {
		v->slot++; /* the next slot's cookie is valid already */
		es_decide(cfg, v, &in->verdict);
	}
	if (in->verdict.guess)
		es_guess_note(&node->memory.state->guesses, es_ns_to_s(node->now_ns));
	es_nf_public_carry_out(in);
	return in->fate == ES_NF_DROP ? es_nf_public_given(node, in) : in->fate;
}

/*
 * Is the ICMP error that begins at @at about a message? The packet is whole, as conntrack puts fragments
 * together.
 */
static int es_nf_public_is_error(const struct es_nf_node *node, const struct es_nf_frame *frame, size_t at,
				 int is_v6)
{
	const uint8_t *quoted = frame->bytes + at + ES_ICMP_HEADER;
	int udp_at;

	if (frame->len < at + ES_ICMP_HEADER + ES_ICMP_QUOTED || !es_icmp_is_error(frame->bytes[at], is_v6))
		return 0;
	udp_at = es_icmp_udp_at(quoted, is_v6);
	if (udp_at <= 0)
		return udp_at < 0;
	return frame->len >= at + ES_ICMP_HEADER + (size_t)udp_at + 4 &&
	       (es_nf_be16(quoted + udp_at) == node->config.handover_port ||
		es_nf_be16(quoted + udp_at + 2) == node->config.handover_port);
}

/*
 * Does the packet belong to the nodes' messages: is it to or from the handover port, or an error about such a
 * packet? Nodes have a network of their own; nobody on the clients' side may send a message.
 */
static int es_nf_public_is_message(const struct es_nf_node *node, const struct es_nf_frame *frame,
				   const struct es_nf_ip *ip)
{
	const struct es_config *cfg = &node->config;
	const uint8_t *udp = frame->bytes + ip->at;

	if (cfg->public_ifindex == cfg->cluster_ifindex || !es_addr_equal(&ip->dest, &cfg->self_address))
		return 0;
	if (ip->is_v6 && es_headers_hide(ip->next))
		return 1;
	if (ip->next == (ip->is_v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP))
		return es_nf_public_is_error(node, frame, ip->at, ip->is_v6);
	return ip->next == IPPROTO_UDP && frame->len >= ip->at + ES_NF_UDP_LEN &&
	       (es_nf_be16(udp) == cfg->handover_port || es_nf_be16(udp + 2) == cfg->handover_port);
}

enum es_nf_fate es_nf_public(struct es_nf_node *node, const struct es_nf_frame *frame)
{
	struct es_nf_inbound in = {.node = node, .frame = frame, .fate = ES_NF_DROP};
	struct es_nf_ip ip;
	int service, counter;

	if (es_nf_ip_read(frame->bytes, frame->len, &ip)) {
		es_nf_count(node, ES_COUNT_drop_malformed);
		return ES_NF_DROP;
	}
	if (es_nf_other_neighbour(node, frame, &ip))
		return ES_NF_DROP;
	if (!es_nf_is_service_address(node, &ip.dest)) {
		if (!es_nf_public_is_message(node, frame, &ip))
			return ES_NF_ACCEPT;
		es_nf_count(node, ES_COUNT_handover_public);
		return ES_NF_DROP;
	}
	counter = es_nf_ip_counter(&ip);
	if (counter < 0)
		return es_nf_other_ip(node, frame, &ip);
	if (counter == ES_COUNTER_COUNT && es_nf_packet_tcp(frame->bytes, frame->len, &in.pkt, &in.view.seg))
		counter = ES_COUNT_drop_malformed;
	if (counter != ES_COUNTER_COUNT) {
		es_nf_count(node, (__u32)counter);
		return ES_NF_DROP;
	}
	service = es_nf_service_find(node, &ip.dest, in.pkt.dport);
	if (service < 0)
		return es_nf_other_ip(node, frame, &ip);
	in.service = (__u32)service;
	return es_nf_public_segment(&in);
}
