/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_LOG_H
#define ES_LOG_H

/*
 * The programs' log: one line to standard error, with the priority prefix that systemd's journal reads when
 * it is the one who listens (sd-daemon(3)). Libraries do not log. Nobody waits for whoever reads it: what
 * does not fit is dropped, and a later line says how many were.
 */
enum es_log_level {
	ES_LOG_ERR = 3,
	ES_LOG_WARNING = 4,
	ES_LOG_INFO = 6,
};

/* The program's name at the beginning of each line. */
extern const char *es_log_program;

void es_log(enum es_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/**
 * es_log_fields() - a line about an event; @text has no newline
 * Where standard error is systemd's journal, it has the fields EARSHOT_EVENT (@kind) and EARSHOT_NODE
 * (@node).
 */
void es_log_fields(enum es_log_level level, const char *kind, const char *node, const char *text);

#endif
