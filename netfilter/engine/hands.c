// SPDX-License-Identifier: GPL-2.0-or-later
/* The functions of the hands. */
#include <errno.h>
#include <string.h>
#include "netfilter/engine/hand_state.h"
#include "netfilter/kernel/clock.h"
#include "netfilter/node/make.h"
#include "netfilter/node/unproven.h"
#include "netfilter/rebuild/errors.h"
#include "netfilter/rebuild/resets.h"
#include "netfilter/rebuild/withdraw.h"

/* Is the socket a half connection of a withdrawn attempt? */
static int es_nf_hand_is_none(struct es_nf_hand_state *kernel, const struct es_flow *flow,
			      const struct es_nf_socket *socket)
{
	struct es_nf_entry entry;

	return es_nf_socket_is_half(socket) &&
	       !es_nf_conntrack_get_socket(&kernel->rebuild.ct, flow, &entry) &&
	       es_nf_conntrack_is_ours(&kernel->rebuild.ct, &entry) && es_nf_entry_is_withdrawn(&entry);
}

/* The kernel counts in ticks, at least 100 a second: it may be off by one. */
#define ES_NF_TICK_MS 10

static void es_nf_hand_found_listener(const struct es_nf_socket *socket, struct es_nf_found *ret)
{
	ret->listening = socket->state == ES_NF_TCP_LISTEN;
	/* The kernel's sk_acceptq_is_full(). */
	ret->accept_full = ret->listening && socket->rqueue > socket->wqueue;
}

/*
 * Does anything listen for the next connection of @flow, whose last one has left a socket? Its server may be
 * gone. Such a socket answers a SYN for which nothing listens with an ACK, not with a RST, so an attempt
 * would not learn it. No socket has port 0 at its other end, so the kernel finds the one that listens.
 */
static int es_nf_hand_look_behind(struct es_nf_hand_state *kernel, const struct es_flow *flow,
				  struct es_nf_found *ret)
{
	struct es_flow next = *flow;
	struct es_nf_socket socket;
	int rc;

	next.client_port = 0;
	rc = es_nf_socket_look(&kernel->rebuild.diag, &next, &socket);
	if (!rc)
		es_nf_hand_found_listener(&socket, ret);
	return rc == -ENOENT ? 0 : rc;
}

static int es_nf_hand_look(void *ctx, const struct es_flow *flow, struct es_nf_found *ret)
{
	struct es_nf_hand_state *kernel = ctx;
	struct es_nf_socket socket;
	int rc;

	/* The socket of an unfinished attempt is not to be touched. */
	if (es_nf_attempts_has(kernel->attempts, flow)) {
		ret->listening = 1;
		return 0;
	}
	rc = es_nf_socket_look(&kernel->rebuild.diag, flow, &socket);
	if (rc == -ENOENT)
		return 0; /* nothing listens, either */
	if (rc)
		return rc;
	if (es_nf_hand_is_none(kernel, flow, &socket)) {
		ret->listening = 1; /* something must listen, or it would not exist */
		return 0;
	}
	switch (socket.state) {
	case ES_NF_TCP_LISTEN:
		es_nf_hand_found_listener(&socket, ret);
		break;
	case ES_NF_TCP_TIME_WAIT:
		ret->time_wait = ret->is_old = 1;
		return es_nf_hand_look_behind(kernel, flow, ret);
	default:
		ret->socket = ES_SOCKET_ESTABLISHED;
		ret->is_old = (__u8)es_nf_socket_is_over(&socket);
		ret->received = (__u32)socket.received;
		ret->sent = (__u32)socket.sent;
		ret->acked = socket.acked;
		ret->unread = socket.rqueue;
		ret->unacked = socket.wqueue;
		ret->heard_ms = es_ns_to_ms(es_nf_now_ns()) - socket.heard_ms + ES_NF_TICK_MS;
		ret->rcv_wnd = socket.rcv_wnd;
		ret->max_wnd = (__u32)UINT16_MAX << socket.snd_wscale;
		ret->is_open = socket.state == ES_NF_TCP_ESTABLISHED;
		if (ret->is_old)
			return es_nf_hand_look_behind(kernel, flow, ret);
		break;
	}
	return 0;
}

static int es_nf_hand_may_have_made(void *ctx, const struct es_flow *flow)
{
	const struct es_nf_hand_state *kernel = ctx;

	return es_nf_kept_may_have(kernel->recovery.kept, flow);
}

static int es_nf_hand_frame(void *ctx, const __u8 target[6], __u16 protocol, const void *bytes, size_t len)
{
	struct es_nf_hand_state *kernel = ctx;

	return es_nf_frames_put(&kernel->frames, target, protocol, bytes, len);
}

