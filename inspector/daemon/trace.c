// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The control command `trace`: gives each worker a ring for whoever begins to watch, and hands over what is
 * in the rings, in order of time. All of this is the control thread's; only the list of rings in a worker is
 * changed by that worker.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/base/json.h"
#include "inspector/base/wall.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/trace.h"
#include "inspector/inspect/inspect.h"
#include "inspector/report/trace.h"

#define NS_PER_MS   1000000ULL
#define CHECK_S	    1.0
#define REPLY_MAX   4096 /* decisions in a reply; the others are in the next one */
#define FILTERS_MAX 16

/*
 * struct es_trace_watcher - @asked_ns: when it last asked; @ring: of each worker; @told: of those left out,
 * what it knows
 */
struct es_trace_watcher {
	unsigned long long id;
	unsigned long long asked_ns;
	unsigned long long told;
	struct es_trace_ring *ring[ES_WORKERS_MAX];
};

/* The next two are run by the worker. */
static void give_ring(struct es_inspector *inspector, void *ctx)
{
	struct es_trace_ring *ring = ctx;

	ring->next = inspector->traces;
	inspector->traces = ring;
}

static void take_ring(struct es_inspector *inspector, void *ctx)
{
	for (struct es_trace_ring **at = &inspector->traces; *at; at = &(*at)->next)
		if (*at == ctx) {
			*at = (*at)->next;
			return;
		}
}

static void free_watcher(struct es_trace_watcher *watcher)
{
	for (unsigned int i = 0; i < ES_WORKERS_MAX; i++)
		free(watcher->ring[i]);
	free(watcher);
}

static void forget_watcher(struct es_daemon *d, unsigned int slot)
{
	struct es_trace_watcher *watcher = d->trace->watcher[slot];

	for (unsigned int i = 0; i < d->datapath_params.workers; i++)
		es_worker_call(d->worker[i], take_ring, watcher->ring[i]);
	free_watcher(watcher);
	d->trace->watcher[slot] = NULL;
	if (!--d->trace->count)
		ev_timer_stop(d->loop, &d->trace->timer);
}

static void on_timer(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	unsigned long long now_ns = es_clock_now_ns();
	struct es_daemon *d = timer->data;

	(void)loop;
	(void)events;
	for (unsigned int i = 0; i < ES_TRACE_WATCHERS; i++)
		if (d->trace->watcher[i] &&
		    now_ns - d->trace->watcher[i]->asked_ns >= ES_TRACE_GONE_MS * NS_PER_MS)
			forget_watcher(d, i);
}

static int read_filter(const struct es_daemon *d, struct json_object *request, struct es_trace_filter *filter,
		       struct es_conf_error *err)
{
	struct json_object *list = es_json_array(request, "filter");
	size_t count = json_object_array_length(list);
	int rc = 0;

	if (count > FILTERS_MAX) {
		es_conf_error_set(err, "filter: %zu are given: expected at most %d", count, FILTERS_MAX);
		return -EINVAL;
	}
	for (size_t i = 0; i < count && !rc; i++) {
		struct json_object *text = json_object_array_get_idx(list, i);

		rc = es_trace_filter_add(
			filter, d->cluster->conf,
			json_object_is_type(text, json_type_string) ? json_object_get_string(text) : "", err);
	}
	return rc;
}

static int free_slot(const struct es_daemon_trace *trace)
{
	for (int i = 0; i < ES_TRACE_WATCHERS; i++)
		if (!trace->watcher[i])
			return i;
	return -1;
}

static struct es_trace_watcher *new_watcher(const struct es_daemon *d, const struct es_trace_filter *filter)
{
	struct es_trace_watcher *watcher = calloc(1, sizeof(*watcher));

	for (unsigned int i = 0; watcher && i < d->datapath_params.workers; i++) {
		watcher->ring[i] = calloc(1, sizeof(*watcher->ring[i]));
		if (!watcher->ring[i]) {
			free_watcher(watcher);
			return NULL;
		}
		watcher->ring[i]->filter = *filter;
	}
	return watcher;
}

static int begin(struct es_daemon *d, struct json_object *request, struct json_object **ret_result,
		 struct es_conf_error *err)
{
	struct es_daemon_trace *trace = d->trace;
	struct es_trace_filter filter = {};
	struct es_trace_watcher *watcher;
	int slot = free_slot(trace), rc = read_filter(d, request, &filter, err);

