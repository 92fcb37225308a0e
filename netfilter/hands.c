// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a node does outside of its memory.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/netfilter/nf_conntrack_tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "netfilter/attempts.h"
#include "netfilter/clock.h"
#include "netfilter/errors.h"
#include "netfilter/frames.h"
#include "netfilter/hands.h"
#include "netfilter/reach.h"
#include "netfilter/raw.h"
#include "netfilter/rebuilding.h"
#include "netfilter/recovery.h"
#include "netfilter/resets.h"
#include "netfilter/rules.h"
#include "netfilter/unproven.h"
#include "netfilter/withdraw.h"

#define ES_KEPT_MAX 262144 /* connections; what is above is not made again when it is forgotten */

struct es_nf_kernel {
	struct es_nf_frames frames;
	struct es_nf_raw datagrams;
	struct es_nf_raw marked; /* no rule and no conntrack changes what leaves by them */
	struct es_nf_tun tun;
	struct es_nf_rebuild rebuild;
	struct es_nf_attempts *attempts;
	es_nf_kernel_kept_fn kept_fn;
	void *kept_ctx;
	struct es_nf_recovery recovery;
	struct es_nf_reach reach;
	struct es_nf_hook hook;
	__u16 zone;
};

/* Half a connection, which is not to become a whole one? */
static int es_nf_hand_is_none(struct es_nf_kernel *kernel, const struct es_flow *flow,
			      const struct es_nf_socket *socket)
{
	struct es_nf_entry entry;

	return es_nf_socket_is_half(socket) &&
	       !es_nf_conntrack_get_socket(&kernel->rebuild.ct, flow, &entry) &&
	       es_nf_conntrack_is_ours(&kernel->rebuild.ct, &entry) && es_nf_entry_is_withdrawn(&entry);
}

static int es_nf_hand_look(void *ctx, const struct es_flow *flow, struct es_nf_found *ret)
{
	struct es_nf_kernel *kernel = ctx;
	struct es_nf_socket socket;
	int rc;

	/* What is of it is not to be touched before it is made. */
	if (es_nf_attempts_has(kernel->attempts, flow)) {
		ret->listening = 1;
		return 0;
	}
	rc = es_nf_socket_look(&kernel->rebuild.diag, flow, &socket);
	if (rc == -ENOENT)
		return 0; /* not even a listening one */
	if (rc)
		return rc;
	if (es_nf_hand_is_none(kernel, flow, &socket)) {
		ret->listening = 1; /* who has begun it */
		return 0;
	}
	switch (socket.state) {
	case ES_NF_TCP_LISTEN:
		ret->listening = 1;
		/* As the kernel's sk_acceptq_is_full(). */
		ret->accept_full = socket.rqueue > socket.wqueue;
		break;
	case ES_NF_TCP_TIME_WAIT:
		ret->listening = 1; /* something that was there for the connection before */
		ret->time_wait = ret->is_old = 1;
		break;
	default:
		ret->socket = ES_SOCKET_ESTABLISHED;
		ret->listening = ret->is_old = (__u8)es_nf_socket_is_over(&socket);
		ret->received = (__u32)socket.received;
		ret->sent = (__u32)socket.sent;
		ret->acked = socket.acked;
		ret->unread = socket.rqueue;
		ret->unacked = socket.wqueue;
		ret->rcv_wnd = socket.rcv_wnd;
		ret->max_wnd = (__u32)UINT16_MAX << socket.snd_wscale;
		ret->is_open = socket.state == ES_NF_TCP_ESTABLISHED;
		break;
	}
	return 0;
}

static int es_nf_hand_may_have_made(void *ctx, const struct es_flow *flow)
{
	const struct es_nf_kernel *kernel = ctx;

	return es_nf_kept_may_have(kernel->recovery.kept, flow);
}

static int es_nf_hand_frame(void *ctx, const __u8 target[6], __u16 protocol, const void *bytes, size_t len)
{
	struct es_nf_kernel *kernel = ctx;

	return es_nf_frames_put(&kernel->frames, target, protocol, bytes, len);
}

static int es_nf_hand_send(void *ctx, const void *packet, size_t len)
{
	const struct es_nf_kernel *kernel = ctx;

	return es_nf_raw_send(&kernel->datagrams, packet, len);
}

static int es_nf_hand_answer(void *ctx, const void *packet, size_t len)
{
	const struct es_nf_kernel *kernel = ctx;

	return es_nf_raw_send(&kernel->marked, packet, len);
}

