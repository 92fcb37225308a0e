/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECT_SURVIVE_H
#define ES_INSPECT_SURVIVE_H

/* Requests on idle connections whose node is lost (survive.c). */
#include "inspector/packet/packet.h"
#include "kmod/core/abi.h"

/* struct es_survivor - a stray that is such a request unless some node has its connection, as a whole */
struct es_survivor {
	struct es_record record;
	uint8_t packet[];
};

enum es_survives {
	ES_SURVIVES_NOT,   /* nothing is known of its connection */
	ES_SURVIVES_LATER, /* its node may go on with it for a moment: it is to be repeated */
	ES_SURVIVES,	   /* unless some node has it */
};

struct es_inspector;

/**
 * es_inspect_survivor() - may a stray be a request on an idle connection of a lost node?
 * @ret_survivor: with ES_SURVIVES, the caller's, for es_inspect_survive() or free()
 */
enum es_survives es_inspect_survivor(struct es_inspector *in, const struct es_record *record,
				     const struct es_ip_packet *packet, struct es_survivor **ret_survivor);

/* es_inspect_survive() - no node has its connection: another one goes on with it, or its client is told */
void es_inspect_survive(struct es_inspector *in, const struct es_survivor *survivor);

#endif
