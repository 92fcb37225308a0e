// SPDX-License-Identifier: GPL-2.0-only
/* Compiles on every kernel that the module can be built for. If it does not,
 * no other probe means anything. */
#include <linux/mm.h>
#include <linux/netfilter.h>
#include <linux/skbuff.h>
#include <net/genetlink.h>
#include <net/inet_connection_sock.h>
#include <net/inet_hashtables.h>
#include <net/tcp.h>

int probe(struct nf_hook_ops *ops, struct request_sock *req, struct net_device *dev);
int probe(struct nf_hook_ops *ops, struct request_sock *req, struct net_device *dev)
{
	ops->hooknum = NF_NETDEV_INGRESS;
	ops->dev = dev;
	tcp_rsk(req)->af_specific = NULL;
	return nf_register_net_hook(dev_net(dev), ops);
}
