// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * corosync as a bus: libcpg gives views and messages, libquorum says whether they count. The two come through
 * two connections: after the cluster's membership has changed, the events of CPG are kept back until quorum
 * has spoken about the same ring, or a minority would take itself for the cluster for a moment.
 */
#include <corosync/cmap.h>
#include <corosync/cpg.h>
#include <corosync/quorum.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "membership/corosync.h"

#define GROUP_NAME "earshot"

/*
 * One datagram holds what piles up while a few others are under way: few of them, since senders without a
 * bound bring corosync to its knees (80 messages a second, stalls of 20 seconds).
 */
#define DATAGRAM_MAX 61440
#define WINDOW	     8
#define PENDING_MAX  (4u << 20)
#define HELD_MAX     (16u << 20)

/* A quorum device's: its default, and the bounds of the heartbeat, which is 0.8 of it. */
#define DEVICE_TIMEOUT_MS     10000
#define DEVICE_TIMEOUT_MAX_MS 150000
#define HEARTBEAT_MIN_MS      1000

/* An event that CPG has delivered, and that quorum has not judged yet. */
struct es_corosync_event {
	struct es_corosync_event *next;
	struct es_group_id from;
	unsigned int count;
	unsigned int leaver_count;
	int is_view;
	size_t len;
	struct es_group_id members[CPG_MEMBERS_MAX];
	struct es_group_leaver leavers[CPG_MEMBERS_MAX];
	char data[];
};

struct es_corosync {
	const struct es_corosync_ops *ops;
	void *ctx;
	quorum_handle_t quorum;
	cpg_handle_t cpg;
	cmap_handle_t cmap;
	uint32_t nodeid;
	int has_cmap;
	int has_quorum;
	int has_cpg;
	int is_quorate;
	int is_joined;	 /* the group has our process in it */
	int is_reported; /* @view was called, @lost was not */
	int is_changing; /* the cluster's membership; its new ring has not been named */
	int is_failed;
	uint64_t quorum_seq;
	uint64_t cpg_seq;
	struct es_corosync_event *first, **last;
	size_t held_bytes;
	unsigned int under_way;
	char *pending;
	size_t pending_len;
	size_t pending_size;
};

static void es_events_drop(struct es_corosync *c)
{
	struct es_corosync_event *event;

	while ((event = c->first)) {
		c->first = event->next;
		free(event);
	}
	c->last = &c->first;
	c->held_bytes = 0;
}

static void es_cpg_close(struct es_corosync *c)
{
	if (c->has_cpg)
		cpg_finalize(c->cpg);
	c->has_cpg = 0;
	c->is_joined = 0;
	c->is_changing = 0;
	c->cpg_seq = 0;
	c->under_way = 0;
	c->pending_len = 0;
	es_events_drop(c);
}

static void es_corosync_lose(struct es_corosync *c, const char *why)
{
	es_cpg_close(c);
	if (c->is_reported) {
		c->is_reported = 0;
		c->ops->lost(c->ctx, why);
	}
}

/* The connection itself is gone: corosync stopped, or threw us out. */
static void es_corosync_close(struct es_corosync *c, const char *why)
{
	es_corosync_lose(c, why);
	if (c->has_quorum)
		quorum_finalize(c->quorum);
	if (c->has_cmap)
		cmap_finalize(c->cmap);
	c->has_quorum = c->has_cmap = 0;
	c->is_quorate = 0;
	c->quorum_seq = 0;
	c->is_failed = 0;
}

static void es_event_add(struct es_corosync *c, struct es_corosync_event *event)
{
	event->next = NULL;
	*c->last = event;
	c->last = &event->next;
	c->held_bytes += sizeof(*event) + event->len;
	if (c->held_bytes > HELD_MAX)
		c->is_failed = 1;
}

