/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_URL_TABLES_H
#define ES_DAEMON_URL_TABLES_H

/*
 * The URL tables of the services whose requests are inspected, and the threads that scan their document
 * roots. Owned by the control thread; workers use the tables through the version of the cluster that they
 * have.
 */
#include "inspector/cluster/cluster.h"
#include "inspector/urls/docroot.h"

struct es_service_urls;

/* struct es_url_tables - of a configuration's services, in their order; NULL for one without */
struct es_url_tables {
	unsigned int count;
	struct es_service_urls *urls[ES_CONF_SERVICES_MAX];
};

/**
 * es_url_tables_init() - what @conf needs: a service of the same name, root and bound keeps what @old has
 * @key: es_url_table_set_key()'s; @old: the one in force, or NULL. It is not changed: until one of the two is
 * finished both are good. Returns 0, or -errno and @err; then @ret_set is empty.
 */
int es_url_tables_init(struct es_url_tables *ret_set, const struct es_url_tables *old,
		       const struct es_conf *conf, const struct es_sipkey *key, struct es_conf_error *err);

/* es_url_tables_fini() - no worker uses it any more; does not wait for its threads */
void es_url_tables_fini(struct es_url_tables *set);

/* es_url_tables_fill() - let a version of the cluster have these tables */
void es_url_tables_fill(const struct es_url_tables *set, struct es_cluster *cluster);

/* es_url_tables_stats() - 0 if the service has no table; @ret_has_root: @ret_root is filled */
int es_url_tables_stats(const struct es_url_tables *set, unsigned int service, struct es_url_stats *ret_table,
			int *ret_has_root, struct es_docroot_stats *ret_root);

#endif