/*
 * Of a connection that was just made, keep what the connection tracking, which may have forgotten it already, knew of it: in place of
 * the one before, which had the same ports. What is not kept goes on all the same.
 */
static void es_nf_hand_keep(struct es_nf_kernel *kernel, const struct es_flow *flow)
{
	if (es_nf_kept_keep(kernel->recovery.kept, &kernel->rebuild.ct, &kernel->rebuild.made))
		es_nf_kept_forget(kernel->recovery.kept, flow);
}

/* The same, of a request that has come again: its connection may have been made after it was given up. */
static void es_nf_hand_keep_again(struct es_nf_kernel *kernel, const struct es_nf_request *request)
{
	struct es_nf_socket socket;

	if (!es_nf_socket_look(&kernel->rebuild.diag, &request->socket, &socket) &&
	    es_nf_socket_is_connection(&socket))
		(void)es_nf_kept_look(kernel->recovery.kept, &kernel->rebuild.ct, &request->flow);
}

static int es_nf_hand_rebuilt(struct es_nf_kernel *kernel, const struct es_nf_request *request, int rc)
{
	if (rc == ES_NF_COPY)
		es_nf_hand_keep_again(kernel, request);
	else if (!rc)
		es_nf_hand_keep(kernel, &request->flow);
	return rc < 0 ? rc : 0;
}

static int es_nf_hand_rebuild(void *ctx, const __u8 *packet, size_t len, const struct es_flow *socket,
			      const struct es_nf_making *making, __u64 now_ns)
{
	struct es_nf_kernel *kernel = ctx;
	struct es_nf_request request = {.packet = packet, .len = len, .options = making->options};
	int rc = es_nf_request_read(&request);

	if (socket)
		request.socket = *socket;
	if (!rc)
		rc = es_nf_attempts_begin(kernel->attempts, &request, making, now_ns);
	return es_nf_hand_rebuilt(kernel, &request, rc);
}

/* Of one that was not there at once. */
static void es_nf_kernel_on_attempt(void *ctx, const struct es_nf_request *request,
				    const struct es_nf_making *making, int rc)
{
	es_nf_made(making, es_nf_hand_rebuilt(ctx, request, rc));
}

/* It has come when its connection was not here. */
static void es_nf_kernel_on_kept(void *ctx, const struct es_nf_frame *frame)
{
	const struct es_nf_kernel *kernel = ctx;

	if (kernel->kept_fn(kernel->kept_ctx, frame) == ES_NF_ACCEPT)
		(void)es_nf_tun_write(&kernel->tun, frame->bytes, frame->len);
}

static int es_nf_hand_keep_packet(void *ctx, const struct es_flow *flow, const struct es_segment *seg,
				  const struct es_nf_frame *frame)
{
	const struct es_nf_kernel *kernel = ctx;

	return es_nf_attempts_keep(kernel->attempts, flow, seg, frame);
}

static int es_nf_hand_is_making(void *ctx, const struct es_flow *flow)
{
	const struct es_nf_kernel *kernel = ctx;

	return es_nf_attempts_has(kernel->attempts, flow);
}

static void es_nf_hand_give_up(void *ctx, const struct es_flow *flow)
{
	const struct es_nf_kernel *kernel = ctx;

	es_nf_attempts_give_up(kernel->attempts, flow);
}

/*
 * Its connection is here, and nothing is being made meanwhile. One whose SYN came in when its attempt had been given up, or whose
 * daemon died in the middle, has ES_NF_LABEL_MAKING still, and what its server says does not leave.
 */
static int es_nf_hand_inject(void *ctx, const __u8 *packet, size_t len)
{
	struct es_nf_request request = {.packet = packet, .len = len};
	struct es_nf_kernel *kernel = ctx;

	if (!es_nf_request_read(&request))
		(void)es_nf_conntrack_made(&kernel->rebuild.ct, &request.flow);
	return es_nf_tun_write(&kernel->tun, packet, len);
}

static int es_nf_hand_error(void *ctx, const __u8 *packet, size_t len)
{
	struct es_nf_kernel *kernel = ctx;
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
	struct es_nf_kernel *kernel = ctx;
	int rc = es_nf_conntrack_hold(&kernel->rebuild.ct, flow, is_held);

	/* The kernel may forget its entry meanwhile. One that is gone already comes back as it was, or as it should be. */
	if (!rc || !is_held)
		es_nf_kept_hold(kernel->recovery.kept, flow, is_held);
	return rc;
}

