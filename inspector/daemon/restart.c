// SPDX-License-Identifier: GPL-2.0-or-later
/* The daemon begins anew, and is known to serve again. */
#include <errno.h>
#include <limits.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "inspector/base/event.h"
#include "inspector/cluster/content_sync.h"
#include "inspector/daemon/contents.h"
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/membership.h"
#include "inspector/daemon/restart.h"
#include "inspector/daemon/serving.h"
#include "inspector/daemon/settings.h"
#include "membership/group.h"

#define DELETED " (deleted)"

void es_daemon_begin_anew(struct es_daemon *d)
{
	es_event(ES_EVENT_stop, ES_LOG_INFO, NULL, "this daemon ends and begins anew; the datapath stays");
	d->begins_anew = 1;
	es_daemon_stop(d);
}

/* Where the program is, or where another one has taken its place. */
static void program_find(char *path, size_t size)
{
	ssize_t len = readlink("/proc/self/exe", path, size - 1);
	char *end;

	path[len > 0 ? len : 0] = 0;
	end = strlen(path) > strlen(DELETED) ? path + strlen(path) - strlen(DELETED) : NULL;
	if (end && !strcmp(end, DELETED))
		*end = 0;
	if (access(path, X_OK))
		snprintf(path, size, "/proc/self/exe");
}

void es_daemon_exec(char **argv)
{
	const struct sched_param ordinary = {};
	char path[PATH_MAX];
	sigset_t none;

	program_find(path, sizeof(path));
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	sched_setscheduler(0, SCHED_OTHER, &ordinary);
	close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
	execv(path, argv);
	es_log(ES_LOG_ERR, "%s: cannot be started again: %s", path, strerror(errno));
}

static int has_tables(const struct es_daemon *d)
{
	struct es_content_sync_state state;

	for (unsigned int i = 0; i < d->conf->service_count; i++)
		if (es_daemon_contents_of(d->contents, i, &state) &&
		    (state.phase == ES_SYNC_WANT || state.phase == ES_SYNC_RECEIVE))
			return 0;
	return 1;
}

int es_daemon_serves(const struct es_daemon *d, unsigned int node)
{
	const struct es_group *group;
	int is_self = node == d->cluster->self;

	if (is_self && (!has_tables(d) || es_daemon_serving_is_down(d)))
		return 0;
	if (!d->membership)
		return is_self ||
		       (es_daemon_is_heard(d, node) && es_health_state(&d->health, node) == ES_NODE_UP);
	group = es_membership_group(d->membership);
	if (is_self && es_membership_is_silent(d->membership))
		return 0;
	return group->phase == ES_GROUP_STABLE && group->node[node].is_accepted &&
	       group->node[node].state == ES_NODE_UP;
}

int es_daemon_command_restart(void *ctx, struct json_object *request, struct json_object **ret_result,
			      struct es_conf_error *err)
{
	(void)request;
	(void)ret_result;
	(void)err;
	es_daemon_begin_anew(ctx);
	return 0;
}
