// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Policy `ward`: workload-aware request distribution, Cherkasova and Karlsson 2001, as HyLARD section 2.4 and
 * LVS-CAD section 2.4 sum it up: a small set of most frequently accessed files, the core, is served by every
 * node, the rest is partitioned. Core requests go to the least busy node, the rest where `uri-hash` sends it.
 *
 * The paper computes the core from yesterday's log. Here each instance counts the requests that it routes,
 * with Space-Saving (Metwally et al. 2005): ES_WARD_SLOTS URIs have a count each; a URI without one takes
 * the slot with the lowest, and what it cannot know, that count, is its error. All counts are halved each
 * window, so that content that was asked for yesterday leaves the core. A URI is core if its count less
 * its error
 *
 *	is at least core_hits, and at least core_share percent of all counted requests,
 *
 * with the request at hand counted, and if it is not known to be larger than core_size. Count less error is
 * never above the true (decayed) count, so at most 100 / core_share URIs are core at any time; and any
 * with more than core_share + 100 / ES_WARD_SLOTS percent is. Inspectors do not have to agree: flows are
 * spread evenly over them, so they see the same mix, and every node serves any URI.
 *
 * It needs nothing of the table of server sets: a count there never ages, and knows no total.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "inspector/policy/list.h"
#include "inspector/policy/stay.h"
#include "inspector/policy/wlc.h"

#define ES_WARD_SLOTS 256

/**
 * struct es_ward
 * @slot: @content 0 for an empty one; @error: of the count, what may have been other URIs'
 * @total: of all counts; @halved_ns: when they were halved last
 */
struct es_ward {
	struct es_content_hasher *hasher;
	double core_hits;
	double core_share;
	double core_size_bytes;
	double window_ns;
	unsigned long long halved_ns;
	double total;
	struct {
		__u64 content;
		double count;
		double error;
	} slot[ES_WARD_SLOTS];
};

enum { ES_WARD_CORE_HITS, ES_WARD_CORE_SHARE, ES_WARD_CORE_SIZE, ES_WARD_WINDOW };

static const struct es_policy_param es_ward_params[] = {
	[ES_WARD_CORE_HITS] = {"core_hits", "requests for content before it may be core", 16, 1, 1e9},
	[ES_WARD_CORE_SHARE] = {"core_share", "percent of all requests that core content has at least", 1, 1,
				100},
	[ES_WARD_CORE_SIZE] = {"core_size", "KB; larger files are never core; 0: no limit", 1024, 0, 1e9},
	[ES_WARD_WINDOW] = {"window", "seconds after which what was counted counts half", 60, 1, 1e6},
	{},
};

static void es_ward_free(void *state)
{
	struct es_ward *ward = state;

	if (ward)
		es_content_hasher_free(&ward->hasher);
	free(ward);
}

static int es_ward_new(const struct es_policy_settings *settings, void **ret_state)
{
	struct es_ward *ward = calloc(1, sizeof(*ward));
	int rc;

	if (!ward)
		return -ENOMEM;
	ward->core_hits = settings->param[ES_WARD_CORE_HITS];
	ward->core_share = settings->param[ES_WARD_CORE_SHARE] / 100;
	ward->core_size_bytes = settings->param[ES_WARD_CORE_SIZE] * 1024;
	ward->window_ns = settings->param[ES_WARD_WINDOW] * 1e9;
	rc = es_content_hasher_new(&ward->hasher);
	if (rc) {
		es_ward_free(ward);
		return rc;
	}
	*ret_state = ward;
	return 0;
}

/* The windows that have passed. */
static double es_ward_windows(const struct es_ward *ward, unsigned long long now_ns)
{
	if (ward->total <= 0 || now_ns <= ward->halved_ns)
		return 0;
	return floor((double)(now_ns - ward->halved_ns) / ward->window_ns);
}

