/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_METRICS_SURVIVAL_H
#define ES_METRICS_SURVIVAL_H

#include "inspector/resume/figures.h"
#include "inspector/status/exposition.h"

/**
 * struct es_metrics_survival - connections of lost nodes
 * @has_idle: some service survives, so the numbers of idle ones are of meaning
 * @idle: requests on such with which a node went on; @idle_unsafe: those that were answered with RST
 * @waiting: clients that waited for an answer
 * @downloads: NULL: no service resumes
 */
struct es_metrics_survival {
	int has_idle;
	unsigned long long idle;
	unsigned long long idle_unsafe;
	unsigned long long waiting;
	const struct es_resume_figures *downloads;
};

/* es_metrics_survival_put() - those that went on, and those whose clients were told that they are over */
void es_metrics_survival_put(struct es_exposition *exposition, const struct es_metrics_survival *survival);

#endif
