// SPDX-License-Identifier: GPL-2.0-or-later
/* Waits for changes of rules, and then has an attachment compare its tables. */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "netfilter/engine/mender.h"
#include "netfilter/kernel/thread.h"
#include "netfilter/rules/hook.h"

/* The least time between two comparisons: container engines change rules often. */
#define ES_PAUSE_MS 20

int es_nf_mender_open(struct es_nf_mender *mender, struct es_nf_attachment *attachment)
{
	int rc;

	*mender = (struct es_nf_mender){.attachment = attachment, .stop_fd = -1};
	rc = es_nf_hook_watch(&mender->watch);
	if (!rc && (mender->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
		rc = -errno;
	return rc;
}

static void *es_nf_mender_main(void *arg)
{
	struct es_nf_mender *mender = arg;
	struct pollfd fds[] = {
		{.fd = mender->stop_fd, .events = POLLIN},
		{.fd = mnl_socket_get_fd(mender->watch.socket), .events = POLLIN},
	};

	while (!(fds[0].revents & POLLIN)) {
		if (fds[1].revents & POLLIN) {
			(void)es_nf_hook_watched(&mender->watch);
			es_nf_attachment_mend(mender->attachment);
			poll(fds, 1, ES_PAUSE_MS);
			fds[1].revents = 0;
			continue;
		}
		poll(fds, sizeof(fds) / sizeof(fds[0]), -1);
	}
	return NULL;
}

int es_nf_mender_start(struct es_nf_mender *mender)
{
	int rc = es_nf_thread_start(&mender->thread, es_nf_mender_main, mender);

	mender->is_running = !rc;
	return rc;
}

void es_nf_mender_close(struct es_nf_mender *mender)
{
	static const uint64_t one = 1;

	if (mender->is_running && write(mender->stop_fd, &one, sizeof(one)) == sizeof(one))
		pthread_join(mender->thread, NULL);
	mender->is_running = 0;
	es_nf_netlink_close(&mender->watch);
	if (mender->stop_fd >= 0)
		close(mender->stop_fd);
	mender->stop_fd = -1;
}
