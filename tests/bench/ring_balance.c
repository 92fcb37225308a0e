// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * DTS Fig. 8 as a table: how evenly 8 nodes share the inspection of 100,000 connections, against the number
 * of virtual nodes per node; beside it the exact shares of the hash space.
 */
#include <stdio.h>
#include <stdlib.h>
#include <earshot/ring.h>
#include "kmod/core/flow.h"

#define NODES	    8
#define CONNECTIONS 100000

static void min_max(const double *share, double *ret_min, double *ret_max)
{
	*ret_min = *ret_max = share[0];
	for (int i = 1; i < NODES; i++) {
		if (share[i] < *ret_min)
			*ret_min = share[i];
		if (share[i] > *ret_max)
			*ret_max = share[i];
	}
}

static void connections(const struct es_ring_table *table, double *ret_share)
{
	const struct es_sipkey key = {.k0 = 1, .k1 = 2};
	struct es_flow flow = {.service = es_addr_from_v4(es_htonl(0xc000020a)),
			       .service_port = es_htons(80)};

	for (int i = 0; i < NODES; i++)
		ret_share[i] = 0;
	for (unsigned int c = 0; c < CONNECTIONS; c++) {
		/* 1,000 clients with 100 connections each */
		flow.client = es_addr_from_v4(es_htonl(0xc6336400 + c / 100));
		flow.client_port = es_htons(20000 + c % 100 * 7);
		ret_share[es_ring_table_lookup(table, es_flow_hash(&key, 0, &flow))] += 1.0 / CONNECTIONS;
	}
}

int main(void)
{
	struct es_ring_table *table = malloc(sizeof(*table));

	if (!table)
		return EXIT_FAILURE;
	printf("8 nodes, ideal 12.5%%\n\n%13s  %21s  %21s\n%13s  %10s %10s  %10s %10s\n", "",
	       "100,000 connections", "hash space", "virtual nodes", "min", "max", "min", "max");
	for (unsigned int virtual_nodes = 1; virtual_nodes <= 255; virtual_nodes = 2 * virtual_nodes + 1) {
		struct es_ring_node nodes[NODES] = {};
		struct es_ring *ring = NULL;
		double share[NODES], min, max, exact_min, exact_max;

		for (unsigned int i = 0; i < NODES; i++) {
			nodes[i].address = es_addr_from_v4(es_htonl(10u << 24 | 78u << 16 | (i + 1)));
			nodes[i].virtual_nodes = virtual_nodes;
			nodes[i].id = (__u16)i;
		}
		if (es_ring_new(nodes, NODES, &ring))
			return EXIT_FAILURE;
		es_ring_fill_table(ring, table);
		connections(table, share);
		min_max(share, &min, &max);
		es_ring_shares(ring, share, NODES);
		min_max(share, &exact_min, &exact_max);
		printf("%13u  %9.1f%% %9.1f%%  %9.1f%% %9.1f%%\n", virtual_nodes, 100 * min, 100 * max,
		       100 * exact_min, 100 * exact_max);
		es_ring_free(&ring);
	}
	free(table);
	return EXIT_SUCCESS;
}
