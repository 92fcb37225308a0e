/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_WAKE_H
#define ES_WAKE_H

/*
 * The packet socket through which the datapath wakes a sleeping worker (kmod/bpf/queue.h).
 */

/* es_wake_open() - the socket of @worker, non-blocking, readable when it is woken. Returns it or -errno. */
int es_wake_open(unsigned int worker);

/*
 * es_wake_drain() - take what woke us, be it that socket or es_datapath_wake_fd(). Returns how often that
 * was.
 */
unsigned int es_wake_drain(int fd);

#endif
