// SPDX-License-Identifier: GPL-2.0-or-later
#include <math.h>
#include "inspector/policy/load.h"

/* Of a node that has not yet said how long it takes. */
#define ES_MEAN_DEFAULT_NS 10e6

void es_load_publish(struct es_load_published *published, const struct es_load_report *report)
{
	unsigned int sequence = atomic_load_explicit(&published->sequence, memory_order_relaxed);

	/* A seqlock with fields that are atomic themselves: what a reader mixes up, it throws away. */
	atomic_store_explicit(&published->sequence, sequence + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&published->active, report->active, memory_order_relaxed);
	atomic_store_explicit(&published->load, report->load, memory_order_relaxed);
	atomic_store_explicit(&published->mean_us, report->mean_us, memory_order_relaxed);
	atomic_store_explicit(&published->cpu, report->cpu, memory_order_relaxed);
	atomic_store_explicit(&published->disk, report->disk, memory_order_relaxed);
	atomic_store_explicit(&published->at_ns, report->at_ns, memory_order_relaxed);
	atomic_store_explicit(&published->sequence, sequence + 2, memory_order_release);
}

/* Takes a new report if there is a whole one; else the next look finds it. */
static int es_load_take(struct es_load_own *own, struct es_load_published *published)
{
	unsigned int sequence = atomic_load_explicit(&published->sequence, memory_order_acquire);
	struct es_load_report report;

	if (sequence == own->sequence || sequence & 1)
		return 0;
	report.active = atomic_load_explicit(&published->active, memory_order_relaxed);
	report.load = atomic_load_explicit(&published->load, memory_order_relaxed);
	report.mean_us = atomic_load_explicit(&published->mean_us, memory_order_relaxed);
	report.cpu = atomic_load_explicit(&published->cpu, memory_order_relaxed);
	report.disk = atomic_load_explicit(&published->disk, memory_order_relaxed);
	report.at_ns = atomic_load_explicit(&published->at_ns, memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&published->sequence, memory_order_relaxed) != sequence)
		return 0;
	own->sequence = sequence;
	own->report = report;
	return 1;
}

static void es_load_decay(struct es_load_own *own, unsigned long long now_ns)
{
	double mean_ns = own->mean_ns > 0 ? own->mean_ns : ES_MEAN_DEFAULT_NS;
	double factor;

	if (now_ns <= own->as_of_ns)
		return;
	factor = exp(-(double)(now_ns - own->as_of_ns) / mean_ns);
	own->active *= factor;
	own->load *= factor;
	own->as_of_ns = now_ns;
}

void es_load_estimate(struct es_load_own *own, struct es_load_published *published, unsigned long long now_ns,
		      struct es_node_view *ret_node)
{
	if (es_load_take(own, published)) {
		/*
		 * As it was when that was said, not as it is at this look: a worker looks when it gets a
		 * request, so there was none since, and it would take too small a part of the report for its
		 * own.
		 */
		es_load_decay(own,
			      own->report.at_ns && own->report.at_ns < now_ns ? own->report.at_ns : now_ns);
		own->active_at_report = own->active;
		own->load_at_report = own->load;
		own->mean_ns = own->report.mean_us * 1e3;
	}
	es_load_decay(own, now_ns);
	ret_node->active = fmax(own->report.active - own->active_at_report + own->active, own->active);
	ret_node->load = fmax(own->report.load - own->load_at_report + own->load, own->load);
	ret_node->cpu = own->report.cpu / 1000.0;
	ret_node->disk = own->report.disk / 1000.0;
}

void es_load_sent(struct es_load_own *own, unsigned int cost, unsigned long long now_ns,
		  struct es_node_view *node)
{
	es_load_decay(own, now_ns);
	own->active += 1;
	own->load += cost;
	node->active += 1;
	node->load += cost;
}
