// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Makes a version of the cluster. Membership decides when there is a new one (daemon/membership.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "inspector/cluster/cluster.h"

/* Slots that are ours but not to inspect yet, and those that we have but are not ours any more. */
static void es_cluster_restrict(struct es_cluster *cluster, const struct es_share *may)
{
	__u16 *node = cluster->slots->table.node;

	for (unsigned int slot = 0; slot < ES_RING_SLOTS; slot++) {
		int is_ours = node[slot] == cluster->self;
		int has = may->bits[slot / 64] >> (slot % 64) & 1;

		if (is_ours && !has)
			node[slot] |= ES_RING_WAIT;
		else if (!is_ours && has && node[slot] != ES_NODE_NONE)
			node[slot] |= ES_RING_ANSWER;
	}
}

/* When all flags are set: which slots are anything to this node. */
static void es_cluster_mark_answered(struct es_cluster *cluster)
{
	for (unsigned int slot = 0; slot < ES_RING_SLOTS; slot++)
		if (es_ring_answers(cluster->slots->table.node[slot], cluster->self))
			cluster->slots->answered[slot / 64] |= 1ULL << (slot % 64);
}

int es_cluster_new(const struct es_conf *conf, unsigned int self, unsigned int epoch,
		   const unsigned int *weights, const struct es_share *may, struct es_cluster **ret_cluster)
{
	struct es_ring_node nodes[ES_NODES_MAX] = {};
	struct es_cluster *cluster = calloc(1, sizeof(*cluster));
	size_t count = 0;
	int rc;

	if (!cluster)
		return -ENOMEM;
	cluster->epoch = epoch;
	cluster->self = self;
	cluster->conf = conf;
	for (unsigned int i = 0; i < conf->node_count; i++) {
		const struct es_conf_node *node = &conf->nodes[i];

		cluster->weight[i] = weights ? weights[i] : node->weight;
		cluster->handover_address[i] = es_sockaddr_of(&node->address, conf->cluster.handover_port);
		if (!cluster->weight[i])
			continue;
		nodes[count].address = node->address;
		nodes[count].virtual_nodes =
			es_ring_virtual_nodes(conf->cluster.virtual_nodes, cluster->weight[i]);
		nodes[count++].id = (__u16)i;
	}
	rc = es_ring_new(nodes, count, &cluster->ring);
	if (rc)
		goto err_free;
	rc = -ENOMEM;
	cluster->slots = calloc(1, sizeof(*cluster->slots));
	if (!cluster->slots)
		goto err_free;
	es_ring_fill_table(cluster->ring, &cluster->slots->table);
	if (may)
		es_cluster_restrict(cluster, may);
	es_cluster_mark_answered(cluster);
	*ret_cluster = cluster;
	return 0;

err_free:
	es_cluster_free(&cluster);
	return rc;
}

void es_cluster_free(struct es_cluster **cluster)
{
	if (!*cluster)
		return;
	es_ring_free(&(*cluster)->ring);
	free((*cluster)->slots);
	free((*cluster)->tenure);
	free(*cluster);
	*cluster = NULL;
}

void es_cluster_share(const struct es_cluster *cluster, struct es_share *ret_share)
{
	memset(ret_share, 0, sizeof(*ret_share));
	for (unsigned int slot = 0; slot < ES_RING_SLOTS; slot++)
		if (cluster->slots->table.node[slot] == cluster->self)
			ret_share->bits[slot / 64] |= 1ULL << (slot % 64);
}

void es_tenure_set(struct es_tenure *tenure, const struct es_share *share, uint64_t now_ms)
{
	for (unsigned int slot = 0; slot < ES_RING_SLOTS; slot++)
		if (!(share->bits[slot / 64] >> (slot % 64) & 1))
			tenure->since_ms[slot] = 0;
		else if (!tenure->since_ms[slot])
			tenure->since_ms[slot] = now_ms;
}

