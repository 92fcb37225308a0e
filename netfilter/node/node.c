// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A node's life.
 */
#include <errno.h>
#include <stdlib.h>
#include "kmod/core/neighbour.h"
#include "netfilter/node/node.h"
#include "netfilter/node/program_name.h"

/*
 * The daemon before died before it began (es_nf_make_begins()): its clients repeat these requests, and wait
 * until a connection is made.
 */
static void es_nf_node_forget_unbegun(struct es_nf_node *node)
{
	for (size_t i = 0; i < es_settled_sets(node->memory.decision_sets); i++)
		for (size_t j = 0; j < ES_SETTLED_WAYS; j++)
			if (node->memory.settled[i].way[j].as == ES_SETTLED_MADE)
				node->memory.settled[i].way[j] = (struct es_settled){};
}

/* Nobody knows any more where the leaving connections should go: repeated requests are read anew. */
static void es_nf_node_go_on(struct es_nf_node *node)
{
	for (size_t i = 0; i < ES_NF_CONNECTION_SETS; i++)
		for (size_t j = 0; j < ES_NF_CONNECTION_WAYS; j++) {
			struct es_track *t = &node->memory.connections[i].way[j].track;

			if (es_track_is_leaving(t))
				t->state = ES_TRACK_QUEUED;
		}
}

int es_nf_node_new(const struct es_nf_node_params *params, struct es_nf_node **ret_node)
{
	struct es_nf_node *node = calloc(1, sizeof(*node));
	int rc;

	if (!node)
		return -ENOMEM;
	node->hands = *params->hands;
	node->workers = params->workers;
	rc = es_nf_memory_open(params->path, params->decision_sets, &node->memory);
	for (unsigned int i = 0; !rc && i < params->workers; i++)
		rc = es_nf_ring_new(params->queue_bytes, &node->queue[i]);
	if (rc) {
		es_nf_node_free(&node);
		return rc;
	}
	if (node->memory.adopted) {
		es_nf_node_go_on(node);
		es_nf_node_forget_unbegun(node);
	}
	*ret_node = node;
	return 0;
}

void es_nf_node_free(struct es_nf_node **node)
{
	struct es_nf_node *n = *node;

	if (!n)
		return;
	for (int i = 0; i < ES_WORKERS_MAX; i++)
		es_nf_ring_free(&n->queue[i]);
	es_nf_memory_close(&n->memory);
	free(n);
	*node = NULL;
}

void es_nf_node_configure(struct es_nf_node *node, const struct es_config *config,
			  const struct es_node_ring *ring)
{
	node->config = *config;
	node->ring = *ring;
	node->has_every = 0;
	for (__u32 i = 0; i < config->service_count; i++)
		node->has_every |= config->service[i].inspect == ES_INSPECT_EVERY;
	node->is_configured = 1;
}

/* A service that lacks an address of one family has zeros there, which match nobody. */
static int es_nf_service_has(const struct es_service_entry *service, const struct es_addr *address)
{
	return es_addr_equal(&service->address, address) || es_addr_equal(&service->address6, address);
}

int es_nf_is_service_address(const struct es_nf_node *node, const struct es_addr *address)
{
	const struct es_config *cfg = &node->config;

	for (__u32 i = 0; i < cfg->service_count && !es_addr_is_unspecified(address); i++)
		if (es_nf_service_has(&cfg->service[i], address))
			return 1;
	return 0;
}

int es_nf_service_find(const struct es_nf_node *node, const struct es_addr *address, __be16 port)
{
	const struct es_config *cfg = &node->config;

	for (__u32 i = 0; i < cfg->service_count && !es_addr_is_unspecified(address); i++)
		if (cfg->service[i].port == port && es_nf_service_has(&cfg->service[i], address))
			return (int)i;
	return -1;
}

/* A program's connection has another flow at its socket; without an old socket, nothing happens. */
void es_nf_node_end_old(const struct es_nf_node *node, const struct es_flow *flow,
			const struct es_nf_found *found)
{
	const struct es_nf_hands *hands = &node->hands;
	int service = es_nf_service_find(node, &flow->service, flow->service_port);
	struct es_flow socket;

	hands->give_up(hands->ctx, flow);
	if (!found->is_old)
		return;
	/* If it fails, the kernel may still accept a SYN there. */
	(void)hands->end_old(hands->ctx, flow);
	if (service >= 0 && es_nf_program_socket(&node->config, (unsigned int)service, flow, &socket))
		(void)hands->end_old(hands->ctx, &socket);
}

int es_nf_node_look(const struct es_nf_node *node, const struct es_flow *flow, struct es_nf_found *ret_found)
{
	const struct es_nf_hands *hands = &node->hands;
	int service = es_nf_service_find(node, &flow->service, flow->service_port), rc;
	struct es_nf_found server = {};
	struct es_flow socket;

	*ret_found = (struct es_nf_found){};
	rc = hands->look(hands->ctx, flow, ret_found);
	if (rc || service < 0 || ret_found->socket == ES_SOCKET_ESTABLISHED ||
	    !es_nf_program_socket(&node->config, (unsigned int)service, flow, &socket))
		return rc;
	rc = hands->look(hands->ctx, &socket, &server);
	if (!rc && server.socket == ES_SOCKET_ESTABLISHED)
		*ret_found = server;
	else
		ret_found->is_old |= server.is_old;
	return rc;
}
