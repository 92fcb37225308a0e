// SPDX-License-Identifier: GPL-2.0-or-later
/* Open addressing with linear probing; a removal moves those behind it up, so that no place is left dead. */
#include <stdlib.h>
#include "inspector/ask/table.h"

#define SIZE_FIRST 64

static size_t place_of(const struct es_ask_table *t, uint64_t id)
{
	return (size_t)(id * 0x9e3779b97f4a7c15ULL >> 40) & (t->size - 1);
}

void es_ask_table_fini(struct es_ask_table *t)
{
	for (size_t i = 0; i < t->size; i++)
		if (t->place[i].is_used)
			es_asked_forget(&t->place[i].asked);
	free(t->place);
	*t = (struct es_ask_table){};
}

struct es_ask_note *es_ask_table_find(const struct es_ask_table *t, uint64_t id)
{
	if (!t->size)
		return NULL;
	for (size_t i = place_of(t, id); t->place[i].is_used; i = (i + 1) & (t->size - 1))
		if (t->place[i].id == id)
			return &t->place[i];
	return NULL;
}

static struct es_ask_note *put(struct es_ask_table *t, const struct es_ask_note *note)
{
	size_t i = place_of(t, note->id);

	while (t->place[i].is_used)
		i = (i + 1) & (t->size - 1);
	t->place[i] = *note;
	return &t->place[i];
}

static int grow(struct es_ask_table *t)
{
	struct es_ask_table next = {.size = t->size ? t->size * 2 : SIZE_FIRST, .count = t->count};

	if (t->size == ES_ASK_IN_HAND_MAX)
		return -1;
	next.place = calloc(next.size, sizeof(*next.place));
	if (!next.place)
		return -1;
	for (size_t i = 0; i < t->size; i++)
		if (t->place[i].is_used)
			put(&next, &t->place[i]);
	free(t->place);
	*t = next;
	return 0;
}

struct es_ask_note *es_ask_table_add(struct es_ask_table *t, uint64_t id)
{
	const struct es_ask_note note = {.id = id, .is_used = 1};

	if (t->count + 1 > t->size / 4 * 3 && grow(t))
		return NULL;
	t->count++;
	return put(t, &note);
}

void es_ask_table_remove(struct es_ask_table *t, struct es_ask_note *note)
{
	size_t hole = (size_t)(note - t->place), mask = t->size - 1;

	es_asked_forget(&note->asked);
	t->count--;
	for (size_t i = (hole + 1) & mask; t->place[i].is_used; i = (i + 1) & mask) {
		/* It may move up unless its own place is after the hole. */
		if (((i - place_of(t, t->place[i].id)) & mask) < ((i - hole) & mask))
			continue;
		t->place[hole] = t->place[i];
		hole = i;
	}
	t->place[hole].is_used = 0;
}
