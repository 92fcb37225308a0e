// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes a version of the cluster from the configuration. Membership providers decide when there is a new one.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/cluster.h"

int es_cluster_new(struct es_conf *conf, unsigned int self, unsigned int epoch,
		   struct es_cluster **ret_cluster)
{
	struct es_ring_node nodes[ES_NODES_MAX] = {};
	struct es_cluster *cluster = calloc(1, sizeof(*cluster));
	int rc;

	if (!cluster)
		return -ENOMEM;
	for (unsigned int i = 0; i < conf->node_count; i++) {
		const struct es_conf_node *node = &conf->nodes[i];

		nodes[i].address = node->address;
		nodes[i].virtual_nodes = es_ring_virtual_nodes(conf->cluster.virtual_nodes, node->weight);
		nodes[i].id = (__u16)i;
		cluster->handover_address[i].sin_family = AF_INET;
		cluster->handover_address[i].sin_port = htons((uint16_t)conf->cluster.handover_port);
		cluster->handover_address[i].sin_addr.s_addr = node->address.w[3];
	}
	rc = es_ring_new(nodes, conf->node_count, &cluster->ring);
	if (rc) {
		free(cluster);
		return rc;
	}
	cluster->epoch = epoch;
	cluster->self = self;
	cluster->conf = conf;
	*ret_cluster = cluster;
	return 0;
}

void es_cluster_free(struct es_cluster **cluster)
{
	if (!*cluster)
		return;
	es_ring_free(&(*cluster)->ring);
	es_conf_free(&(*cluster)->conf);
	free(*cluster);
	*cluster = NULL;
}

int es_cluster_is_target(const struct es_cluster *cluster, const struct es_health *health, unsigned int node,
			 unsigned long long now_ns)
{
	return node < cluster->conf->node_count && cluster->conf->nodes[node].weight > 0 &&
	       atomic_load_explicit(&health->suspended_until_ns[node], memory_order_relaxed) <= now_ns;
}

void es_health_suspend(struct es_health *health, unsigned int node, unsigned long long until_ns)
{
	if (node < ES_NODES_MAX)
		atomic_store_explicit(&health->suspended_until_ns[node], until_ns, memory_order_relaxed);
}
