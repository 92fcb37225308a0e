/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_REQUEST_LOG_H
#define ES_DAEMON_REQUEST_LOG_H

/* The request log of this node, as the configuration in force has it (section log). */
#include "inspector/base/error.h"
#include "inspector/daemon/log_writer.h"

struct es_daemon;

/* struct es_daemon_request_log - @counts: of writers that have ended; @conf: of @writer */
struct es_daemon_request_log {
	struct es_log_writer *writer;
	struct es_conf_log conf;
	struct es_log_counts counts;
};

/*
 * es_daemon_request_log_start() - after the workers; a log that cannot be written is no reason not to start
 */
int es_daemon_request_log_start(struct es_daemon *daemon, struct es_conf_error *err);

/* es_daemon_request_log_rebind() - after a reload: as the configuration has it now; a file is opened anew */
void es_daemon_request_log_rebind(struct es_daemon *daemon);

/*
 * es_daemon_request_log_stop() - after the workers have ended; what they have noted is written, if that takes
 * no longer than a second
 */
void es_daemon_request_log_stop(struct es_daemon *daemon);

/* es_daemon_request_log_counts() - since the daemon began; all 0 without a log */
void es_daemon_request_log_counts(const struct es_daemon *daemon, struct es_log_counts *ret_counts);

#endif
