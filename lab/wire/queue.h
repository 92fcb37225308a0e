/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_WIRE_QUEUE_H
#define ES_WIRE_QUEUE_H

/* Frames that wait for their time: a binary heap, earliest first, in order of arrival among equals. */
#include <stddef.h>
#include <stdint.h>

struct es_wire_frame {
	uint64_t due_ns;
	uint64_t serial; /* the queue's own: order of arrival */
	size_t size;
	unsigned char bytes[]; /* the virtio_net_hdr, then the frame */
};

struct es_wire_queue {
	struct es_wire_frame **frames;
	size_t count;
	size_t room;
	uint64_t serial;
};

/* Copies @bytes. Return: 0 or -ENOMEM. */
int es_wire_queue_insert(struct es_wire_queue *queue, const void *bytes, size_t size, uint64_t due_ns);

/* When the first frame is due; UINT64_MAX if there is none. */
uint64_t es_wire_queue_due(const struct es_wire_queue *queue);

/* The first frame if it is due, else NULL. The caller frees it with free(). */
struct es_wire_frame *es_wire_queue_remove(struct es_wire_queue *queue, uint64_t now_ns);

/* Frees the frames, not @queue itself, which is empty then and usable. */
void es_wire_queue_fini(struct es_wire_queue *queue);

#endif
