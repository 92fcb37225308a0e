/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_METRICS_H
#define ES_DAEMON_METRICS_H

/*
 * The node's metrics: what the control thread knows is put into a document whenever somebody asks, over HTTP
 * (status/server.h) or with `earshot metrics`. It reads what the workers count, and never waits for one. An
 * address or a port that cannot be had keeps nothing else from working: it is tried again every few seconds.
 */
#include <ev.h>
#include <json-c/json.h>
#include "inspector/base/error.h"
#include "inspector/status/exposition.h"

struct es_daemon;
struct es_status_server;

/**
 * struct es_daemon_metrics
 * @start_time_s: by the wall clock of that moment, which may be set later
 * @error: why nobody is served now; "": there is no reason
 */
struct es_daemon_metrics {
	struct es_status_server *server;
	struct ev_async wanted;
	struct ev_timer retry;
	struct ev_timer later;
	double start_time_s;
	char error[128];
};

/* es_daemon_metrics_start() - returns 0, whether or not they can be served now */
int es_daemon_metrics_start(struct es_daemon *daemon, struct es_conf_error *err);

/* es_daemon_metrics_rebind() - after a reload: address, port or who may ask may be others */
void es_daemon_metrics_rebind(struct es_daemon *daemon);

/* es_daemon_metrics_stop() - may be called without start */
void es_daemon_metrics_stop(struct es_daemon *daemon);

/* es_daemon_metrics_text() - the document of this moment; the caller frees it. Returns 0 or -errno. */
int es_daemon_metrics_text(struct es_daemon *daemon, enum es_exposition_format format, char **ret_text,
			   size_t *ret_len);

/* es_daemon_metrics_address() - at which they are served: of the configuration, or the one of this node */
const struct es_addr *es_daemon_metrics_address(const struct es_daemon *daemon);

/* es_daemon_metrics_report() - where they are served, for `status` */
struct json_object *es_daemon_metrics_report(const struct es_daemon *daemon);

#endif
