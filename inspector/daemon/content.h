/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_CONTENT_H
#define ES_DAEMON_CONTENT_H

/*
 * The URL tables of the services whose requests are inspected, and the threads that scan their document
 * roots. Owned by the control thread; workers use the tables through the version of the cluster that they
 * have.
 */
#include "inspector/cluster/cluster.h"
#include "inspector/content/docroot.h"

struct es_service_content;

/* struct es_content_set - of a configuration's services, in their order; NULL for one without */
struct es_content_set {
	unsigned int count;
	struct es_service_content *content[ES_CONF_SERVICES_MAX];
};

/**
 * es_content_set_init() - what @conf needs: a service of the same name, root and bound keeps what @old has
 * @key: es_url_table_set_key()'s; @old: the one in force, or NULL. It is not changed: until one of the two is
 * finished both are good. Returns 0, or -errno and @err; then @ret_set is empty.
 */
int es_content_set_init(struct es_content_set *ret_set, const struct es_content_set *old,
			const struct es_conf *conf, const struct es_sipkey *key, struct es_conf_error *err);

/* es_content_set_fini() - no worker uses it any more; does not wait for its threads */
void es_content_set_fini(struct es_content_set *set);

/* es_content_set_fill() - let a version of the cluster have these tables */
void es_content_set_fill(const struct es_content_set *set, struct es_cluster *cluster);

/* es_content_set_stats() - 0 if the service has no table; @ret_has_root: @ret_root is filled */
int es_content_set_stats(const struct es_content_set *set, unsigned int service,
			 struct es_url_stats *ret_table, int *ret_has_root,
			 struct es_docroot_stats *ret_root);

#endif
