// SPDX-License-Identifier: GPL-2.0-or-later
/* Takes packets out of the queues, and chooses the part of the node that decides about each. */
#include <errno.h>
#include <linux/if_ether.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "netfilter/engine/batch.h"
#include "netfilter/kernel/clock.h"
#include "netfilter/node/ended.h"
#include "netfilter/node/other.h"
#include "netfilter/node/public.h"
#include "netfilter/node/reply.h"
#include "netfilter/node/target.h"
#include "netfilter/node/unproven.h"
#include "netfilter/rules/rules.h"

static void es_nf_batch_on_reply(void *ctx, const uint8_t *packet, size_t len)
{
	struct es_nf_batch *batch = ctx;

	if (batch->node->is_configured)
		es_nf_reply(batch->node, packet, len);
}

/*
 * A client's packet on a connection here. The bytes that it acknowledges have left before, so the tap is read
 * first.
 */
static enum es_nf_fate es_nf_batch_on_here(void *ctx, const struct es_nf_frame *frame)
{
	struct es_nf_batch *batch = ctx;
	struct es_nf_frame here = *frame;

	if (!batch->node->is_configured)
		return ES_NF_ACCEPT;
	here.is_here = 1;
	batch->node->now_ns = es_nf_now_ns();
	es_nf_tap_read(batch->tap, es_nf_batch_on_reply, batch);
	return es_nf_public(batch->node, &here);
}

/* A RST of a server that ends its connection. */
static enum es_nf_fate es_nf_batch_reset(struct es_nf_batch *batch, const struct es_nf_frame *frame)
{
	if (!es_nf_reply_is_held(batch->node, frame->bytes, frame->len))
		return es_nf_hand_state_reset(batch->kernel, frame, batch->node);
	es_nf_count(batch->node, ES_COUNT_reply_leaving);
	return ES_NF_DROP;
}

/* Messages arrive by either interface. If one interface serves both networks, the address tells. */
static int es_nf_batch_is_message(const struct es_nf_node *node, const struct es_nf_frame *frame)
{
	struct es_nf_ip ip;

	if (frame->ifindex != node->config.public_ifindex)
		return 1;
	return frame->ifindex == node->config.cluster_ifindex &&
	       !es_nf_ip_read(frame->bytes, frame->len, &ip) && !es_nf_is_service_address(node, &ip.dest);
}

/* A packet from the queue ES_NF_RULES_QUEUE. */
static enum es_nf_fate es_nf_batch_on_frame(void *ctx, const struct es_nf_frame *frame)
{
	struct es_nf_batch *batch = ctx;
	struct es_nf_node *node = batch->node;

	/* A lease may have ended since earlier packets of the batch were read. */
	node->now_ns = es_nf_now_ns();
	if (!frame->ifindex) /* this machine sends it */
		return es_nf_batch_reset(batch, frame);
	/* Its client, or its node, has repeated it meanwhile, and another node may have acted on that. */
	if (batch->is_late || !node->is_configured)
		return ES_NF_DROP;
	if (es_nf_batch_is_message(node, frame))
		return es_nf_cluster(node, frame);
	es_nf_hand_state_hurry(batch->kernel, frame);
	return es_nf_public(node, frame);
}

/* A packet of a flow that conntrack knows, but that belongs to no connection here, or begins a new one. */
static enum es_nf_fate es_nf_batch_on_known(void *ctx, const struct es_nf_frame *frame)
{
	struct es_nf_frame known = *frame;

	known.is_known = 1;
	return es_nf_batch_on_frame(ctx, &known);
}

/* A client's packet where a connection was, according to conntrack. */
static enum es_nf_fate es_nf_batch_on_ended(void *ctx, const struct es_nf_frame *frame)
{
	const struct es_nf_batch *batch = ctx;

	return batch->node->is_configured && es_nf_ended_is_gone(batch->node, frame)
		       ? es_nf_batch_on_known(ctx, frame)
		       : es_nf_batch_on_here(ctx, frame);
}

/* A late packet may be from before another node has answered. */
static int es_nf_batch_may_decide(const struct es_nf_batch *batch)
{
	return !batch->is_late && batch->node->is_configured;
}

/* Note packets of unproven connections that are let in. */
static enum es_nf_fate es_nf_batch_lets_in(struct es_nf_batch *batch, const struct es_nf_frame *frame,
					   enum es_nf_fate fate)
{
	if (fate == ES_NF_ACCEPT && batch->let_in_count < ES_NF_CAPTURE_BATCH) {
		size_t len = frame->len < ES_NF_LET_IN_MAX ? frame->len : ES_NF_LET_IN_MAX;

		memcpy(batch->let_in[batch->let_in_count], frame->bytes, len);
		batch->let_in_len[batch->let_in_count++] = len;
	}
	return fate;
}

/* A packet of an unproven connection. */
static enum es_nf_fate es_nf_batch_on_unproven(void *ctx, const struct es_nf_frame *frame)
{
	struct es_nf_batch *batch = ctx;

