// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The event loop of a worker, as far as it is not libev's. A loop makes its epoll anew while it serves: when
 * another process has a listening socket that was closed here, the kernel goes on telling of it, and libev
 * has no other way to be rid of that. So each reload is a moment in which an epoll may not be had.
 */
#include "tls/serve/loop.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include "inspector/base/clock.h"
#include "inspector/base/log.h"

#define WAIT_NS	 10000000	/* then libev tries again */
#define QUIET_NS 10000000000ULL /* between two lines about it */

static void on_shortage(const char *what)
{
	static unsigned long long said_ns;
	const struct timespec wait = {.tv_nsec = WAIT_NS};
	unsigned long long now_ns = es_clock_now_ns();
	const char *why = strerror(errno);

	if (!said_ns || now_ns - said_ns >= QUIET_NS) {
		said_ns = now_ns;
		es_log(ES_LOG_WARNING, "%s: %s; nobody is served until that is over", what, why);
	}
	nanosleep(&wait, NULL);
}

struct ev_loop *es_loop_new(void)
{
	/* If it cannot be made now, the first process starts another worker. */
	struct ev_loop *loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);

	if (loop)
		ev_set_syserr_cb(on_shortage);
	return loop;
}