static void es_on_message(cpg_handle_t handle, const struct cpg_name *group, uint32_t nodeid, uint32_t pid,
			  void *msg, size_t len)
{
	struct es_corosync *c = NULL;
	struct es_corosync_event *event;

	(void)group;
	if (cpg_context_get(handle, (void **)&c) != CS_OK || !c)
		return;
	event = malloc(sizeof(*event) + len);
	if (!event) {
		c->is_failed = 1;
		return;
	}
	event->is_view = 0;
	event->from = (struct es_group_id){nodeid, pid};
	event->len = len;
	memcpy(event->data, msg, len);
	es_event_add(c, event);
}

static enum es_group_reason es_reason(uint32_t reason)
{
	return reason == CPG_REASON_NODEDOWN || reason == CPG_REASON_NODEUP ? ES_GROUP_NODE
									    : ES_GROUP_PROCESS;
}

static void es_on_confchg(cpg_handle_t handle, const struct cpg_name *group,
			  const struct cpg_address *members, size_t member_count,
			  const struct cpg_address *left, size_t left_count, const struct cpg_address *joined,
			  size_t joined_count)
{
	struct es_corosync *c = NULL;
	struct es_corosync_event *event;

	(void)group;
	if (cpg_context_get(handle, (void **)&c) != CS_OK || !c)
		return;
	event = calloc(1, sizeof(*event));
	if (!event) {
		c->is_failed = 1;
		return;
	}
	event->is_view = 1;
	for (size_t i = 0; i < member_count && i < CPG_MEMBERS_MAX; i++)
		event->members[event->count++] = (struct es_group_id){members[i].nodeid, members[i].pid};
	for (size_t i = 0; i < left_count && i < CPG_MEMBERS_MAX; i++) {
		struct es_group_leaver *leaver = &event->leavers[event->leaver_count++];

		leaver->id = (struct es_group_id){left[i].nodeid, left[i].pid};
		leaver->reason = es_reason(left[i].reason);
		c->is_changing |= left[i].reason == CPG_REASON_NODEDOWN;
	}
	for (size_t i = 0; i < joined_count; i++)
		c->is_changing |= joined[i].reason == CPG_REASON_NODEUP;
	es_event_add(c, event);
}

static void es_on_ring(cpg_handle_t handle, struct cpg_ring_id ring, uint32_t count, const uint32_t *members)
{
	struct es_corosync *c = NULL;

	(void)count;
	(void)members;
	if (cpg_context_get(handle, (void **)&c) != CS_OK || !c)
		return;
	c->cpg_seq = ring.seq;
	c->is_changing = 0;
}

static void es_on_quorum(quorum_handle_t handle, uint32_t quorate, struct quorum_ring_id ring, uint32_t count,
			 const uint32_t *members)
{
	struct es_corosync *c = NULL;

	(void)count;
	(void)members;
	if (quorum_context_get(handle, (const void **)&c) != CS_OK || !c)
		return;
	c->is_quorate = quorate != 0;
	c->quorum_seq = ring.seq;
}

int es_corosync_new(const struct es_corosync_ops *ops, void *ctx, struct es_corosync **ret_corosync)
{
	struct es_corosync *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->ops = ops;
	c->ctx = ctx;
	c->last = &c->first;
	*ret_corosync = c;
	return 0;
}

void es_corosync_free(struct es_corosync **corosync)
{
	struct es_corosync *c = *corosync;

	if (!c)
		return;
	c->is_reported = 0;
	es_corosync_close(c, "");
	free(c->pending);
	free(c);
	*corosync = NULL;
}

static int es_quorum_open(struct es_corosync *c)
{
	quorum_model_v1_data_t model = {.model = QUORUM_MODEL_V1, .quorum_notify_fn = es_on_quorum};
	uint32_t type;

	if (quorum_model_initialize(&c->quorum, QUORUM_MODEL_V1, (quorum_model_data_t *)&model, &type, c) !=
	    CS_OK)
		return -ENOTCONN;
	c->has_quorum = 1;
	c->has_cmap = cmap_initialize(&c->cmap) == CS_OK;
	if (quorum_trackstart(c->quorum, CS_TRACK_CURRENT | CS_TRACK_CHANGES) != CS_OK) {
		es_corosync_close(c, "");
		return -ENOTCONN;
	}
	return 0;
}

