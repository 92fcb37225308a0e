// SPDX-License-Identifier: GPL-2.0-only
/*
 * A node's life: its network namespace, its tables, and the end of its hooks, which hooks.c puts up.
 */
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/netns/generic.h>

#include "node.h"

static void es_rings_put(struct es_ringbuf **rings)
{
	for (u32 i = 0; i < ES_RINGBUFS; i++)
		es_ringbuf_put(rings[i]);
}

int es_node_renew(struct es_node *node, const struct es_module_params *params)
{
	struct es_ringbuf *fresh[ES_RINGBUFS] = {}, *old[ES_RINGBUFS];
	int rc;

	for (u32 i = 0; i < params->workers; i++) {
		rc = es_ringbuf_new(params->queue_bytes, &fresh[i]);
		if (rc)
			goto err_rings;
	}
	rc = es_ringbuf_new(ES_RESPONSES_BYTES, &fresh[ES_RINGBUF_LENGTHS]);
	if (rc)
		goto err_rings;
	for (u32 i = 0; i < ES_RINGBUFS; i++) {
		old[i] = rcu_dereference_protected(node->queue[i], 1);
		rcu_assign_pointer(node->queue[i], fresh[i]);
	}
	node->params = *params;
	/* A hook may be writing to an old one. */
	synchronize_rcu();
	es_rings_put(old);
	return 0;

err_rings:
	es_rings_put(fresh);
	return rc;
}

int es_node_new(struct net *net, const struct es_module_params *params, struct es_node **ret_node)
{
	size_t tables = sizeof(struct es_decision_set) * (size_t)params->decision_sets +
			sizeof(*(*ret_node)->settled) * (size_t)es_settled_sets(params->decision_sets);
	struct es_node *node;
	int rc = -ENOMEM;

	if (!es_memory_is_there(tables))
		return -ENOMEM;
	node = kzalloc(sizeof(*node), GFP_KERNEL_ACCOUNT);
	if (!node)
		return -ENOMEM;
	node->net = net;
	node->counters = __alloc_percpu_gfp(sizeof(u64) * ES_COUNTER_COUNT, sizeof(u64), GFP_KERNEL_ACCOUNT);
	if (!node->counters)
		goto err_node;
	node->replays = es_memory_zalloc(sizeof(*node->replays) * ES_NODES_MAX * ES_STREAMS_MAX);
	if (!node->replays)
		goto err_counters;
	for (u32 i = 0; i < ES_NODES_MAX * ES_STREAMS_MAX; i++)
		spin_lock_init(&node->replays[i].lock);
	node->settled =
		es_memory_zalloc(sizeof(*node->settled) * (size_t)es_settled_sets(params->decision_sets));
	if (!node->settled)
		goto err_replays;
	for (u32 i = 0; i < es_settled_sets(params->decision_sets); i++)
		spin_lock_init(&node->settled[i].lock);
	node->resets = es_memory_zalloc(sizeof(*node->resets) * ES_RESETS);
	if (!node->resets)
		goto err_settled;
	node->strays = es_memory_zalloc(sizeof(*node->strays) * ES_STRAYS);
	if (!node->strays)
		goto err_resets;
	node->challenges = es_memory_zalloc(sizeof(*node->challenges) * ES_CHALLENGES);
	if (!node->challenges)
		goto err_strays;
	node->syns = es_memory_zalloc(sizeof(*node->syns) * ES_SYNS);
	if (!node->syns)
		goto err_challenges;
	node->firsts = es_memory_zalloc(sizeof(*node->firsts) * ES_FIRSTS);
	if (!node->firsts)
		goto err_syns;
	node->heard_flows = es_memory_zalloc(sizeof(*node->heard_flows) * ES_HEARD_FLOWS);
	if (!node->heard_flows)
		goto err_firsts;
	rc = es_table_new(sizeof(struct es_state), &node->state_table);
	if (rc)
		goto err_heard_flows;
	node->state = node->state_table->memory.at;
	rc = es_table_new(sizeof(struct es_decision_set) * (size_t)params->decision_sets,
			  &node->decision_table);
	if (rc)
		goto err_state;
	node->decisions = node->decision_table->memory.at;
	rc = es_tracks_new(net, &node->tracks);
	if (rc)
		goto err_decisions;
	rc = es_node_renew(node, params);
	if (rc)
		goto err_tracks;
	*ret_node = node;
	return 0;

err_tracks:
	es_tracks_free(&node->tracks);
err_decisions:
	es_table_put(node->decision_table);
err_state:
	es_table_put(node->state_table);
err_heard_flows:
	kvfree(node->heard_flows);
err_firsts:
	kvfree(node->firsts);
err_syns:
	kvfree(node->syns);
err_challenges:
	kvfree(node->challenges);
err_strays:
	kvfree(node->strays);
err_resets:
	kvfree(node->resets);
err_settled:
	kvfree(node->settled);
err_replays:
	kvfree(node->replays);
err_counters:
	free_percpu(node->counters);
err_node:
	kfree(node);
	return rc;
}

