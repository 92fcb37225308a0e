/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_CONFINE_H
#define ES_SERVE_CONFINE_H

/*
 * A worker reads what strangers send, and has secrets: so it may do little.
 */
#include <grp.h>
#include <sys/types.h>
#include "inspector/base/error.h"

#define ES_CONFINE_USER "earshot-tls"

/**
 * struct es_identity - whose rights workers have
 * @is_set: else they stay who they are
 * @group: one more, which may use the daemon's sockets; (gid_t)-1: none
 */
struct es_identity {
	int is_set;
	uid_t user;
	gid_t own_group;
	gid_t group;
};

/**
 * es_identity_find() - @user: by name; NULL: ES_CONFINE_USER if there is such a user
 * @group: the configuration's program_group; "": none
 * Returns 0 or -ENOENT, and @err.
 */
int es_identity_find(const char *user, const char *group, struct es_identity *ret_identity,
		     struct es_conf_error *err);

/* es_confine_memory() - no cores, no debugger: for each process that has secrets. Returns 0 or -errno. */
int es_confine_memory(void);

/*
 * es_confine() - become that user, and keep only the system calls that serving needs. Returns 0 or -errno.
 */
int es_confine(const struct es_identity *identity);

#endif
