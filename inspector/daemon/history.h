/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_HISTORY_H
#define ES_DAEMON_HISTORY_H

/*
 * Which figures of a node have a history (status/history.h), kept whether or not somebody looks: requests
 * that it decided on, by service and by the node that serves them; what its own server answered, and how
 * fast; and what went wrong.
 */
#include <json-c/json.h>
#include "inspector/status/history.h"

struct es_daemon;

/* Counters of each service, after those of requests. */
enum es_figure { ES_FIGURE_rejected, ES_FIGURE_4xx, ES_FIGURE_5xx, ES_FIGURES };

/**
 * struct es_figures - the figures as they are now
 * @value: of @of, the caller's until es_figures_free(); NULL without memory
 */
struct es_figures {
	struct es_history_figures of;
	unsigned int services;
	unsigned int nodes;
	unsigned long long *value;
};

void es_daemon_figures(const struct es_daemon *daemon, struct es_figures *ret);
void es_figures_free(struct es_figures *figures);

/* The index of each figure. */
static inline unsigned int es_figure_given(const struct es_figures *f, unsigned int service,
					   unsigned int node)
{
	return service * f->nodes + node;
}

static inline unsigned int es_figure_of(const struct es_figures *f, unsigned int service,
					enum es_figure figure)
{
	return f->services * f->nodes + service * ES_FIGURES + figure;
}

static inline unsigned int es_figure_errors(const struct es_figures *f)
{
	return f->services * (f->nodes + ES_FIGURES);
}

/* In microseconds; @service: f->services for all of them */
static inline unsigned int es_figure_p99(const struct es_figures *f, unsigned int service)
{
	return es_figure_errors(f) + 1 + service;
}

/* es_daemon_history() - the last ten minutes, as docs/json.md has them; at most ES_SNAPSHOT_HISTORY_MAX bytes
 * of text, by longer steps. The caller's. */
struct json_object *es_daemon_history(const struct es_daemon *daemon);

#endif
