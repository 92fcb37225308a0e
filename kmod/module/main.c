// SPDX-License-Identifier: GPL-2.0-only
/*
 * earshot.ko: the datapath for kernels without bpf_sk_assign_tcp_reqsk(). Loading it does nothing but wait
 * for a daemon; unloading it takes every node down, while the connections that are open go on: their sockets
 * are the kernel's own. Nobody can unload it while a daemon has /dev/earshot open.
 */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/genetlink.h>

#include "control.h"
#include "node.h"

/* An interface that goes, or goes to another namespace, takes its hook along. Under rtnl. */
static int es_device_event(struct notifier_block *notifier, unsigned long event, void *ptr)
{
	const struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	struct es_net *en = es_net_of(dev_net(dev));

	if (event != NETDEV_UNREGISTER)
		return NOTIFY_DONE;
	mutex_lock(&en->lock);
	if (en->node)
		es_node_device_gone(en->node, dev);
	mutex_unlock(&en->lock);
	return NOTIFY_DONE;
}

static struct notifier_block es_device_notifier = {
	.notifier_call = es_device_event,
};

static int __init es_module_init(void)
{
	int rc = register_pernet_subsys(&es_net_operations);

	if (rc)
		return rc;
	rc = register_netdevice_notifier(&es_device_notifier);
	if (rc)
		goto err_net;
	rc = es_device_init();
	if (rc)
		goto err_notifier;
	/* Last: from here on a daemon may come. */
	rc = es_control_init();
	if (rc)
		goto err_device;
	return 0;

err_device:
	es_device_fini();
err_notifier:
	unregister_netdevice_notifier(&es_device_notifier);
err_net:
	unregister_pernet_subsys(&es_net_operations);
	return rc;
}

static void __exit es_module_exit(void)
{
	es_control_fini();
	es_device_fini();
	unregister_netdevice_notifier(&es_device_notifier);
	unregister_pernet_subsys(&es_net_operations);
}

module_init(es_module_init);
module_exit(es_module_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Earshot: one web server made of N equal nodes");
MODULE_ALIAS_GENL_FAMILY("earshot");
