/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_CRASH_H
#define ES_DAEMON_CRASH_H

/* A node's connections, and what would become of them if it were lost at this moment (report/crash.h). */
#include <json-c/json.h>
#include "inspector/base/error.h"

struct es_daemon;

/* es_daemon_crash_of_self() - of this node's. Returns 0, or -errno and @err; the reply is the caller's. */
int es_daemon_crash_of_self(const struct es_daemon *daemon, struct json_object **ret_result,
			    struct es_conf_error *err);

/*
 * es_daemon_crash_of_kept() - of those that this node keeps for @node, which cannot be asked, or has not
 * answered yet (@is_awaited). The reply is the caller's.
 */
struct json_object *es_daemon_crash_of_kept(const struct es_daemon *daemon, unsigned int node,
					    int is_awaited);

#endif
