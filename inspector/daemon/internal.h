/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_INTERNAL_H
#define ES_DAEMON_INTERNAL_H

/*
 * Functions for putting a configuration or a ring in force, which a start (daemon.c), a reload (reload.c) and
 * another ring (ring.c) share.
 */
#include "inspector/daemon/daemon.h"

/* struct es_daemon_text - a configuration in memory; @name: of its file, for messages */
struct es_daemon_text {
	const char *name;
	const char *text;
	size_t len;
};

/* es_daemon_read() (read.c) - read configuration and keys; @text: NULL: the configuration that the command
 * line names. Returns 0, or -errno and @err; then there is nothing to free. */
int es_daemon_read(const struct es_daemon_options *options, const struct es_daemon_text *text,
		   struct es_keys *ret_keys, struct es_conf **ret_conf, unsigned int *ret_self,
		   struct es_conf_error *err);

/**
 * es_daemon_try() (reload.c) - would es_daemon_reload() put this in force? Nothing changes by it.
 * @ret_settings: es_settings_text() of it. Returns 0, or -errno and @err.
 */
int es_daemon_try(struct es_daemon *daemon, const struct es_daemon_text *text, int may_wait,
		  char *ret_settings, size_t size, struct es_conf_error *err);

/*
 * es_daemon_configure() (configure.c) - put a version of the cluster in force in the datapath. Returns 0 or
 * -errno.
 */
int es_daemon_configure(struct es_daemon *daemon, const struct es_cluster *cluster,
			const struct es_keys *keys);

/* es_daemon_set_workers() (install.c) - put that version in force in keeper, programs and workers, too */
void es_daemon_set_workers(struct es_daemon *daemon, const struct es_cluster *cluster,
			   const struct es_keys *keys);

/**
 * es_daemon_install() (install.c) - put another version of the cluster in force, in the datapath and in the
 * workers
 * Takes @next over; on failure it stays the caller's, and the old one in force. Returns 0 or -errno.
 */
int es_daemon_install(struct es_daemon *daemon, struct es_cluster *next);

#endif