static int es_nf_hand_end(void *ctx, const struct es_flow *flow, __u32 rcv_nxt)
{
	struct es_nf_kernel *kernel = ctx;

	int rc = es_nf_leave(&kernel->rebuild, flow, rcv_nxt);

	if (!rc)
		es_nf_kept_forget(kernel->recovery.kept, flow);
	return rc;
}

static int es_nf_hand_end_old(void *ctx, const struct es_flow *flow)
{
	struct es_nf_kernel *kernel = ctx;
	struct es_nf_socket socket;
	int rc = es_nf_socket_look(&kernel->rebuild.diag, flow, &socket);

	if (!rc && es_nf_socket_is_over(&socket))
		rc = es_nf_socket_end(&kernel->rebuild.diag, flow, &socket);
	return rc == -ENOENT ? 0 : rc;
}

static int es_nf_hand_first(void *ctx, const struct es_flow *flow, __u32 *ret_first_seq)
{
	struct es_nf_kernel *kernel = ctx;
	struct es_nf_entry entry;
	int rc = es_nf_conntrack_get(&kernel->rebuild.ct, flow, &entry);

	if (rc)
		return rc;
	if (!es_nf_conntrack_is_ours(&kernel->rebuild.ct, &entry) || !es_nf_entry_first(&entry))
		return -ENOENT;
	*ret_first_seq = es_nf_entry_first(&entry);
	return 0;
}

static int es_nf_hand_is_withdrawn(void *ctx, const struct es_flow *flow, __u32 seq)
{
	struct es_nf_kernel *kernel = ctx;

	return es_nf_is_withdrawn(&kernel->rebuild.ct, flow, seq);
}

static int es_nf_hand_forget(void *ctx, const struct es_flow *flow)
{
	struct es_nf_kernel *kernel = ctx;
	int rc;

	/* Without its entry, the listening socket's answer would go to the client. */
	if (es_nf_attempts_has(kernel->attempts, flow))
		return 0;
	rc = es_nf_conntrack_delete(&kernel->rebuild.ct, flow);
	es_nf_kept_forget(kernel->recovery.kept, flow);
	return rc == -ENOENT ? 0 : rc;
}

static int es_nf_hand_prove(void *ctx, const struct es_flow *flow)
{
	struct es_nf_kernel *kernel = ctx;

	es_nf_kept_prove(kernel->recovery.kept, flow);
	return es_nf_conntrack_prove(&kernel->rebuild.ct, flow);
}

static int es_nf_hand_reset(void *ctx, const struct es_flow *flow, __u32 seq)
{
	const struct es_nf_kernel *kernel = ctx;
	__u8 ES_NF_ALIGNED reset[ES_NF_RESET_MAX];

	return es_nf_raw_send(&kernel->marked, reset, es_nf_resets_make(flow, seq, reset));
}

static int es_nf_hand_reaches(void *ctx, const struct es_flow *flow, __u32 mark, __u64 now_ns)
{
	struct es_nf_kernel *kernel = ctx;

	return es_nf_reach_is(&kernel->reach, flow, mark, now_ns);
}

static __u64 hash_of(const struct es_nf_node *node, const struct es_flow *flow)
{
	return es_flow_hash(&node->config.ring_key, node->config.ring_seed, flow);
}

/* From now on this node repeats it, when its client sends more (view.c). */
static void note_reset(struct es_nf_node *node, const struct es_flow *flow, const __u8 *reset)
{
	__u64 flow_hash = hash_of(node, flow);
	__u32 first, under_way;

	es_nf_resets_span(flow, reset, &first, &under_way);
	es_reset_note(&node->tables.resets[es_reset_index(flow_hash)], flow_hash, first, under_way,
		      es_ns_to_ms(node->now_ns));
	__atomic_store_n(&node->tables.state->reset_ns, node->now_ns, __ATOMIC_RELAXED);
}

enum es_nf_fate es_nf_kernel_reset(struct es_nf_kernel *kernel, const struct es_nf_frame *frame,
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
		/* Its socket is gone. What its client says from now on may be for another node. */
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
	/* The connection tracking has not heard of it. */
	(void)es_nf_hand_forget(kernel, &flow);
	return ES_NF_DROP;
}

int es_nf_kernel_connection(struct es_nf_kernel *kernel, const struct es_flow *flow,
			    struct es_connection_state *ret_state, __u32 *ret_ahead)
{
	return es_nf_connection_read(&kernel->rebuild, flow,
				     es_nf_kept_client_ts(kernel->recovery.kept, flow), ret_state, ret_ahead);
}