	if (rc)
		return rc;
	if (slot < 0) {
		es_conf_error_set(err,
				  "trace: %d watch already, as many as may: end one of them, or try again "
				  "in a few seconds if one has just ended",
				  ES_TRACE_WATCHERS);
		return -EBUSY;
	}
	watcher = new_watcher(d, &filter);
	if (!watcher)
		return -ENOMEM;
	/* Not one that a watcher of the daemon before may still ask for. */
	if (!trace->last_id)
		trace->last_id = es_wall_ns() / NS_PER_MS;
	watcher->id = ++trace->last_id;
	watcher->asked_ns = es_clock_now_ns();
	trace->watcher[slot] = watcher;
	if (!trace->count++) {
		ev_timer_init(&trace->timer, on_timer, CHECK_S, CHECK_S);
		trace->timer.data = d;
		ev_timer_start(d->loop, &trace->timer);
	}
	for (unsigned int i = 0; i < d->datapath_params.workers; i++)
		es_worker_call(d->worker[i], give_ring, watcher->ring[i]);
	*ret_result = json_object_new_object();
	json_object_object_add(*ret_result, "id", json_object_new_int64((int64_t)watcher->id));
	return 0;
}

static int by_time(const void *a, const void *b)
{
	unsigned long long x = ((const struct es_trace_entry *)a)->at_ns,
			   y = ((const struct es_trace_entry *)b)->at_ns;

	return x < y ? -1 : x > y;
}

static int collect(const struct es_daemon *d, struct es_trace_watcher *watcher,
		   struct json_object **ret_result)
{
	struct es_trace_entry *entries = calloc(REPLY_MAX, sizeof(*entries));
	unsigned long long left_out = 0, to_wall_ns = es_wall_ns() - es_clock_now_ns();
	unsigned int workers = d->datapath_params.workers;
	struct json_object *list;
	size_t count = 0;

	if (!entries)
		return -ENOMEM;
	for (unsigned int i = 0; i < workers; i++) {
		/* So that none is left waiting while others have much. */
		for (unsigned int n = REPLY_MAX / workers; n; n--)
			count += (size_t)es_trace_take(watcher->ring[i], &entries[count]);
		left_out += atomic_load_explicit(&watcher->ring[i]->left_out, memory_order_relaxed);
	}
	qsort(entries, count, sizeof(*entries), by_time);
	list = json_object_new_array();
	for (size_t i = 0; i < count; i++)
		json_object_array_add(list, es_report_trace(&entries[i], to_wall_ns));
	free(entries);
	*ret_result = json_object_new_object();
	json_object_object_add(*ret_result, "id", json_object_new_int64((int64_t)watcher->id));
	json_object_object_add(*ret_result, "left_out",
			       json_object_new_int64((int64_t)(left_out - watcher->told)));
	json_object_object_add(*ret_result, "decisions", list);
	watcher->told = left_out;
	watcher->asked_ns = es_clock_now_ns();
	return 0;
}

int es_daemon_trace_command(void *ctx, struct json_object *request, struct json_object **ret_result,
			    struct es_conf_error *err)
{
	unsigned long long id = es_json_number(request, "id");
	struct es_daemon *d = ctx;
	int rc;

	if (!id)
		return begin(d, request, ret_result, err);
	for (unsigned int i = 0; i < ES_TRACE_WATCHERS; i++) {
		if (!d->trace->watcher[i] || d->trace->watcher[i]->id != id)
			continue;
		rc = collect(d, d->trace->watcher[i], ret_result);
		if (!rc && es_json_is_true(request, "end"))
			forget_watcher(d, i);
		return rc;
	}
	es_conf_error_set(
		err, "trace %llu has ended: expected to be asked again within %d s, and of the same daemon",
		id, ES_TRACE_GONE_MS / 1000);
	return -ENOENT;
}

void es_daemon_trace_stop(struct es_daemon *d)
{
	for (unsigned int i = 0; i < ES_TRACE_WATCHERS; i++)
		if (d->trace->watcher[i]) {
			free_watcher(d->trace->watcher[i]);
			d->trace->watcher[i] = NULL;
		}
	if (d->trace->count)
		ev_timer_stop(d->loop, &d->trace->timer);
	d->trace->count = 0;
}
