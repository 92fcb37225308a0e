/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_PLUGINS_H
#define ES_DAEMON_PLUGINS_H

/* The plugins' timers, on the control thread. */
#include "inspector/daemon/daemon.h"

/* es_daemon_plugins_watch() - other plugins are in force: run their timers from now on */
void es_daemon_plugins_watch(struct es_daemon *daemon);

#endif