int es_nf_kernel_has_v6(const struct es_nf_kernel *kernel)
{
	return kernel->hook.has_v6;
}

struct es_nf_hands es_nf_kernel_hands(struct es_nf_kernel *kernel)
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
		.is_withdrawn = es_nf_hand_is_withdrawn,
		.forget = es_nf_hand_forget,
		.prove = es_nf_hand_prove,
		.reset = es_nf_hand_reset,
		.reaches = es_nf_hand_reaches,
	};
}

/* struct es_nf_held - some connections that say nothing */
struct es_nf_held {
	size_t count;
	struct es_flow flow[ES_NF_BATCH];
};

static void es_nf_kernel_on_entry(void *ctx, const struct es_nf_entry *entry)
{
	struct es_nf_held *held = ctx;

	if (entry->is_held && !es_nf_entry_is_withdrawn(entry) && held->count < ES_NF_BATCH)
		held->flow[held->count++] = entry->flow;
}

/* The daemon before died while they were about to leave. Where to, nobody knows any more: they stay. */
static void es_nf_kernel_release(struct es_nf_kernel *kernel)
{
	struct es_nf_held held;
	int rc = 0;

	do {
		held.count = 0;
		(void)es_nf_conntrack_walk(&kernel->rebuild.ct, es_nf_kernel_on_entry, &held);
		for (size_t i = 0; !rc && i < held.count; i++)
			rc = es_nf_conntrack_hold(&kernel->rebuild.ct, &held.flow[i], 0);
	} while (held.count && !rc);
}

static struct es_nf_hook_device device_of(const struct es_nf_kernel *kernel)
{
	return (struct es_nf_hook_device){kernel->tun.name, kernel->tun.is_marked, kernel->zone};
}

/* The device that packets are put into, and the hook that finishes handshakes. */
static int es_nf_kernel_open(struct es_nf_kernel *kernel, struct es_nf_why *why)
{
	struct es_nf_rebuild_settings settings = {.copies = ES_NF_COPIES_DEFAULT, .zone = kernel->zone};
	struct es_nf_hook_device device;
	struct es_nf_netlink nl;
	int rc;

	rc = es_nf_tun_open(&kernel->tun, ES_NF_TUN_NAME, why);
	if (rc)
		return rc;
	rc = es_nf_netlink_open(&nl, NETLINK_NETFILTER);
	if (rc)
		return es_nf_why(why, rc, "nf_tables: %s", strerror(-rc));
	device = device_of(kernel);
	rc = es_nf_hook_set(&nl, &device, &kernel->hook, why);
	es_nf_netlink_close(&nl);
	if (rc)
		return rc;
	settings.has_label = kernel->hook.has_label;
	rc = es_nf_rebuild_open(&kernel->rebuild, &kernel->tun, &settings, why);
	if (rc)
		return rc;
	rc = es_nf_attempts_new(&kernel->rebuild, es_nf_kernel_on_attempt, es_nf_kernel_on_kept, kernel,
				&kernel->attempts);
	if (rc)
		return es_nf_why(why, rc, "no memory for attempts to make connections");
	es_nf_kernel_release(kernel);
	rc = es_nf_recovery_open(&kernel->recovery, ES_KEPT_MAX, &kernel->rebuild.ct, &kernel->rebuild.diag);
	if (!rc)
		rc = es_nf_reach_open(&kernel->reach);
	return rc ? es_nf_why(why, rc, "ctnetlink: %s", strerror(-rc)) : 0;
}

int es_nf_kernel_new(__u16 zone, struct es_nf_kernel **ret_kernel, struct es_nf_why *why)
{
	struct es_nf_kernel *kernel = calloc(1, sizeof(*kernel));
	int rc;

	if (!kernel)
		return es_nf_why(why, -ENOMEM, "no memory");
	kernel->zone = zone;
	kernel->frames.fd = kernel->tun.fd = -1;
	kernel->datagrams = kernel->marked = (struct es_nf_raw){-1, -1};
	rc = es_nf_raw_open(&kernel->datagrams, 0);
	if (!rc)
		rc = es_nf_raw_distrust_errors(&kernel->datagrams);
	if (!rc)
		rc = es_nf_raw_open(&kernel->marked, ES_NF_RULES_MARK);
	rc = rc ? es_nf_why(why, rc, "raw socket: %s", strerror(-rc)) : es_nf_kernel_open(kernel, why);
	if (rc) {
		es_nf_kernel_free(&kernel);
		return rc;
	}
	*ret_kernel = kernel;
	return 0;
}

