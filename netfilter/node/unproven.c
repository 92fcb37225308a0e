// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Decides about packets of unproven connections, and ends such connections. The counterpart of
 * kmod/bpf/unproven.h, and of the part of kmod/bpf/reply.h that is about leases.
 */
#include <errno.h>
#include "kmod/core/counters.h"
#include "kmod/core/load.h"
#include "kmod/core/reply.h"
#include "netfilter/node/program_name.h"
#include "netfilter/node/settled.h"
#include "netfilter/node/unproven.h"

static struct es_nf_unproven_set *es_nf_unproven_set_of(const struct es_nf_node *node, __u64 flow_hash)
{
	return &node->memory.unproven[(__u32)(flow_hash >> 20) & (ES_NF_UNPROVEN_SETS - 1)];
}

static struct es_nf_unproven *es_nf_unproven_find(const struct es_nf_node *node, const struct es_flow *flow)
{
	__u64 flow_hash = es_flow_hash(&node->config.ring_key, node->config.ring_seed, flow);
	struct es_nf_unproven_set *set = es_nf_unproven_set_of(node, flow_hash);

	for (int i = 0; i < ES_NF_UNPROVEN_WAYS; i++)
		if (set->way[i].made_ns && set->way[i].flow_hash == flow_hash &&
		    es_flow_equal(&set->way[i].flow, flow))
			return &set->way[i];
	return NULL;
}

static void es_nf_unproven_empty(struct es_nf_unproven *u)
{
	if (u)
		u->made_ns = 0;
}

/* The client knows that this node has its connection: the kernel may let its packets pass. */
static void es_nf_unproven_prove(struct es_nf_node *node, const struct es_flow *flow)
{
	/* If it fails, the next packet comes here, too. */
	if (!node->hands.prove(node->hands.ctx, flow))
		es_nf_unproven_empty(es_nf_unproven_find(node, flow));
}

/*
 * Looks at the connection. Returns 1 if it is still unproven. A client can acknowledge something only by
 * packets that have passed es_nf_unproven_in().
 */
static int es_nf_unproven_refresh(struct es_nf_node *node, struct es_nf_unproven *u,
				  struct es_nf_found *found)
{
	if (es_nf_node_look(node, &u->flow, found))
		return 1;
	if (found->socket == ES_SOCKET_NONE) {
		if (node->hands.is_making(node->hands.ctx, &u->flow))
			return 1;
		es_nf_unproven_empty(u);
		return 0;
	}
	if (!found->acked)
		return 1;
	es_nf_unproven_prove(node, &u->flow);
	return 0;
}

int es_nf_unproven_note(struct es_nf_node *node, const struct es_flow *flow, const struct es_segment *request,
			__u16 source, int is_moved)
{
	__u64 flow_hash = es_flow_hash(&node->config.ring_key, node->config.ring_seed, flow);
	struct es_nf_unproven_set *set = es_nf_unproven_set_of(node, flow_hash);
	struct es_nf_unproven *u = es_nf_unproven_find(node, flow);
	struct es_nf_found found;

	if (!node->config.leased)
		return 0;
	/* A repeated request: its note holds. */
	if (u && u->first_seq == request->seq && u->cookie == request->ack - 1)
		return 0;
	for (int i = 0; i < ES_NF_UNPROVEN_WAYS && !u; i++)
		if (!set->way[i].made_ns)
			u = &set->way[i];
	for (int i = 0; i < ES_NF_UNPROVEN_WAYS && !u; i++) {
		(void)es_nf_unproven_refresh(node, &set->way[i], &found);
		if (!set->way[i].made_ns)
			u = &set->way[i];
	}
	if (!u)
		return -ENOSPC;
	*u = (struct es_nf_unproven){
		.flow_hash = flow_hash,
		.made_ns = node->now_ns,
		.flow = *flow,
		.cookie = request->ack - 1,
		.first_seq = request->seq,
		.source = source,
		.is_moved = (__u8) !!is_moved,
	};
	return 0;
}

