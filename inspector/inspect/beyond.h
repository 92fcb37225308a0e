/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECT_BEYOND_H
#define ES_INSPECT_BEYOND_H

/* Segments that a socket had no room for, and that are sent to its node again (beyond.c). */
#include "inspector/packet/packet.h"
#include "kmod/core/handover.h"

#define ES_BEYOND_MAX 256 /* more are left to their clients */

/* struct es_beyond_segment - a segment that goes to @node again at @due_ns */
struct es_beyond_segment {
	unsigned long long due_ns;
	uint8_t *bytes;
	size_t len;
	uint8_t node;
	uint8_t service;
	uint8_t attempt;
};

struct es_beyond {
	unsigned int count;
	struct es_beyond_segment segment[ES_BEYOND_MAX];
};

struct es_inspector;

/* es_inspect_beyond() - a segment came back: it lies beyond the window of its socket */
void es_inspect_beyond(struct es_inspector *in, const struct es_handover *nack,
		       const struct es_ip_packet *packet);

/* es_inspect_beyond_due() - send those again that have waited long enough */
void es_inspect_beyond_due(struct es_inspector *in);
void es_inspect_beyond_forget(struct es_inspector *in);

#endif
