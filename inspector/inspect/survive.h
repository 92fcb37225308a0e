/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_INSPECT_SURVIVE_H
#define ES_INSPECT_SURVIVE_H

/* Requests on idle connections whose node is lost (survive.c). */
#include "inspector/packet/packet.h"
#include "kmod/core/abi.h"

/* A request with one of these is left to its client. */
#define ES_SURVIVOR_FLAGS_REFUSED (ES_TCP_FIN | ES_TCP_SYN | ES_TCP_RST | ES_TCP_URG)

/*
 * struct es_survivor - the first segment of such a request, unless some node has its connection, as a whole
 */
struct es_survivor {
	struct es_record record;
	uint8_t packet[];
};

enum es_survives {
	ES_SURVIVES_NOT,   /* nothing is known of its connection */
	ES_SURVIVES_OWNED, /* its node is not known to be lost; it may be by the time that all are asked */
	ES_SURVIVES_LATER, /* not now: its node has a lease still, or the rest of it is awaited */
	ES_SURVIVES,	   /* unless some node has it */
};

struct es_inspector;

/**
 * es_inspect_survivor() - may a stray be of a request on an idle connection of a lost node?
 * @ret_survivor: with ES_SURVIVES, the caller's, for es_inspect_survive() or free()
 */
enum es_survives es_inspect_survivor(struct es_inspector *in, const struct es_record *record,
				     const struct es_ip_packet *packet, struct es_survivor **ret_survivor);

/* es_inspect_survive() - no node has its connection: another one goes on with it, or its client is told */
void es_inspect_survive(struct es_inspector *in, const struct es_survivor *survivor);

/* es_inspect_lives() - a node has the flow's connection, so no other goes on with it */
void es_inspect_lives(struct es_inspector *in, __u64 flow_hash);

#endif
