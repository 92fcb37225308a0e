// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Takes packets out of the queues, and says which part of the node decides about each.
 */
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
#include "netfilter/rules/rules.h"
#include "netfilter/node/target.h"
#include "netfilter/node/unproven.h"

static void es_nf_batch_on_reply(void *ctx, const uint8_t *packet, size_t len)
{
	struct es_nf_batch *batch = ctx;

	if (batch->node->is_configured)
		es_nf_reply(batch->node, packet, len);
}

/* What a client says on a connection that is here: what it acknowledges has left before. */
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

/* Of a server that ends its connection. */
static enum es_nf_fate es_nf_batch_reset(struct es_nf_batch *batch, const struct es_nf_frame *frame)
{
	if (!es_nf_reply_is_held(batch->node, frame->bytes, frame->len))
		return es_nf_kernel_reset(batch->kernel, frame, batch->node);
	es_nf_count(batch->node, ES_COUNT_reply_leaving);
	return ES_NF_DROP;
}

/* Messages come on either interface; where one network is for all, by their address. */
static int es_nf_batch_is_message(const struct es_nf_node *node, const struct es_nf_frame *frame)
{
	struct es_nf_ip ip;

	if (frame->ifindex != node->config.public_ifindex)
		return 1;
	return frame->ifindex == node->config.cluster_ifindex &&
	       !es_nf_ip_read(frame->bytes, frame->len, &ip) && !es_nf_is_service_address(node, &ip.dest);
}

/* A packet out of the queue. */
static enum es_nf_fate es_nf_batch_on_frame(void *ctx, const struct es_nf_frame *frame)
{
	struct es_nf_batch *batch = ctx;
	struct es_nf_node *node = batch->node;

	/* A lease may have ended since those before it in the batch were read. */
	node->now_ns = es_nf_now_ns();
	if (!frame->ifindex) /* it has come from here */
		return es_nf_batch_reset(batch, frame);
	/* Its client, or its node, has repeated it since: another may have acted on that. */
	if (batch->is_late || !node->is_configured)
		return ES_NF_DROP;
	if (es_nf_batch_is_message(node, frame))
		return es_nf_cluster(node, frame);
	es_nf_kernel_hurry(batch->kernel, frame);
	return es_nf_public(node, frame);
}

/* What is of no connection that is here, or begins one, of a flow that the connection tracking knows. */
static enum es_nf_fate es_nf_batch_on_known(void *ctx, const struct es_nf_frame *frame)
{
	struct es_nf_frame known = *frame;

	known.is_known = 1;
	return es_nf_batch_on_frame(ctx, &known);
}

/* What a client says where a connection was, as the connection tracking has it. */
static enum es_nf_fate es_nf_batch_on_ended(void *ctx, const struct es_nf_frame *frame)
{
	const struct es_nf_batch *batch = ctx;

	return batch->node->is_configured && es_nf_ended_is_gone(batch->node, frame)
		       ? es_nf_batch_on_known(ctx, frame)
		       : es_nf_batch_on_here(ctx, frame);
}

/* It may be of a time in which another node has answered. */
static int es_nf_batch_may_decide(const struct es_nf_batch *batch)
{
	return !batch->is_late && batch->node->is_configured;
}

/* Of connections that are not proven: note what is let in. */
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

/* A packet of a connection that is not proven. */
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

/* What comes for one that is not proven, of a service that inspects every request. */
static enum es_nf_fate es_nf_batch_on_unproven_here(void *ctx, const struct es_nf_frame *frame)
{
	struct es_nf_batch *batch = ctx;

	if (!es_nf_batch_may_decide(batch))
		return ES_NF_DROP;
	return es_nf_batch_lets_in(batch, frame, es_nf_batch_on_here(ctx, frame));
}

/* This thread may have been stopped since the batch was decided. */
static int es_nf_batch_may_pass(void *ctx)
{
	const struct es_nf_batch *batch = ctx;

	return !es_lease_is_over(es_nf_read64(&batch->node->memory.state->lease_ns), es_nf_now_ns());
}

/* What answers those of one queue leaves behind what the kernel was told of them (frames.h); by now, this thread may have been stopped. */
static void es_nf_batch_send(struct es_nf_batch *batch)
{
	if (es_nf_kernel_has_frames(batch->kernel))
		batch->node->memory.counters[ES_COUNT_answer_failed] +=
			es_nf_kernel_send(batch->kernel, es_nf_batch_may_pass(batch));
}

/* Some of one queue, if there is any. Returns 1 if there may be more. */
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

/* Some of it: a flood of ARP must not keep the thread from clients. */
static void es_nf_batch_arp(struct es_nf_batch *batch)
{
	uint8_t arp[ETH_DATA_LEN];
	int len = 1;

	for (int i = 0; i < ES_NF_CAPTURE_BATCH && len > 0; i++) {
		len = es_nf_kernel_arp(batch->kernel, arp, sizeof(arp));
		if (len > 0 && !batch->is_late && batch->node->is_configured)
			es_nf_other_arp(batch->node, arp, (size_t)len);
	}
	es_nf_batch_send(batch);
}

/*
 * A thread that slept, or had something else to do, while packets came, finds such as have been repeated since. Until it
 * has looked at all that is there, it cannot tell them from others.
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
 * Who is late knows of nothing that has come since he was told what there is. Where every request is inspected, what has
 * left is read before what is said about it.
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

	es_nf_kernel_recover(batch->kernel);
	es_nf_batch_notice(batch);
	es_nf_kernel_go_on(batch->kernel, batch->node->now_ns, es_nf_batch_on_here, batch);
	es_nf_batch_more_is_ready(batch);
	if (batch->ready & ES_NF_READY_ARP)
		es_nf_batch_arp(batch);
	/* They come first: clients wait for them who have an answer to come. */
	is_more = es_nf_batch_unproven(batch, ES_NF_CAPTURE_UNPROVEN, es_nf_batch_on_unproven);
	is_more |= es_nf_batch_unproven(batch, ES_NF_CAPTURE_UNPROVEN_HERE, es_nf_batch_on_unproven_here);
	if (batch->ready & ES_NF_READY_TAP)
		es_nf_tap_read(batch->tap, es_nf_batch_on_reply, batch);
	/* The kernel hears what becomes of these before messages about their connections are read. */
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
	int wait_ms = es_nf_kernel_wait_ms(batch->kernel), count;

	if (wait_ms < 0 || wait_ms > ES_NF_BATCH_TICK_MS)
		wait_ms = ES_NF_BATCH_TICK_MS;
	if (es_nf_kernel_is_recovering(batch->kernel))
		wait_ms = 0;
	count = epoll_wait(batch->poll_fd, events, sizeof(events) / sizeof(events[0]), wait_ms);

	batch->ready = count > 0 ? 0 : ES_NF_READY_ALL;
	for (int i = 0; i < count; i++)
		batch->ready |= events[i].data.u32;
	return (batch->ready & ES_NF_READY_STOP) != 0;
}

/* What has no descriptor is read when nothing is told. */
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
		rc = es_nf_batch_watch(batch, es_nf_kernel_arp_fd(batch->kernel), ES_NF_READY_ARP);
	if (!rc)
		rc = es_nf_batch_watch(batch, es_nf_kernel_losses_fd(batch->kernel), ES_NF_READY_LOSSES);
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
