// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Segments that follow a request, and that its node has sent back, because they lie beyond the window of the
 * new socket: that is 64 KB at first, and may have been wider before the connection moved. Their client would
 * repeat them only after 200 ms, so they are sent again from here, a little later, when the server has read.
 * The target keeps nothing of them.
 */
#include <stdlib.h>
#include <string.h>
#include "inspector/inspect/internal.h"

/* The first wait; each further one is twice as long. After the last, the client's own timer is faster. */
#define ES_BEYOND_WAIT_NS  10000000ULL
#define ES_BEYOND_ATTEMPTS 4

void es_inspect_beyond(struct es_inspector *in, const struct es_handover *nack,
		       const struct es_ip_packet *packet)
{
	struct es_beyond *b = &in->beyond;
	uint8_t *bytes;

	if (nack->attempt >= ES_BEYOND_ATTEMPTS || b->count == ES_BEYOND_MAX)
		return;
	bytes = malloc(packet->len);
	if (!bytes)
		return;
	memcpy(bytes, packet->bytes, packet->len);
	b->segment[b->count++] = (struct es_beyond_segment){
		.due_ns = in->now_ns + (ES_BEYOND_WAIT_NS << nack->attempt),
		.bytes = bytes,
		.len = packet->len,
		.node = nack->source,
		.service = nack->service,
		.attempt = (uint8_t)(nack->attempt + 1),
	};
}

void es_inspect_beyond_due(struct es_inspector *in)
{
	struct es_beyond *b = &in->beyond;
	unsigned int left = 0;

	for (unsigned int i = 0; i < b->count; i++) {
		const struct es_beyond_segment *s = &b->segment[i];
		struct es_handover_order order = {
			.kind = ES_HANDOVER_FOLLOW, .service = s->service, .attempt = s->attempt};
		struct es_ip_packet packet;

		if (s->due_ns > in->now_ns) {
			b->segment[left++] = *s;
			continue;
		}
		if (!es_ip_packet_parse(s->bytes, s->len, &packet)) {
			es_inspect_count(in, ES_WORKER_follow_again);
			es_inspect_send(in, &order, &packet, 0, s->node);
		}
		free(s->bytes);
	}
	b->count = left;
}

void es_inspect_beyond_forget(struct es_inspector *in)
{
	while (in->beyond.count)
		free(in->beyond.segment[--in->beyond.count].bytes);
}
