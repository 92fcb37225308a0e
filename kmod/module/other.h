/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_OTHER_H
#define ES_MODULE_OTHER_H

/*
 * Which address and port are a service's; and what is addressed to one's and is none: ARP, ICMP, other
 * protocols and ports. Each goes to exactly one node, see kmod/bpf/other.h.
 */
#include "node.h"

int es_is_service_address(const struct es_version *version, __be32 v4);

/* Index of the service, -1 if the port is none. */
int es_service_find(const struct es_version *version, __be32 v4, __be16 port);

/* The same for IPv6. */
int es_is_service_address6(const struct es_version *version, const struct es_addr *a);
int es_service_find6(const struct es_version *version, const struct es_addr *a, __be16 port);

/* es_service_of() - index of the service that a client's packet is for, -1 if it is for none */
int es_service_of(const struct es_version *version, const struct es_packet *pkt);

/* Does the ring give what a client's address sends, and is no flow, to this node? */
int es_address_is_mine(const struct es_node *node, const struct es_version *version,
		       const struct es_addr *client);

/*
 * es_other_arp(), es_other_ip() - a frame of that kind; return the hook's verdict. IPv6's are in neighbour.h.
 */
unsigned int es_other_arp(struct es_node *node, const struct es_version *version, struct sk_buff *skb);
unsigned int es_other_ip(struct es_node *node, const struct es_version *version, struct sk_buff *skb,
			 const struct iphdr *ip);

#endif
