/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef ES_DAEMON_KEEPERS_H
#define ES_DAEMON_KEEPERS_H

/* The nodes that are told of a connection that this one has, so that they can go on with it. */
#include "inspector/peers/idle_flows.h"

struct es_conf;
struct es_daemon;

/*
 * es_daemon_service_of() - the index of the flow's service: the datapath's may be an older configuration's.
 * -1: of none
 */
int es_daemon_service_of(const struct es_conf *conf, const struct es_flow *flow);

/*
 * es_daemon_keepers_of() - the node that inspects the flow, or will when @but is gone, which has the
 * connection (ES_NODE_NONE: no node of the ring has it); and with two @copies the next one
 */
void es_daemon_keepers_of(const struct es_daemon *daemon, __u64 flow_hash, unsigned int copies, __u16 but,
			  __u16 ret[ES_KEEPERS_MAX]);

#endif
