// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of requests that are not complete yet. One per worker, used by that worker only. All flows of a
 * queue wait equally long, so their order of arrival is that of their deadlines.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/inspect/gather.h"

struct es_gather_queue {
	struct es_gather *oldest, *newest;
};

/* @queue: [1] has the flows that may wait for longer than others */
struct es_gather_table {
	struct es_gather **bucket;
	unsigned int bucket_mask;
	unsigned int flows_max;
	unsigned int count;
	size_t flow_bytes;
	struct es_gather_queue queue[2];
};

int es_gather_table_new(unsigned int flows, size_t flow_bytes, struct es_gather_table **ret_table)
{
	struct es_gather_table *table = calloc(1, sizeof(*table));
	unsigned int buckets = 16;

	if (!table)
		return -ENOMEM;
	while (buckets < flows && buckets < 1u << 20)
		buckets *= 2;
	table->bucket = calloc(buckets, sizeof(struct es_gather *));
	if (!table->bucket) {
		free(table);
		return -ENOMEM;
	}
	table->bucket_mask = buckets - 1;
	table->flows_max = flows;
	table->flow_bytes = flow_bytes;
	*ret_table = table;
	return 0;
}

void es_gather_table_free(struct es_gather_table **table)
{
	if (!*table)
		return;
	for (struct es_gather *g; (g = es_gather_oldest(*table));)
		es_gather_remove(*table, g);
	free((*table)->bucket);
	free(*table);
	*table = NULL;
}

static struct es_gather **es_bucket_of(struct es_gather_table *table, __u64 flow_hash)
{
	return &table->bucket[(flow_hash >> 8) & table->bucket_mask];
}

struct es_gather *es_gather_lookup(struct es_gather_table *table, __u64 flow_hash, uint32_t cookie)
{
	struct es_gather *g = *es_bucket_of(table, flow_hash);

	while (g && (g->flow_hash != flow_hash || g->cookie != cookie))
		g = g->hash_next;
	return g;
}

static void es_gather_list(struct es_gather_table *table, struct es_gather *g, int is_patient)
{
	struct es_gather_queue *queue = &table->queue[is_patient];

	g->is_patient = (uint8_t)is_patient;
	g->newer = NULL;
	g->older = queue->newest;
	if (queue->newest)
		queue->newest->newer = g;
	else
		queue->oldest = g;
	queue->newest = g;
}

static void es_gather_unlist(struct es_gather_table *table, struct es_gather *g)
{
	struct es_gather_queue *queue = &table->queue[g->is_patient];

	if (g->older)
		g->older->newer = g->newer;
	else
		queue->oldest = g->newer;
	if (g->newer)
		g->newer->older = g->older;
	else
		queue->newest = g->older;
}

struct es_gather *es_gather_victim(const struct es_gather_table *table)
{
	if (table->count < table->flows_max || !table->count)
		return NULL;
	return table->queue[1].oldest ? table->queue[1].oldest : table->queue[0].oldest;
}

struct es_gather *es_gather_insert(struct es_gather_table *table, __u64 flow_hash, uint32_t cookie,
				   double deadline, int *ret_evicted)
{
	struct es_gather **bucket = es_bucket_of(table, flow_hash);
	struct es_gather *g = calloc(1, sizeof(*g));

	*ret_evicted = 0;
	if (!g)
		return NULL;
	if (es_gather_victim(table)) {
		es_gather_remove(table, es_gather_victim(table));
		*ret_evicted = 1;
	}
	g->flow_hash = flow_hash;
	g->cookie = cookie;
	g->deadline = deadline;
	es_http_head_init(&g->head);
	g->hash_next = *bucket;
	*bucket = g;
	es_gather_list(table, g, 0);
	table->count++;
	return g;
}

/* Append to the text what is contiguous now. */
static int es_gather_extend(struct es_gather *g)
{
	for (unsigned int i = 0; g->has_first && i < g->count; i++) {
		const struct es_gather_segment *s = &g->segment[i];
		uint32_t next = g->first_seq + (uint32_t)g->text_len;
		size_t skip, fresh;

		if (es_seq_before(next, s->seq))
			break;
		if (!es_seq_before(next, s->seq + s->payload_len))
			continue;
		skip = next - s->seq;
		fresh = s->payload_len - skip;
		if (g->text_len + fresh > g->text_room) {
			size_t room = (g->text_len + fresh) * 2;
			char *text = realloc(g->text, room);

			if (!text)
				return -ENOMEM;
			g->text = text;
			g->text_room = room;
		}
		memcpy(g->text + g->text_len, s->bytes + s->header_len + skip, fresh);
		g->text_len += fresh;
	}
	return 0;
}

/*
 * A segment that begins before the first byte is not of the request: it is a keep-alive probe's (RFC 9293
 * section 3.8.4), or an attacker's, and the inspector would not read it.
 */
