/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_LOG_WRITER_H
#define ES_DAEMON_LOG_WRITER_H

/*
 * The thread that writes the request log. It takes decisions from a ring for each worker (inspect/trace.h); a
 * disk or a syslog that hangs holds up nobody else: the rings become full, and what has no room is counted.
 * The file is opened anew when another one, or none, has its name, as after logrotate.
 */
#include "inspector/config/config.h"
#include "inspector/inspect/trace.h"

struct es_log_writer;

/* struct es_log_counts - lines; @failed: that could not be written */
struct es_log_counts {
	unsigned long long written;
	unsigned long long failed;
};

/**
 * es_log_writer_new() - start it
 * @service: whose decisions; NULL: all; @node: this one's name; @syslog: its socket. Returns 0 or -errno.
 */
int es_log_writer_new(const struct es_conf_log *conf, const char *service, const char *node,
		      const char *syslog, unsigned int workers, struct es_log_writer **ret_writer);

/* es_log_writer_ring() - for worker @i, which has given it back before the end */
struct es_trace_ring *es_log_writer_ring(struct es_log_writer *writer, unsigned int i);

/* es_log_writer_counts() - so far, added to @counts */
void es_log_writer_counts(const struct es_log_writer *writer, struct es_log_counts *counts);

/* es_log_writer_reopen() - open the file anew, when it comes to that */
void es_log_writer_reopen(struct es_log_writer *writer);

/**
 * es_log_writer_end() - it writes what there is, and ends; nobody waits for it but for @wait_ms
 * @counts: gets what it has counted by then
 */
void es_log_writer_end(struct es_log_writer **writer, unsigned int wait_ms, struct es_log_counts *counts);

#endif
