/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_ASK_TABLE_H
#define ES_ASK_TABLE_H

/*
 * The requests of one asking process, by their ids, until they are over. It grows with
 * them, up to a bound. One thread's.
 */
#include <stddef.h>
#include "inspector/inspect/asked.h"

#define ES_ASK_IN_HAND_MAX 65536 /* a power of two; of which three quarters are used */

/* struct es_ask_note - a request; @load: which of the worker's loads counts it (port.h) */
struct es_ask_note {
	uint64_t id;
	uint8_t is_used;
	uint8_t load;
	struct es_asked asked;
};

/* struct es_ask_table - all zeros: empty. @size: places, a power of two, or 0 */
struct es_ask_table {
	struct es_ask_note *place;
	size_t size;
	size_t count;
};

void es_ask_table_fini(struct es_ask_table *table);

struct es_ask_note *es_ask_table_find(const struct es_ask_table *table, uint64_t id);

/* es_ask_table_add() - room for one whose id is not in it; NULL: without memory, or at the bound */
struct es_ask_note *es_ask_table_add(struct es_ask_table *table, uint64_t id);

/* es_ask_table_remove() - @note is not valid any more, nor is any other */
void es_ask_table_remove(struct es_ask_table *table, struct es_ask_note *note);

#endif
