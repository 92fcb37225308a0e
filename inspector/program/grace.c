// SPDX-License-Identifier: GPL-2.0-or-later
/* Awaits grace periods, so that nobody else has to. */
#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "inspector/datapath/datapath.h"
#include "inspector/program/grace.h"

static void poke(int fd)
{
	const uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) < 0)
		errno = 0; /* it cannot be full */
}

static void *es_grace_main(void *arg)
{
	struct es_grace *g = arg;
	uint64_t asked;

	while (read(g->asked_fd, &asked, sizeof(asked)) == sizeof(asked) && !g->is_stopping) {
		g->begun++; /* before it begins: who asks from here on means the next one */
		es_datapath_settle();
		g->over = g->begun;
		poke(g->over_fd);
	}
	return NULL;
}

int es_grace_start(struct es_grace *g)
{
	int rc;

	g->asked_fd = eventfd(0, EFD_CLOEXEC);
	g->over_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = g->asked_fd < 0 || g->over_fd < 0 ? -errno : -pthread_create(&g->thread, NULL, es_grace_main, g);
	if (!rc)
		return 0;
	if (g->asked_fd >= 0)
		close(g->asked_fd);
	if (g->over_fd >= 0)
		close(g->over_fd);
	*g = ES_GRACE_CLOSED;
	return rc;
}

void es_grace_stop(struct es_grace *g)
{
	if (g->asked_fd < 0)
		return;
	g->is_stopping = 1;
	poke(g->asked_fd);
	pthread_join(g->thread, NULL);
	close(g->asked_fd);
	close(g->over_fd);
	*g = ES_GRACE_CLOSED;
}

__u64 es_grace_ask(struct es_grace *g)
{
	__u64 next = g->begun + 1;

	poke(g->asked_fd);
	return next;
}

void es_grace_heard(struct es_grace *g)
{
	uint64_t count;

	if (read(g->over_fd, &count, sizeof(count)) < 0)
		errno = 0; /* somebody has read it already */
}