static void es_ward_halve(struct es_ward *ward, unsigned long long now_ns)
{
	double windows = es_ward_windows(ward, now_ns), factor = exp2(-windows);

	if (ward->total <= 0)
		ward->halved_ns = now_ns; /* the first request begins the first window */
	if (windows < 1)
		return;
	ward->halved_ns += (unsigned long long)(windows * ward->window_ns);
	ward->total *= factor;
	for (unsigned int i = 0; i < ES_WARD_SLOTS; i++) {
		ward->slot[i].count *= factor;
		ward->slot[i].error *= factor;
	}
}

/* The content's slot; else the one that it would take, which is that with the lowest count. */
static unsigned int es_ward_slot(const struct es_ward *ward, __u64 content)
{
	unsigned int lowest = 0;

	for (unsigned int i = 0; i < ES_WARD_SLOTS; i++) {
		if (ward->slot[i].content == content)
			return i;
		if (ward->slot[i].count < ward->slot[lowest].count)
			lowest = i;
	}
	return lowest;
}

static void es_ward_count(struct es_ward *ward, __u64 content)
{
	unsigned int slot = es_ward_slot(ward, content);

	if (ward->slot[slot].content != content) {
		ward->slot[slot].content = content;
		ward->slot[slot].error = ward->slot[slot].count;
	}
	ward->slot[slot].count++;
	ward->total++;
}

static int es_ward_is_core(struct es_ward *ward, const struct es_request_view *request,
			   const struct es_cluster_view *view)
{
	double hits = 0, total, factor = 1;
	unsigned int slot;

	if (view->explain) {
		factor = exp2(-es_ward_windows(ward, view->now_ns));
	} else {
		es_ward_halve(ward, view->now_ns);
		es_ward_count(ward, request->content);
	}
	slot = es_ward_slot(ward, request->content);
	if (ward->slot[slot].content == request->content)
		hits = (ward->slot[slot].count - ward->slot[slot].error) * factor;
	total = ward->total * factor;
	if (view->explain) {
		hits += 1;
		total += 1;
	}
	es_explain(view, "%.1f of %.1f requests were for it (core_hits = %g, core_share = %g%%)", hits, total,
		   ward->core_hits, ward->core_share * 100);
	if (hits < ward->core_hits || hits < total * ward->core_share)
		return 0;
	if (ward->core_size_bytes > 0 && (double)request->size_bytes > ward->core_size_bytes) {
		es_explain(view, "%llu bytes are too large for the core (core_size = %g KB)",
			   (unsigned long long)request->size_bytes, ward->core_size_bytes / 1024);
		return 0;
	}
	return 1;
}

static int es_ward_route(void *state, const struct es_request_view *request,
			 const struct es_cluster_view *view)
{
	struct es_ward *ward = state;
	struct es_ring_walk walk;
	int first = -1; /* that begins slowly: if nobody else is there, it takes all */
	__u64 hash;
	__u16 node;

	if (es_ward_is_core(ward, request, view)) {
		es_explain(view, "core: any node serves it");
		return es_wlc_pick(request, view);
	}
	if (es_request_ring_hash(ward->hasher, request, &hash))
		return es_policy_fallback(request, view);
	es_ring_walk_init(&walk, view->ring, hash);
	while (es_ring_walk_next(&walk, &node)) {
		if (!es_view_is_target(request, view, node)) {
			es_explain(view, "on the content ring: #%u, which is no target", node);
		} else if (!es_view_takes(view, node, hash)) {
			es_explain(view, "on the content ring: #%u, which begins slowly", node);
			first = first < 0 ? node : first;
		} else {
			es_explain(view, "not core: on the content ring: #%u", node);
			return es_stay_or_go_home(request, view, node);
		}
	}
	return first;
}

const struct es_policy es_policy_ward = {
	.name = "ward",
	.description = "all nodes serve what is asked for most, the rest is partitioned (WARD)",
	.inspects = 1,
	.needs_loads = 1,
	.params = es_ward_params,
	.new = es_ward_new,
	.free = es_ward_free,
	.route = es_ward_route,
};
