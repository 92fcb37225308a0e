/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECT_LAYER4_H
#define ES_INSPECT_LAYER4_H

/* Connections whose bytes nobody reads (layer4.c). */
#include "inspector/config/config.h"
#include "inspector/handover/handover.h"
#include "inspector/packet/packet.h"
#include "inspector/policy/policy.h"
#include "kmod/core/abi.h"

#define ES_LAYER4_CASES	     256
#define ES_LAYER4_PACKET_MAX 100 /* both headers, IPv6 without extensions; longer packets are not repeated */

/**
 * struct es_layer4_case - the ACK of a handshake that was given to @node, which has not said that it has the
 * connection
 * @attempt, @options: as they were in the message
 * @due_ns: when the message is repeated, 0: the case is free; @tries: how often it was
 */
struct es_layer4_case {
	__u64 flow_hash;
	unsigned long long due_ns;
	unsigned int service, node, attempt, tries;
	struct es_tcp_options options;
	size_t len;
	uint8_t packet[ES_LAYER4_PACKET_MAX];
};

/**
 * struct es_layer4 - all that layer4.c keeps
 * @next: the case to use next; the oldest one makes room
 * @unserved_ns: until when this node is known not to serve a service, for clients of IPv4 and of IPv6
 */
struct es_layer4 {
	struct es_layer4_case given[ES_LAYER4_CASES];
	unsigned int next;
	unsigned long long unserved_ns[ES_CONF_SERVICES_MAX][ES_CONF_FAMILIES];
};

struct es_inspector;
struct es_known;

/**
 * es_inspect_layer4() - a new connection that is not simply this node's
 * @packet: the ACK of its handshake, or its client's first bytes
 */
void es_inspect_layer4(struct es_inspector *in, const struct es_record *record,
		       const struct es_ip_packet *packet, const struct es_known *known);

/**
 * es_inspect_layer4_route() - the node for such a connection
 * Returns -1 if there is none; ES_ROUTE_MORE if no node takes it before its client's first bytes.
 */
int es_inspect_layer4_route(struct es_inspector *in, unsigned int service, struct es_request_view *request,
			    const struct es_ip_packet *packet);

/* es_inspect_layer4_given() - it was sent to @target: an ACK alone is repeated until that node answers */
void es_inspect_layer4_given(struct es_inspector *in, __u64 flow_hash, const struct es_ip_packet *packet,
			     const struct es_handover_order *order, unsigned int target);

/* es_inspect_layer4_answered() - @node says that it has the connection, or that it refuses it */
void es_inspect_layer4_answered(struct es_inspector *in, __u64 flow_hash, unsigned int node);

/* es_inspect_layer4_due() - repeat the handshakes that have waited long enough for an answer */
void es_inspect_layer4_due(struct es_inspector *in);
void es_inspect_layer4_forget(struct es_inspector *in);

#endif