void es_nf_unproven_forget(struct es_nf_node *node, const struct es_flow *flow)
{
	es_nf_unproven_empty(es_nf_unproven_find(node, flow));
}

/*
 * The flow and the segment of a packet, of which there may be only the headers. The flow is the client's,
 * even if a server has got a program's connection. Returns 0 or -EBADMSG.
 */
static int es_nf_unproven_read(const struct es_nf_node *node, const struct es_nf_frame *frame, int is_out,
			       struct es_flow *ret_flow, struct es_segment *ret_seg)
{
	struct es_packet pkt, client;

	if (es_nf_packet_headers(frame->bytes, frame->len, frame->full_len, &pkt, ret_seg))
		return -EBADMSG;
	if (is_out)
		es_packet_turn(&pkt, &client);
	es_packet_flow(is_out ? &client : &pkt, ret_flow);
	if (is_out)
		(void)es_nf_program_flow(&node->config, ret_flow, ret_flow);
	return 0;
}

enum es_nf_fate es_nf_unproven_in(struct es_nf_node *node, const struct es_nf_frame *frame)
{
	struct es_nf_found found;
	struct es_segment seg;
	struct es_flow flow;

	if (es_nf_unproven_read(node, frame, 0, &flow, &seg)) {
		es_nf_count(node, ES_COUNT_drop_malformed);
		return ES_NF_DROP;
	}
	/* Before the handshake is over, the packet would be taken for a part of it. */
	if (node->hands.is_making(node->hands.ctx, &flow)) {
		es_nf_count(node, ES_COUNT_drop_no_flow);
		return ES_NF_DROP;
	}
	/* A proven connection may go on even if the kernel has not been told yet. */
	if (!es_nf_is_silent(node) || (!es_nf_node_look(node, &flow, &found) && found.acked)) {
		es_nf_count(node, ES_COUNT_deliver_established);
		return ES_NF_ACCEPT;
	}
	es_nf_count(node, ES_COUNT_drop_silent);
	return ES_NF_DROP;
}

void es_nf_unproven_look(struct es_nf_node *node, const struct es_nf_frame *frame)
{
	const struct es_nf_unproven *u;
	struct es_nf_found found;
	struct es_segment seg;
	struct es_flow flow;

	if (es_nf_unproven_read(node, frame, 0, &flow, &seg))
		return;
	u = es_nf_unproven_find(node, &flow);
	/* It acknowledges only the handshake. */
	if (u && seg.ack == u->cookie + 1)
		return;
	if (!es_nf_node_look(node, &flow, &found) && found.acked)
		es_nf_unproven_prove(node, &flow);
}

/* Sends RSTs that a client believes, whether it has received none of the response or all. */
static void es_nf_unproven_tell(struct es_nf_node *node, const struct es_nf_unproven *u, __u32 sent)
{
	__u32 seq[2], count = es_reply_resets(u->cookie + 1, u->cookie + 1 + sent, seq);

	for (__u32 i = 0; i < count; i++)
		es_nf_count(node, node->hands.reset(node->hands.ctx, &u->flow, seq[i])
					  ? ES_COUNT_answer_failed
					  : ES_COUNT_reply_told);
}

/* es_decide_reply() about a segment of an unproven connection; @u: its note, or NULL */
static enum es_nf_fate es_nf_unproven_reply(struct es_nf_node *node, struct es_nf_unproven *u,
					    struct es_reply_view *view, const struct es_nf_found *found)
{
	struct es_reply_verdict verdict;

	view->unproven = 1;
	view->acknowledged = u && u->acknowledged;
	es_decide_reply(view, &verdict);
	if (u && verdict.acknowledges)
		u->acknowledged = 1;
	if (verdict.action == ES_REPLY_TELLS)
		es_nf_unproven_tell(node, u, found->sent);
	if (verdict.counter < ES_COUNTER_COUNT)
		es_nf_count(node, verdict.counter);
	return verdict.action == ES_REPLY_LEAVES ? ES_NF_ACCEPT : ES_NF_DROP;
}