int es_cluster_set_tenure(struct es_cluster *cluster, const struct es_tenure *tenure)
{
	if (!cluster->tenure)
		cluster->tenure = malloc(sizeof(*tenure));
	if (!cluster->tenure)
		return -ENOMEM;
	memcpy(cluster->tenure, tenure, sizeof(*tenure));
	return 0;
}

/* Until when it is left alone. */
static unsigned long long es_health_until_ns(const struct es_health *health, unsigned int node,
					     unsigned int service, unsigned int family)
{
	unsigned long long until_ns =
		atomic_load_explicit(&health->suspended_until_ns[node], memory_order_acquire);
	unsigned long long of_family_ns =
		atomic_load_explicit(&health->unheard_until_ns[family][node], memory_order_acquire);
	unsigned long long of_service_ns =
		atomic_load_explicit(&health->unserved_until_ns[service][family][node], memory_order_acquire);

	if (of_family_ns > until_ns)
		until_ns = of_family_ns;
	return of_service_ns > until_ns ? of_service_ns : until_ns;
}

/* Is it in that state, if it were not left alone? */
static int es_cluster_may_be_in_state(const struct es_cluster *cluster, const struct es_health *health,
				      unsigned int node, enum es_node_state state, unsigned long long now_ns)
{
	return node < cluster->conf->node_count && es_health_state(health, node) == state &&
	       atomic_load_explicit(&health->mistimed_until_ns[node], memory_order_acquire) <= now_ns;
}

static int es_cluster_is_in_state(const struct es_cluster *cluster, const struct es_health *health,
				  unsigned int node, unsigned int service, unsigned int family,
				  enum es_node_state state, unsigned long long now_ns)
{
	return es_cluster_may_be_in_state(cluster, health, node, state, now_ns) &&
	       es_health_until_ns(health, node, service, family) <= now_ns;
}

int es_cluster_is_target(const struct es_cluster *cluster, const struct es_health *health, unsigned int node,
			 unsigned long long now_ns)
{
	unsigned int i = 0;

	do
		if (!es_cluster_is_target_of(cluster, health, node, i / ES_CONF_FAMILIES,
					     i % ES_CONF_FAMILIES, now_ns))
			return 0;
	while (++i < cluster->conf->service_count * ES_CONF_FAMILIES);
	return 1;
}

int es_cluster_is_target_of(const struct es_cluster *cluster, const struct es_health *health,
			    unsigned int node, unsigned int service, unsigned int family,
			    unsigned long long now_ns)
{
	return es_cluster_is_in_state(cluster, health, node, service, family, ES_NODE_UP, now_ns) &&
	       cluster->weight[node] > 0;
}

int es_cluster_is_last_resort(const struct es_cluster *cluster, const struct es_health *health,
			      unsigned int node, unsigned int service, unsigned int family,
			      unsigned long long now_ns)
{
	return es_cluster_is_in_state(cluster, health, node, service, family, ES_NODE_DRAINING, now_ns) ||
	       (es_cluster_is_in_state(cluster, health, node, service, family, ES_NODE_UP, now_ns) &&
		!cluster->weight[node]);
}

int es_cluster_first_suspended(const struct es_cluster *cluster, const struct es_health *health,
			       unsigned int service, unsigned int family, struct es_node_set but,
			       unsigned long long now_ns)
{
	static const enum es_node_state states[] = {ES_NODE_UP, ES_NODE_DRAINING};
	unsigned long long first_ns = 0;
	int first = -1;

	for (size_t s = 0; s < sizeof(states) / sizeof(states[0]) && first < 0; s++) {
		for (unsigned int i = 0; i < cluster->conf->node_count; i++) {
			unsigned long long until_ns = es_health_until_ns(health, i, service, family);

			if (es_node_set_has(but, i) || !cluster->weight[i] ||
			    !es_cluster_may_be_in_state(cluster, health, i, states[s], now_ns) ||
			    (first >= 0 && until_ns >= first_ns))
				continue;
			first = (int)i;
			first_ns = until_ns;
		}
	}
	return first;
}

