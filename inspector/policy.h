/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_POLICY_H
#define ES_POLICY_H

/*
 * A policy picks the processing node of a request. The interface is small on purpose: what a policy may know
 * comes in through the two views, time included, so the same code runs in the daemon, in tests and in the
 * simulator.
 *
 * An instance belongs to one worker and one service and is used by that worker only.
 */
#include <stddef.h>
#include "inspector/cluster.h"
#include "inspector/http_head.h"

/**
 * struct es_request_view - the request to be routed
 * @result: what the scan of the head came to; the head's fields may be used as http_head.h says
 * @text, @len: the gathered bytes, from the request's first on
 * @truncated: the bytes are not the whole head (a bound or the time was reached)
 * @current: the node that has the connection, -1 before its first request. Moving it costs the service's
 * handover_cost.
 */
struct es_request_view {
	__u64 flow_hash;
	enum es_http_result result;
	const struct es_http_head *head;
	const char *text;
	size_t len;
	int truncated;
	int current;
};

/* struct es_cluster_view - the nodes; es_view_is_target() says which may be picked */
struct es_cluster_view {
	const struct es_cluster *cluster;
	const struct es_health *health;
	unsigned long long now_ns;
};

static inline int es_view_is_target(const struct es_cluster_view *view, unsigned int node)
{
	return es_cluster_is_target(view->cluster, view->health, node, view->now_ns);
}

/**
 * struct es_policy - one policy
 * @inspects: needs the request; without, the datapath serves at layer 4 and route() is never called
 * @new: makes an instance for @service; returns 0 or -errno
 * @route: returns a node id that is a target, or -1 if there is none
 */
struct es_policy {
	const char *name;
	const char *description;
	int inspects;
	int (*new)(const struct es_conf_service *service, void **ret_state);
	void (*free)(void *state);
	int (*route)(void *state, const struct es_request_view *request, const struct es_cluster_view *view);
};

extern const struct es_policy es_policy_ring;
extern const struct es_policy es_policy_wrr;
extern const struct es_policy es_policy_uri_hash;

/* es_policy_find() - the policy of that name, or NULL */
const struct es_policy *es_policy_find(const char *name);

/* All policies, NULL-terminated. */
const struct es_policy *const *es_policy_list(void);

/**
 * es_policy_fallback() - the first target at or after the flow's own place on the ring
 * What every policy does with a request that it cannot judge. If none is, a draining node; else -1.
 */
int es_policy_fallback(const struct es_request_view *request, const struct es_cluster_view *view);

#endif
