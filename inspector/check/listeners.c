// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads which TCP sockets listen here. */
#include <errno.h>
#include <stdlib.h>

#include "inspector/check/facts.h"

static void on_listener(void *ctx, const struct es_sock_diag_listener *listener)
{
	struct es_facts *facts = ctx;
	struct es_sock_diag_listener *all =
		reallocarray(facts->listeners, facts->listener_count + 1, sizeof(*all));

	if (!all) {
		facts->listeners_rc = -ENOMEM;
		return;
	}
	facts->listeners = all;
	all[facts->listener_count++] = *listener;
}

void es_facts_read_listeners(struct es_facts *facts)
{
	int rc;

	facts->listeners_rc = 0;
	rc = es_sock_diag_listeners(on_listener, facts);
	if (rc)
		facts->listeners_rc = rc;
}
