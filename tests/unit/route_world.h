/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_TESTS_ROUTE_WORLD_H
#define ES_TESTS_ROUTE_WORLD_H

/* A router of one service with a policy, as a worker has it, on a cluster of a few nodes. */
#include "cmocka_all.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/policy/list.h"
#include "inspector/inspect/route.h"

static struct es_name name; /* large */
static int content_host;

static struct es_health health;

static inline void cluster_free(struct es_cluster *c)
{
	struct es_conf *conf = (struct es_conf *)c->conf;

	es_cluster_free(&c);
	es_conf_free(&conf);
}

static inline struct es_cluster *cluster(unsigned int nodes, const unsigned int *weights)
{
	struct es_conf *conf = calloc(1, sizeof(*conf));
	struct es_cluster *result = NULL;

	assert_non_null(conf);
	conf->cluster.virtual_nodes = 63;
	conf->node_count = nodes;
	for (unsigned int i = 0; i < nodes; i++) {
		conf->nodes[i].address = es_addr_from_v4(htonl(10u << 24 | 78u << 16 | (i + 1)));
		conf->nodes[i].weight = weights ? weights[i] : 100;
	}
	assert_int_equal(es_cluster_new(conf, 0, 1, NULL, NULL, &result), 0);
	memset(&health, 0, sizeof(health));
	return result;
}

/* One policy for one service on cluster @c. */
static inline struct es_router *router_new(const struct es_policy *policy, struct es_cluster *c,
					   unsigned int load_bound)
{
	struct es_conf *conf = (struct es_conf *)c->conf;
	struct es_router *router = calloc(1, sizeof(*router));

	assert_non_null(router);
	conf->service_count = 1;
	conf->services[0].load_bound = load_bound;
	snprintf(conf->services[0].policy, sizeof(conf->services[0].policy), "%s", policy->name);
	assert_int_equal(es_router_init(router, c, &health, NULL), 0);
	return router;
}

static inline void router_free(struct es_router *router)
{
	es_router_fini(router);
	free(router);
}

/* The node for a GET of @uri. */
static inline int route(struct es_router *router, const char *uri, __u64 flow_hash, unsigned long long now_ns)
{
	struct es_request_view request = {.flow_hash = flow_hash, .current = -1};
	struct es_rejection rejection;
	struct es_http_head head;
	char text[512];
	size_t len = (size_t)snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", uri);

	es_http_head_init(&head);
	assert_int_equal(es_http_head_scan(&head, text, len), ES_HTTP_DONE);
	es_request_describe(&request, &head, text, len, content_host, &name);
	return es_route(router, 0, &request, now_ns, NULL, &rejection);
}

#endif