void es_health_suspend(struct es_health *health, unsigned int node, unsigned long long until_ns)
{
	if (node < ES_NODES_MAX)
		atomic_store_explicit(&health->suspended_until_ns[node], until_ns, memory_order_release);
}

void es_health_suspend_for(struct es_health *health, unsigned int node, unsigned int family,
			   unsigned long long until_ns)
{
	if (node < ES_NODES_MAX)
		atomic_store_explicit(&health->unheard_until_ns[family][node], until_ns,
				      memory_order_release);
}

void es_health_suspend_service(struct es_health *health, unsigned int node, unsigned int service,
			       unsigned int family, unsigned long long until_ns)
{
	if (node < ES_NODES_MAX && service < ES_CONF_SERVICES_MAX)
		atomic_store_explicit(&health->unserved_until_ns[service][family][node], until_ns,
				      memory_order_release);
}

void es_health_renumber(struct es_health *health)
{
	for (unsigned int node = 0; node < ES_NODES_MAX; node++)
		for (unsigned int i = 0; i < ES_CONF_SERVICES_MAX * ES_CONF_FAMILIES; i++)
			es_health_suspend_service(health, node, i / ES_CONF_FAMILIES, i % ES_CONF_FAMILIES,
						  0);
}

void es_health_set_mistimed(struct es_health *health, unsigned int node, unsigned long long until_ns)
{
	if (node < ES_NODES_MAX)
		atomic_store_explicit(&health->mistimed_until_ns[node], until_ns, memory_order_release);
}

void es_health_change_state(struct es_health *health, unsigned int node, enum es_node_state state,
			    unsigned long long now_ns)
{
	if (state == ES_NODE_UP && es_health_state(health, node) != ES_NODE_UP)
		es_health_is_back(health, node, ~0ULL, now_ns);
	es_health_set_state(health, node, state);
}

void es_health_is_back(struct es_health *health, unsigned int node, __u64 services, unsigned long long now_ns)
{
	for (unsigned int i = 0; node < ES_NODES_MAX && i < ES_CONF_SERVICES_MAX; i++)
		if (services >> i & 1)
			atomic_store_explicit(&health->back_ns[node][i], now_ns, memory_order_relaxed);
}

double es_health_share(const struct es_health *health, unsigned int node, unsigned int service,
		       unsigned int slow_start_s, unsigned long long now_ns)
{
	unsigned long long back_ns =
		atomic_load_explicit(&health->back_ns[node][service], memory_order_relaxed);
	double all_ns = slow_start_s * 1e9, since_ns;

	/* Another thread's clock may be later. */
	since_ns = now_ns > back_ns ? (double)(now_ns - back_ns) : 0;
	if (!back_ns || since_ns >= all_ns)
		return 1;
	return ES_HEALTH_SHARE_FIRST + (1 - ES_HEALTH_SHARE_FIRST) * since_ns / all_ns;
}

void es_health_set_lost(struct es_health *health, unsigned int node, unsigned long long at_ns)
{
	if (node < ES_NODES_MAX)
		atomic_store_explicit(&health->lost_ns[node], at_ns, memory_order_release);
}

unsigned long long es_health_lost_ns(const struct es_health *health, unsigned int node)
{
	return node < ES_NODES_MAX ? atomic_load_explicit(&health->lost_ns[node], memory_order_acquire) : 0;
}

void es_health_set_unsure(struct es_health *health, unsigned long long until_ns)
{
	atomic_store_explicit(&health->unsure_until_ns, until_ns, memory_order_relaxed);
}

int es_health_is_unsure(const struct es_health *health, unsigned long long now_ns)
{
	return now_ns < atomic_load_explicit(&health->unsure_until_ns, memory_order_relaxed);
}
