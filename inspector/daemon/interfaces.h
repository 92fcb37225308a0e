/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_INTERFACES_H
#define ES_DAEMON_INTERFACES_H

/*
 * Interfaces come and go while the daemon runs: a VLAN or bond that is made anew, a network service that is
 * started again. Everything that is attached to an interface goes with it, and another interface of the same
 * name has nothing of it. So the daemon follows the kernel's link messages: it attaches again, and renews all
 * else that names an interface by its index; while one is missing, or nothing can be attached, the node is no
 * member.
 */
#include <ev.h>
#include "inspector/base/error.h"
#include "membership/group.h"

struct es_daemon;
struct mnl_socket;

/**
 * struct es_daemon_interfaces
 * @socket: link messages; NULL until es_daemon_interfaces_start()
 * @retry: runs while something is wrong that no message may tell the end of
 * @is_lost: everything that was attached is gone with its interface, or may be
 * @wrong: the trouble, for the operator; "" if there is none
 */
struct es_daemon_interfaces {
	struct mnl_socket *socket;
	struct ev_io io;
	struct ev_timer retry;
	int is_lost;
	char wrong[ES_GROUP_TEXT_SIZE];
};

/* es_daemon_interfaces_start() - once all is attached. Returns 0, or -errno and @err. */
int es_daemon_interfaces_start(struct es_daemon *daemon, struct es_conf_error *err);

/* es_daemon_interfaces_stop() - may be called without start */
void es_daemon_interfaces_stop(struct es_daemon *daemon);

/* es_daemon_interfaces_reload() - is all attached? If not, attach. Returns 0, or -errno and @err. */
int es_daemon_interfaces_reload(struct es_daemon *daemon, struct es_conf_error *err);

#endif
