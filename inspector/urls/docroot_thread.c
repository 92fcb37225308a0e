// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The thread around a document root: scans, waits for changes, gives the URL table a new tree at most once a
 * second (a copy costs a millisecond per 10,000 files or so, and a size that is a second old harms nobody).
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "inspector/base/clock.h"
#include "inspector/urls/docroot.h"

#define ES_SLICE      256u
#define ES_PUBLISH_MS 1000ULL

struct es_docroot_thread {
	struct es_docroot *docroot;
	struct es_url_table *table;
	pthread_t thread;
	int stop_fd;
	_Atomic int stop;
	pthread_mutex_t lock; /* of @stats, and of @table once more: nothing is given to it after @stop */
	struct es_docroot_stats stats;
};

static void es_stats_publish(struct es_docroot_thread *t)
{
	pthread_mutex_lock(&t->lock);
	t->stats = *es_docroot_stats(t->docroot);
	pthread_mutex_unlock(&t->lock);
}

static void es_docroot_thread_destroy(struct es_docroot_thread *t)
{
	es_docroot_free(&t->docroot);
	if (t->stop_fd >= 0)
		close(t->stop_fd);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

static void es_tree_publish(struct es_docroot_thread *t, struct es_url_tree *tree)
{
	pthread_mutex_lock(&t->lock);
	if (atomic_load(&t->stop))
		es_url_tree_free(&tree);
	else
		es_url_table_set_scan(t->table, tree);
	pthread_mutex_unlock(&t->lock);
}

static void *es_docroot_main(void *arg)
{
	struct es_docroot_thread *t = arg;
	struct pollfd fds[2] = {
		{.fd = t->stop_fd, .events = POLLIN},
		{.fd = es_docroot_fd(t->docroot), .events = POLLIN},
	};
	unsigned long long published_ms = 0;

	while (!atomic_load(&t->stop)) {
		unsigned long long now_ms = es_clock_now_ns() / 1000000;
		int wait_ms = ES_DOCROOT_TICK_MS;
		struct es_url_tree *tree;

		es_docroot_tick(t->docroot, now_ms);
		if (es_docroot_step(t->docroot, ES_SLICE)) {
			es_stats_publish(t);
			continue;
		}
		es_docroot_handle(t->docroot);
		if (now_ms - published_ms < ES_PUBLISH_MS) {
			wait_ms = (int)(ES_PUBLISH_MS - (now_ms - published_ms));
		} else if (es_docroot_take(t->docroot, &tree) == 1) {
			es_tree_publish(t, tree);
			published_ms = now_ms;
		}
		es_stats_publish(t);
		poll(fds, 2, wait_ms);
		/* Not for each event of a burst: it is over in a moment, and one look takes all of it. */
		if (fds[1].revents)
			poll(fds, 1, 20);
	}
	/* The thread that stopped us may be in between. */
	pthread_mutex_lock(&t->lock);
	pthread_mutex_unlock(&t->lock);
	es_docroot_thread_destroy(t);
	return NULL;
}

int es_docroot_thread_new(const struct es_docroot_options *options, struct es_url_table *table,
			  struct es_docroot_thread **ret_thread)
{
	struct es_docroot_thread *t = calloc(1, sizeof(*t));
	sigset_t all, before;
	int rc;

	if (!t)
		return -ENOMEM;
	t->table = table;
	pthread_mutex_init(&t->lock, NULL);
	rc = t->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (rc < 0)
		rc = -errno;
	else
		rc = es_docroot_new(options, &t->docroot);
	if (rc)
		goto err_free;
	t->stats = *es_docroot_stats(t->docroot);
	/* Signals are the control thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(&t->thread, NULL, es_docroot_main, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc)
		goto err_free;
	*ret_thread = t;
	return 0;

err_free:
	es_docroot_thread_destroy(t);
	return rc;
}

void es_docroot_thread_free(struct es_docroot_thread **thread)
{
	struct es_docroot_thread *t = *thread;

	if (!t)
		return;
	/* Not joined: it may hang in a read from a disk that is gone, and the control thread must not. */
	pthread_mutex_lock(&t->lock);
	atomic_store(&t->stop, 1);
	eventfd_write(t->stop_fd, 1);
	pthread_detach(t->thread);
	pthread_mutex_unlock(&t->lock);
	*thread = NULL;
}

void es_docroot_thread_stats(struct es_docroot_thread *t, struct es_docroot_stats *ret_stats)
{
	pthread_mutex_lock(&t->lock);
	*ret_stats = t->stats;
	pthread_mutex_unlock(&t->lock);
}
