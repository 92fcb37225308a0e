// SPDX-License-Identifier: GPL-2.0-or-later
/* The end of a daemon that runs: in order, by a signal, a command or for another start. */
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/membership.h"

static void end(struct es_daemon *d)
{
	ev_break(d->loop, EVBREAK_ALL);
}

void es_daemon_stop(struct es_daemon *d)
{
	if (d->membership)
		es_membership_leave(d->membership, end);
	else
		end(d);
}