static int es_nf_hand_send(void *ctx, const void *packet, size_t len)
{
	const struct es_nf_hand_state *kernel = ctx;

	return es_nf_raw_send(&kernel->datagrams, packet, len);
}

static int es_nf_hand_answer(void *ctx, const void *packet, size_t len)
{
	const struct es_nf_hand_state *kernel = ctx;

	return es_nf_raw_send(&kernel->marked, packet, len);
}

/*
 * Keeps conntrack's entry of a connection that was just made, in place of the former one of the same ports.
 * The kernel may have lost it already. If it cannot be kept, the connection goes on all the same.
 */
static void es_nf_hand_keep(struct es_nf_hand_state *kernel, const struct es_flow *flow)
{
	if (es_nf_kept_keep(kernel->recovery.kept, &kernel->rebuild.ct, &kernel->rebuild.made))
		es_nf_kept_forget(kernel->recovery.kept, flow);
}

/* Likewise for a repeated request: its connection may have been made after the attempt was given up. */
static void es_nf_hand_keep_again(struct es_nf_hand_state *kernel, const struct es_nf_request *request)
{
	struct es_nf_socket socket;

	if (!es_nf_socket_look(&kernel->rebuild.diag, &request->socket, &socket) &&
	    es_nf_socket_is_connection(&socket))
		(void)es_nf_kept_look(kernel->recovery.kept, &kernel->rebuild.ct, &request->flow);
}

static int es_nf_hand_rebuilt(struct es_nf_hand_state *kernel, const struct es_nf_request *request, int rc)
{
	if (rc == ES_NF_COPY)
		es_nf_hand_keep_again(kernel, request);
	else if (!rc)
		es_nf_hand_keep(kernel, &request->flow);
	return rc < 0 ? rc : 0;
}

static int es_nf_hand_begins(void *ctx, const struct es_nf_request *request)
{
	return es_nf_make_begins(ctx, &request->flow, request->seg.seq);
}

static int es_nf_hand_rebuild(void *ctx, const __u8 *packet, size_t len, const struct es_flow *socket,
			      const struct es_nf_making *making, __u64 now_ns)
{
	struct es_nf_hand_state *kernel = ctx;
	struct es_nf_request request = {
		.packet = packet,
		.len = len,
		.options = making->options,
		.begins = es_nf_hand_begins,
		.ctx = making->node,
	};
	int rc = es_nf_request_read(&request);

	if (socket)
		request.socket = *socket;
	if (!rc)
		rc = es_nf_attempts_begin(kernel->attempts, &request, making, now_ns);
	return es_nf_hand_rebuilt(kernel, &request, rc);
}

/* The end of an attempt that was not finished at once. */
void es_nf_hand_on_attempt(void *ctx, const struct es_nf_request *request, const struct es_nf_making *making,
			   int rc)
{
	es_nf_made(making, es_nf_hand_rebuilt(ctx, request, rc));
}

/* The packet came before its connection was here. */
void es_nf_hand_on_kept(void *ctx, const struct es_nf_frame *frame)
{
	const struct es_nf_hand_state *kernel = ctx;

	if (kernel->kept_fn(kernel->kept_ctx, frame) == ES_NF_ACCEPT)
		(void)es_nf_tun_write(&kernel->tun, frame->bytes, frame->len);
}

static int es_nf_hand_keep_packet(void *ctx, const struct es_flow *flow, const struct es_segment *seg,
				  const struct es_nf_frame *frame)
{
	const struct es_nf_hand_state *kernel = ctx;

	return es_nf_attempts_keep(kernel->attempts, flow, seg, frame);
}

static int es_nf_hand_is_making(void *ctx, const struct es_flow *flow)
{
	const struct es_nf_hand_state *kernel = ctx;

	return es_nf_attempts_has(kernel->attempts, flow);
}

static void es_nf_hand_give_up(void *ctx, const struct es_flow *flow)
{
	const struct es_nf_hand_state *kernel = ctx;

	es_nf_attempts_give_up(kernel->attempts, flow);
}

/*
 * The connection is here, and nothing is being made. If its SYN came after its attempt was given up, or the
 * daemon died in between, it still has ES_NF_LABEL_MAKING, and the server's packets would not leave.
 */
static int es_nf_hand_inject(void *ctx, const __u8 *packet, size_t len)
{
	struct es_nf_request request = {.packet = packet, .len = len};
	struct es_nf_hand_state *kernel = ctx;

	if (!es_nf_request_read(&request))
		(void)es_nf_conntrack_made(&kernel->rebuild.ct, &request.flow);
	return es_nf_tun_write(&kernel->tun, packet, len);
}

