// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>
#include "inspector/daemon_route.h"

void es_daemon_route_init(struct es_daemon_route *route)
{
	memset(route, 0, sizeof(*route));
	route->shared.published = route->published;
}

void es_daemon_route_load(struct es_daemon_route *route, unsigned int node,
			  const struct es_load_report *report)
{
	if (node < ES_NODES_MAX)
		es_load_publish(&route->published[node], report);
}

void es_daemon_route_alone(struct es_daemon_route *route, unsigned int node_count,
			   const struct es_load_report *report)
{
	const struct es_load_report only_time = {.mean_us = report->mean_us};

	for (unsigned int i = 0; i < node_count; i++)
		es_daemon_route_load(route, i, &only_time);
}