static void es_gather_drop_below(struct es_gather *g)
{
	unsigned int below = 0;

	while (below < g->count && es_seq_before(g->segment[below].seq, g->first_seq)) {
		g->bytes -= g->segment[below].payload_len;
		free(g->segment[below].bytes);
		below++;
	}
	if (!below)
		return;
	g->count -= below;
	memmove(&g->segment[0], &g->segment[below], g->count * sizeof(g->segment[0]));
}

/* Room for another segment. */
static int es_gather_reserve(struct es_gather *g)
{
	unsigned int room = g->room ? g->room * 2 : 8;
	struct es_gather_segment *segment;

	if (g->count < g->room)
		return 0;
	if (g->room == ES_GATHER_SEGMENTS)
		return -ENOSPC;
	segment = reallocarray(g->segment, room, sizeof(*segment));
	if (!segment)
		return -ENOMEM;
	g->segment = segment;
	g->room = room;
	return 0;
}

enum es_gather_result es_gather_add(struct es_gather_table *table, struct es_gather *g, const uint8_t *bytes,
				    size_t len, size_t header_len, uint32_t seq, int is_first)
{
	uint32_t payload_len = (uint32_t)(len - header_len);
	struct es_gather_segment *s;
	unsigned int at = 0;

	if (is_first && !g->has_first) {
		g->has_first = 1;
		g->first_seq = seq;
		es_gather_drop_below(g);
	}
	if (g->has_first &&
	    (es_seq_before(seq, g->first_seq) || !es_seq_before(g->first_seq + g->acked, seq + payload_len)))
		return ES_GATHER_REPEATED;
	while (at < g->count && es_seq_before(g->segment[at].seq, seq))
		at++;
	if (at < g->count && g->segment[at].seq == seq && g->segment[at].payload_len >= payload_len)
		return ES_GATHER_REPEATED;
	/* While it leaves, more of it may arrive, from a client whose window was wide. */
	if (g->bytes + payload_len > table->flow_bytes * (g->leaving ? ES_GATHER_LEAVING_TIMES : 1) ||
	    len > UINT16_MAX || es_gather_reserve(g))
		return ES_GATHER_FULL;
	memmove(&g->segment[at + 1], &g->segment[at], (g->count - at) * sizeof(*s));
	s = &g->segment[at];
	s->bytes = malloc(len);
	if (!s->bytes) {
		memmove(&g->segment[at], &g->segment[at + 1], (g->count - at) * sizeof(*s));
		return ES_GATHER_FULL;
	}
	memcpy(s->bytes, bytes, len);
	s->seq = seq;
	s->payload_len = payload_len;
	s->len = (uint16_t)len;
	s->header_len = (uint16_t)header_len;
	g->count++;
	g->bytes += payload_len;
	if (payload_len > g->longest)
		g->longest = payload_len;
	return es_gather_extend(g) ? ES_GATHER_FULL : ES_GATHER_ADDED;
}

int es_gather_merge(struct es_gather *g, const uint8_t *bytes, size_t len)
{
	uint32_t end = g->first_seq + (uint32_t)g->text_len;
	unsigned int kept = 1;
	uint8_t *merged;

	if (g->count < 2 || g->segment[0].payload_len == g->text_len)
		return 0;
	merged = malloc(len);
	if (!merged)
		return -ENOMEM;
	memcpy(merged, bytes, len);
	for (unsigned int i = 0; i < g->count; i++) {
		struct es_gather_segment *s = &g->segment[i];

		if (i && es_seq_before(end, s->seq + s->payload_len)) {
			g->segment[kept++] = *s;
			continue;
		}
		g->bytes -= s->payload_len;
		free(s->bytes);
	}
	g->segment[0].bytes = merged;
	g->segment[0].len = (uint16_t)len;
	g->segment[0].payload_len = (uint32_t)g->text_len;
	g->bytes += g->text_len;
	g->count = kept;
	return 0;
}

void es_gather_renew(struct es_gather_table *table, struct es_gather *g, double deadline)
{
	es_gather_unlist(table, g);
	es_gather_list(table, g, 0);
	g->deadline = deadline;
}

void es_gather_wait(struct es_gather_table *table, struct es_gather *g, double deadline)
{
	es_gather_unlist(table, g);
	es_gather_list(table, g, 1);
	g->deadline = deadline;
}

void es_gather_remove(struct es_gather_table *table, struct es_gather *g)
{
	struct es_gather **at = es_bucket_of(table, g->flow_hash);

	while (*at && *at != g)
		at = &(*at)->hash_next;
	if (*at)
		*at = g->hash_next;
	es_gather_unlist(table, g);
	table->count--;
	for (unsigned int i = 0; i < g->count; i++)
		free(g->segment[i].bytes);
	free(g->segment);
	free(g->text);
	free(g);
}

struct es_gather *es_gather_oldest(struct es_gather_table *table)
{
	struct es_gather *usual = table->queue[0].oldest, *patient = table->queue[1].oldest;

	return usual && (!patient || usual->deadline <= patient->deadline) ? usual : patient;
}

struct es_gather *es_gather_patient(struct es_gather_table *table)
{
	return table->queue[1].oldest;
}

unsigned int es_gather_count(const struct es_gather_table *table)
{
	return table->count;
}
