// SPDX-License-Identifier: GPL-2.0-or-later
/* Keeps the loads that all workers read, written by the control thread alone. */
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/daemon/route.h"

int es_daemon_route_init(struct es_daemon_route *route)
{
	int rc = 0;

	memset(route, 0, sizeof(*route));
	for (unsigned int i = 0; i < ES_NODES_MAX && !rc; i++)
		rc = es_load_init(&route->load[i]);
	route->shared.load = route->load;
	return rc;
}

void es_daemon_route_fini(struct es_daemon_route *route)
{
	for (unsigned int i = 0; i < ES_NODES_MAX; i++)
		es_load_fini(&route->load[i]);
}

void es_daemon_route_settle(struct es_daemon_route *route, unsigned int settle_ms)
{
	for (unsigned int i = 0; i < ES_NODES_MAX; i++)
		es_load_settle(&route->load[i], settle_ms);
}

void es_daemon_route_heard(struct es_daemon_route *route, unsigned int node)
{
	if (node < ES_NODES_MAX)
		es_load_heard(&route->load[node], es_clock_now_ns());
}

void es_daemon_route_load(struct es_daemon_route *route, unsigned int node,
			  const struct es_load_report *report)
{
	if (node < ES_NODES_MAX)
		es_load_report(&route->load[node], report);
}

void es_daemon_route_alone(struct es_daemon_route *route, unsigned int node_count,
			   const struct es_load_report *report)
{
	const struct es_load_report only_time = {
		.mean_us = report->mean_us, .is_mean_only = 1, .at_ns = es_clock_now_ns()};

	for (unsigned int i = 0; i < node_count; i++)
		es_daemon_route_load(route, i, &only_time);
}