void es_nf_kernel_free(struct es_nf_kernel **kernel)
{
	struct es_nf_kernel *k = *kernel;

	if (!k)
		return;
	es_nf_reach_close(&k->reach);
	es_nf_recovery_close(&k->recovery);
	es_nf_attempts_free(&k->attempts);
	es_nf_rebuild_close(&k->rebuild);
	es_nf_tun_close(&k->tun);
	es_nf_raw_close(&k->datagrams);
	es_nf_raw_close(&k->marked);
	if (k->frames.fd >= 0)
		close(k->frames.fd);
	free(k);
	*kernel = NULL;
}

int es_nf_kernel_listen(struct es_nf_kernel *kernel, unsigned int public_ifindex, struct es_nf_why *why)
{
	int rc = es_nf_frames_listen(&kernel->frames, public_ifindex);

	return rc ? es_nf_why(why, rc, "packet socket: %s", strerror(-rc)) : 0;
}

int es_nf_kernel_has_label(const struct es_nf_kernel *kernel)
{
	return kernel->hook.has_label;
}

int es_nf_kernel_arp_fd(const struct es_nf_kernel *kernel)
{
	return kernel->frames.fd;
}

int es_nf_kernel_arp(struct es_nf_kernel *kernel, void *ret_arp, size_t room)
{
	struct sockaddr_ll from;
	socklen_t len;
	ssize_t got;

	do {
		len = sizeof(from);
		got = recvfrom(kernel->frames.fd, ret_arp, room, MSG_DONTWAIT, (struct sockaddr *)&from,
			       &len);
	} while (got >= 0 && from.sll_pkttype == PACKET_OUTGOING);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return (int)got;
}

int es_nf_kernel_has_frames(const struct es_nf_kernel *kernel)
{
	return kernel->frames.count != 0;
}

unsigned int es_nf_kernel_send(struct es_nf_kernel *kernel, int may_leave)
{
	return es_nf_frames_send(&kernel->frames, may_leave);
}

int es_nf_kernel_mend(struct es_nf_kernel *kernel, struct es_nf_netlink *nl)
{
	const struct es_nf_hook_device device = device_of(kernel);
	struct es_nf_hook hook;
	int rc = es_nf_hook_is_set(nl, &kernel->hook);

	if (rc)
		return rc < 0 ? rc : 0;
	rc = es_nf_hook_set(nl, &device, &hook, NULL);
	/* What else it can do, other threads read; and the kernel is the same. */
	if (!rc)
		memcpy(kernel->hook.whole, hook.whole, sizeof(hook.whole));
	return rc;
}

int es_nf_kernel_can_gate(const struct es_nf_kernel *kernel)
{
	return kernel->hook.has_label;
}

int es_nf_kernel_losses_fd(const struct es_nf_kernel *kernel)
{
	return es_nf_losses_fd(&kernel->recovery.losses);
}

void es_nf_kernel_recover(struct es_nf_kernel *kernel)
{
	(void)es_nf_recovery_turn(&kernel->recovery);
}

int es_nf_kernel_is_recovering(const struct es_nf_kernel *kernel)
{
	return es_nf_recovery_is_due(&kernel->recovery);
}

void es_nf_kernel_hurry(struct es_nf_kernel *kernel, const struct es_nf_frame *frame)
{
	struct es_packet pkt;
	struct es_segment seg;
	struct es_flow flow;

	if (!es_nf_recovery_is_due(&kernel->recovery) ||
	    es_nf_packet_tcp(frame->bytes, frame->len, &pkt, &seg))
		return;
	es_packet_flow(&pkt, &flow);
	(void)es_nf_recovery_hurry(&kernel->recovery, &flow);
}

void es_nf_kernel_go_on(struct es_nf_kernel *kernel, __u64 now_ns, es_nf_kernel_kept_fn kept_fn, void *ctx)
{
	kernel->kept_fn = kept_fn;
	kernel->kept_ctx = ctx;
	es_nf_attempts_go_on(kernel->attempts, now_ns);
}

void es_nf_kernel_give_up(struct es_nf_kernel *kernel)
{
	es_nf_attempts_give_up(kernel->attempts, NULL);
}

int es_nf_kernel_wait_ms(const struct es_nf_kernel *kernel)
{
	return es_nf_attempts_wait_ms(kernel->attempts, es_nf_now_ns());
}
