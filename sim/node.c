// SPDX-License-Identifier: GPL-2.0-or-later
/* When a modelled node has read, computed and sent what a request needs. */
#include <errno.h>
#include <stdlib.h>
#include "sim/node.h"

int es_sim_node_init(struct es_sim_node *node, __u32 file_count, __u64 cache_bytes)
{
	*node = (struct es_sim_node){};
	node->reading = calloc((size_t)file_count + 1, sizeof(*node->reading));
	if (!node->reading)
		return -ENOMEM;
	return es_lru_init(&node->cache, file_count, cache_bytes);
}

void es_sim_node_fini(struct es_sim_node *node)
{
	es_lru_fini(&node->cache);
	free(node->reading);
	node->reading = NULL;
}

__u64 es_station_work(struct es_station *station, __u64 now_ns, __u64 work_ns)
{
	if (station->free_ns < now_ns)
		station->free_ns = now_ns;
	station->free_ns += work_ns;
	station->busy_ns += work_ns;
	return station->free_ns;
}

void es_sim_node_count(struct es_sim_node *node, __u64 now_ns)
{
	node->active_ns += (double)node->active * (double)(now_ns - node->as_of_ns);
	node->as_of_ns = now_ns;
}

void es_sim_node_shares(struct es_sim_node *node, __u64 now_ns, __u64 interval_ns)
{
	for (int i = 0; i < ES_STATION_COUNT; i++) {
		const struct es_station *station = &node->station[i];
		/* Work in the queue has been given, not done. */
		__u64 ahead_ns = station->free_ns > now_ns ? station->free_ns - now_ns : 0;
		__u64 done_ns = station->busy_ns - ahead_ns;

		node->share[i] = (double)(done_ns - node->busy_before_ns[i]) / (double)interval_ns;
		node->busy_before_ns[i] = done_ns;
	}
}
