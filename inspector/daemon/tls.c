// SPDX-License-Identifier: GPL-2.0-or-later
/* Looks after the earshot-tls beside the daemon: does it run, and what has it counted? */
#include "inspector/daemon/tls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/ask/askers.h"
#include "inspector/daemon/daemon.h"

static int is_wanted(const struct es_daemon *d)
{
	for (unsigned int i = 0; i < d->conf->service_count; i++)
		if (d->conf->services[i].tls.line &&
		    es_conf_service_is_on(&d->conf->services[i], d->cluster->self))
			return 1;
	return 0;
}

int es_daemon_tls_read(const struct es_daemon *d, struct es_ledger **ret_ledger)
{
	struct es_ledger *ledger;

	if (!is_wanted(d))
		return -ENOENT;
	ledger = calloc(1, sizeof(*ledger));
	if (!ledger)
		return -ENOMEM;
	if (es_ledger_read(d->ledger_path, ledger))
		memset(ledger, 0, sizeof(*ledger));
	/* One of another version tells nothing in words that are known here, but its questions come. */
	if (!ledger->runs) {
		ledger->head.workers = es_askers_count(d->askers);
		ledger->head.pid = ledger->head.leaving = 0;
		ledger->head.started_wall_ns = 0;
		ledger->runs = ledger->head.workers > 0;
	}
	*ret_ledger = ledger;
	return 0;
}
