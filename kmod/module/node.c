// SPDX-License-Identifier: GPL-2.0-only
/*
 * A node's life: its tables and its hooks. What happens in the hooks is public.c, target.c, rebuild.c and
 * reply.c.
 */
#include <linux/if_arp.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>

#include "node.h"
#include "public.h"
#include "rebuild.h"
#include "reply.h"
#include "target.h"

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

static void es_device_unhook(struct es_node *node, enum es_device_hook at)
{
	if (!node->device[at])
		return;
	nf_unregister_net_hook(node->net, &node->device_ops[at]);
	dev_put(node->device[at]);
	node->device[at] = NULL;
}

static int es_device_hook(struct es_node *node, enum es_device_hook at, u32 ifindex, nf_hookfn *hook)
{
	struct nf_hook_ops *ops = &node->device_ops[at];
	struct net_device *dev;
	int rc;

	if (node->device[at] && node->device[at]->ifindex == (int)ifindex)
		return 0;
	es_device_unhook(node, at);
	dev = dev_get_by_index(node->net, (int)ifindex);
	if (!dev)
		return -ENODEV;
	rc = -EINVAL;
	if (dev->type != ARPHRD_ETHER && dev->type != ARPHRD_LOOPBACK)
		goto err_device;
	*ops = (struct nf_hook_ops){
		.hook = hook,
		.dev = dev,
		.priv = node,
		.pf = NFPROTO_NETDEV,
		.hooknum = NF_NETDEV_INGRESS,
		.priority = (int)at,
	};
	rc = nf_register_net_hook(node->net, ops);
	if (rc)
		goto err_device;
	/* The reference is given back when the device goes: es_node_device_gone(). */
	node->device[at] = dev;
	return 0;

err_device:
	dev_put(dev);
	return rc;
}

/* The two hooks of a family. Both have the same numbers, and a last priority. */
static void es_stack_ops_fill(struct es_node *node, struct nf_hook_ops ops[2], u8 pf)
{
	ops[0] = (struct nf_hook_ops){
		.hook = es_rebuild_hook,
		.priv = node,
		.pf = pf,
		.hooknum = NF_INET_LOCAL_IN,
		.priority = INT_MAX, /* behind every firewall */
	};
	ops[1] = (struct nf_hook_ops){
		.hook = es_reply_hook,
		.priv = node,
		.pf = pf,
		.hooknum = NF_INET_POST_ROUTING,
		.priority = INT_MAX,
	};
}

static int es_stack_hook(struct es_node *node)
{
	int rc;

	if (node->stack_hooked)
		return 0;
	es_stack_ops_fill(node, node->stack_ops, NFPROTO_IPV4);
	es_stack_ops_fill(node, node->stack_ops + 2, NFPROTO_IPV6);
	rc = nf_register_net_hooks(node->net, node->stack_ops, ARRAY_SIZE(node->stack_ops));
	node->stack_hooked = !rc;
	return rc;
}

static void es_node_detach(struct es_node *node)
{
	/* First what takes on new flows, last what keeps packets back. */
	es_device_unhook(node, ES_HOOK_PUBLIC);
	es_device_unhook(node, ES_HOOK_LO);
	es_device_unhook(node, ES_HOOK_CLUSTER);
	if (node->stack_hooked)
		nf_unregister_net_hooks(node->net, node->stack_ops, ARRAY_SIZE(node->stack_ops));
	node->stack_hooked = 0;
}

int es_node_attach(struct es_node *node)
{
	int rc;

	/* The receiving side first: when requests are given away, someone is there to take them. */
	rc = es_stack_hook(node);
	if (rc)
		return rc;
	rc = es_device_hook(node, ES_HOOK_CLUSTER, node->params.cluster_ifindex, es_cluster_hook);
	if (rc)
		goto err_detach;
	rc = es_device_hook(node, ES_HOOK_LO, ES_LOOPBACK_IFINDEX, es_cluster_hook);
	if (rc)
		goto err_detach;
	rc = es_device_hook(node, ES_HOOK_PUBLIC, node->params.public_ifindex, es_public_hook);
	if (rc)
		goto err_detach;
	return 0;

err_detach:
	es_node_detach(node);
	return rc;
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
