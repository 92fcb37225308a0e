// SPDX-License-Identifier: GPL-2.0-only
/*
 * Puts a node's hooks up. Their functions are in public.c, target.c, rebuild.c and reply.c, which all stand
 * on the node.
 */
#include <linux/if_arp.h>
#include <linux/netdevice.h>

#include "hooks.h"
#include "node.h"
#include "public.h"
#include "rebuild.h"
#include "reply.h"
#include "target.h"

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
