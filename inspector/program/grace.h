/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_PROGRAM_GRACE_H
#define ES_PROGRAM_GRACE_H

/*
 * Grace periods of the kernel, which take milliseconds: a thread of their own awaits them, one after the
 * other as long as one is asked for. After one, no CPU works any more on a packet that it had before.
 */
#include <pthread.h>
#include "kmod/core/types.h"

/**
 * struct es_grace - @asked_fd: wakes the thread; @over_fd: is readable when a grace period is over
 * @begun, @over: how many
 */
struct es_grace {
	pthread_t thread;
	int asked_fd;
	int over_fd;
	_Atomic __u64 begun;
	_Atomic __u64 over;
	_Atomic int is_stopping;
};

#define ES_GRACE_CLOSED ((struct es_grace){.asked_fd = -1, .over_fd = -1})

/* es_grace_start() - @grace: ES_GRACE_CLOSED before; signals are blocked. Returns 0 or -errno. */
int es_grace_start(struct es_grace *grace);
void es_grace_stop(struct es_grace *grace);

/* es_grace_ask() - wait for one that begins from now on; returns its number */
__u64 es_grace_ask(struct es_grace *grace);

static inline int es_grace_is_over(const struct es_grace *grace, __u64 number)
{
	return grace->over >= number;
}

/* es_grace_heard() - @over_fd is not readable any more, until the next one */
void es_grace_heard(struct es_grace *grace);

#endif
