// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which sealed states have been taken. All those made after a floor are remembered, and no older one is
 * taken: so it does not matter to what the wall clock is set. A place is used anew when its state is too late
 * anyway, and the floor rises to that.
 */
#include "tls/record/taken.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

/* @made_ns: 0: the place is free */
struct entry {
	uint64_t id;
	uint64_t made_ns;
};

/* @floor_ns: of each set, so that one that is used much does not shut out what belongs to others */
struct es_tls_taken {
	pthread_mutex_t mutex;
	uint64_t floor_ns[ES_TLS_TAKEN_SETS];
	struct entry entry[ES_TLS_TAKEN_SETS][ES_TLS_TAKEN_WAYS];
};

struct es_tls_taken *es_tls_taken_new(uint64_t since_wall_ns)
{
	struct es_tls_taken *taken =
		mmap(NULL, sizeof(*taken), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attributes;
	int rc;

	if (taken == MAP_FAILED)
		return NULL;
	rc = pthread_mutexattr_init(&attributes);
	if (!rc) {
		pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
		pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
		rc = pthread_mutex_init(&taken->mutex, &attributes);
		pthread_mutexattr_destroy(&attributes);
	}
	if (rc) {
		munmap(taken, sizeof(*taken));
		return NULL;
	}
	for (size_t i = 0; i < ES_TLS_TAKEN_SETS; i++)
		taken->floor_ns[i] = since_wall_ns;
	return taken;
}

/* The mutex is left alone: other processes may use it. */
void es_tls_taken_free(struct es_tls_taken **taken)
{
	if (*taken)
		munmap(*taken, sizeof(**taken));
	*taken = NULL;
}

/* A process that died in it has written a part of one entry, whose state it has not taken. */
static int lock(struct es_tls_taken *taken)
{
	int rc = pthread_mutex_lock(&taken->mutex);

	return rc == EOWNERDEAD ? pthread_mutex_consistent(&taken->mutex) : rc;
}

static enum es_tls_opened take(struct es_tls_taken *taken, size_t set, uint64_t id, uint64_t made_ns,
			       uint64_t wall_ns)
{
	struct entry *oldest = NULL;

	if (made_ns <= taken->floor_ns[set])
		return ES_TLS_SEALED_LATE;
	for (struct entry *entry = taken->entry[set]; entry < taken->entry[set] + ES_TLS_TAKEN_WAYS;
	     entry++) {
		if (entry->made_ns && entry->id == id)
			return ES_TLS_SEALED_REPEATED;
		if (!oldest || entry->made_ns < oldest->made_ns)
			oldest = entry;
	}
	if (oldest->made_ns && oldest->made_ns + ES_TLS_SEALED_LATE_NS >= wall_ns)
		return ES_TLS_SEALED_FULL;
	if (oldest->made_ns > taken->floor_ns[set])
		taken->floor_ns[set] = oldest->made_ns;
	oldest->id = id;
	oldest->made_ns = made_ns;
	return ES_TLS_OPENED;
}

enum es_tls_opened es_tls_taken_take(struct es_tls_taken *taken, uint64_t id, uint64_t made_ns,
				     uint64_t wall_ns)
{
	enum es_tls_opened opened;

	/* Refused for want of a place is the nearest to it: nothing can be remembered. */
	if (lock(taken))
		return ES_TLS_SEALED_FULL;
	opened = take(taken, id % ES_TLS_TAKEN_SETS, id, made_ns, wall_ns);
	pthread_mutex_unlock(&taken->mutex);
	return opened;
}