static int es_nf_hand_error(void *ctx, const __u8 *packet, size_t len)
{
	struct es_nf_hand_state *kernel = ctx;
	__u8 translated[ES_NF_ERROR_MAX];
	struct es_nf_error error;
	struct es_nf_entry entry;
	int rc = len <= sizeof(translated) ? es_nf_errors_read(packet, len, &error) : -ENOENT;

	if (!rc)
		rc = es_nf_conntrack_get(&kernel->rebuild.ct, &error.flow, &entry);
	if (!rc && !es_nf_conntrack_is_ours(&kernel->rebuild.ct, &entry))
		rc = -ENOENT;
	if (rc)
		return rc;
	memcpy(translated, packet, len);
	es_nf_errors_translate(&error, &entry, translated);
	return es_nf_tun_write(&kernel->tun, translated, len);
}

static int es_nf_hand_hold(void *ctx, const struct es_flow *flow, int is_held)
{
	struct es_nf_hand_state *kernel = ctx;
	int rc = es_nf_conntrack_hold(&kernel->rebuild.ct, flow, is_held);

	/*
	 * If the kernel loses the entry later, a restored one has the label. If it is already gone, it is
	 * restored as it was, or without the label.
	 */
	if (!rc || !is_held)
		es_nf_kept_hold(kernel->recovery.kept, flow, is_held);
	return rc;
}

static int es_nf_hand_end(void *ctx, const struct es_flow *flow, __u32 rcv_nxt)
{
	struct es_nf_hand_state *kernel = ctx;

	int rc = es_nf_leave(&kernel->rebuild, flow, rcv_nxt);

	if (!rc)
		es_nf_kept_forget(kernel->recovery.kept, flow);
	return rc;
}

static int es_nf_hand_end_old(void *ctx, const struct es_flow *flow)
{
	struct es_nf_hand_state *kernel = ctx;
	struct es_nf_socket socket;
	int rc = es_nf_socket_look(&kernel->rebuild.diag, flow, &socket);

	if (!rc && es_nf_socket_is_over(&socket))
		rc = es_nf_socket_end(&kernel->rebuild.diag, flow, &socket);
	return rc == -ENOENT ? 0 : rc;
}

static int es_nf_hand_first(void *ctx, const struct es_flow *flow, __u32 *ret_first_seq)
{
	struct es_nf_hand_state *kernel = ctx;
	struct es_nf_entry entry;
	int rc = es_nf_conntrack_get(&kernel->rebuild.ct, flow, &entry);

	if (rc)
		return rc;
	if (!es_nf_conntrack_is_ours(&kernel->rebuild.ct, &entry) || !es_nf_entry_first(&entry))
		return -ENOENT;
	*ret_first_seq = es_nf_entry_first(&entry);
	return 0;
}

static int es_nf_hand_open(void *ctx, const struct es_flow *flow, struct es_connection_state *ret_state)
{
	struct es_nf_hand_state *kernel = ctx;
	__u32 ahead;

	/* The client's timestamp is not needed here; a former daemon may have known it. */
	return es_nf_connection_read(&kernel->rebuild, flow, 1, ret_state, &ahead);
}

static int es_nf_hand_is_withdrawn(void *ctx, const struct es_flow *flow, __u32 seq)
{
	struct es_nf_hand_state *kernel = ctx;

	return es_nf_is_withdrawn(&kernel->rebuild.ct, flow, seq);
}

static int es_nf_hand_forget(void *ctx, const struct es_flow *flow)
{
	struct es_nf_hand_state *kernel = ctx;
	int rc;

	/* Without the entry, the SYN-ACK would reach the client. */
	if (es_nf_attempts_has(kernel->attempts, flow))
		return 0;
	rc = es_nf_conntrack_delete(&kernel->rebuild.ct, flow);
	es_nf_kept_forget(kernel->recovery.kept, flow);
	return rc == -ENOENT ? 0 : rc;
}

static int es_nf_hand_prove(void *ctx, const struct es_flow *flow)
{
	struct es_nf_hand_state *kernel = ctx;

	es_nf_kept_prove(kernel->recovery.kept, flow);
	return es_nf_conntrack_prove(&kernel->rebuild.ct, flow);
}

static int es_nf_hand_reset(void *ctx, const struct es_flow *flow, __u32 seq)
{
	const struct es_nf_hand_state *kernel = ctx;
	__u8 ES_NF_ALIGNED reset[ES_NF_RESET_MAX];

	return es_nf_raw_send(&kernel->marked, reset, es_nf_resets_make(flow, seq, reset));
}

