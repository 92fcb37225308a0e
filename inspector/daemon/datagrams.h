/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_DATAGRAMS_H
#define ES_DAEMON_DATAGRAMS_H

#include <stddef.h>

/*
 * es_daemon_datagram() - from another node, and not about loads: for whom it is, its version says. Returns 0
 * if it was taken.
 */
int es_daemon_datagram(void *daemon, const void *data, size_t len);

#endif
