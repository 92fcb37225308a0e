/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_NODE_LOAD_H
#define ES_NODE_LOAD_H

/*
 * How busy this machine is, and whether its server listens, as the kernel tells it.
 */
#include "inspector/config.h"

/* struct es_node_load - @last_*: for the next reading */
struct es_node_load {
	unsigned int cpu; /* busy share since the last reading, 1/1000 */
	unsigned long long last_busy;
	unsigned long long last_total;
};

/* es_node_load_read() - what cannot be read keeps its value */
void es_node_load_read(struct es_node_load *load);

/* es_node_listens() - does anybody listen on one of the services? 1 also if the kernel does not tell. */
int es_node_listens(const struct es_conf *conf);

#endif
