/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_PATHS_H
#define ES_DAEMON_PATHS_H

/* Where a node's sockets and files are. */
#include "inspector/daemon/daemon.h"

/**
 * es_daemon_paths_set() - sets all paths of @daemon, by its options and the node's name
 * Sockets, and files of this run of the machine, lie beside the control socket: n1.sock, n1.handover, n1.ask.
 * Files that last over the machine's restart are in ES_STATE_DIRECTORY; a daemon that was given a control
 * socket of its own, beside one of the same name perhaps, has them there, too. Returns 0 or -ENAMETOOLONG.
 */
int es_daemon_paths_set(struct es_daemon *daemon);

#endif
