// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A binary heap.
 */
#include <errno.h>
#include <stdlib.h>
#include "sim/events.h"

void es_events_fini(struct es_events *events)
{
	free(events->heap);
	*events = (struct es_events){};
}

static int es_event_before(const struct es_sim_event *a, const struct es_sim_event *b)
{
	return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->order < b->order);
}

int es_events_put(struct es_events *events, __u64 at_ns, __u32 what, __u32 whom)
{
	struct es_sim_event event = {at_ns, events->order, what, whom};
	size_t at = events->count;

	if (events->count == events->room) {
		size_t room = events->room ? events->room * 2 : 1024;
		struct es_sim_event *heap = reallocarray(events->heap, room, sizeof(*heap));

		if (!heap)
			return -ENOMEM;
		events->heap = heap;
		events->room = room;
	}
	events->order++;
	events->count++;
	while (at && es_event_before(&event, &events->heap[(at - 1) / 2])) {
		events->heap[at] = events->heap[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	events->heap[at] = event;
	return 0;
}

int es_events_take(struct es_events *events, struct es_sim_event *ret_event)
{
	struct es_sim_event *heap = events->heap;
	struct es_sim_event last;
	size_t at = 0;

	if (!events->count)
		return 0;
	*ret_event = heap[0];
	last = heap[--events->count];
	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= events->count)
			break;
		if (child + 1 < events->count && es_event_before(&heap[child + 1], &heap[child]))
			child++;
		if (!es_event_before(&heap[child], &last))
			break;
		heap[at] = heap[child];
		at = child;
	}
	if (events->count)
		heap[at] = last;
	return 1;
}
