/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_INTERNAL_H
#define ES_DAEMON_INTERNAL_H

/*
 * What daemon.c (start and end) and reload.c share.
 */
#include "inspector/daemon/daemon.h"

/* es_daemon_load() - read configuration and keys. Returns 0, or -errno and @err; then there is nothing to
 * free. */
int es_daemon_load(const struct es_daemon_options *options, struct es_keys *ret_keys,
		   struct es_conf **ret_conf, unsigned int *ret_self, struct es_conf_error *err);

/* es_daemon_configure() (configure.c) - put a version of the cluster in force in the datapath. Returns 0 or -errno. */
int es_daemon_configure(struct es_daemon *daemon, const struct es_cluster *cluster,
			const struct es_keys *keys);

/* es_daemon_families() - es_conf_family_check() for the datapath that was chosen. Returns 0, or -EINVAL and @err. */
int es_daemon_families(const struct es_daemon *daemon, const struct es_conf *conf, struct es_conf_error *err);

/* es_daemon_set_workers() - and in all threads that decide */
void es_daemon_set_workers(struct es_daemon *daemon, const struct es_cluster *cluster,
			   const struct es_keys *keys);

#endif
