// SPDX-License-Identifier: GPL-2.0-or-later
/* A node that is no member any more, or not yet, is silent. */
#include <stdio.h>
#include <string.h>
#include "inspector/daemon/membership_internal.h"

void es_membership_silence(struct es_membership *m, const char *why)
{
	__atomic_store_n(&es_datapath_state(m->daemon->datapath)->attached, 0, __ATOMIC_RELEASE);
	memset(&m->share, 0, sizeof(m->share));
	es_story_silence(m);
	es_lease_take_back(m); /* the next ring tells */
	if (!m->is_silent || strcmp(m->why, why) != 0)
		es_event(ES_EVENT_silent, ES_LOG_WARNING, NULL, "silent: %s", why);
	m->is_silent = 1;
	snprintf(m->why, sizeof(m->why), "%s", why);
}
