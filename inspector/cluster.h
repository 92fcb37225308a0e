/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_CLUSTER_H
#define ES_CLUSTER_H

/*
 * The cluster as the inspector sees it. A version of it is immutable: a change makes a new one, which every
 * worker takes between two packets. What changes all the time (which node refused a moment ago) is in struct
 * es_health, shared by all workers and versions.
 */
#include <netinet/in.h>
#include <stdatomic.h>
#include <earshot/ring.h>
#include "inspector/config.h"
#include "kmod/core/ring.h"

/**
 * struct es_health - for each node id, until when (CLOCK_MONOTONIC ns) it is no target
 * A node that answered NACK or is unreachable is left alone for a while; it still inspects.
 */
struct es_health {
	_Atomic unsigned long long suspended_until_ns[ES_NODES_MAX];
};

/**
 * struct es_cluster - one version
 * Nodes are in the order of the configuration, their index is the node id. Owns ring and conf.
 */
struct es_cluster {
	unsigned int epoch;
	unsigned int self;
	struct es_conf *conf;
	struct es_ring *ring;
	struct sockaddr_in handover_address[ES_NODES_MAX];
};

/**
 * es_cluster_new() - build ring and addresses; takes over @conf on success
 * Returns 0 or -errno (of es_ring_new()).
 */
int es_cluster_new(struct es_conf *conf, unsigned int self, unsigned int epoch,
		   struct es_cluster **ret_cluster);
void es_cluster_free(struct es_cluster **cluster);

/* May @node be given requests now: weight above 0 and not suspended? */
int es_cluster_is_target(const struct es_cluster *cluster, const struct es_health *health, unsigned int node,
			 unsigned long long now_ns);

void es_health_suspend(struct es_health *health, unsigned int node, unsigned long long until_ns);

#endif
