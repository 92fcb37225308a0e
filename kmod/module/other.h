/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_OTHER_H
#define ES_MODULE_OTHER_H

/*
 * What is addressed to a service IP and is no service: ARP, ICMP, other protocols and ports. Each goes to
 * exactly one node, see kmod/bpf/other.h.
 */
#include "node.h"

int es_is_service_address(const struct es_version *version, __be32 v4);

/* Index of the service, -1 if the port is none. */
int es_service_find(const struct es_version *version, __be32 v4, __be16 port);

/* es_other_arp(), es_other_ip() - a frame of that kind; return the hook's verdict */
unsigned int es_other_arp(struct es_node *node, const struct es_version *version, struct sk_buff *skb);
unsigned int es_other_ip(struct es_node *node, const struct es_version *version, struct sk_buff *skb,
			 const struct iphdr *ip);

#endif
