// SPDX-License-Identifier: GPL-2.0-or-later
/* A thread for each close() that may block, and none for those that do not. */
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>
#include "inspector/machine/close_apart.h"

#define STACK_BYTES 65536

static unsigned int closing; /* atomic */

/* A TCP socket that does not linger: whatever is unsent, the kernel goes on with alone. */
static int is_quick(int fd)
{
	socklen_t len = sizeof(int), linger_len = sizeof(struct linger);
	struct linger linger = {};
	int protocol = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) || protocol != IPPROTO_TCP ||
	    getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &linger_len))
		return 0;
	return !linger.l_onoff || !linger.l_linger;
}

static void *run(void *arg)
{
	close((int)(intptr_t)arg);
	__atomic_sub_fetch(&closing, 1, __ATOMIC_RELEASE);
	return NULL;
}

void es_close_apart(int fd)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int rc;

	if (is_quick(fd)) {
		close(fd);
		return;
	}
	__atomic_add_fetch(&closing, 1, __ATOMIC_RELAXED);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, &attr, run, (void *)(intptr_t)fd);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (rc) /* no memory for a thread: then it is waited for */
		run((void *)(intptr_t)fd);
}

int es_close_apart_is_full(void)
{
	return __atomic_load_n(&closing, __ATOMIC_ACQUIRE) >= ES_CLOSE_APART_MAX;
}
