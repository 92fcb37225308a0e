/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_PROCESSES_H
#define ES_SERVE_PROCESSES_H

/*
 * The workers that the first process has. Each has a place, of which there are so many; a generation serves
 * whom it has for up to an hour after a reload, so that a few reloads could fill them all.
 */
#include <stddef.h>
#include <sys/types.h>

/**
 * struct es_process - a worker
 * @pid: 0: none; @is_old: of a generation before
 * @since_ns, @until_ns: when it began; when it gets the next order to end, or is killed (0: never)
 */
struct es_process {
	pid_t pid;
	unsigned int number;
	int orders;
	int is_old;
	int is_ending;
	unsigned long long since_ns;
	unsigned long long until_ns;
};

/*
 * es_processes_excess() - which of @count is to end, so that @wanted places are free when all that end have:
 * the oldest of a generation before. NULL: enough are, or nobody may go.
 */
static inline struct es_process *es_processes_excess(struct es_process *process, size_t count, size_t wanted)
{
	struct es_process *oldest = NULL;
	size_t vacant = 0;

	for (size_t i = 0; i < count; i++) {
		struct es_process *each = &process[i];

		if (!each->pid || each->is_ending)
			vacant++;
		else if (each->is_old && (!oldest || each->since_ns < oldest->since_ns))
			oldest = each;
	}
	return vacant < wanted ? oldest : NULL;
}

#endif