	if (!es_nf_batch_may_decide(batch))
		return ES_NF_DROP;
	batch->node->now_ns = es_nf_now_ns();
	if (!frame->ifindex)
		return es_nf_unproven_out(batch->node, frame);
	return es_nf_batch_lets_in(batch, frame, es_nf_unproven_in(batch->node, frame));
}

/* Likewise, of a service that inspects every request. */
static enum es_nf_fate es_nf_batch_on_unproven_here(void *ctx, const struct es_nf_frame *frame)
{
	struct es_nf_batch *batch = ctx;

	if (!es_nf_batch_may_decide(batch))
		return ES_NF_DROP;
	return es_nf_batch_lets_in(batch, frame, es_nf_batch_on_here(ctx, frame));
}

/* This thread may have been suspended since the batch was decided. */
static int es_nf_batch_may_pass(void *ctx)
{
	const struct es_nf_batch *batch = ctx;

	return !es_lease_is_over(es_nf_read64(&batch->node->memory.state->lease_ns), es_nf_now_ns());
}

/*
 * Send the answers to one queue's packets, after the kernel has the verdicts on them (frames.h). This thread
 * may have been suspended since: look at the lease again.
 */
static void es_nf_batch_send(struct es_nf_batch *batch)
{
	if (es_nf_hand_state_has_frames(batch->kernel))
		batch->node->memory.counters[ES_COUNT_answer_failed] +=
			es_nf_hand_state_send(batch->kernel, es_nf_batch_may_pass(batch));
}

/* Read some of a queue, if there is something. Returns 1 if there may be more. */
static int es_nf_batch_queue(struct es_nf_batch *batch, enum es_nf_captures queue, es_nf_capture_fn fn)
{
	int is_more = batch->ready & 1U << queue &&
		      es_nf_capture_read(batch->capture[queue], fn, batch) == ES_NF_CAPTURE_BATCH;

	es_nf_batch_send(batch);
	return is_more;
}

static int es_nf_batch_unproven(struct es_nf_batch *batch, enum es_nf_captures queue, es_nf_capture_fn fn)
{
	int is_more;

	batch->let_in_count = 0;
	is_more = es_nf_batch_queue(batch, queue, fn);
	for (size_t i = 0; i < batch->let_in_count; i++) {
		const struct es_nf_frame frame = {.bytes = batch->let_in[i], .len = batch->let_in_len[i]};

		es_nf_unproven_look(batch->node, &frame);
	}
	return is_more;
}

/* Only some ARP packets: a flood of them must not keep the thread from clients. */
static void es_nf_batch_arp(struct es_nf_batch *batch)
{
	uint8_t arp[ETH_DATA_LEN];
	int len = 1;

	for (int i = 0; i < ES_NF_CAPTURE_BATCH && len > 0; i++) {
		len = es_nf_hand_state_arp(batch->kernel, arp, sizeof(arp));
		if (len > 0 && !batch->is_late && batch->node->is_configured)
			es_nf_other_arp(batch->node, arp, (size_t)len);
	}
	es_nf_batch_send(batch);
}

/*
 * If the thread slept, or was busy with something else, it may find packets that have been repeated since.
 * Until it has read everything, it cannot tell which.
 */
static void es_nf_batch_notice(struct es_nf_batch *batch)
{
	struct es_nf_node *node = batch->node;
	__u64 limit_ns = node->config.fallback_after_ms * 1000000ULL + ES_NF_BATCH_TICK_MS * 1000000ULL;

	node->now_ns = es_nf_now_ns();
	if (batch->looked_ns && node->now_ns - batch->looked_ns > limit_ns)
		batch->is_late = 1;
	batch->looked_ns = node->now_ns;
}

/*
 * After a delay, the kernel's report about the sources is out of date, so all are read. Where every request
 * is inspected, what has left is read before what clients say about it.
 */
static void es_nf_batch_more_is_ready(struct es_nf_batch *batch)
{
	if (batch->is_late)
		batch->ready |= ES_NF_READY_ALL;
	if (batch->node->has_every)
		batch->ready |=
			ES_NF_READY_TAP | ES_NF_READY_HERE | ES_NF_READY_ENDED | ES_NF_READY_UNPROVEN_HERE;
}