static int es_nf_hand_reaches(void *ctx, const struct es_flow *flow, __u32 mark, __u64 now_ns)
{
	struct es_nf_hand_state *kernel = ctx;

	return es_nf_reach_is(&kernel->reach, flow, mark, now_ns);
}

static __u64 hash_of(const struct es_nf_node *node, const struct es_flow *flow)
{
	return es_flow_hash(&node->config.ring_key, node->config.ring_seed, flow);
}

/* From now on, this node repeats the RST when its client sends more (view.c). */
static void note_reset(struct es_nf_node *node, const struct es_flow *flow, const __u8 *reset)
{
	__u64 flow_hash = hash_of(node, flow);
	__u32 first, under_way;

	es_nf_resets_span(flow, reset, &first, &under_way);
	es_reset_note(&node->memory.resets[es_reset_index(flow_hash)], flow_hash, first, under_way,
		      es_ns_to_ms(node->now_ns));
	__atomic_store_n(&node->memory.state->reset_ns, node->now_ns, __ATOMIC_RELAXED);
}

enum es_nf_fate es_nf_hand_state_reset(struct es_nf_hand_state *kernel, const struct es_nf_frame *frame,
				       struct es_nf_node *node)
{
	__u8 ES_NF_ALIGNED reset[ES_NF_RESET_MAX];
	struct es_nf_entry entry = {};
	struct es_flow flow;
	int is_ours;
	size_t len;

	if (es_nf_resets_flow(frame->bytes, frame->len, &flow))
		return ES_NF_ACCEPT;
	is_ours = !es_nf_conntrack_get_socket(&kernel->rebuild.ct, &flow, &entry) &&
		  es_nf_conntrack_is_ours(&kernel->rebuild.ct, &entry);
	if (is_ours)
		flow = entry.flow;
	if (es_nf_unproven_reset(node, &flow, is_ours && entry.is_proven) == ES_NF_DROP) {
		/* The socket is gone. Further packets of its client may be for another node. */
		if (is_ours)
			(void)es_nf_hand_forget(kernel, &flow);
		return ES_NF_DROP;
	}
	if (!is_ours)
		return es_nf_left_has(node->left, hash_of(node, &flow), es_ns_to_ms(node->now_ns))
			       ? ES_NF_DROP
			       : ES_NF_ACCEPT;
	if (es_nf_resets_is_idle(frame->bytes, frame->len, &entry))
		return ES_NF_DROP;
	len = es_nf_resets_translate(frame->bytes, frame->len, &entry, reset);
	if (!len || es_nf_raw_send(&kernel->marked, reset, len))
		return ES_NF_ACCEPT;
	note_reset(node, &flow, reset);
	/* Conntrack has not seen the RST. */
	(void)es_nf_hand_forget(kernel, &flow);
	return ES_NF_DROP;
}

int es_nf_hand_state_connection(struct es_nf_hand_state *kernel, const struct es_flow *flow,
				struct es_connection_state *ret_state, __u32 *ret_ahead)
{
	return es_nf_connection_read(&kernel->rebuild, flow,
				     es_nf_kept_client_ts(kernel->recovery.kept, flow), ret_state, ret_ahead);
}

int es_nf_hand_state_has_v6(const struct es_nf_hand_state *kernel)
{
	return kernel->hook.has_v6;
}

struct es_nf_hands es_nf_hand_state_hands(struct es_nf_hand_state *kernel)
{
	return (struct es_nf_hands){
		.ctx = kernel,
		.look = es_nf_hand_look,
		.may_have_made = es_nf_hand_may_have_made,
		.frame = es_nf_hand_frame,
		.send = es_nf_hand_send,
		.answer = es_nf_hand_answer,
		.rebuild = es_nf_hand_rebuild,
		.is_making = es_nf_hand_is_making,
		.keep = es_nf_hand_keep_packet,
		.give_up = es_nf_hand_give_up,
		.inject = es_nf_hand_inject,
		.error = es_nf_hand_error,
		.hold = es_nf_hand_hold,
		.end = es_nf_hand_end,
		.end_old = es_nf_hand_end_old,
		.first = es_nf_hand_first,
		.open = es_nf_hand_open,
		.is_withdrawn = es_nf_hand_is_withdrawn,
		.forget = es_nf_hand_forget,
		.prove = es_nf_hand_prove,
		.reset = es_nf_hand_reset,
		.reaches = es_nf_hand_reaches,
	};
}
