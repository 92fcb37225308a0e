// SPDX-License-Identifier: GPL-2.0-or-later
/* Shared by all drivers. drivers.c knows which there are. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/membarrier.h>
#include "inspector/base/clock.h"
#include "inspector/datapath/internal.h"

const char *es_datapath_note(const struct es_datapath *dp)
{
	return dp->note ? dp->note : "";
}

int es_datapath_response_read(const void *data, size_t size, struct es_response_entry *ret_entry)
{
	if (size < ES_RESPONSE_ENTRY_LEAST)
		return -EBADMSG;
	memset(ret_entry, 0, sizeof(*ret_entry));
	memcpy(ret_entry, data, size < sizeof(*ret_entry) ? size : sizeof(*ret_entry));
	return 0;
}

static void on_response(void *ctx, const void *data, size_t size)
{
	struct es_response_entry entry;
	struct es_datapath *dp = ctx;

	if (!es_datapath_response_read(data, size, &entry))
		dp->response_fn(dp->response_ctx, &entry);
}

/* One of a version that writes other entries says nothing. */
static void on_download(void *ctx, const void *data, size_t size)
{
	struct es_datapath *dp = ctx;

	if (size == sizeof(struct es_download_entry))
		dp->download_fn(dp->download_ctx, data);
}

int es_datapath_make(const struct es_datapath_ops *ops, const struct es_datapath_params *params, char *err,
		     size_t err_len, struct es_datapath **ret_datapath)
{
	struct es_datapath *dp = calloc(1, ops->size);
	int rc;

	if (!dp)
		return -ENOMEM;
	dp->ops = ops;
	dp->params = *params;
	dp->responses_fd = dp->downloads_fd = -1;
	for (int i = 0; i < ES_WORKERS_MAX; i++)
		dp->queue_fd[i] = dp->wake_fd[i] = -1;
	rc = dp->ops->create(dp, err, err_len);
	if (rc)
		goto err_free;
	rc = es_ring_reader_new(dp->responses_fd, ES_RESPONSES_BYTES, on_response, dp, &dp->responses);
	if (!rc && dp->downloads_fd >= 0)
		rc = es_ring_reader_new(dp->downloads_fd, ES_DOWNLOAD_RING_BYTES, on_download, dp,
					&dp->downloads);
	if (rc) {
		snprintf(err, err_len, "%s datapath: mapping the ring buffers of responses failed",
			 dp->ops->name);
		goto err_free;
	}
	*ret_datapath = dp;
	return 0;

err_free:
	es_datapath_free(&dp);
	return rc;
}

static size_t decisions_bytes(const struct es_datapath *dp)
{
	return (size_t)dp->params.decision_sets * sizeof(struct es_decision_set);
}

