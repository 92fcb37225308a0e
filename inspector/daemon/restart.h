/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_RESTART_H
#define ES_DAEMON_RESTART_H

/*
 * Another start of the daemon in the same process: its program runs again, with the same command line. So it
 * is the same to systemd, to Pacemaker and to whoever else has started it, and the program that a package has
 * brought meanwhile is the one that runs.
 */
#include "inspector/base/error.h"

struct es_daemon;
struct json_object;

/* es_daemon_begin_anew() - leave in order, as at an end; main() then starts again */
void es_daemon_begin_anew(struct es_daemon *daemon);

/*
 * es_daemon_exec() - of main(), when all of the daemon is gone. Returns only if that fails, having said why.
 */
void es_daemon_exec(char **argv);

/*
 * es_daemon_serves() - does @node do its part: as a member that is up and has what it needs to decide as the
 * others do?
 */
int es_daemon_serves(const struct es_daemon *daemon, unsigned int node);

/* es_daemon_command_restart() - the control command `restart`; an es_control_fn */
int es_daemon_command_restart(void *ctx, struct json_object *request, struct json_object **ret_result,
			      struct es_conf_error *err);

#endif
