// SPDX-License-Identifier: GPL-2.0-or-later
/* Estimates another node's load between two of its words. */
#include <math.h>
#include <string.h>
#include "inspector/policy/load.h"

/* The time of a node that has not yet said how long it takes. */
#define ES_MEAN_DEFAULT_NS 10e6

/* Reports that are further apart are no series. */
#define ES_REPORT_GAP_NS 2000000000ULL

int es_load_init(struct es_load *load)
{
	pthread_mutexattr_t attr;
	int rc;

	memset(load, 0, sizeof(*load));
	rc = pthread_mutexattr_init(&attr);
	if (rc)
		return -rc;
	/* The control thread has a real-time priority: it must not wait for a worker that does not run. */
	rc = pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	if (!rc)
		rc = pthread_mutex_init(&load->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	return -rc;
}

void es_load_fini(struct es_load *load)
{
	pthread_mutex_destroy(&load->lock);
}

static void es_load_decay(struct es_load *load, unsigned long long now_ns)
{
	double mean_ns = load->report.mean_us ? load->report.mean_us * 1e3 : ES_MEAN_DEFAULT_NS;
	double factor;

	if (now_ns <= load->as_of_ns)
		return;
	/* Nothing that is in hand has been for longer than since there was nothing. */
	mean_ns = fmin(mean_ns, fmax(ES_MEAN_DEFAULT_NS, (double)(now_ns - load->empty_ns)));
	factor = exp(-(double)(now_ns - load->as_of_ns) / mean_ns);
	load->active *= factor;
	load->load *= factor;
	load->as_of_ns = now_ns;
}

static void es_load_add(struct es_load *load, double cost, unsigned long long now_ns)
{
	es_load_decay(load, now_ns);
	load->active += 1;
	load->load += cost;
}

void es_load_settle(struct es_load *load, unsigned int settle_ms)
{
	pthread_mutex_lock(&load->lock);
	load->settle_ms = settle_ms;
	pthread_mutex_unlock(&load->lock);
}

/* How much the newest word counts in a mean. The first one is all there is. */
static double es_load_share(const struct es_load *load, unsigned long long at_ns, double times)
{
	if (!load->settle_ms || !load->report.at_ns)
		return 1;
	if (at_ns <= load->report.at_ns)
		return 0;
	return 1 - exp(-(double)(at_ns - load->report.at_ns) / (load->settle_ms * times * 1e6));
}

/* For as long as a node says something else each time; after a silence, nobody knows what was in between. */
static void es_load_capacity(struct es_load *load, const struct es_load_report *report)
{
	if (load->report.at_ns && !report->is_mean_only && report->at_ns > load->report.at_ns &&
	    report->at_ns - load->report.at_ns <= ES_REPORT_GAP_NS)
		es_capacity_add(&load->capacity, (double)(report->at_ns - load->report.at_ns) / 1e9,
				report->active, report->cpu / 1000.0, report->disk / 1000.0);
}

void es_load_report(struct es_load *load, const struct es_load_report *report)
{
	double share, settled;

	pthread_mutex_lock(&load->lock);
	es_load_decay(load, report->at_ns);
	es_load_capacity(load, report);
	share = es_load_share(load, report->at_ns, 1);
	settled = es_load_share(load, report->at_ns, ES_LOAD_SETTLED);
	load->active_settled += (report->active - load->active_settled) * settled;
	load->load_settled += (report->load - load->load_settled) * settled;
	/* At least what is known here; all that is known, where not all nodes are heard (daemon/route.h). For
	 * open connections that would be their own node's load alone, and drive them away. */
	load->active_lasting += (fmax(report->active, load->active) - load->active_lasting) * share;
	load->load_lasting += (fmax(report->load, load->load) - load->load_lasting) * share;
	load->active_moved = load->load_moved = 0;
	/* Those that were sent have ended, but for some on their way. */
	if (!report->active && !report->is_mean_only) {
		load->active = load->load = 0;
		load->empty_ns = report->at_ns;
	}
	load->active_reported = load->active;
	load->load_reported = load->load;
	load->report = *report;
	pthread_mutex_unlock(&load->lock);
}

void es_load_estimate(struct es_load *load, unsigned long long now_ns, struct es_node_view *ret_node)
{
	pthread_mutex_lock(&load->lock);
	es_load_decay(load, now_ns);
	ret_node->active =
		fmax(load->report.active - load->active_reported + load->active_moved, 0) + load->active;
	ret_node->idle = fmin(load->report.idle, ret_node->active);
	ret_node->load = fmax(load->report.load - load->load_reported + load->load_moved, 0) + load->load;
	ret_node->active_lasting = load->active_lasting;
	ret_node->load_lasting = load->load_lasting;
	ret_node->active_settled = load->active_settled;
	ret_node->load_settled = load->load_settled;
	ret_node->capacity = es_capacity_get(&load->capacity);
	ret_node->cpu = load->report.cpu / 1000.0;
	ret_node->disk = load->report.disk / 1000.0;
	pthread_mutex_unlock(&load->lock);
}

void es_load_sent(struct es_load *load, unsigned int cost, unsigned long long now_ns,
		  struct es_node_view *node)
{
	pthread_mutex_lock(&load->lock);
	es_load_add(load, cost, now_ns);
	pthread_mutex_unlock(&load->lock);
	node->active += 1;
	node->load += cost;
}

void es_load_moved(struct es_load *load, int count, unsigned int cost, struct es_node_view *node)
{
	double by = (double)count * cost;

	pthread_mutex_lock(&load->lock);
	load->active_moved += count;
	load->load_moved += by;
	load->active_lasting = fmax(load->active_lasting + count, 0);
	load->load_lasting = fmax(load->load_lasting + by, 0);
	load->active_settled = fmax(load->active_settled + count, 0);
	load->load_settled = fmax(load->load_settled + by, 0);
	node->active_lasting = load->active_lasting;
	node->load_lasting = load->load_lasting;
	node->active_settled = load->active_settled;
	node->load_settled = load->load_settled;
	pthread_mutex_unlock(&load->lock);
	node->active = fmax(node->active + count, 0);
	node->load = fmax(node->load + by, 0);
}

void es_load_heard(struct es_load *load, unsigned long long now_ns)
{
	pthread_mutex_lock(&load->lock);
	es_load_add(load, load->report.active ? (double)load->report.load / load->report.active : 1, now_ns);
	pthread_mutex_unlock(&load->lock);
}
