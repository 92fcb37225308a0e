/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NETFILTER_NODE_OTHER_H
#define ES_NETFILTER_NODE_OTHER_H

/*
 * ARP and neighbour discovery for the service addresses, and packets to these addresses that are for no
 * service: all of a client's go to one node.
 */
#include "netfilter/node/node.h"

/* es_nf_other_ip() - a packet to a service address that is for no service. @ip: its headers. Counts. */
enum es_nf_fate es_nf_other_ip(struct es_nf_node *node, const struct es_nf_frame *frame,
			       const struct es_nf_ip *ip);

/**
 * es_nf_other_neighbour() - answer a neighbour solicitation for a service's IPv6 address, on the public
 * network It comes to the address's group, or to the address itself: kmod/core/neighbour.h. @ip: the headers
 * of @frame. Counts. Returns 1, or 0 if it is not such a solicitation.
 */
int es_nf_other_neighbour(struct es_nf_node *node, const struct es_nf_frame *frame,
			  const struct es_nf_ip *ip);

/*
 * es_nf_other_arp() - answer an ARP request for a service address, on the public network. @arp: @len bytes.
 * Counts.
 */
void es_nf_other_arp(struct es_nf_node *node, const uint8_t *arp, size_t len);

#endif