int es_datapath_map(struct es_datapath *dp, int state_fd, int decisions_fd)
{
	void *p = mmap(NULL, sizeof(struct es_state), PROT_READ | PROT_WRITE, MAP_SHARED, state_fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	dp->state = p;
	p = mmap(NULL, decisions_bytes(dp), PROT_READ | PROT_WRITE, MAP_SHARED, decisions_fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	dp->decisions = p;
	return 0;
}

int es_datapath_map_kepts(struct es_datapath *dp, int fd)
{
	void *p = mmap(NULL, ES_KEPT_SLOTS * sizeof(*dp->kepts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	dp->kepts = p;
	return 0;
}

void es_datapath_free(struct es_datapath **datapath)
{
	struct es_datapath *dp = *datapath;

	if (!dp)
		return;
	es_ring_reader_free(&dp->responses);
	es_ring_reader_free(&dp->downloads);
	if (dp->decisions)
		munmap(dp->decisions, decisions_bytes(dp));
	if (dp->resets)
		munmap(dp->resets, ES_RESETS * sizeof(*dp->resets));
	if (dp->kepts)
		munmap(dp->kepts, ES_KEPT_SLOTS * sizeof(*dp->kepts));
	if (dp->state)
		munmap(dp->state, sizeof(struct es_state));
	for (int i = 0; i < ES_WORKERS_MAX; i++)
		if (dp->queue_fd[i] >= 0)
			close(dp->queue_fd[i]);
	dp->ops->free(dp);
	free(dp);
	*datapath = NULL;
}

void es_datapath_hears_anew(struct es_datapath *dp)
{
	__atomic_store_n(&dp->state->hears_ns, es_clock_now_ns(), __ATOMIC_RELEASE);
}

int es_datapath_configure(struct es_datapath *dp, const struct es_config *config,
			  const struct es_node_ring *ring)
{
	/* How long a generation is depends on it. */
	if (dp->state->heard_slot_s != config->slot_s) {
		es_datapath_hears_anew(dp);
		dp->state->heard_slot_s = config->slot_s;
	}
	return dp->ops->configure(dp, config, ring);
}

void es_datapath_move(struct es_datapath *dp, unsigned int public_ifindex, unsigned int cluster_ifindex)
{
	const struct es_datapath_params old = dp->params;

	dp->params.public_ifindex = public_ifindex;
	dp->params.cluster_ifindex = cluster_ifindex;
	if (dp->ops->leave)
		dp->ops->leave(&old, &dp->params);
}

struct es_state *es_datapath_state(struct es_datapath *dp)
{
	return dp->state;
}

struct es_decision_set *es_datapath_decisions(struct es_datapath *dp)
{
	return dp->decisions;
}

struct es_reset *es_datapath_resets(struct es_datapath *dp)
{
	return dp->resets;
}

struct es_kept_slot *es_datapath_kepts(struct es_datapath *dp)
{
	return dp->kepts;
}

int es_datapath_queue_fd(struct es_datapath *dp, unsigned int worker)
{
	return worker < dp->params.workers ? dp->queue_fd[worker] : -1;
}

int es_datapath_wake_fd(struct es_datapath *dp, unsigned int worker)
{
	return worker < dp->params.workers ? dp->wake_fd[worker] : -1;
}

unsigned int es_datapath_mark(const struct es_datapath *dp)
{
	return dp->mark;
}

size_t es_datapath_queue_bytes(const struct es_datapath *dp)
{
	return dp->params.queue_bytes;
}

int es_datapath_replaced(const struct es_datapath *dp)
{
	return dp->replaced;
}

int es_datapath_adopted(const struct es_datapath *dp)
{
	return dp->adopted;
}

int es_datapath_counters(struct es_datapath *dp, unsigned long long *ret_values)
{
	return dp->ops->counters(dp, ret_values);
}

int es_datapath_accepted(struct es_datapath *dp, unsigned long long *ret_count)
{
	unsigned long long values[ES_COUNTER_COUNT];
	int rc = es_datapath_counters(dp, values);

	if (!rc)
		*ret_count = values[ES_COUNT_handover_rebuilt] + values[ES_COUNT_stay_delivered] +
			     values[ES_COUNT_request_blind] + values[ES_COUNT_request_fallback] +
			     values[ES_COUNT_handshake_blind];
	return rc;
}

int es_datapath_heard(struct es_datapath *dp, unsigned long long *ret_count)
{
	static const enum es_counter of_clients[] = {
		ES_COUNT_drop_not_mine,	      ES_COUNT_deliver_established, ES_COUNT_deliver_syn_established,
		ES_COUNT_deliver_time_wait,   ES_COUNT_drop_handshake_ack,  ES_COUNT_drop_no_flow,
		ES_COUNT_drop_bad_flags,      ES_COUNT_drop_decided,	    ES_COUNT_drop_silent,
		ES_COUNT_drop_ring_change,    ES_COUNT_drop_moved,	    ES_COUNT_syn_answered,
		ES_COUNT_syn_time_wait,	      ES_COUNT_request_queued,	    ES_COUNT_request_later_queued,
		ES_COUNT_request_blind,	      ES_COUNT_owned_queued,	    ES_COUNT_owned_later_queued,
		ES_COUNT_keepalive_answered,  ES_COUNT_reset_repeated,	    ES_COUNT_icmp_echo_mine,
		ES_COUNT_fin_before_request,  ES_COUNT_cookie_invalid,	    ES_COUNT_cookie_expired,
		ES_COUNT_rebuild_no_listener, ES_COUNT_other_mine,	    ES_COUNT_other_not_mine,
		ES_COUNT_handshake_blind,
	};
	unsigned long long values[ES_COUNTER_COUNT];
	int rc = es_datapath_counters(dp, values);

	if (rc)
		return rc;
	*ret_count = 0;
	for (size_t i = 0; i < sizeof(of_clients) / sizeof(of_clients[0]); i++)
		*ret_count += values[of_clients[i]];
	return 0;
}

int es_datapath_flows(struct es_datapath *dp, es_datapath_flow_fn fn, void *ctx)
{
	return dp->ops->flows(dp, fn, ctx);
}

int es_datapath_connections(struct es_datapath *dp, es_datapath_connection_fn fn, void *ctx)
{
	return dp->ops->connections(dp, fn, ctx);
}

int es_datapath_loads(struct es_datapath *dp, int wants_idle, struct es_load_sums *ret_sums)
{
	return dp->ops->loads(dp, wants_idle, ret_sums);
}

int es_datapath_responses(struct es_datapath *dp, es_datapath_response_fn fn, void *ctx)
{
	dp->response_fn = fn;
	dp->response_ctx = ctx;
	return es_ring_reader_consume(dp->responses);
}

int es_datapath_tells_downloads(const struct es_datapath *dp)
{
	return dp->downloads != NULL;
}

int es_datapath_downloads(struct es_datapath *dp, es_datapath_download_fn fn, void *ctx)
{
	dp->download_fn = fn;
	dp->download_ctx = ctx;
	return dp->downloads ? es_ring_reader_consume(dp->downloads) : 0;
}

int es_datapath_end_unproven(struct es_datapath *dp, unsigned int *ret_count)
{
	*ret_count = 0;
	return dp->ops->end_unproven(dp, ret_count);
}

int es_datapath_connection(struct es_datapath *dp, const struct es_flow *flow,
			   struct es_connection_state *ret_state, __u32 *ret_ahead)
{
	*ret_ahead = 0;
	return dp->ops->connection(dp, flow, ret_state, ret_ahead);
}

int es_datapath_vanish(struct es_datapath *dp, const struct es_flow *flow)
{
	return dp->ops->vanish ? dp->ops->vanish(dp, flow) : 0;
}

/* Programs and hooks both run as RCU readers; the netfilter datapath is settled when it is configured. */
int es_datapath_settle(void)
{
	return syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) ? -errno : 0;
}
