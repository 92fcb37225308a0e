/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_SERVING_H
#define ES_SERVING_H

/*
 * Can this node serve? A connection that is made here without what serving takes is never heard of again, so
 * that is looked at each second: whether the service's address is here, whether something listens that the
 * kernel can make connections for, and the settings with which it would drop what another node hands over.
 */
#include "inspector/config/config.h"
#include "inspector/datapath/datapath.h"
#include "membership/node_state.h"

/**
 * struct es_serving - what was found
 * @refused: a bit for each service for which no connection may be made here (kmod/core/serving.h); where only
 * no server listens, the datapath sees that itself
 * @is_down: none of the services can be served
 * @trouble, @text: the first thing that is wrong, be it with one service; and in a line what it is, and what to
 * do
 */
struct es_serving {
	__u64 refused;
	int is_down;
	enum es_trouble trouble;
	char text[320];
};

/* es_serving_look() - @packet_max: of the handover messages that nodes may send here */
void es_serving_look(const struct es_conf *conf, enum es_datapath_kind kind, unsigned int packet_max,
		     struct es_serving *ret);

/* What a trouble is, in some words, "" for none: all that is known of another node's. */
const char *es_trouble_text(unsigned int trouble);

#endif
