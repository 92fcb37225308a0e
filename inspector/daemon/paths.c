// SPDX-License-Identifier: GPL-2.0-or-later
/* Names the node's sockets and files. Whoever uses one opens it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "inspector/ask/ledger.h"
#include "inspector/ask/wire.h"
#include "inspector/base/event.h"
#include "inspector/control/control.h"
#include "inspector/daemon/paths.h"
#include "inspector/daemon/service_drains.h"
#include "inspector/self/by_hand.h"
#include "libearshot/wire.h"

struct path {
	const char *suffix;
	char *path;
	size_t size;
};

#define PATH(suffix, array)                                                                                  \
	{                                                                                                    \
		suffix, array, sizeof(array)                                                                 \
	}

/* In place of the control socket's ".sock". */
static int path_beside(const struct es_daemon *d, const struct path *path)
{
	size_t len = strlen(d->control_path);

	if (len > 5 && !strcmp(d->control_path + len - 5, ".sock"))
		len -= 5;
	return (size_t)snprintf(path->path, path->size, "%.*s%s", (int)len, d->control_path, path->suffix) <
			       path->size
		       ? 0
		       : -ENAMETOOLONG;
}

static int path_lasting(const struct es_daemon *d, const struct path *path)
{
	if (d->options.control_path)
		return path_beside(d, path);
	return (size_t)snprintf(path->path, path->size, ES_STATE_DIRECTORY "/%s%s",
				d->conf->nodes[d->cluster->self].name, path->suffix) < path->size
		       ? 0
		       : -ENAMETOOLONG;
}

static int path_control(struct es_daemon *d)
{
	if (!d->options.control_path)
		return es_control_path(d->conf->nodes[d->cluster->self].name, d->control_path,
				       sizeof(d->control_path));
	snprintf(d->control_path, sizeof(d->control_path), "%s", d->options.control_path);
	return 0;
}

int es_daemon_paths_set(struct es_daemon *d)
{
	const struct path beside[] = {
		PATH(".sysctl", d->sysctl_path),
		PATH(ES_PROGRAM_SUFFIX, d->program_path),
		PATH(ES_ASK_SUFFIX, d->ask_path),
		PATH(ES_LEDGER_SUFFIX, d->ledger_path),
	};
	const struct path lasting[] = {
		PATH(".drained", d->drained_path),     PATH(".weight", d->weight_path),
		PATH(".rollout", d->rollout_path),     PATH(".services", d->service_drains->path),
		PATH(ES_EVENT_SUFFIX, d->events_path),
	};
	int rc = path_control(d);

	for (size_t i = 0; !rc && i < sizeof(beside) / sizeof(beside[0]); i++)
		rc = path_beside(d, &beside[i]);
	for (size_t i = 0; !rc && i < sizeof(lasting) / sizeof(lasting[0]); i++)
		rc = path_lasting(d, &lasting[i]);
	return rc;
}
