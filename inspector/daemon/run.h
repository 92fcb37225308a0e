/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_RUN_H
#define ES_DAEMON_RUN_H

/*
 * Another program, run beside the daemon: what it writes is read as it comes, up to a bound, and the control
 * thread never waits for it. It gets so long, and is then killed with all that it has started.
 */
#include <ev.h>
#include <sys/types.h>

#define ES_RUN_OUT_MAX (256U * 1024) /* bytes of its standard output */
#define ES_RUN_ERR_MAX 512U	     /* of its standard error, which is for people */

/*
 * struct es_run_stream - @text: what the program has written, and a NUL; @is_cut: it has written more than
 * that
 */
struct es_run_stream {
	struct ev_io io;
	char *text;
	size_t len;
	size_t max;
	int is_cut;
};

/**
 * struct es_run - all zero before the first es_run_start()
 * @pid: 0: none runs; @is_late: it was killed for its time
 */
struct es_run {
	struct ev_loop *loop;
	struct ev_child child;
	struct ev_timer limit;
	struct es_run_stream out;
	struct es_run_stream err;
	void (*done)(struct es_run *run, int status);
	void *ctx;
	pid_t pid;
	int is_late;
};

/**
 * es_run_start() - run @argv, whose first is the program's path
 * @loop: the default loop, which alone learns of children; @limit_s: then it is killed
 * @done: called once when it has ended, with the status of waitpid(); @run->out and @run->err last until it
 * returns
 * Returns 0, or -errno: it does not run, and @done is not called.
 */
int es_run_start(struct es_run *run, struct ev_loop *loop, char *const *argv, double limit_s,
		 void (*done)(struct es_run *run, int status), void *ctx);

/* es_run_stop() - kill what runs, if something does; @done is not called */
void es_run_stop(struct es_run *run);

#endif
