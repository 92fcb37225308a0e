/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVE_COUNTERS_H
#define ES_SERVE_COUNTERS_H

/* Counting, by the names of inspector/ask/ledger.h. */
#include "inspector/ask/ledger.h"

enum es_serve_counter {
#define X(name, text) ES_SERVE_##name,
	ES_LEDGER_COUNTERS(X)
#undef X
		ES_SERVE_COUNTER_COUNT
};

/* es_serve_count_by() - in a worker's block of a service, which that worker alone writes */
static inline void es_serve_count_by(struct es_ledger_block *counters, enum es_serve_counter which,
				     uint64_t by)
{
	__atomic_store_n(&counters->count[which], counters->count[which] + by, __ATOMIC_RELAXED);
}

static inline void es_serve_count(struct es_ledger_block *counters, enum es_serve_counter which)
{
	es_serve_count_by(counters, which, 1);
}

#endif