static int es_cpg_open(struct es_corosync *c)
{
	cpg_model_v1_data_t model = {
		.model = CPG_MODEL_V1,
		.cpg_deliver_fn = es_on_message,
		.cpg_confchg_fn = es_on_confchg,
		.cpg_totem_confchg_fn = es_on_ring,
		.flags = CPG_MODEL_V1_DELIVER_INITIAL_TOTEM_CONF,
	};
	struct cpg_name name = {.length = sizeof(GROUP_NAME) - 1, .value = GROUP_NAME};

	if (cpg_model_initialize(&c->cpg, CPG_MODEL_V1, (cpg_model_data_t *)&model, c) != CS_OK)
		return -ENOTCONN;
	c->has_cpg = 1;
	if (cpg_local_get(c->cpg, &c->nodeid) != CS_OK || cpg_join(c->cpg, &name) != CS_OK) {
		es_cpg_close(c);
		return -ENOTCONN;
	}
	c->is_joined = 1;
	return 0;
}

unsigned int es_corosync_token_ms(struct es_corosync *c)
{
	uint32_t token_ms = 0;

	if (!c->has_cmap || cmap_get_uint32(c->cmap, "runtime.config.totem.token", &token_ms) != CS_OK)
		return 0;
	return token_ms;
}

unsigned int es_corosync_vote_late_ms(struct es_corosync *c)
{
	uint32_t timeout_ms = DEVICE_TIMEOUT_MS;
	char *model = NULL;

	if (!c->has_cmap || cmap_get_string(c->cmap, "quorum.device.model", &model) != CS_OK)
		return 0;
	free(model);
	cmap_get_uint32(c->cmap, "quorum.device.timeout", &timeout_ms);
	if (timeout_ms > DEVICE_TIMEOUT_MAX_MS)
		timeout_ms = DEVICE_TIMEOUT_MAX_MS;
	return timeout_ms * 8 / 10 > HEARTBEAT_MIN_MS ? timeout_ms * 8 / 10 : HEARTBEAT_MIN_MS;
}

int es_corosync_connect(struct es_corosync *c, char *why, size_t size)
{
	if (!c->has_quorum && es_quorum_open(c)) {
		snprintf(why, size,
			 "no connection to corosync on this machine; is it running, and may this user "
			 "use it (uidgid in corosync.conf)?");
		return -ENOTCONN;
	}
	es_corosync_dispatch(c);
	if (c->has_quorum && !es_corosync_token_ms(c)) {
		snprintf(why, size, "corosync does not tell its token timeout (cmap)");
		es_corosync_close(c, why);
		return -ENOTCONN;
	}
	if (!c->is_quorate) {
		snprintf(why, size, "corosync's partition on this machine has no quorum");
		return -ENOTCONN;
	}
	if (!c->has_cpg && es_cpg_open(c)) {
		snprintf(why, size, "corosync does not let us join its group");
		return -ENOTCONN;
	}
	return 0;
}

void es_corosync_fds(const struct es_corosync *c, int ret_fds[2])
{
	ret_fds[0] = ret_fds[1] = -1;
	if (c->has_quorum)
		quorum_fd_get(c->quorum, &ret_fds[0]);
	if (c->has_cpg)
		cpg_fd_get(c->cpg, &ret_fds[1]);
}

/* Quorum and CPG speak of the same ring. */
static int es_is_settled(const struct es_corosync *c)
{
	return !c->is_changing && c->cpg_seq && c->cpg_seq == c->quorum_seq;
}

static void es_event_report(struct es_corosync *c, const struct es_corosync_event *event)
{
	struct es_group_id self = {c->nodeid, (uint32_t)getpid()};

	if (event->is_view) {
		for (unsigned int i = 0; i < event->count; i++) {
			if (event->members[i].nodeid != self.nodeid || event->members[i].pid != self.pid)
				continue;
			c->is_reported = 1;
			c->ops->view(c->ctx, self, event->members, event->count, event->leavers,
				     event->leaver_count);
			return;
		}
		return;
	}
	if (event->from.nodeid == self.nodeid && event->from.pid == self.pid && c->under_way)
		c->under_way--;
	if (c->is_reported)
		c->ops->datagram(c->ctx, event->from, event->data, event->len);
}

