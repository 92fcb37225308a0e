// SPDX-License-Identifier: GPL-2.0-or-later
/* Keepers, by the ring in force. */
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/keepers.h"

int es_daemon_service_of(const struct es_conf *conf, const struct es_flow *flow)
{
	for (unsigned int i = 0; i < conf->service_count; i++)
		if (es_conf_service_has(&conf->services[i], &flow->service) &&
		    conf->services[i].port == es_ntohs(flow->service_port))
			return (int)i;
	return -1;
}

void es_daemon_keepers_of(const struct es_daemon *d, __u64 flow_hash, unsigned int copies, __u16 but,
			  __u16 ret[ES_KEEPERS_MAX])
{
	struct es_ring_walk walk;
	unsigned int count = 0;
	__u16 node;

	ret[0] = ret[1] = ES_NODE_NONE;
	es_ring_walk_init(&walk, d->cluster->ring, es_ring_flow_position(flow_hash));
	while (count < copies && count < ES_KEEPERS_MAX && es_ring_walk_next(&walk, &node))
		if (node != but)
			ret[count++] = node;
}
