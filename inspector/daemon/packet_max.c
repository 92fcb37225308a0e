// SPDX-License-Identifier: GPL-2.0-or-later
/* Keeps the length of packets in handover messages within what all nodes' networks take. */
#include <string.h>
#include "inspector/base/clock.h"
#include "inspector/base/log.h"
#include "inspector/daemon/heard.h"
#include "inspector/daemon/internal.h"
#include "inspector/daemon/packet_max.h"
#include "membership/wire.h"

/* A node that leaves out so many of its words, one a second, is gone, and limits nobody. */
#define WORD_NS (5 * 1000000000ULL)

/* Is what @node said last still so? */
static int is_told(const struct es_daemon *d, unsigned int node, unsigned long long now_ns)
{
	const struct es_daemon_packet_max *p = d->packet_max;

	return p->told[node] && now_ns - p->told_ns[node] < WORD_NS;
}

static unsigned int least(const struct es_daemon *d)
{
	unsigned long long now_ns = es_clock_now_ns();
	unsigned int packet_max = d->network.packet_max;

	for (unsigned int i = 0; i < d->conf->node_count; i++)
		if (is_told(d, i, now_ns) && d->packet_max->told[i] < packet_max)
			packet_max = d->packet_max->told[i];
	return packet_max < ES_NETWORK_PACKET_MIN ? ES_NETWORK_PACKET_MIN : packet_max;
}

static void put_in_force(struct es_daemon *d)
{
	unsigned int before = d->packet_max->in_force, now = least(d);
	int rc;

	if (now == before)
		return;
	d->packet_max->in_force = now;
	rc = es_daemon_configure(d, d->cluster, &d->keys);
	if (rc) {
		d->packet_max->in_force = before; /* and again with the next look */
		es_log(ES_LOG_ERR, "datapath: another MTU cannot be put in force: %s", strerror(-rc));
		return;
	}
	es_log(ES_LOG_INFO,
	       "the MTU allows packets of %u bytes in handover messages, %u before: the MSS is %u", now,
	       before, es_network_mss(now));
}

void es_daemon_packet_max_begin(struct es_daemon *d)
{
	d->packet_max->before = d->network.packet_max;
	d->packet_max->in_force = least(d);
}

void es_daemon_packet_max_look(struct es_daemon *d)
{
	put_in_force(d);
}

void es_daemon_packet_max_heard(struct es_daemon *d, unsigned int node, unsigned int packet_max)
{
	d->packet_max->told[node] = packet_max;
	d->packet_max->told_ns[node] = es_clock_now_ns();
	put_in_force(d);
}

unsigned int es_daemon_packet_max_expected(const struct es_daemon *d)
{
	for (unsigned int i = 0; i < d->conf->node_count; i++)
		if (i != d->cluster->self && es_heard_within(d->heard, i, 2 * ES_SILENCE_NS) &&
		    !(atomic_load_explicit(&d->health.understands[i], memory_order_relaxed) &
		      ES_WIRE_UNDERSTANDS_FATE) &&
		    d->packet_max->before > d->network.packet_max)
			return d->packet_max->before;
	return d->network.packet_max;
}