static struct es_reply_view es_nf_reply_view(const struct es_nf_node *node)
{
	return (struct es_reply_view){
		.now_ns = node->now_ns,
		.lease_ns = es_nf_read64(&node->memory.state->lease_ns),
		.firm_ns = es_nf_read64(&node->memory.state->firm_ns),
	};
}

/*
 * A packet may leave only if it leaves at once: later, the lease may be over. If not, the stack repeats it,
 * and meanwhile the kernel asks for the missing MAC.
 */
static enum es_nf_fate es_nf_unproven_leaves(struct es_nf_node *node, const struct es_flow *flow, __u32 mark)
{
	if (node->hands.reaches(node->hands.ctx, flow, mark, node->now_ns))
		return ES_NF_ACCEPT;
	es_nf_count(node, ES_COUNT_reply_unsure);
	return ES_NF_DROP;
}

enum es_nf_fate es_nf_unproven_out(struct es_nf_node *node, const struct es_nf_frame *frame)
{
	struct es_reply_view view = es_nf_reply_view(node);
	struct es_nf_unproven *u;
	struct es_nf_found found;
	struct es_segment seg;
	struct es_flow flow;

	if (es_nf_unproven_read(node, frame, 1, &flow, &seg))
		return ES_NF_DROP;
	view.len = seg.len;
	view.flags = seg.flags;
	if (!es_reply_needs_proof(&view))
		return es_nf_unproven_leaves(node, &flow, frame->mark);
	if (!es_nf_node_look(node, &flow, &found) && found.acked) {
		es_nf_unproven_prove(node, &flow);
		return ES_NF_ACCEPT;
	}
	u = es_nf_unproven_find(node, &flow);
	/*
	 * At the end of its handshake, the hook sends a window update, which tells the client nothing new.
	 * The client would echo its timestamp from then on, and so other nodes would not recognize a repeated
	 * request as a first one (cookie.h), if it is given to them later. But it shows that the response is
	 * about to come: time to ask for the MAC.
	 */
	if (u && seg.ack == u->first_seq && !es_nf_is_silent(node)) {
		(void)node->hands.reaches(node->hands.ctx, &flow, frame->mark, node->now_ns);
		return ES_NF_DROP;
	}
	if (!es_nf_is_silent(node) && es_nf_unproven_leaves(node, &flow, frame->mark) == ES_NF_DROP)
		return ES_NF_DROP;
	return es_nf_unproven_reply(node, u, &view, &found);
}

enum es_nf_fate es_nf_unproven_reset(struct es_nf_node *node, const struct es_flow *flow, int is_proven)
{
	struct es_reply_view view = es_nf_reply_view(node);
	struct es_nf_unproven *u = es_nf_unproven_find(node, flow);
	struct es_nf_found found;
	enum es_nf_fate fate;

	view.flags = ES_TCP_RST;
	if (is_proven || !es_reply_needs_proof(&view)) {
		es_nf_unproven_empty(u);
		return ES_NF_ACCEPT;
	}
	/* The socket may be gone already. */
	if (es_nf_node_look(node, flow, &found))
		memset(&found, 0, sizeof(found));
	if (found.acked)
		return ES_NF_ACCEPT;
	fate = es_nf_unproven_reply(node, u, &view, &found);
	es_nf_unproven_empty(u);
	return fate;
}

