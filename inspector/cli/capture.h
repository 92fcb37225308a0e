/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CLI_CAPTURE_H
#define ES_CLI_CAPTURE_H

/* Another program, run for what it prints, with bounds on its time and its output. */
#include <stddef.h>

/**
 * struct es_capture - what a program has printed
 * @text, @len: standard output and error as they came, for free(); @is_cut: and more than that
 * @status: its exit status, or 128 and the signal; -1: it does not run, and @text says why
 * @is_late: it was killed for its time; @took_s: how long it ran
 */
struct es_capture {
	char *text;
	size_t len;
	int is_cut;
	int is_late;
	int status;
	double took_s;
};

/* es_capture_run() - run @argv, whose first is looked for in PATH. Always fills in @ret. */
void es_capture_run(char *const *argv, double limit_s, size_t max, struct es_capture *ret);

/*
 * es_capture_find_all() - look for programs where `su`, cron and ssh do not: in /usr/sbin and /sbin. Returns
 * 0 or -errno.
 */
int es_capture_find_all(void);

#endif
