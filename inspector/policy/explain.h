/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_EXPLAIN_H
#define ES_EXPLAIN_H

/*
 * The reasons of a decision, step by step, for `earshot explain`. Where nobody asks, the pointer is NULL and
 * a step costs one comparison.
 */
#include <stddef.h>

#define ES_EXPLAIN_STEPS_MAX 32
#define ES_EXPLAIN_STEP_SIZE 160

/* @hung: a plugin that did not return; "" if none */
struct es_explain {
	unsigned int count;
	char hung[ES_EXPLAIN_STEP_SIZE];
	char step[ES_EXPLAIN_STEPS_MAX][ES_EXPLAIN_STEP_SIZE];
};

/* One step; what does not fit is cut. Numbers of nodes are written as "#3"; the reader knows their names. */
__attribute__((format(printf, 2, 3))) void es_explain_add(struct es_explain *explain, const char *format,
							  ...);

#define es_explain(view, ...)                                                                                \
	do {                                                                                                 \
		if ((view)->explain)                                                                         \
			es_explain_add((view)->explain, __VA_ARGS__);                                        \
	} while (0)

#endif
