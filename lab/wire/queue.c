// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The heap of waiting frames. It grows as needed; who inserts bounds it (es_wire_settings.limit).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lab/wire/queue.h"

static int earlier(const struct es_wire_frame *a, const struct es_wire_frame *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->serial < b->serial;
}

static void swap(struct es_wire_queue *queue, size_t i, size_t j)
{
	struct es_wire_frame *frame = queue->frames[i];

	queue->frames[i] = queue->frames[j];
	queue->frames[j] = frame;
}

int es_wire_queue_insert(struct es_wire_queue *queue, const void *bytes, size_t size, uint64_t due_ns)
{
	struct es_wire_frame *frame;
	size_t i;

	if (queue->count == queue->room) {
		size_t room = queue->room ? 2 * queue->room : 256;
		struct es_wire_frame **frames =
			reallocarray(queue->frames, room, sizeof(struct es_wire_frame *));

		if (!frames)
			return -ENOMEM;
		queue->frames = frames;
		queue->room = room;
	}
	frame = malloc(sizeof(*frame) + size);
	if (!frame)
		return -ENOMEM;
	frame->due_ns = due_ns;
	frame->serial = queue->serial++;
	frame->size = size;
	memcpy(frame->bytes, bytes, size);

	i = queue->count++;
	queue->frames[i] = frame;
	for (; i && earlier(queue->frames[i], queue->frames[(i - 1) / 2]); i = (i - 1) / 2)
		swap(queue, i, (i - 1) / 2);
	return 0;
}

uint64_t es_wire_queue_due(const struct es_wire_queue *queue)
{
	return queue->count ? queue->frames[0]->due_ns : UINT64_MAX;
}

struct es_wire_frame *es_wire_queue_remove(struct es_wire_queue *queue, uint64_t now_ns)
{
	struct es_wire_frame *first;
	size_t i = 0;

	if (es_wire_queue_due(queue) > now_ns || !queue->count)
		return NULL;
	first = queue->frames[0];
	queue->frames[0] = queue->frames[--queue->count];
	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < queue->count && earlier(queue->frames[child + 1], queue->frames[child]))
			child++;
		if (child >= queue->count || !earlier(queue->frames[child], queue->frames[i]))
			return first;
		swap(queue, i, child);
		i = child;
	}
}

void es_wire_queue_fini(struct es_wire_queue *queue)
{
	while (queue->count)
		free(queue->frames[--queue->count]);
	free(queue->frames);
	queue->frames = NULL;
	queue->room = 0;
}
