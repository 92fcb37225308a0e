/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_PARENT_H
#define ES_SERVE_PARENT_H

/*
 * The process that people start: it reads files, has the listening sockets, and sees to it that workers run.
 * It talks to no client.
 */

/* @config, @node, @control: as earshotd's; @user: of the workers, NULL: es_identity_find() */
struct es_parent_options {
	const char *config;
	const char *node;
	const char *control;
	const char *user;
};

/*
 * es_parent_hold_signals() - those that es_parent_run() hears wait for it: none of them ends the process. The
 * first thing of all.
 */
void es_parent_hold_signals(void);

/* es_parent_run() - until SIGTERM. Returns an exit status. */
int es_parent_run(const struct es_parent_options *options);

#endif
