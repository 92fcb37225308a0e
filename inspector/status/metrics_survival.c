// SPDX-License-Identifier: GPL-2.0-or-later
/* The metrics of what became of lost nodes' connections on this node. */
#include "inspector/status/metrics_survival.h"

#include <stddef.h>

static void put_resets(struct es_exposition *e, const struct es_metrics_survival *s)
{
	es_exposition_family(e, ES_EXPOSITION_COUNTER, "connections_reset",
			     "Connections of lost nodes whose clients this node has told that they are over, "
			     "by what was going on and why");
	es_exposition_count(e, s->idle_unsafe, "kind", "idle", "reason", "unsafe", NULL);
	es_exposition_count(e, s->waiting, "kind", "request", "reason", "answering", NULL);
	if (!s->downloads)
		return;
	es_exposition_count(e, s->downloads->broken, "kind", "download", "reason", "broken", NULL);
	for (unsigned int i = ES_RESUME_WHY_none + 1; i < ES_RESUME_WHY_COUNT; i++)
		es_exposition_count(e, s->downloads->reset[i], "kind", "download", "reason",
				    es_resume_why_name[i], NULL);
}

void es_metrics_survival_put(struct es_exposition *e, const struct es_metrics_survival *s)
{
	if (!s->has_idle)
		return;
	es_exposition_family(
		e, ES_EXPOSITION_COUNTER, "connections_survived",
		"Connections of lost nodes with which this node has gone on, by what was going on");
	es_exposition_count(e, s->idle, "kind", "idle", NULL);
	if (s->downloads)
		es_exposition_count(e, s->downloads->whole, "kind", "download", NULL);
	put_resets(e, s);
}
