/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_TRACE_H
#define ES_DAEMON_TRACE_H

/*
 * Those who watch decisions (`earshot trace`). A watcher begins with its filter and asks again and again for
 * what came since; one that does not for a while has gone, and its rings are taken from the workers
 * (inspect/trace.h).
 */
#include <ev.h>
#include <json-c/json.h>
#include "inspector/base/error.h"

struct es_daemon;
struct es_trace_watcher;

#define ES_TRACE_WATCHERS 8

/* A watcher has gone that has not asked for so long. */
#define ES_TRACE_GONE_MS 3000

/**
 * struct es_daemon_trace - zeroes: nobody watches
 * @timer: runs while somebody does; @last_id: of the watcher that came last
 */
struct es_daemon_trace {
	struct ev_timer timer;
	struct es_trace_watcher *watcher[ES_TRACE_WATCHERS];
	unsigned int count;
	unsigned long long last_id;
};

/* es_daemon_trace_command() - the control command `trace`; an es_control_fn whose context is the daemon */
int es_daemon_trace_command(void *ctx, struct json_object *request, struct json_object **ret_result,
			    struct es_conf_error *err);

/* es_daemon_trace_stop() - nobody watches any more; after the workers have ended */
void es_daemon_trace_stop(struct es_daemon *daemon);

#endif
