/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_ENGINE_TURNS_H
#define ES_NETFILTER_ENGINE_TURNS_H

/*
 * A lock that threads take in turns. Under a flood, the engine's thread releases its lock only to take it
 * again, before any other thread wakes up. So it must queue behind threads that wait.
 */
#include <pthread.h>

/* struct es_nf_turns - @lock: the lock; @next: held by the thread that is next */
struct es_nf_turns {
	pthread_mutex_t lock;
	pthread_mutex_t next;
};

static inline void es_nf_turns_init(struct es_nf_turns *turns)
{
	pthread_mutex_init(&turns->lock, NULL);
	pthread_mutex_init(&turns->next, NULL);
}

static inline void es_nf_turns_fini(struct es_nf_turns *turns)
{
	pthread_mutex_destroy(&turns->next);
	pthread_mutex_destroy(&turns->lock);
}

static inline void es_nf_turns_take(struct es_nf_turns *turns)
{
	pthread_mutex_lock(&turns->next);
	pthread_mutex_lock(&turns->lock);
	pthread_mutex_unlock(&turns->next);
}

static inline void es_nf_turns_give(struct es_nf_turns *turns)
{
	pthread_mutex_unlock(&turns->lock);
}

#endif
