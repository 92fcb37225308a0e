/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_WAIT_H
#define ES_DAEMON_WAIT_H

#include "inspector/daemon/daemon.h"

/**
 * es_daemon_wait() - until this node's interfaces and address are there
 * At boot they may be late, and a name that is wrong looks just the same: so it says once what it waits for,
 * and what there is. Returns at once when the configuration cannot be read: the start says what is wrong with
 * it.
 */
void es_daemon_wait(const struct es_daemon_options *options);

#endif