int es_nf_batch_read(struct es_nf_batch *batch)
{
	int is_more;

	es_nf_hand_state_recover(batch->kernel);
	es_nf_batch_notice(batch);
	es_nf_hand_state_go_on(batch->kernel, batch->node->now_ns, es_nf_batch_on_here, batch);
	es_nf_batch_more_is_ready(batch);
	if (batch->ready & ES_NF_READY_ARP)
		es_nf_batch_arp(batch);
	/* First, since their clients are about to get a response. */
	is_more = es_nf_batch_unproven(batch, ES_NF_CAPTURE_UNPROVEN, es_nf_batch_on_unproven);
	is_more |= es_nf_batch_unproven(batch, ES_NF_CAPTURE_UNPROVEN_HERE, es_nf_batch_on_unproven_here);
	if (batch->ready & ES_NF_READY_TAP)
		es_nf_tap_read(batch->tap, es_nf_batch_on_reply, batch);
	/* The kernel gets these verdicts before messages about the same connections are read. */
	is_more |= es_nf_batch_queue(batch, ES_NF_CAPTURE_HERE, es_nf_batch_on_here);
	is_more |= es_nf_batch_queue(batch, ES_NF_CAPTURE_ENDED, es_nf_batch_on_ended);
	is_more |= es_nf_batch_queue(batch, ES_NF_CAPTURE_KNOWN, es_nf_batch_on_known);
	is_more |= es_nf_batch_queue(batch, ES_NF_CAPTURE_SERVICE, es_nf_batch_on_frame);
	return is_more;
}

void es_nf_batch_end(struct es_nf_batch *batch)
{
	batch->is_late = 0;
}

int es_nf_batch_wait(struct es_nf_batch *batch)
{
	struct epoll_event events[ES_NF_CAPTURES + 4];
	int wait_ms = es_nf_hand_state_wait_ms(batch->kernel), count;

	if (wait_ms < 0 || wait_ms > ES_NF_BATCH_TICK_MS)
		wait_ms = ES_NF_BATCH_TICK_MS;
	if (es_nf_hand_state_is_recovering(batch->kernel))
		wait_ms = 0;
	count = epoll_wait(batch->poll_fd, events, sizeof(events) / sizeof(events[0]), wait_ms);

	batch->ready = count > 0 ? 0 : ES_NF_READY_ALL;
	for (int i = 0; i < count; i++)
		batch->ready |= events[i].data.u32;
	return (batch->ready & ES_NF_READY_STOP) != 0;
}

/* A source without a descriptor is read when nothing else is reported. */
static int es_nf_batch_watch(const struct es_nf_batch *batch, int fd, unsigned int ready)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = ready};

	return fd >= 0 && epoll_ctl(batch->poll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int es_nf_batch_watch_all(struct es_nf_batch *batch, int stop_fd)
{
	int rc;

	batch->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (batch->poll_fd < 0)
		return -errno;
	rc = es_nf_batch_watch(batch, stop_fd, ES_NF_READY_STOP);
	for (int i = 0; i < ES_NF_CAPTURES && !rc; i++)
		rc = es_nf_batch_watch(batch, es_nf_capture_fd(batch->capture[i]), 1U << i);
	if (!rc)
		rc = es_nf_batch_watch(batch, es_nf_hand_state_arp_fd(batch->kernel), ES_NF_READY_ARP);
	if (!rc)
		rc = es_nf_batch_watch(batch, es_nf_hand_state_losses_fd(batch->kernel), ES_NF_READY_LOSSES);
	return rc ? rc : es_nf_batch_watch(batch, es_nf_tap_fd(batch->tap), ES_NF_READY_TAP);
}

int es_nf_batch_open(struct es_nf_batch *batch, int stop_fd, struct es_nf_why *why)
{
	const struct es_nf_capture_params params[ES_NF_CAPTURES] = {
		[ES_NF_CAPTURE_UNPROVEN] = {.queue = ES_NF_RULES_UNPROVEN,
					    .is_headers = 1,
					    .may_pass = es_nf_batch_may_pass,
					    .ctx = batch},
		[ES_NF_CAPTURE_UNPROVEN_HERE] = {.queue = ES_NF_RULES_UNPROVEN_HERE,
						 .may_pass = es_nf_batch_may_pass,
						 .ctx = batch},
		[ES_NF_CAPTURE_HERE] = {.queue = ES_NF_RULES_HERE},
		[ES_NF_CAPTURE_ENDED] = {.queue = ES_NF_RULES_ENDED},
		[ES_NF_CAPTURE_KNOWN] = {.queue = ES_NF_RULES_KNOWN},
		[ES_NF_CAPTURE_SERVICE] = {.queue = ES_NF_RULES_QUEUE},
	};
	int rc = 0;

	batch->poll_fd = -1;
	batch->ready = ES_NF_READY_ALL;
	for (int i = 0; i < ES_NF_CAPTURES && !rc; i++)
		rc = es_nf_capture_new(&params[i], &batch->capture[i], why);
	if (!rc && (rc = es_nf_batch_watch_all(batch, stop_fd)))
		es_nf_why(why, rc, "epoll: %s", strerror(-rc));
	if (rc)
		es_nf_batch_close(batch);
	return rc;
}

void es_nf_batch_close(struct es_nf_batch *batch)
{
	for (int i = 0; i < ES_NF_CAPTURES; i++)
		es_nf_capture_free(&batch->capture[i]);
	if (batch->poll_fd >= 0)
		close(batch->poll_fd);
	batch->poll_fd = -1;
}
