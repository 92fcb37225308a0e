/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef ES_MODULE_NEIGHBOUR_H
#define ES_MODULE_NEIGHBOUR_H

/*
 * Neighbour solicitations for a service's IPv6 address, which one node answers, and what else comes to such
 * an address and is no TCP to a service: other.h for IPv6.
 */
#include "node.h"
#include "packet6.h"

#define ES_NEIGHBOUR_NONE (-1)

/**
 * es_neighbour_solicited() - is @skb, which is ICMPv6, a solicitation for a service's address, whatever its
 * destination is?
 * @pkt: its addresses; @hops: its hop limit. Returns the hook's verdict, or ES_NEIGHBOUR_NONE.
 */
int es_neighbour_solicited(struct es_node *node, const struct es_version *version, struct sk_buff *skb,
			   const struct es_packet *pkt, u8 hops);

/* es_other_ip6() - the rest; @next: what follows its IPv6 header. Returns the hook's verdict. */
unsigned int es_other_ip6(struct es_node *node, const struct es_version *version, struct sk_buff *skb,
			  const struct es_packet *pkt, u8 next);

#endif
