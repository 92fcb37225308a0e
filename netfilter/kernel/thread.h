/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_KERNEL_THREAD_H
#define ES_NETFILTER_KERNEL_THREAD_H

/* Threads of the datapath. They block all signals, which the control thread handles. */
#include <pthread.h>
#include <signal.h>

/* es_nf_thread_start() - Returns 0 or -errno. */
static inline int es_nf_thread_start(pthread_t *ret_thread, void *(*main)(void *arg), void *arg)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(ret_thread, NULL, main, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

#endif