/* The next place in use, from @at on. Returns NULL, and 0 in @ret_next, if there is none. */
static struct es_nf_unproven *es_nf_unproven_next(const struct es_nf_node *node, size_t at, size_t *ret_next)
{
	for (; at < (size_t)ES_NF_UNPROVEN_SETS * ES_NF_UNPROVEN_WAYS; at++) {
		struct es_nf_unproven *u =
			&node->memory.unproven[at / ES_NF_UNPROVEN_WAYS].way[at % ES_NF_UNPROVEN_WAYS];

		*ret_next = at + 1;
		if (u->made_ns)
			return u;
	}
	*ret_next = 0;
	return NULL;
}

static void es_nf_unproven_tell_of(struct es_nf_node *node, struct es_nf_unproven *u, es_nf_unproven_fn fn,
				   void *ctx)
{
	const struct es_connection_entry entry = {
		.flow_hash = u->flow_hash,
		.made_ns = u->made_ns,
		.cookie = u->cookie,
		.first_seq = u->first_seq,
		.source = u->source,
		.tcp_state = ES_TCP_STATE_ESTABLISHED,
		.unproven = 1,
		.is_moved = u->is_moved,
	};
	struct es_nf_found found;

	if (es_nf_unproven_refresh(node, u, &found))
		fn(ctx, &entry);
}

size_t es_nf_unproven_walk(struct es_nf_node *node, size_t at, es_nf_unproven_fn fn, void *ctx)
{
	struct es_nf_unproven *u;

	for (int i = 0; i < ES_NF_UNPROVEN_SLICE && (u = es_nf_unproven_next(node, at, &at)); i++)
		es_nf_unproven_tell_of(node, u, fn, ctx);
	return at;
}

/* Returns 1 if it was ended. If it resists, it stays noted, and es_nf_unproven_ended() must follow. */
static int es_nf_unproven_end_one(struct es_nf_node *node, struct es_nf_unproven *u)
{
	const struct es_nf_hands *hands = &node->hands;
	struct es_nf_found found;

	/* An attempt that is given up may remove the note. */
	hands->give_up(hands->ctx, &u->flow);
	if (!u->made_ns || es_nf_node_look(node, &u->flow, &found))
		return 0;
	if (found.socket == ES_SOCKET_NONE) {
		/* Its entry would let the client's packets pass to a stack that knows nothing of it. */
		hands->forget(hands->ctx, &u->flow);
		es_nf_unproven_empty(u);
		return 0;
	}
	if (found.acked) {
		es_nf_unproven_prove(node, &u->flow);
		return 0;
	}
	if (hands->end(hands->ctx, &u->flow, u->first_seq + found.received))
		return 0;
	if (u->acknowledged)
		es_nf_unproven_tell(node, u, found.sent);
	/* The client has heard nothing, so its request may be served here, if it may be executed twice. */
	es_nf_settle(node, u->flow_hash, u->first_seq, ES_SETTLED_END, 0);
	es_nf_unproven_empty(u);
	return 1;
}

size_t es_nf_unproven_end(struct es_nf_node *node, size_t at, unsigned int *count)
{
	struct es_nf_unproven *u;

	if (!es_nf_is_silent(node))
		return 0;
	for (int i = 0; i < ES_NF_UNPROVEN_SLICE && (u = es_nf_unproven_next(node, at, &at)); i++)
		*count += (unsigned int)es_nf_unproven_end_one(node, u);
	return at;
}

int es_nf_unproven_is(struct es_nf_node *node, const struct es_flow *flow)
{
	struct es_nf_found found;

	return es_nf_is_silent(node) &&
	       (es_nf_node_look(node, flow, &found) || (found.socket != ES_SOCKET_NONE && !found.acked));
}

void es_nf_unproven_ended(struct es_nf_node *node, const struct es_flow *flow)
{
	struct es_nf_unproven *u = es_nf_unproven_find(node, flow);

	node->hands.forget(node->hands.ctx, flow);
	if (!u)
		return;
	if (u->acknowledged)
		es_nf_unproven_tell(node, u, 0);
	es_nf_settle(node, u->flow_hash, u->first_seq, ES_SETTLED_END, 0);
	es_nf_unproven_empty(u);
}
