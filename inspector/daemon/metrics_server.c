// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Serves metrics and the cluster's view over HTTP: begins, tries again, and gives the server's thread what it
 * asks for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/base/json.h"
#include "inspector/base/log.h"
#include "inspector/base/wall.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/metrics.h"
#include "inspector/daemon/view.h"
#include "inspector/status/conceal.h"
#include "inspector/status/server.h"

#define RETRY_S 5.0
#define LATER_S 0.05 /* for the first answers of other nodes */

static void give_metrics(struct es_daemon *d, enum es_exposition_format format)
{
	char *text = NULL;
	size_t len = 0;

	if (es_daemon_metrics_text(d, format, &text, &len))
		text = NULL;
	es_status_server_give(d->metrics->server, format, text, len);
}

/* Bytes that are no UTF-8, of a file's name or a path, are not JSON's. */
static void give_cluster(struct es_daemon *d)
{
	struct json_object *view = es_daemon_view(d, 1);
	char *text = NULL;
	size_t len = 0;
	FILE *file = open_memstream(&text, &len);
	int rc = -ENOMEM;

	es_conceal_queries(view);
	if (file)
		rc = es_json_write(view, file);
	if (file && fclose(file))
		rc = -ENOMEM;
	if (rc) {
		free(text);
		text = NULL;
	}
	es_status_server_give(d->metrics->server, ES_STATUS_CLUSTER, text, len);
	json_object_put(view);
}

static void give(struct es_daemon *d)
{
	struct es_status_server *server = d->metrics->server;

	for (int i = 0; server && i < ES_EXPOSITION_FORMATS; i++)
		if (es_status_server_wants(server, (unsigned int)i))
			give_metrics(d, (enum es_exposition_format)i);
	if (!server || !es_status_server_wants(server, ES_STATUS_CLUSTER))
		return;
	if (es_daemon_view_look(d, 1)) {
		give_cluster(d);
		return;
	}
	ev_timer_set(&d->metrics->later, LATER_S, 0);
	ev_timer_start(d->loop, &d->metrics->later);
}

static void on_wanted(struct ev_loop *loop, struct ev_async *async, int events)
{
	(void)loop;
	(void)events;
	give(async->data);
}

static void on_later(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	(void)loop;
	(void)events;
	give(timer->data);
}

/* The server's thread. */
static void ask(void *ctx)
{
	struct es_daemon *d = ctx;

	ev_async_send(d->loop, &d->metrics->wanted);
}

static void serve(struct es_daemon *d)
{
	struct es_daemon_metrics *m = d->metrics;
	const struct es_status_params params = {
		.address = *es_daemon_metrics_address(d),
		.port = d->conf->status.port,
		.allow = &d->conf->status.allow,
		.names = &d->conf->status.names,
		.node = d->conf->nodes[d->cluster->self].name,
		.ask = ask,
		.ctx = d,
	};
	char text[INET6_ADDRSTRLEN];
	int is_retry = m->error[0] != 0, rc;

	if (m->server && es_status_server_is(m->server, &params))
		return;
	es_status_server_free(&m->server);
	ev_timer_stop(d->loop, &m->retry);
	m->error[0] = 0;
	if (!params.port)
		return;
	es_conf_addr_text(&params.address, text);
	rc = es_status_server_new(&params, &m->server);
	if (!rc) {
		if (is_retry)
			es_log(ES_LOG_INFO, "metrics: served at %s port %u now", text, params.port);
		return;
	}
	snprintf(m->error, sizeof(m->error), "%s port %u: %s", text, params.port, strerror(-rc));
	if (!is_retry)
		es_log(ES_LOG_WARNING,
		       "metrics: %s; nobody can read them until that is free; do: another address or port in "
		       "status { }, or port = 0",
		       m->error);
	ev_timer_set(&m->retry, RETRY_S, 0);
	ev_timer_start(d->loop, &m->retry);
}

static void on_retry(struct ev_loop *loop, struct ev_timer *timer, int events)
{
	(void)loop;
	(void)events;
	serve(timer->data);
}

int es_daemon_metrics_start(struct es_daemon *d, struct es_conf_error *err)
{
	(void)err;
	d->metrics->start_time_s = (double)es_wall_ns() / 1e9;
	ev_async_init(&d->metrics->wanted, on_wanted);
	ev_init(&d->metrics->retry, on_retry);
	ev_init(&d->metrics->later, on_later);
	d->metrics->wanted.data = d->metrics->retry.data = d->metrics->later.data = d;
	ev_async_start(d->loop, &d->metrics->wanted);
	serve(d);
	return 0;
}

void es_daemon_metrics_rebind(struct es_daemon *d)
{
	d->metrics->error[0] = 0; /* what is wrong now is told anew */
	serve(d);
}

void es_daemon_metrics_stop(struct es_daemon *d)
{
	if (!ev_is_active(&d->metrics->wanted))
		return;
	es_status_server_free(&d->metrics->server);
	ev_async_stop(d->loop, &d->metrics->wanted);
	ev_timer_stop(d->loop, &d->metrics->retry);
	ev_timer_stop(d->loop, &d->metrics->later);
}
