/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SELF_CLUSTER_LINK_H
#define ES_SELF_CLUSTER_LINK_H

/*
 * The decision that a node which joins may take its share of the ring. The bus may go by another network than
 * handovers do, so a node with a wrong cluster_interface, or with a cable or a firewall that is wrong there,
 * would join, and what it inspects or is given would be lost. While another member serves, such a node is a
 * member without a share until it has heard another node by its cluster interface: the datagrams with loads,
 * which all versions send. While nobody serves it takes its share all the same: the first machine after a
 * power cut hears nobody, and a cluster whose cluster network is dead has one node at least that serves.
 *
 * Once it has its share it keeps that: if the network of all fails later, they serve what they inspect.
 *
 * Pure: what is heard and clocks are the caller's (daemon/cluster_link.c).
 */
#include <stdint.h>

#define ES_CLUSTER_LINK_FIRST_MS 600  /* in so long, those that are there have sent something */
#define ES_CLUSTER_LINK_TELL_MS	 3000 /* whoever waits for so long has a reason to tell people */

/**
 * struct es_cluster_link - begins with zeros
 * @out_ms: since when it could join, 0: it has; @wait_ms: since when it waits
 */
struct es_cluster_link {
	uint64_t out_ms;
	uint64_t wait_ms;
	int is_waiting;
};

/* es_cluster_link_may_join() - before the first view; a share that is taken at once costs one ring, not two.
 * @is_heard: another node was heard by the cluster interface a moment ago */
int es_cluster_link_may_join(struct es_cluster_link *link, int is_heard, uint64_t now_ms);

/* es_cluster_link_join() - the first view is here, and @has_others. Returns whether the node waits. */
int es_cluster_link_join(struct es_cluster_link *link, int has_others, int is_heard, uint64_t now_ms);

enum es_cluster_link_turn {
	ES_CLUSTER_LINK_NOTHING = 0,
	ES_CLUSTER_LINK_TAKE, /* said once: it takes its share now */
	ES_CLUSTER_LINK_TELL, /* it waits, and people should know */
};

/**
 * es_cluster_link_look() - call it often
 * @is_settled: a ring is in force, so it is known who serves; @another_serves: another member has a share of
 * it
 */
enum es_cluster_link_turn es_cluster_link_look(struct es_cluster_link *link, int is_heard, int is_settled,
					       int another_serves, uint64_t now_ms);

#endif
