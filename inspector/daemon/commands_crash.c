// SPDX-License-Identifier: GPL-2.0-or-later
/* The control command `crash`, of any node: whoever is asked asks that one. */
#include <errno.h>
#include "inspector/daemon/commands.h"
#include "inspector/daemon/crash.h"
#include "inspector/daemon/view.h"

int es_daemon_crash(void *ctx, struct json_object *request, struct json_object **ret_result,
		    struct es_conf_error *err)
{
	struct es_daemon *d = ctx;
	int node = es_daemon_named_node(d, request, err), is_awaited;

	if (node < 0)
		return -ENOENT;
	if ((unsigned int)node == d->cluster->self)
		return es_daemon_crash_of_self(d, ret_result, err);
	*ret_result = es_daemon_view_crash(d, (unsigned int)node, &is_awaited);
	if (!*ret_result)
		*ret_result = es_daemon_crash_of_kept(d, (unsigned int)node, is_awaited);
	return 0;
}
