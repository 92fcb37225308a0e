// SPDX-License-Identifier: GPL-2.0-or-later
/* Gives each worker its ring of the request log, and takes it back. */
#include <string.h>
#include "inspector/base/log.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/request_log.h"
#include "inspector/inspect/inspect.h"

#define SYSLOG_SOCKET "/dev/log"
#define END_MS	      1000

/* Run by the worker. */
static void set_ring(struct es_inspector *inspector, void *ctx)
{
	inspector->log = ctx;
}

static void give_rings(struct es_daemon *d, struct es_log_writer *writer)
{
	for (unsigned int i = 0; i < d->datapath_params.workers; i++)
		es_worker_call(d->worker[i], set_ring, writer ? es_log_writer_ring(writer, i) : NULL);
}

static void begin(struct es_daemon *d)
{
	struct es_daemon_request_log *log = d->request_log;
	const char *service;
	int rc;

	log->conf = d->conf->log;
	if (!log->conf.is_on)
		return;
	service = log->conf.service >= 0 ? d->conf->services[log->conf.service].name : NULL;
	rc = es_log_writer_new(&log->conf, service, d->conf->nodes[d->cluster->self].name, SYSLOG_SOCKET,
			       d->datapath_params.workers, &log->writer);
	if (rc) {
		es_log(ES_LOG_ERR, "request log: cannot be started: %s; requests are not logged",
		       strerror(-rc));
		log->conf.is_on = 0; /* the next reload tries again */
		return;
	}
	give_rings(d, log->writer);
}

int es_daemon_request_log_start(struct es_daemon *d, struct es_conf_error *err)
{
	(void)err;
	begin(d);
	return 0;
}

static int is_same(const struct es_conf_log *a, const struct es_conf_log *b)
{
	return a->is_on == b->is_on && a->to == b->to && a->format == b->format &&
	       a->facility == b->facility && !strcmp(a->file, b->file) &&
	       !strcmp(a->service_name, b->service_name);
}

void es_daemon_request_log_rebind(struct es_daemon *d)
{
	struct es_daemon_request_log *log = d->request_log;

	if (log->writer && is_same(&log->conf, &d->conf->log)) {
		es_log_writer_reopen(log->writer);
		return;
	}
	if (log->writer) {
		give_rings(d, NULL);
		es_log_writer_end(&log->writer, 0, &log->counts);
	}
	begin(d);
}

void es_daemon_request_log_stop(struct es_daemon *d)
{
	if (d->request_log->writer)
		es_log_writer_end(&d->request_log->writer, END_MS, &d->request_log->counts);
}

void es_daemon_request_log_counts(const struct es_daemon *d, struct es_log_counts *ret_counts)
{
	*ret_counts = d->request_log->counts;
	if (d->request_log->writer)
		es_log_writer_counts(d->request_log->writer, ret_counts);
}
