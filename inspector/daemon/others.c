// SPDX-License-Identifier: GPL-2.0-or-later
/* Counts which other nodes serve a service. */
#include "inspector/daemon/daemon.h"
#include "inspector/daemon/heard.h"
#include "inspector/daemon/others.h"
#include "inspector/daemon/serving.h"

/* Without membership, a node that says nothing may be dead. */
static int is_heard(const struct es_daemon *d, unsigned int node)
{
	return d->membership || es_heard_within(d->heard, node, 2 * ES_SILENCE_NS);
}

/* May @node be given requests, as far as its machine, its daemon and its operator are concerned? */
static int is_there(const struct es_daemon *d, unsigned int node)
{
	enum es_node_state state = es_health_state(&d->health, node);

	return d->cluster->weight[node] && (state == ES_NODE_UP || state == ES_NODE_DOWN) &&
	       is_heard(d, node);
}

/* A node tells of each service what is wrong with it; any other trouble concerns all its services. */
static int serves(const struct es_daemon *d, unsigned int node, unsigned int service)
{
	unsigned int trouble = d->serving->trouble[node];

	return es_conf_service_is_on(&d->conf->services[service], node) &&
	       !(d->serving->failing[node] >> service & 1) &&
	       (trouble == ES_TROUBLE_NONE || trouble == ES_TROUBLE_CHECK || trouble == ES_TROUBLE_OUTLIER ||
		trouble == ES_TROUBLE_VANISHING || trouble == ES_TROUBLE_KEPT);
}

/* Is it out for @service, or does it claim a place? */
static int is_out(const struct es_daemon *d, unsigned int node, unsigned int service)
{
	unsigned int trouble = d->serving->trouble[node];

	return (d->serving->failing[node] >> service & 1) && d->serving->yields[node] &&
	       (trouble == ES_TROUBLE_NONE || trouble == ES_TROUBLE_OUTLIER ||
		trouble == ES_TROUBLE_VANISHING || trouble == ES_TROUBLE_CHECK || trouble == ES_TROUBLE_KEPT);
}

int es_daemon_another_serves(const struct es_daemon *d, unsigned int service)
{
	for (unsigned int i = 0; i < d->conf->node_count; i++) {
		enum es_node_state state = es_health_state(&d->health, i);

		if (i != d->cluster->self && d->cluster->weight[i] &&
		    (state == ES_NODE_UP || state == ES_NODE_DRAINING) && serves(d, i, service) &&
		    is_heard(d, i))
			return 1;
	}
	return 0;
}

struct es_place_others es_daemon_others(const struct es_daemon *d, unsigned int service)
{
	struct es_place_others others = {};
	unsigned int self = d->cluster->self;

	for (unsigned int i = 0; i < d->conf->node_count; i++) {
		if (i == self || !d->conf->nodes[i].weight ||
		    !es_conf_service_is_on(&d->conf->services[service], i))
			continue;
		others.count++;
		if (!is_there(d, i))
			others.away++;
		else if (is_out(d, i, service))
			*(i < self ? &others.before : &others.after) += 1;
		else
			others.away += !serves(d, i, service) || es_health_state(&d->health, i) != ES_NODE_UP;
	}
	return others;
}