void es_device_unhook(struct es_node *node, enum es_device_hook at)
{
	if (!node->device[at])
		return;
	nf_unregister_net_hook(node->net, &node->device_ops[at]);
	dev_put(node->device[at]);
	node->device[at] = NULL;
}

void es_node_detach(struct es_node *node)
{
	/* First what takes on new flows, last what keeps packets back. */
	es_device_unhook(node, ES_HOOK_PUBLIC);
	es_device_unhook(node, ES_HOOK_LO);
	es_device_unhook(node, ES_HOOK_CLUSTER);
	if (node->stack_hooked)
		nf_unregister_net_hooks(node->net, node->stack_ops, ARRAY_SIZE(node->stack_ops));
	node->stack_hooked = 0;
}

void es_node_device_gone(struct es_node *node, const struct net_device *dev)
{
	for (int at = 0; at < ES_HOOK_DEVICES; at++)
		if (node->device[at] == dev)
			es_device_unhook(node, at);
}

void es_node_configure(struct es_node *node, struct es_version *version)
{
	struct es_version *old = rcu_dereference_protected(node->version, 1);

	rcu_assign_pointer(node->version, version);
	if (old)
		kvfree_rcu(old, rcu);
}

void es_node_free(struct es_node **node)
{
	struct es_node *n = *node;
	struct es_ringbuf *rings[ES_RINGBUFS];

	if (!n)
		return;
	*node = NULL;
	es_node_detach(n);
	/* Nobody enters the hooks any more; wait for those who are inside. */
	synchronize_net();
	for (u32 i = 0; i < ES_RINGBUFS; i++)
		rings[i] = rcu_dereference_protected(n->queue[i], 1);
	es_rings_put(rings);
	kvfree(rcu_dereference_protected(n->version, 1));
	es_tracks_free(&n->tracks);
	kvfree(n->downloads);
	es_table_put(n->kept_table);
	es_table_put(n->decision_table);
	es_table_put(n->state_table);
	kvfree(n->heard_flows);
	kvfree(n->firsts);
	kvfree(n->syns);
	kvfree(n->challenges);
	kvfree(n->strays);
	kvfree(n->resets);
	kvfree(n->settled);
	kvfree(n->replays);
	free_percpu(n->counters);
	kfree(n);
}

static unsigned int es_net_id;

struct es_net *es_net_of(struct net *net)
{
	return net_generic(net, es_net_id);
}

static int __net_init es_net_init(struct net *net)
{
	mutex_init(&es_net_of(net)->lock);
	return 0;
}

static void __net_exit es_net_exit(struct net *net)
{
	struct es_net *en = es_net_of(net);

	rtnl_lock();
	mutex_lock(&en->lock);
	es_node_free(&en->node);
	mutex_unlock(&en->lock);
	rtnl_unlock();
}

struct pernet_operations es_net_operations = {
	.init = es_net_init,
	.exit = es_net_exit,
	.id = &es_net_id,
	.size = sizeof(struct es_net),
};
