// SPDX-License-Identifier: GPL-2.0-or-later
/* Puts a version of the cluster in force in all that decides by it: datapath, keeper, programs, workers. */
#include "inspector/daemon/contents.h"
#include "inspector/daemon/internal.h"
#include "inspector/daemon/keeper.h"
#include "inspector/daemon/poison.h"
#include "inspector/daemon/url_tables.h"
#include "inspector/program/programs.h"

void es_daemon_set_workers(struct es_daemon *d, const struct es_cluster *cluster, const struct es_keys *keys)
{
	es_keeper_tell(d->poison->keeper, cluster, keys);
	es_programs_set_cluster(d->programs, cluster, keys);
	for (unsigned int i = 0; i < d->datapath_params.workers; i++)
		es_worker_set_cluster(d->worker[i], cluster, keys);
}

int es_daemon_install(struct es_daemon *d, struct es_cluster *next)
{
	struct es_cluster *old = d->cluster;
	int rc;

	es_table_set_fill(d->contents, NULL, next);
	next->plugins = d->plugins;
	es_url_tables_fill(d->url_tables, next);
	/* The datapath first: what it does not queue any more, a worker need not drop. */
	rc = es_daemon_configure(d, next, &d->keys);
	if (rc)
		return rc;
	es_daemon_set_workers(d, next, &d->keys);
	d->cluster = next;
	es_cluster_free(&old);
	return 0;
}