static void es_events_report(struct es_corosync *c)
{
	struct es_corosync_event *event;

	while (es_is_settled(c) && c->is_quorate && (event = c->first)) {
		c->first = event->next;
		if (!c->first)
			c->last = &c->first;
		c->held_bytes -= sizeof(*event) + event->len;
		es_event_report(c, event);
		free(event);
	}
}

void es_corosync_dispatch(struct es_corosync *c)
{
	cs_error_t rc = CS_OK;

	if (c->has_quorum)
		rc = quorum_dispatch(c->quorum, CS_DISPATCH_ALL);
	if (rc != CS_OK && rc != CS_ERR_TRY_AGAIN) {
		es_corosync_close(c, "the connection to corosync broke");
		return;
	}
	if (c->has_cpg)
		rc = cpg_dispatch(c->cpg, CS_DISPATCH_ALL);
	if ((rc != CS_OK && rc != CS_ERR_TRY_AGAIN) || c->is_failed) {
		es_corosync_close(c, "the connection to corosync broke");
		return;
	}
	if (c->has_cpg && !c->is_quorate) {
		es_corosync_lose(c, "corosync's partition on this machine lost the quorum");
		return;
	}
	es_events_report(c);
	es_corosync_flush(c);
}

void es_corosync_send(struct es_corosync *c, enum es_wire_type type, const void *payload, size_t len)
{
	size_t need = c->pending_len + 4 + len;

	if (!c->is_joined || c->is_failed)
		return;
	if (need > c->pending_size) {
		size_t size = need * 2;
		char *bigger = need > PENDING_MAX ? NULL : realloc(c->pending, size);

		/*
		 * Later messages may rest on this one (STOPPED on PROOFS), so if it is dropped, none is sent
		 * after it.
		 */
		if (!bigger) {
			c->is_failed = 1;
			return;
		}
		c->pending = bigger;
		c->pending_size = size;
	}
	c->pending_len = es_wire_append(c->pending, c->pending_size, c->pending_len, type, payload, len);
}

/* As many whole messages as one datagram takes. */
static size_t es_pending_take(const struct es_corosync *c)
{
	size_t at = 0, end = 0, len;
	const void *payload;
	uint8_t type;

	while (es_wire_next(c->pending, c->pending_len, &at, &type, &payload, &len) > 0) {
		if (end && at > DATAGRAM_MAX)
			break;
		end = at;
	}
	return end;
}

int es_corosync_flush(struct es_corosync *c)
{
	while (c->is_joined && !c->is_failed && c->pending_len && c->under_way < WINDOW) {
		size_t len = es_pending_take(c);
		struct iovec iov = {.iov_base = c->pending, .iov_len = len};
		cs_error_t rc = cpg_mcast_joined(c->cpg, CPG_TYPE_AGREED, &iov, 1);

		if (rc != CS_OK)
			break; /* CS_ERR_TRY_AGAIN: later; anything else shows in the next dispatch */
		c->under_way++;
		c->pending_len -= len;
		memmove(c->pending, c->pending + len, c->pending_len);
	}
	return c->pending_len != 0;
}

void es_corosync_give_up(struct es_corosync *c, const char *why)
{
	es_corosync_close(c, why);
}

void es_corosync_rejoin(struct es_corosync *c)
{
	struct cpg_name name = {.length = sizeof(GROUP_NAME) - 1, .value = GROUP_NAME};

	if (c->is_joined)
		cpg_leave(c->cpg, &name);
	c->is_reported = 0;
	es_cpg_close(c);
}

void es_corosync_state(const struct es_corosync *c, struct es_corosync_state *ret_state)
{
	ret_state->is_connected = c->has_quorum;
	ret_state->is_quorate = c->is_quorate;
	ret_state->is_joined = c->is_reported;
}
